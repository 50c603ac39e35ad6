"""Which exchange goes next: streams, announcement, and who waits for what.

An exchange enters the queue when all members have announced it. The head of the queue, by (priority, announcement,
name), starts on all of them when a stream is free. Exchanges that members join late enter it when the first member has
announced them, and each member takes part from its own announcement on: so workers push to servers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.alarm import URGENT, Alarm
from simnet.engine.recorder import Recorder
from simnet.fabric.interface import Fabric, Placed
from simnet.fabric.play import Play
from simnet.training.records import CollectiveRow, Sent
from simnet.training.under_way import UnderWay, stopped

__all__ = ["Communicator", "Exchange"]


@dataclass(frozen=True)
class Exchange:
    """What is exchanged for one part of an iteration.

    Parameters
    ----------
    algorithm : str
    size_bytes : float
        Of what is exchanged [bytes].
    placement : callable
        Returns it laid out, given the number of the iteration.
    priority : int
        The smaller goes first.
    bucket : int
        Which bucket it is of; -1 where it is no bucket's.
    what : str
        ``all_reduce``, ``reduce_scatter``, ``all_gather``, or another word for what it does.
    """

    algorithm: str
    size_bytes: float
    placement: Callable[[int], Placed]
    priority: int = 0
    bucket: int = -1
    what: str = "all_reduce"


@dataclass
class _Collective:
    """One exchange of one iteration on its way."""

    iteration: int
    part: int
    started: simpy.Event
    missing: int  # members that have not announced it
    waiting: int  # members that have not seen it through
    announced_s: float = math.nan
    play: Play | None = None
    joined: list[int] = field(default_factory=list)  # members that have announced it, where they join late


@dataclass
class Communicator:
    """The exchanges of one group of workers.

    Parameters
    ----------
    env : simpy.Environment
    fabric : Fabric
    recorder : Recorder
    job : str
        Name of the job, for records.
    members : ndarray of int, shape (members,)
        The workers; they are ranks 0 .. members - 1 of the schedules. Other ranks (servers) are always ready.
    exchanges : sequence of Exchange
    sent : Sent
        Told what each worker has sent.
    waiting : int
        Workers that wait for each exchange on behalf of each member, itself included.
    streams : float
        Exchanges that may be under way at once.
    joins_late : bool
        Each member takes part from its own announcement on.
    recorded : bool
        Leave a `CollectiveRow` of each exchange.
    """

    env: simpy.Environment
    fabric: Fabric
    recorder: Recorder
    job: str
    members: NDArray[np.int64]
    exchanges: Sequence[Exchange]
    sent: Sent
    waiting: int = 1
    streams: float = 1
    joins_late: bool = False
    recorded: bool = True
    _collectives: dict[tuple[int, int], _Collective] = field(default_factory=dict)
    _queue: list[tuple[int, int, str, _Collective]] = field(default_factory=list)
    _announcements: int = 0
    _held_streams: float = 0  # what `streams` is again when it is held no more
    _under_way: UnderWay = field(init=False)

    def __post_init__(self) -> None:
        self._under_way = UnderWay(self.env)

    def announce(self, iteration: int, part: int, member: int) -> None:
        """Say that a member has a part of an iteration ready; each member says it once."""
        collective = self._collective(iteration, part)
        collective.missing -= 1
        if collective.missing == 0:
            collective.announced_s = self.env.now
        if self.joins_late:
            collective.joined.append(member)
            if collective.play is not None:
                collective.play.open([member])
                return
        enters = len(collective.joined) == 1 if self.joins_late else collective.missing == 0
        if enters:
            self._announcements += 1
            priority = self.exchanges[part].priority
            heappush(self._queue, (priority, self._announcements, self._name(collective), collective))
            self._start_next()

    def finish(self, iteration: int, part: int, member: int) -> Generator[simpy.Event, Play, float]:
        """Wait until an exchange is complete on a member; each member waits once.

        Returns
        -------
        float
            Since when all members have taken part; or since when it is under way, if some do not yet [s].
        """
        yield from self.reach(iteration, part, member)
        collective = self._collectives[iteration, part]
        collective.waiting -= 1
        if collective.waiting == 0:
            del self._collectives[iteration, part]
        assert collective.play is not None
        started_s = collective.play.started_at_s
        return started_s if collective.missing else max(started_s, collective.announced_s)

    def reach(self, iteration: int, part: int, rank: int) -> Generator[simpy.Event, Play, None]:
        """Wait until an exchange is complete on any of its ranks, as long as not all members have seen it through."""
        collective = self._collective(iteration, part)
        if collective.play is None:
            yield collective.started
        assert collective.play is not None
        if not collective.play.is_complete_on(rank):
            yield collective.play.rank_complete(rank)

    def busy_s(self) -> float:
        """Return for how long an exchange has been under way since the beginning [s]."""
        return self._under_way.busy_s()

    def _collective(self, iteration: int, part: int) -> _Collective:
        found = self._collectives.get((iteration, part))
        if found is None:
            count = len(self.members)
            found = self._collectives[iteration, part] = _Collective(
                iteration, part, self.env.event(), missing=count, waiting=count * self.waiting
            )
        return found

    def _name(self, collective: _Collective) -> str:
        exchange = self.exchanges[collective.part]
        of = f" of bucket {exchange.bucket}" if exchange.bucket >= 0 else ""
        return f"{self.job}: {exchange.algorithm}{of} in iteration {collective.iteration}"

    def _start_next(self) -> None:
        while self._under_way.count < self.streams and self._queue:
            *_, name, collective = heappop(self._queue)
            self._under_way.begin()
            placement = self.exchanges[collective.part].placement(collective.iteration)
            play = collective.play = self.fabric.play(placement, name, gates_open=not self.joins_late)
            if self.joins_late:
                others = np.arange(len(self.members), placement.schedule.ranks)
                play.open(np.concatenate([np.array(collective.joined, dtype=np.int64), others]))
            collective.started.succeed()
            play.complete.callbacks.append(self._on_complete(collective, placement))

    def _on_complete(self, collective: _Collective, placement: Placed) -> Callable[[simpy.Event], None]:
        def end(_: simpy.Event) -> None:
            self._under_way.end()
            assert collective.play is not None
            self.sent.add(collective.iteration, self.members, placement)
            self.sent.add_lost(collective.iteration, collective.play.lost_bytes)
            if self.recorded:
                self.sent.add_cores(collective.iteration, placement)
                self._record(collective, placement)
            self._start_next()

        return end

    def _record(self, collective: _Collective, placement: Placed) -> None:
        play, exchange, schedule = collective.play, self.exchanges[collective.part], placement.schedule
        assert play is not None
        sent_bytes = placement.payload_bytes_sent
        self.recorder.add(
            CollectiveRow(
                self.job,
                collective.iteration,
                exchange.bucket,
                exchange.what,
                exchange.algorithm,
                exchange.size_bytes,
                collective.announced_s,
                play.started_at_s,
                play.duration_s,
                schedule.messages(),
                float(sent_bytes.sum()),
                float(sent_bytes.max()),
                play.lost_bytes,
                placement,
            )
        )

    def hold(self) -> None:
        """Stop what is under way, and begin nothing until `resume`, as somebody is not there any more."""
        if self._held_streams:
            return
        self._held_streams, self.streams = self.streams, 0
        for collective in self._collectives.values():
            play = collective.play
            if play is None or not stopped(self.fabric, play):
                continue
            self._under_way.end()
            self._announcements += 1
            priority = self.exchanges[collective.part].priority
            heappush(self._queue, (priority, self._announcements, self._name(collective), collective))
            collective.play, collective.started = None, self.env.event()
            collective.started.callbacks.append(_serve_who_waited_for(play, collective))

    def move(self, nodes: Mapping[int, int]) -> None:
        """Have ranks on other nodes from now on."""
        self.exchanges = [self._elsewhere(exchange, nodes) for exchange in self.exchanges]

    def resume(self) -> None:
        """Begin again what was stopped, from its beginning."""
        self.streams, self._held_streams = self._held_streams or self.streams, 0
        self._start_next()

    def abandon(self) -> None:
        """Hold, and forget what has been announced: all members begin an iteration anew."""
        self.hold()
        self._collectives.clear()
        self._queue.clear()

    def _elsewhere(self, exchange: Exchange, moved: Mapping[int, int]) -> Exchange:
        def placement(iteration: int) -> Placed:
            usual = exchange.placement(iteration)
            nodes = np.array([moved.get(rank, node) for rank, node in enumerate(usual.nodes.tolist())])
            return self.fabric.place(usual.schedule, nodes)

        return replace(exchange, placement=placement)


def _serve(event: Alarm, again: simpy.Event) -> None:
    event.set(0.0, URGENT, again.value)


def _serve_who_waited_for(stopped_play: Play, collective: _Collective) -> Callable[[simpy.Event], None]:
    """Return what lets those who wait for a play that was stopped go on with the one in its place."""

    def wait_on(_: simpy.Event) -> None:
        assert collective.play is not None
        for rank, event in stopped_play.rank_events.items():
            if not event.triggered:
                collective.play.rank_complete(rank).callbacks.append(partial(_serve, event))

    return wait_on
