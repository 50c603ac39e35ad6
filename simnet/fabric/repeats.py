"""What became of plays that were played event by event: the same play, alone again, takes the same times.

An exchange of a training job comes again in each iteration. What its ranks, its flows and its messages do then follows
from its schedule, from what is known of its connections, and from capacities; so where nothing else shares what it
uses, and nothing about it is drawn at random, it need not be played again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.connections import Beginning
from simnet.fabric.kernels.tables import Tables
from simnet.fabric.placement import Placement
from simnet.fabric.play import Play
from simnet.fabric.recurrence import Outcome

__all__ = ["Repeats", "is_usual"]

_MOST_HANDED_OVER = 2


@dataclass(frozen=True, eq=False)
class _Before:
    """Counters when a play began, of its resources and of its nodes."""

    busy_s: NDArray[np.float64]
    transfer_s: NDArray[np.float64]


def is_usual(first: Beginning) -> bool:
    """Tell whether nothing is to be done about connections: they are open, and so are their windows."""
    return not first.setup_s.any() and not first.opens.any()


class Repeats:
    """Outcomes of plays that were played event by event and that nothing disturbed."""

    def __init__(self) -> None:
        self._outcomes: dict[Placement, Outcome] = {}
        self._handed_over: dict[Placement, int] = {}
        self._watched: dict[Play, _Before] = {}

    def recall(self, placement: Placement) -> Outcome | None:
        """Return what becomes of a placement whose ranks all join at once, None where that is not known."""
        return self._outcomes.get(placement)

    def watch(self, play: Play, first: Beginning, tables: Tables) -> None:
        """Have an eye on a play that is about to begin, and shares nothing."""
        placement = play.placement
        operations = placement.operations
        is_certain = not placement.is_random and np.isinf(operations["deadline"]).all()
        if is_certain and is_usual(first) and self._handed_over.get(placement, 0) < _MOST_HANDED_OVER:
            busy_s = tables.resources["busy"][placement.used_resources].copy()
            self._watched[play] = _Before(busy_s, tables.devices["busy"][placement.used_nodes].copy())

    def disturb(self, resources: NDArray[np.int64], nodes: NDArray[np.int64]) -> None:
        """Take no notice of what becomes of plays that use one of some resources or nodes."""
        for play in list(self._watched):
            placement = play.placement
            if np.isin(resources, placement.used_resources).any() or np.isin(nodes, placement.used_nodes).any():
                del self._watched[play]

    def turn_away(self, play: Play) -> None:
        """Take no notice of what becomes of a play."""
        self._watched.pop(play, None)

    def remember(self, play: Play, tables: Tables) -> None:
        """Remember what became of a play, which is over, if it was watched."""
        before = self._watched.pop(play, None)
        if before is None:
            return
        placement = play.placement
        devices = tables.devices[placement.used_nodes]
        # Ranks of one node have its transfers in common: the first of them stands for all.
        first = np.unique(placement.nodes, return_index=True)[1]
        transfer_s, end_s = np.zeros(len(placement.nodes)), np.full(len(placement.nodes), -math.inf)
        transfer_s[first] = devices["busy"] - before.transfer_s
        end_s[first] = devices["busy_since"] - play.begun
        self._outcomes[placement] = Outcome(
            play.rank_duration_s.copy(),
            transfer_s,
            end_s,
            np.full(len(placement.nodes), math.inf),
            tables.resources["busy"][placement.used_resources] - before.busy_s,
            0,
        )

    def hand_over(self, placement: Placement) -> None:
        """Take note that what was remembered of a placement had to be played after all; not to be relied on often."""
        times = self._handed_over[placement] = self._handed_over.get(placement, 0) + 1
        if times >= _MOST_HANDED_OVER:
            self._outcomes.pop(placement, None)

    def forget(self, placement: Placement) -> None:
        """Forget what is known of a placement."""
        self._outcomes.pop(placement, None)
        self._handed_over.pop(placement, None)

    def forget_all(self) -> None:
        """Forget everything, as capacities or paths have changed."""
        self._outcomes.clear()
        self._handed_over.clear()
        self._watched.clear()
