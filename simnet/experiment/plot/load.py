"""How busy resources are in the course of a run."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from simnet.experiment.plot.drawn import Drawn
from simnet.experiment.plot.style import COLOURS
from simnet.experiment.plot.timeline import NO_TIMELINE, time_unit

__all__ = ["utilisation"]

_MOST = 8


def utilisation(result: Drawn, *, most: int = _MOST) -> Figure:
    """Return the utilisation of the busiest resources over time, one below the other.

    Parameters
    ----------
    result : Result
        Of ``simnet.run(..., timeline=True)``.
    most : int
        How many resources at most.

    Raises
    ------
    ValueError
        The run has no timeline.
    """
    if result.load is None:
        raise ValueError(NO_TIMELINE)
    names = list(dict.fromkeys(result.load["resource"]))[:most]
    lines = max(len(names), 1)
    figure = Figure(figsize=(7.2, 1.1 + 0.5 * lines), layout="constrained")
    panes = figure.subplots(lines, 1, sharex=True, squeeze=False)[:, 0]
    end_s = float((result.load["time_s"] + result.load["duration_s"]).max()) if names else 1.0
    scale, unit = time_unit(end_s)
    for pane, name in zip(panes, names, strict=False):
        own = result.load[result.load["resource"] == name]
        times_s = np.append(own["time_s"].to_numpy(), end_s) / scale
        pane.stairs(own["utilisation"].to_numpy(), times_s, fill=True, color=COLOURS[0], linewidth=0)
        pane.set_ylim(0, 1)
        pane.set_yticks([0, 1], labels=["0 %", "100 %"], fontsize=6)
        pane.spines[["top", "right"]].set_visible(False)
        pane.grid(axis="x", alpha=0.3)
        pane.text(0.005, 0.93, name, transform=pane.transAxes, va="top", fontsize=8).set_bbox(
            {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.0}
        )
    if not names:
        panes[0].text(0.5, 0.5, "nothing was used", transform=panes[0].transAxes, ha="center")
    panes[0].set_title("utilisation of the busiest resources", fontsize="medium")
    panes[-1].set_xlabel(f"simulated time [{unit}]")
    panes[-1].set_xlim(0, end_s / scale)
    return figure
