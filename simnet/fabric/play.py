"""A schedule that is being played, or was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.alarm import URGENT, Alarm
from simnet.fabric.network import Network

if TYPE_CHECKING:
    from simnet.fabric.placement import Placement

__all__ = ["Play", "PlayingFabric"]


class PlayingFabric(Protocol):
    """What a play asks of the fabric that plays it."""

    env: simpy.Environment
    network: Network

    def watch(self, play: Play, rank: int) -> None:
        """Have the event of a rank happen when it is complete."""

    def is_complete(self, play: Play, rank: int) -> bool:
        """Tell whether a rank of a play is complete."""

    def open_gates(self, play: Play, ranks: NDArray[np.int64]) -> None:
        """Let ranks join a play."""


class Play:
    """A schedule that is being played, or was.

    Attributes
    ----------
    name : str
    placement : Placement
    complete : simpy.Event
        Happens when the last rank is complete; its value is the play.
    started_at_s : float
        When it was submitted [s].
    rank_duration_s : ndarray, shape (ranks,)
        From the submission until each rank is complete, NaN before; exact, as it never passed through the SimPy clock.
    lost_bytes : float
        Payload that was lost, and not sent again, when it is over [bytes].
    number, begun, rows, laid_out, rerouted, rank_events
        Of the fabric: which of its plays it is, when it was submitted on the fabric's clock, its rows in the kernel's
        tables, empty while it has none, how it is laid out now, the first hop and the resources of operations that
        were rerouted, and the events of ranks that somebody waits for.
    """

    def __init__(self, fabric: PlayingFabric, name: str, placement: Placement, number: int, begun: float) -> None:
        self.name = name
        self.placement = placement
        self.complete = Alarm(fabric.env)
        self.started_at_s: float = fabric.env.now
        self.rank_duration_s: NDArray[np.float64] = np.full(placement.schedule.ranks, math.nan)
        self.lost_bytes = 0.0
        self._fabric = fabric
        self.rows: dict[str, int] = {}
        self.number = number
        self.begun = begun
        self.laid_out = placement
        self.rerouted: dict[int, tuple[int, NDArray[np.int64]]] = {}
        self.rank_events: dict[int, Alarm] = {}

    @property
    def duration_s(self) -> float:
        """From the submission until the last rank is complete, NaN before [s]."""
        return float(self.rank_duration_s.max())

    def is_complete_on(self, rank: int) -> bool:
        """Tell whether a rank is complete."""
        return self._fabric.is_complete(self, rank)

    def rank_complete(self, rank: int) -> simpy.Event:
        """Return the event of one rank being complete; it may have happened."""
        event = self.rank_events.get(rank)
        if event is None:
            event = self.rank_events[rank] = Alarm(self._fabric.env)
            if self.is_complete_on(rank):
                event.set(0.0, URGENT, self)
            else:
                self._fabric.watch(self, rank)
        return event

    def open(self, ranks: Sequence[int] | NDArray[np.int64]) -> None:
        """Let ranks join that have not yet."""
        self._fabric.open_gates(self, np.asarray(ranks, dtype=np.int64))
