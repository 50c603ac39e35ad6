"""Exchanges of workers that do not wait until all are ready: each pushes what it has, and pulls what there is.

A worker pushes each part of an iteration when it is ready. When that has arrived, and nobody that it waits for is too
far behind, it pulls what has become of it; gossip has nothing to pull. For each part by itself, as a parameter server
keeps the age of each of its rows (Q. Ho et al., "More effective distributed ML via a stale synchronous parallel
parameter server", NIPS 2013, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
import simpy

from simnet.engine.recorder import Recorder
from simnet.fabric.interface import Fabric, Placed
from simnet.fabric.play import Play
from simnet.traffic import Schedule
from simnet.training.architectures import Alone
from simnet.training.records import CollectiveRow, Sent
from simnet.training.staleness import Clocks
from simnet.training.under_way import UnderWay

__all__ = ["AloneExchange", "OwnCommunicator"]


_MOST_PLACED = 256


@dataclass(frozen=True)
class AloneExchange:
    """What a worker exchanges by itself for one part of an iteration.

    Parameters
    ----------
    algorithm : str
    size_bytes : float
        Of what is exchanged [bytes].
    bucket : int
    push : Schedule
    pull : Schedule or None
    """

    algorithm: str
    size_bytes: float
    bucket: int
    push: Schedule
    pull: Schedule | None


@dataclass
class OwnCommunicator:
    """The exchanges of one worker, as `simnet.training.communicator.Communicator` has those of a group.

    Parameters
    ----------
    env : simpy.Environment
    fabric : Fabric
    recorder : Recorder
    job : str
        Name of the job, for records.
    worker : int
    alone : Alone
    exchanges : sequence of AloneExchange
        One a part of the plan.
    clocks : Clocks
        Of all workers.
    sent : Sent
    """

    env: simpy.Environment
    fabric: Fabric
    recorder: Recorder
    job: str
    worker: int
    alone: Alone
    exchanges: Sequence[AloneExchange]
    clocks: Clocks
    sent: Sent
    joins_late: bool = False
    _placed: dict[tuple[int, ...], Placed] = field(default_factory=dict)
    _over: dict[tuple[int, int], simpy.Event] = field(default_factory=dict)
    _missing: int = 0  # parts of this iteration whose push has not arrived
    _seen: int = 0  # updates of others when the iteration began
    _missed: int = 0
    _under_way: UnderWay = field(init=False)

    def __post_init__(self) -> None:
        self._under_way = UnderWay(self.env)

    def begin(self) -> int:
        """Begin an iteration with the parameters that there are now; return how far it is ahead of the slowest."""
        self._missing = len(self.exchanges)
        self._seen = self.clocks.updates
        return self.clocks.ahead(self.worker)

    @property
    def staleness(self) -> int:
        """Updates of others that the last one did not know of."""
        return self._missed

    def announce(self, iteration: int, part: int, member: int) -> None:  # noqa: ARG002
        """Push a part that is ready."""
        self._over[iteration, part] = self.env.event()
        announced_s = self.env.now
        schedule = self.exchanges[part].push
        self._play(iteration, part, "push", schedule, announced_s, lambda: self._arrived(iteration, part))

    def finish(self, iteration: int, part: int, member: int) -> Generator[simpy.Event, Play, float]:  # noqa: ARG002
        """Wait until an exchange is over; return when it was."""
        yield self._over[iteration, part]
        del self._over[iteration, part]
        return self.env.now

    def busy_s(self) -> float:
        """Return for how long something of this worker has been under way since the beginning [s]."""
        return self._under_way.busy_s()

    def _arrived(self, iteration: int, part: int) -> None:
        clocks = self.clocks
        self._missing -= 1
        if self._missing == 0:
            self._missed = clocks.updates - self._seen
            clocks.iteration_done(self.worker)
        clocks.part_done(self.worker, part, iteration)
        behind = clocks.may_go_on(self.worker, part, iteration)
        if behind is None:
            self._pull(iteration, part)
        else:
            behind.callbacks.append(lambda _: self._pull(iteration, part))

    def _pull(self, iteration: int, part: int) -> None:
        schedule, over = self.exchanges[part].pull, self._over[iteration, part]
        if schedule is None:
            over.succeed()
            return
        self._play(iteration, part, "pull", schedule, self.env.now, over.succeed)

    def _play(
        self, iteration: int, part: int, what: str, schedule: Schedule, announced_s: float, then: Callable[[], object]
    ) -> None:
        placement = self._placement(schedule, iteration)
        exchange = self.exchanges[part]
        name = f"{self.job}: {what} of bucket {exchange.bucket} by worker {self.worker} in iteration {iteration}"
        self._under_way.begin()
        play = self.fabric.play(placement, name)

        def end(_: simpy.Event) -> None:
            self._under_way.end()
            workers = np.array([self.worker, *self.alone.others(iteration)])
            self.sent.add(iteration, workers, placement)
            self.sent.add_lost(iteration, play.lost_bytes)
            self.sent.add_cores(iteration, placement)
            about = exchange.bucket, what, exchange.algorithm, exchange.size_bytes
            row = CollectiveRow.of(self.job, iteration, *about, announced_s, play, placement, self.worker)
            self.recorder.add(row)
            then()

        play.complete.callbacks.append(end)

    def _placement(self, schedule: Schedule, iteration: int) -> Placed:
        """Return a schedule in its places; the same again where the others are the same."""
        key = (id(schedule), *self.alone.others(iteration))
        found = self._placed.get(key)
        if found is None:
            if len(self._placed) > _MOST_PLACED:
                self._placed.clear()
            found = self._placed[key] = self.fabric.place(schedule, self.alone.nodes(iteration))
        return found
