"""Exchanges of workers that do not wait until all are ready: each pushes what it has, and pulls what there is.

A worker pushes each part of an iteration when it is ready. When that has arrived, and nobody that it waits for is too
far behind, it pulls what has become of it; gossip has nothing to pull. For each part by itself, as a parameter server
keeps the age of each of its rows (Q. Ho et al., "More effective distributed ML via a stale synchronous parallel
parameter server", NIPS 2013, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import simpy

from simnet.engine.recorder import Recorder
from simnet.fabric.interface import Fabric, Placed
from simnet.fabric.play import Play
from simnet.traffic import Schedule
from simnet.training.communication.arrangement import Alone
from simnet.training.communication.staleness import Clocks
from simnet.training.communication.under_way import UnderWay, stopped
from simnet.training.records import CollectiveRow, PlayRow, Sent

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


class _Sending(NamedTuple):
    """A push or a pull on its way: of which iteration, what begins it anew, and what follows when it is over."""

    iteration: int
    again: Callable[[], None]
    then: Callable[[], object]


@dataclass
class OwnCommunicator:
    """The exchanges of one worker, as `simnet.training.communication.communicator.Communicator` has those of a group.

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
    traced : bool
        Leave a `PlayRow` of each push and pull.
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
    traced: bool = False
    joins_late: bool = False
    _placed: dict[tuple[int, ...], Placed] = field(default_factory=dict)
    _sending: dict[Play, _Sending] = field(default_factory=dict)
    _held: list[Callable[[], None]] = field(default_factory=list)  # what waits for a server
    _gone: set[int] = field(default_factory=set)  # ranks of servers that are not there
    _moved: dict[int, int] = field(default_factory=dict)  # nodes of ranks that are not where they were
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
            self._pull(iteration, part, self._over[iteration, part])
        else:
            over = self._over[iteration, part]
            behind.callbacks.append(lambda _: self._pull(iteration, part, over))

    def _pull(self, iteration: int, part: int, over: simpy.Event) -> None:
        if self._over.get((iteration, part)) is not over:
            # The worker that waited for this is not there any more.
            return
        schedule = self.exchanges[part].pull
        if schedule is None:
            over.succeed()
            return
        self._play(iteration, part, "pull", schedule, self.env.now, over.succeed)

    def _play(
        self, iteration: int, part: int, what: str, schedule: Schedule, announced_s: float, then: Callable[[], object]
    ) -> None:
        placement = self._placement(schedule, iteration)
        again = partial(self._play, iteration, part, what, schedule, announced_s, then)
        if any(_takes_part(rank, schedule) for rank in self._gone):
            self._held.append(again)
            return
        exchange = self.exchanges[part]
        name = f"{self.job}: {what} of bucket {exchange.bucket} by worker {self.worker} in iteration {iteration}"
        self._under_way.begin()
        play = self.fabric.play(placement, name)
        self._sending[play] = _Sending(iteration, again, then)

        def end(_: simpy.Event) -> None:
            if self._sending.pop(play, None) is None:
                # The worker crashed at the very instant.
                return
            self._under_way.end()
            workers = np.array([self.worker, *self.alone.others(iteration)])
            self.sent.add(iteration, workers, placement)
            self.sent.add_lost(iteration, play.lost_bytes)
            self.sent.add_cores(iteration, placement)
            about = exchange.bucket, what, exchange.algorithm, exchange.size_bytes
            row = CollectiveRow.of(self.job, iteration, *about, announced_s, play, placement, self.worker)
            self.recorder.add(row)
            if self.traced:
                self.recorder.add(
                    PlayRow(
                        self.job,
                        id(self),
                        iteration,
                        what,
                        (part,),
                        exchange.bucket,
                        exchange.algorithm,
                        exchange.size_bytes,
                        workers[:1],
                        announced_s,
                        self.worker,
                        announced_s,
                        (),
                        False,
                        -1,
                        play,
                        placement,
                    )
                )
            then()

        play.complete.callbacks.append(end)

    def _placement(self, schedule: Schedule, iteration: int) -> Placed:
        """Return a schedule in its places; the same again where the others are the same.

        Who is away is sent nothing: what would go to it stays on the node of this worker.
        """
        others = self.alone.others(iteration)
        away = [1 + place for place, other in enumerate(others) if other in self.clocks.away]
        key = (id(schedule), *others, *(-rank for rank in away))
        found = self._placed.get(key)
        if found is None:
            if len(self._placed) > _MOST_PLACED:
                self._placed.clear()
            nodes = self.alone.nodes(iteration).copy()
            for rank, node in self._moved.items():
                nodes[rank] = node
            nodes[away] = nodes[0]
            found = self._placed[key] = self.fabric.place(schedule, nodes, owner=self.job)
        return found

    def leave(self) -> None:
        """Forget all that is under way: the worker is not there any more, and nobody waits for it."""
        for play in self._sending:
            stopped(self.fabric, play)
            self._under_way.end()
        self._sending.clear()
        self._held.clear()
        self._over.clear()
        self.clocks.leave(self.worker)

    def lose(self, other: int) -> None:
        """Go on without what another worker sends to this one and does not any more."""
        for play, sending in list(self._sending.items()):
            others = list(self.alone.others(sending.iteration))
            answers = other in others and play.placement.payload_bytes_sent[1 + others.index(other)] > 0.0
            if answers and stopped(self.fabric, play):
                self._under_way.end()
                del self._sending[play]
                sending.then()

    def hold(self, server: int) -> None:
        """Stop what is under way with a server that is not there any more, and send it nothing until `resume`."""
        self._gone.add(1 + server)
        for play, sending in list(self._sending.items()):
            if _takes_part(1 + server, play.placement.schedule) and stopped(self.fabric, play):
                self._under_way.end()
                del self._sending[play]
                self._held.append(sending.again)

    def move(self, nodes: Mapping[int, int]) -> None:
        """Have servers, and the replicas behind them, on other nodes from now on, by their numbers."""
        self._moved |= {1 + number: node for number, node in nodes.items()}
        self._placed.clear()

    def resume(self, server: int) -> None:
        """Send to a server again, and first what was held back."""
        self._gone.discard(1 + server)
        held, self._held = self._held, []
        for again in held:
            again()


def _takes_part(rank: int, schedule: Schedule) -> bool:
    """Tell whether a rank sends or gets anything."""
    ops = schedule.operations
    return bool(((ops.source == rank) | (ops.target == rank)).any())
