"""Plays whose times are foreseen, by a recurrence or from memory, and what is known of them while their time passes.

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

from simnet.fabric.connections import Beginning
from simnet.fabric.kernels.tables import Tables
from simnet.fabric.placement import Placement
from simnet.fabric.recurrence import Outcome, Recurrence, evaluate, recurrence_of
from simnet.fabric.repeats import Repeats, is_usual
from simnet.fabric.settings import EngineSettings

if TYPE_CHECKING:
    from simnet.fabric.play import Play

__all__ = ["Foreseen", "Foresight"]


@dataclass(eq=False)
class Foreseen:
    """A play that is foreseen.

    Attributes
    ----------
    play : Play
    recurrence : Recurrence or None
        None where it is foreseen from memory.
    begun : when it was submitted, on the fabric's clock [s]
    first : what is done about connections before the first firing
    gate_s : when each rank joined, after the submission, NaN before it has, shape (ranks,) [s]
    outcome : what becomes of it; None until all ranks have joined
    watched : ranks that somebody waits for and that are not complete
    worked_out : messages whose times were worked out for it; 0 where an earlier play's serve
    """

    play: Play
    recurrence: Recurrence | None
    begun: float
    first: Beginning
    gate_s: NDArray[np.float64]
    outcome: Outcome | None = None
    watched: set[int] = field(default_factory=set)
    worked_out: int = 0

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

    def is_complete(self, rank: int, now: float) -> bool:
        """Tell whether a rank is complete at a time on the fabric's clock."""
        return self.outcome is not None and bool(self.begun + self.outcome.complete_s[rank] <= now)

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


