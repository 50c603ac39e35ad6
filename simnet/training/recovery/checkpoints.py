"""When the state of training is written, and what a crash would find of it.

Workers in step write what they have after each so many iterations. Where workers go on by themselves, what they have
done together counts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Protocol

import simpy

from simnet.engine.waits import Waits
from simnet.training.communication.staleness import Clocks
from simnet.training.recovery.settings import Checkpoint
from simnet.training.recovery.state import Holder, Share, State, Store

__all__ = ["AloneCheckpoints", "Checkpoints", "InStepCheckpoints"]


class Checkpoints(Protocol):
    """What workers ask before each iteration.

    Attributes
    ----------
    count : int
        How many are complete, of those that are measured.
    """

    count: int

    def before(self, rank: int, iteration: int) -> Waits:
        """Begin to write what is to be written before an iteration, and wait as long as that takes."""

    def leave(self, holder: Holder) -> None:
        """Take note that one of those who write is not there any more; what it has begun to write is void."""


@dataclass
class _Writing:
    """A checkpoint on its way."""

    missing: int  # workers that have not got there, and shares that are not written
    complete: simpy.Event


@dataclass
class InStepCheckpoints:
    """Checkpoints of workers in step: the state behind the same iteration of all.

    Each writes when it gets there. A checkpoint counts when all have got there and the last of its shares is written;
    whoever comes to the next before its share of the one before is written waits for that, as only one copy is kept
    (J. Mohan, A. Phanishayee, V. Chidambaram, "CheckFreq: frequent, fine-grained DNN checkpointing", FAST 2021).

    Parameters
    ----------
    env : simpy.Environment
    settings : Checkpoint
    store : Store
    state : State
    counts : callable
        Tells whether what is complete now is measured.
    workers : int

    Attributes
    ----------
    iteration : int
        With which training goes on from the last complete checkpoint; 0 where there is none yet.
    """

    env: simpy.Environment
    settings: Checkpoint
    store: Store
    state: State
    counts: Callable[[], bool]
    workers: int
    iteration: int = 0
    count: int = 0
    _under_way: dict[int, _Writing] = field(default_factory=dict)
    _writes: dict[Holder, simpy.Process] = field(default_factory=dict)

    def before(self, rank: int, iteration: int) -> Waits:
        """Write the share of a worker, and those of servers if it is the first, where it is time to."""
        if iteration % self.settings.every or iteration <= self.iteration:
            return
        is_first = iteration not in self._under_way
        if is_first:
            self._under_way[iteration] = _Writing(self.workers + len(self.state.written), self.env.event())
        writing = self._under_way[iteration]
        for share in self.state.written:
            if share.holder == ("worker", rank) or (is_first and share.holder.kind == "server"):
                before = self._writes.get(share.holder)
                if before is not None and before.is_alive:
                    yield before
                self._writes[share.holder] = self.env.process(self._write(writing, iteration, share))
        self._count_down(writing, iteration)
        if self.settings.blocking:
            yield writing.complete

    def leave(self, holder: Holder) -> None:
        """Take note that one of those who write is not there any more."""
        writes = self._writes.pop(holder, None)
        if writes is not None and writes.is_alive:
            writes.interrupt()

    def abandon(self) -> None:
        """Forget what is not complete, as all begin again from what is."""
        for holder in list(self._writes):
            self.leave(holder)
        self._under_way.clear()

    def _write(self, writing: _Writing, iteration: int, share: Share) -> Waits:
        try:
            yield from self.store.write(self.state.node[share.holder], share.size_bytes)
        except simpy.Interrupt:
            return
        self._count_down(writing, iteration)

    def _count_down(self, writing: _Writing, iteration: int) -> None:
        writing.missing -= 1
        if writing.missing == 0:
            self._under_way.pop(iteration, None)
            self.iteration = max(self.iteration, iteration)
            self.count += self.counts()
            writing.complete.succeed()


@dataclass
class AloneCheckpoints:
    """Checkpoints of workers that go on by themselves: after so many iterations of all together.

    Parameters
    ----------
    env, settings, store, state, counts
        As of `InStepCheckpoints`.
    clocks : Clocks
    workers : int

    Attributes
    ----------
    updates : dict of Holder to int
        Updates that the last complete checkpoint of each server, or worker, knows of.
    """

    env: simpy.Environment
    settings: Checkpoint
    store: Store
    state: State
    counts: Callable[[], bool]
    clocks: Clocks
    workers: int
    count: int = 0
    updates: dict[Holder, int] = field(default_factory=dict)
    _due: int = field(init=False)
    _complete: simpy.Event | None = None
    _writes: dict[Holder, simpy.Process] = field(default_factory=dict)
    _away: set[Holder] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._due = self.settings.every * self.workers

    def before(self, rank: int, iteration: int) -> Waits:  # noqa: ARG002
        """Have all shares written where it is time to."""
        if self.clocks.updates >= self._due and self._complete is None:
            each = self.settings.every * self.workers
            self._due = (self.clocks.updates // each + 1) * each
            self._complete = self.env.process(self._write_all())
        if self._complete is not None and self.settings.blocking:
            yield self._complete

    def leave(self, holder: Holder) -> None:
        """Take note that one of those who write is not there any more."""
        self._away.add(holder)
        writes = self._writes.pop(holder, None)
        if writes is not None and writes.is_alive:
            writes.interrupt()

    def join(self, holder: Holder) -> None:
        """Take note that one of those who write is back."""
        self._away.discard(holder)

    def _write_all(self) -> Waits:
        updates = self.clocks.updates
        shares = [share for share in self.state.written if share.holder not in self._away]
        self._writes = {share.holder: self.env.process(self._write(share)) for share in shares}
        written = list(self._writes.values())
        yield self.env.all_of(written)
        self._complete = None
        if all(one.value for one in written):
            self.updates |= dict.fromkeys((share.holder for share in shares), updates)
            self.count += self.counts()

    def _write(self, share: Share) -> Generator[simpy.Event, object, bool]:
        """Write a share; return whether it was written to the end."""
        try:
            yield from self.store.write(self.state.node[share.holder], share.size_bytes)
        except simpy.Interrupt:
            return False
        return True
