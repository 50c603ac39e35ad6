"""Pictures of one result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simnet.experiment.plot.bars import breakdown
from simnet.experiment.plot.load import utilisation
from simnet.experiment.plot.timeline import timeline
from simnet.experiment.plot.topology import draw_topology

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simnet.experiment.plot.drawn import Drawn
    from simnet.topology import Topology

__all__ = ["ResultPlots", "topology_of"]


class ResultPlots:
    """What `Result.plot` gives: methods that return matplotlib figures.

    Parameters
    ----------
    result : Result
    """

    def __init__(self, result: Drawn) -> None:
        self._result = result

    def breakdown(self) -> Figure:
        """Return where an iteration's time goes: a bar for each job."""
        return breakdown(self._result.summary, ["job"], title=str(self._result.summary["scenario"].iloc[0]))

    def timeline(self, *, job: str | None = None, iteration: int | None = None) -> Figure:
        """Return one iteration of a group of workers, and its exchanges; see `simnet.experiment.plot.timeline`.

        Raises
        ------
        ValueError
            The run has no timeline, or not that job or iteration.
        """
        return timeline(self._result, job=job, iteration=iteration)

    def topology(self) -> Figure:
        """Return a drawing of the topology, with links coloured by utilisation.

        Raises
        ------
        InputError
            The topology is in a file that is not there any more.
        """
        return draw_topology(topology_of(self._result), self._result.links)

    def utilisation(self) -> Figure:
        """Return how busy the busiest resources are over time.

        Raises
        ------
        ValueError
            The run has no timeline.
        """
        return utilisation(self._result)


def topology_of(result: Drawn) -> Topology:
    """Return the topology of a result, built anew from its scenario.

    Raises
    ------
    InputError
        It is in a file that is not there any more.
    """
    from simnet.scenario import TopologySpec, build_topology

    return build_topology(TopologySpec.model_validate(result.scenario["topology"]))
