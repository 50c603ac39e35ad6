"""Which exchange goes next: streams, announcement, and who waits for what.

A collective enters the queue when all workers have announced it. The head of the queue, by (priority, announcement,
name), starts on all ranks when the stream is free.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import simpy

from simnet.engine.recorder import Recorder
from simnet.fabric.interface import Fabric, Placed
from simnet.fabric.play import Play
from simnet.training.records import CollectiveRow

__all__ = ["Communicator", "Exchange"]


@dataclass(frozen=True)
class Exchange:
    """What is exchanged for one bucket.

    Parameters
    ----------
    algorithm : str
    size_bytes : float
        Of the bucket [bytes].
    placement : Placed
    priority : int
        The smaller goes first.
    """

    algorithm: str
    size_bytes: float
    placement: Placed
    priority: int = 0


@dataclass
class _Collective:
    """One exchange of one iteration on its way."""

    iteration: int
    bucket: int
    started: simpy.Event
    missing: int  # workers that have not announced it
    waiting: int  # workers that have not seen it through
    announced_s: float = 0.0
    play: Play | None = None


@dataclass
class Communicator:
    """The exchanges of one group of workers, on one stream.

    Parameters
    ----------
    env : simpy.Environment
    fabric : Fabric
    recorder : Recorder
    job : str
        Name of the job, for records.
    workers : int
        Ranks 0 .. workers - 1 announce; other ranks of the schedules (servers) are always ready.
    exchanges : sequence of Exchange
        One a bucket.
    """

    env: simpy.Environment
    fabric: Fabric
    recorder: Recorder
    job: str
    workers: int
    exchanges: Sequence[Exchange]
    _collectives: dict[tuple[int, int], _Collective] = field(default_factory=dict)
    _queue: list[tuple[int, int, str, _Collective]] = field(default_factory=list)
    _announcements: int = 0
    _running: _Collective | None = None
    _busy_since: float = 0.0
    _busy_s: float = 0.0

    def announce(self, iteration: int, bucket: int) -> None:
        """Say that a worker has a bucket of an iteration ready; each worker says it once."""
        collective = self._collective(iteration, bucket)
        collective.missing -= 1
        if collective.missing == 0:
            collective.announced_s = self.env.now
            self._announcements += 1
            priority = self.exchanges[bucket].priority
            heappush(self._queue, (priority, self._announcements, self._name(collective), collective))
            self._start_next()

    def finish(self, iteration: int, bucket: int, rank: int) -> Generator[simpy.Event, Play, None]:
        """Wait until an exchange is complete on a rank; each worker waits once."""
        collective = self._collective(iteration, bucket)
        if collective.play is None:
            yield collective.started
        assert collective.play is not None
        if not collective.play.is_complete_on(rank):
            yield collective.play.rank_complete(rank)
        collective.waiting -= 1
        if collective.waiting == 0:
            del self._collectives[iteration, bucket]

    def busy_s(self) -> float:
        """Return for how long an exchange has been under way since the beginning [s]."""
        return self._busy_s + (self.env.now - self._busy_since if self._running else 0.0)

    def _collective(self, iteration: int, bucket: int) -> _Collective:
        found = self._collectives.get((iteration, bucket))
        if found is None:
            found = self._collectives[iteration, bucket] = _Collective(
                iteration, bucket, self.env.event(), missing=self.workers, waiting=self.workers
            )
        return found

    def _name(self, collective: _Collective) -> str:
        algorithm = self.exchanges[collective.bucket].algorithm
        return f"{self.job}: {algorithm} of bucket {collective.bucket} in iteration {collective.iteration}"

    def _start_next(self) -> None:
        if self._running or not self._queue:
            return
        *_, name, collective = heappop(self._queue)
        exchange = self.exchanges[collective.bucket]
        self._running = collective
        self._busy_since = self.env.now
        collective.play = self.fabric.play(exchange.placement, name)
        collective.started.succeed()
        collective.play.complete.callbacks.append(self._on_complete(collective))

    def _on_complete(self, collective: _Collective) -> Callable[[simpy.Event], None]:
        def end(_: simpy.Event) -> None:
            play, exchange = collective.play, self.exchanges[collective.bucket]
            assert play is not None
            self._busy_s += self.env.now - self._busy_since
            self._running = None
            schedule = exchange.placement.schedule
            self.recorder.add(
                CollectiveRow(
                    self.job,
                    collective.iteration,
                    collective.bucket,
                    exchange.algorithm,
                    exchange.size_bytes,
                    collective.announced_s,
                    play.started_at_s,
                    play.duration_s,
                    schedule.messages(),
                    float(schedule.operation_bytes().sum()),
                )
            )
            self._start_next()

        return end