class Foresight:
    """The plays of a fabric that are foreseen, and what is kept of earlier ones.

    Parameters
    ----------
    engine : EngineSettings

    Attributes
    ----------
    plays : list of Foreseen
    repeats : Repeats
        Of plays that are not foreseen by a recurrence.
    messages : messages of foreseen plays that are over
    simulated_messages : those of them whose times were worked out one by one
    """

    def __init__(self, engine: EngineSettings) -> None:
        self.plays: list[Foreseen] = []
        self.messages = 0
        self.simulated_messages = 0
        self.repeats = Repeats()
        self._engine = engine
        self._recurrences: dict[Placement, Recurrence | None] = {}
        self._outcomes: dict[Placement, Outcome | None] = {}

    def take(self, play: Play, tables: Tables, first: Beginning, *, gates_open: bool) -> bool:
        """Take on a play that shares nothing with others; tell whether it can be foreseen.

        Parameters
        ----------
        play : Play
        tables : Tables
            Capacities and costs.
        first : Beginning
            What is done about connections before the first firing.
        gates_open : bool
            Whether all ranks join at once; otherwise none may be complete before the last has joined.
        """
        placement = play.placement
        recurrence = self._recurrence(placement, tables) if gates_open or placement.schedule.joint else None
        known = self._engine.repeats and self.repeats.recall(placement) is not None and is_usual(first)
        if recurrence is None and not known:
            return False
        gate_s = np.full(placement.schedule.ranks, math.nan)
        self.plays.append(Foreseen(play, recurrence, play.begun, first, gate_s))
        return True

    def _recurrence(self, placement: Placement, tables: Tables) -> Recurrence | None:
        if not self._engine.recurrence:
            return None
        if placement not in self._recurrences:
            self._recurrences[placement] = recurrence_of(placement, tables.resources["capacity"], tables.costs)
        return self._recurrences[placement]

    def watch(self, play: Play, first: Beginning, tables: Tables) -> None:
        """Have an eye on a play that shares nothing, could not be foreseen, and may come again."""
        if self._engine.repeats:
            self.repeats.watch(play, first, tables)

    def unsure(self) -> list[Foreseen]:
        """Return the plays from memory that not all ranks have joined: they join at once, or are to be played."""
        return [one for one in self.plays if one.recurrence is None and one.outcome is None]

    def find(self, play: Play) -> Foreseen | None:
        """Return what is foreseen of a play; None where it is not."""
        return next((foreseen for foreseen in self.plays if foreseen.play is play), None)

    def using(self, resources: NDArray[np.int64], nodes: NDArray[np.int64]) -> list[Foreseen]:
        """Return the plays that use one of some resources or nodes."""
        return [
            foreseen
            for foreseen in self.plays
            if np.isin(resources, foreseen.play.placement.used_resources).any()
            or np.isin(nodes, foreseen.play.placement.used_nodes).any()
        ]

    def work_out(self, foreseen: Foreseen) -> bool:
        """Work out the times of a play that all ranks have joined; tell whether that can be done."""
        placement = foreseen.play.placement
        if foreseen.recurrence is None:
            foreseen.outcome = None if foreseen.gate_s.any() else self.repeats.recall(placement)
            return foreseen.outcome is not None
        # The same play comes again and again: from all ranks at once, over connections that are open.
        usual = not foreseen.first.setup_s.any() and not foreseen.gate_s.any()
        if usual and placement in self._outcomes:
            foreseen.outcome = self._outcomes[placement]
            return foreseen.outcome is not None
        first_setup_s = placement.operations["first_setup"] + foreseen.first.setup_s
        foreseen.outcome = evaluate(
            foreseen.recurrence, foreseen.gate_s, first_setup_s, skip_periods=self._engine.skip_periods
        )
        if usual:
            self._outcomes[placement] = foreseen.outcome
        if foreseen.outcome is not None:
            foreseen.worked_out = foreseen.outcome.simulated
        return foreseen.outcome is not None

    def next_completion(self) -> float:
        """Return when the next completion that somebody waits for is due, on the fabric's clock; infinite if none."""
        return min((foreseen.next_completion() for foreseen in self.plays), default=math.inf)

    def completions(self, now: float) -> list[tuple[Play, list[int]]]:
        """Take the ranks that are complete at a time on the fabric's clock, by play and in order."""
        found: list[tuple[Play, list[int]]] = []
        for foreseen in self.plays:
            play, ranks = foreseen.play, foreseen.complete_until(now)
            if len(ranks) and foreseen.outcome is not None:
                play.rank_duration_s[ranks] = foreseen.outcome.complete_s[ranks]
                foreseen.watched.difference_update(ranks.tolist())
                found.append((play, ranks.tolist()))
        return found

    def transfer_s(self, node: int, now: float) -> float | None:
        """Return for how long a node had transfers under way, or None where only playing them tells [s]."""
        total = 0.0
        for foreseen in self.plays:
            for rank in np.flatnonzero(foreseen.play.placement.nodes == node).tolist():
                known = foreseen.transfer_s(rank, now)
                if known is None:
                    return None
                total += known
        return total

    def close(self, foreseen: Foreseen, tables: Tables) -> None:
        """Add a play that is over to the counters, and forget it."""
        outcome, placement, clock = foreseen.outcome, foreseen.play.placement, tables.clock
        assert outcome is not None
        taken = placement.resource_bytes
        tables.resources["carried"][list(taken)] += list(taken.values())
        tables.resources["busy"][placement.used_resources] += outcome.busy_s
        np.add.at(tables.devices["busy"], placement.nodes, outcome.transfer_s)
        sent = placement.schedule.all_bytes
        clock["sent_bytes"] += sent
        clock["delivered_bytes"] += sent
        self.messages += placement.schedule.messages()
        self.simulated_messages += foreseen.worked_out
        self.plays.remove(foreseen)

    def forget(self, placement: Placement) -> None:
        """Forget what is kept of earlier plays of a placement."""
        self._recurrences.pop(placement, None)
        self._outcomes.pop(placement, None)
        self.repeats.forget(placement)

    def forget_capacities(self) -> None:
        """Work everything out anew: what is alone on its resources with one capacity may not be with another."""
        self._recurrences.clear()
        self._outcomes.clear()
        self.repeats.forget_all()
