"""Plays whose times are foreseen by a recurrence, and what is known of them while their time passes.

A foreseen play takes no rows of the event kernel. When its last rank has joined, all its times are worked out; they
come true as time passes, unless something comes that shares what it uses: then it is played again, up to that instant,
by the event kernel, which takes over from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.recurrence import Outcome, Recurrence

if TYPE_CHECKING:
    from simnet.fabric.play import Play

__all__ = ["Foreseen"]


@dataclass(eq=False)
class Foreseen:
    """A play that is foreseen.

    Attributes
    ----------
    play : Play
    recurrence : Recurrence
    begun : when it was submitted, on the fabric's clock [s]
    first_setup_s : set-up of connections before the first firing, shape (operations,) [s]
    gate_s : when each rank joined, after the submission, NaN before it has, shape (ranks,) [s]
    outcome : what becomes of it; None until all ranks have joined
    watched : ranks that somebody waits for and that are not complete
    """

    play: Play
    recurrence: Recurrence
    begun: float
    first_setup_s: NDArray[np.float64]
    gate_s: NDArray[np.float64]
    outcome: Outcome | None = None
    watched: set[int] = field(default_factory=set)

    def join(self, ranks: Sequence[int] | NDArray[np.int64], now: float) -> bool:
        """Let ranks join; tell whether all have.

        Raises
        ------
        ValueError
            One of them has already.
        """
        if len(np.unique(ranks)) < len(ranks) or not np.isnan(self.gate_s[ranks]).all():
            raise ValueError(f"a rank has joined {self.play.name} already")
        self.gate_s[ranks] = now - self.begun
        return not np.isnan(self.gate_s).any()

    def joined(self) -> list[tuple[float, NDArray[np.int64]]]:
        """Return when which ranks have joined, in order of time."""
        times = np.unique(self.gate_s[~np.isnan(self.gate_s)])
        return [(self.begun + float(time), np.flatnonzero(self.gate_s == time)) for time in times]

    def next_completion(self) -> float:
        """Return when the next rank that somebody waits for is complete, or the last one, on the fabric's clock."""
        if self.outcome is None:
            return math.inf
        complete = self.outcome.complete_s
        awaited = min((float(complete[rank]) for rank in self.watched), default=math.inf)
        return self.begun + min(awaited, float(complete.max()))

    def complete_until(self, now: float) -> NDArray[np.int64]:
        """Return the ranks that are complete at a time on the fabric's clock."""
        if self.outcome is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self.begun + self.outcome.complete_s <= now)

    def transfer_s(self, rank: int, now: float) -> float | None:
        """Return for how long a rank had transfers under way until now, or None where only playing it tells."""
        since = now - self.begun
        if self.outcome is None:
            joined = self.gate_s[~np.isnan(self.gate_s)]
            return 0.0 if not len(joined) or since <= joined.min() else None
        end, gap = float(self.outcome.transfer_end_s[rank]), float(self.outcome.transfer_gap_s[rank])
        if since >= end:
            return float(self.outcome.transfer_s[rank])
        return float(self.outcome.transfer_s[rank]) - (end - since) if since >= gap else None
