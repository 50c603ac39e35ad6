"""How schedules are laid out on a network: once for the same schedule, nodes and condition of the network."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.network import Condition, Network
from simnet.fabric.placement import Placement, place
from simnet.traffic.deadlock import check_deadlock
from simnet.traffic.schedule import Schedule

__all__ = ["Placements"]

_MOST = 256  # that are remembered, those used last


class Placements:
    """The schedules that have been laid out on a network.

    Parameters
    ----------
    network : Network
    behaves : bool
        Whether flows have what follows from how a transport behaves; otherwise packets show it.
    forget : callable
        Told of each placement that is not remembered any more.
    """

    def __init__(self, network: Network, forget: Callable[[Placement], None], *, behaves: bool) -> None:
        self._network = network
        self._forget = forget
        self._behaves = behaves
        self._known: dict[tuple[int, bytes, str, Condition], Placement] = {}

    def place(
        self,
        schedule: Schedule,
        nodes: Sequence[int] | NDArray[np.int64],
        weight: float | NDArray[np.float64] = 1.0,
        deadline_s: float | NDArray[np.float64] = math.inf,
        *,
        owner: str = "",
    ) -> Placement:
        """Lay a schedule out; refuse one that would deadlock. See `simnet.fabric.placement.place`.

        It is done once if flows have the weight 1 and no deadline.
        """
        nodes = np.asarray(nodes, dtype=np.int64)
        if np.any(np.asarray(weight) != 1.0) or np.any(np.asarray(deadline_s) < math.inf):
            check_deadlock(schedule)
            return place(schedule, nodes, self._network, weight, deadline_s, owner=owner, behaves=self._behaves)
        key = (id(schedule), nodes.tobytes(), owner, self._network.condition)
        found = self._known.pop(key, None)
        if found is None:
            check_deadlock(schedule)
            found = place(schedule, nodes, self._network, owner=owner, behaves=self._behaves)
            if len(self._known) >= _MOST:
                self._forget(self._known.pop(next(iter(self._known))))
        self._known[key] = found
        return found

    def as_of_now(self, placement: Placement) -> Placement:
        """Return how the same is laid out in the present condition of the network."""
        if placement.condition == self._network.condition:
            return placement
        return self.place(
            placement.schedule, placement.nodes, placement.weight, placement.deadline_s, owner=placement.owner
        )
