"""Which exchange goes next: streams, announcement, and who waits for what.

An exchange enters the queue when all members have announced it, and agreed on it. The head of the queue, by priority
and announcement, starts on all of them when a stream is free. With *fusion* what has been announced by all until a
cycle is over travels together.

Exchanges that members join late enter it when the first member has announced them, and each member takes part from its
own announcement on: so workers push to servers. Where each has a queue of its own it takes part from its turn on, and
what it has sent makes room for what comes next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.alarm import LATE, URGENT, Alarm
from simnet.engine.recorder import Recorder
from simnet.fabric.interface import Fabric, Placed
from simnet.fabric.play import Play
from simnet.training.communication.streams import Streams
from simnet.training.communication.under_way import UnderWay, stopped
from simnet.training.records import CollectiveRow, PlayRow, Sent

__all__ = ["Communicator", "Exchange", "Fusion"]


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
    first_sent : int
        Where members have own queues: rank ``first_sent + m`` is complete when all that member m sends has arrived.
    """

    algorithm: str
    size_bytes: float
    placement: Callable[[int], Placed]
    priority: int = 0
    bucket: int = -1
    what: str = "all_reduce"
    first_sent: int = 0


@dataclass(frozen=True)
class Fusion:
    """What is ready at the same time travels together, as in Horovod's tensor fusion.

    Parameters
    ----------
    cycle_s : float
        All agree on what is ready at multiples of this time [s].
    buffer_bytes : float
        What travels together is at most so much, or one part alone [bytes].
    together : callable
        Returns the exchange of some parts.
    at_least : sequence of Exchange
        In which no more is exchanged than in those of all parts of an iteration, however they travel together.
    """

    cycle_s: float
    buffer_bytes: float
    together: Callable[[tuple[int, ...]], Exchange]
    at_least: Sequence[Exchange] = ()


@dataclass
class _Part:
    """One part of an iteration on its way."""

    iteration: int
    number: int
    started: simpy.Event
    missing: int  # members that have not announced it
    waiting: int  # members that have not seen it through
    announced_s: float = math.nan
    announced_by: int = -1
    set_out_s: float = math.nan
    play: Play | None = None
    joined: list[int] = field(default_factory=list)  # members that take part, where they join late
    joined_s: list[float] = field(default_factory=list)


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
        Exchanges that may be under way at once; where each has a queue of its own, those that each may be sending for.
    joins_late : bool
        Each member takes part from its own announcement on.
    own_queues : bool
        Where members join late: each has a queue of its own.
    recorded : bool
        Leave a `CollectiveRow` of each exchange.
    traced : bool
        Leave a `PlayRow` of each.
    negotiation_s : float
        From the announcement of the last member until all know of it; with fusion, of all that travels together [s].
    credit_bytes : float
        As long as less has set out and is not over, another part that all have announced sets out: is negotiated, or
        waits for the end of a cycle [bytes].
    fusion : Fusion or None
        None: each part travels by itself.
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
    own_queues: bool = False
    recorded: bool = True
    traced: bool = False
    negotiation_s: float = 0.0
    credit_bytes: float = math.inf
    fusion: Fusion | None = None
    _parts: dict[tuple[int, int], _Part] = field(default_factory=dict)
    _agreed: list[_Part] = field(default_factory=list)  # what all have ready, until the cycle is over
    _playing: dict[Play, Sequence[_Part]] = field(default_factory=dict)
    _stopped: list[Sequence[_Part]] = field(default_factory=list)
    _credit: Streams = field(init=False)
    _queues: list[Streams] = field(init=False)
    _under_way: UnderWay = field(init=False)

    def __post_init__(self) -> None:
        self._under_way = UnderWay(self.env)
        self._queue_anew()

    def _queue_anew(self) -> None:
        self._credit = Streams(self.credit_bytes)
        queues = len(self.members) if self.own_queues else 1
        self._queues = [Streams(self.streams) for _ in range(queues)]

    def announce(self, iteration: int, part: int, member: int) -> None:
        """Say that a member has a part of an iteration ready; each member says it once."""
        one = self._part(iteration, part)
        one.missing -= 1
        if one.missing == 0:
            one.announced_s = one.set_out_s = self.env.now
            one.announced_by = int(self.members[member])
        if self.own_queues:
            self._queues[member].enter(self.exchanges[part].priority, lambda: self._take_turn(one, member))
        elif self.joins_late:
            self._join(one, member)
        elif one.missing == 0:
            exchange = self.exchanges[part]
            self._credit.enter(exchange.priority, lambda: self._set_out(one), exchange.size_bytes)

    def finish(self, iteration: int, part: int, member: int) -> Generator[simpy.Event, Play, float]:
        """Wait until an exchange is complete on a member; each member waits once.

        Returns
        -------
        float
            Since when all members have taken part; or since when it is under way, if some do not yet [s].
        """
        yield from self.reach(iteration, part, member)
        one = self._parts[iteration, part]
        one.waiting -= 1
        if one.waiting == 0:
            del self._parts[iteration, part]
        assert one.play is not None
        started_s = one.play.started_at_s
        if one.missing:
            return started_s
        # What waits for its turn in the queue of a member waits for nobody else.
        return one.announced_s if self.own_queues else max(started_s, one.announced_s)

    def reach(self, iteration: int, part: int, rank: int) -> Generator[simpy.Event, Play, None]:
        """Wait until an exchange is complete on any of its ranks, as long as not all members have seen it through."""
        one = self._part(iteration, part)
        if one.play is None:
            yield one.started
        assert one.play is not None
        if not one.play.is_complete_on(rank):
            yield one.play.rank_complete(rank)

    def busy_s(self) -> float:
        """Return for how long an exchange has been under way since the beginning [s]."""
        return self._under_way.busy_s()

    def at_least(self) -> Sequence[Exchange]:
        """Return exchanges in which no more is exchanged than in an iteration."""
        return self.exchanges if self.fusion is None else self.fusion.at_least

    def goes_by_announcement(self) -> bool:
        """Tell whether exchanges begin in the order in which they are announced, each by itself."""
        return self.fusion is None and len({exchange.priority for exchange in self.exchanges}) == 1

    def _part(self, iteration: int, part: int) -> _Part:
        found = self._parts.get((iteration, part))
        if found is None:
            count = len(self.members)
            found = self._parts[iteration, part] = _Part(
                iteration, part, self.env.event(), missing=count, waiting=count * self.waiting
            )
        return found

    def _set_out(self, one: _Part) -> None:
        one.set_out_s = self.env.now
        if self.fusion is None:
            self._negotiate([one])
        else:
            self._await_cycle(one)

    def _await_cycle(self, one: _Part) -> None:
        """Have a part go with all that is ready when the cycle is over."""
        assert self.fusion is not None
        self._agreed.append(one)
        if len(self._agreed) == 1:
            cycle_s = self.fusion.cycle_s
            ends_s = max(math.ceil(self.env.now / cycle_s) * cycle_s, self.env.now)
            Alarm(self.env).set(ends_s - self.env.now, LATE).callbacks.append(lambda _: self._end_cycle())

    def _end_cycle(self) -> None:
        """Have what is ready travel in as few exchanges as its buffer allows."""
        assert self.fusion is not None
        ready, self._agreed = sorted(self._agreed, key=lambda one: self.exchanges[one.number].priority), []
        if not ready:
            return
        together: list[_Part] = []
        held_bytes = 0.0
        for one in ready:
            exchange = self.exchanges[one.number]
            fits = held_bytes + exchange.size_bytes <= self.fusion.buffer_bytes
            if together and not (fits and self._belong_together(together[0], one)):
                self._negotiate(together)
                together, held_bytes = [], 0.0
            together.append(one)
            held_bytes += exchange.size_bytes
        self._negotiate(together)

    def _belong_together(self, one: _Part, other: _Part) -> bool:
        alike = self.exchanges[one.number].what == self.exchanges[other.number].what
        return alike and one.iteration == other.iteration

    def _negotiate(self, parts: Sequence[_Part]) -> None:
        """Have parts that all have ready enter the queue, when all know of it."""
        if self.negotiation_s == 0.0:
            self._queue(parts)
            return

        def go(_: simpy.Event) -> None:
            if self._parts.get((parts[0].iteration, parts[0].number)) is parts[0]:
                self._queue(parts)

        self.env.timeout(self.negotiation_s).callbacks.append(go)

    def _queue(self, parts: Sequence[_Part]) -> None:
        priority = min(self.exchanges[one.number].priority for one in parts)
        self._queues[0].enter(priority, lambda: self._start(parts))

    def _join(self, one: _Part, member: int) -> None:
        """Have a member take part as soon as the exchange is under way; the first has it enter the queue."""
        one.joined.append(member)
        one.joined_s.append(self.env.now)
        if one.play is not None:
            one.play.open([member])
        elif len(one.joined) == 1:
            self._queue([one])

    def _take_turn(self, one: _Part, member: int) -> None:
        """Have a member take part whose turn it is, and make room when all that it sends has arrived."""
        one.joined.append(member)
        one.joined_s.append(self.env.now)
        if one.play is None:
            self._start([one])
        else:
            one.play.open([member])
        assert one.play is not None
        sent = one.play.rank_complete(self.exchanges[one.number].first_sent + member)
        queue = self._queues[member]
        sent.callbacks.append(lambda _: queue.leave())

    def _start(self, parts: Sequence[_Part]) -> None:
        numbers, iteration = tuple(one.number for one in parts), parts[0].iteration
        exchange = self.exchanges[numbers[0]]
        if self.fusion is not None:
            exchange = self.fusion.together(numbers)
        of = f" of bucket {exchange.bucket}" if exchange.bucket >= 0 else ""
        self._under_way.begin()
        placement = exchange.placement(iteration)
        name = f"{self.job}: {exchange.algorithm}{of} in iteration {iteration}"
        play = self.fabric.play(placement, name, gates_open=not self.joins_late)
        if self.joins_late:
            others = np.arange(len(self.members), placement.schedule.ranks)
            play.open(np.concatenate([np.array(parts[0].joined, dtype=np.int64), others]))
        self._playing[play] = parts
        for one in parts:
            one.play = play
            one.started.succeed()
        play.complete.callbacks.append(self._on_complete(parts, exchange, play, placement))

    def _on_complete(
        self, parts: Sequence[_Part], exchange: Exchange, play: Play, placement: Placed
    ) -> Callable[[simpy.Event], None]:
        iteration, queue, credit = parts[0].iteration, self._queues[0], self._credit

        def end(_: simpy.Event) -> None:
            self._under_way.end()
            del self._playing[play]
            self.sent.add(iteration, self.members, placement)
            self.sent.add_lost(iteration, play.lost_bytes)
            if self.recorded:
                self.sent.add_cores(iteration, placement)
                announced_s = max(one.announced_s for one in parts)
                about = exchange.bucket, exchange.what, exchange.algorithm, exchange.size_bytes
                self.recorder.add(CollectiveRow.of(self.job, iteration, *about, announced_s, play, placement))
            if self.traced:
                self.recorder.add(self._row(parts, exchange, play, placement))
            if not self.own_queues:
                queue.leave()
            if not self.joins_late:
                for one in parts:
                    credit.leave(self.exchanges[one.number].size_bytes)

        return end

    def _row(self, parts: Sequence[_Part], exchange: Exchange, play: Play, placement: Placed) -> PlayRow:
        last = max(parts, key=lambda one: (one.set_out_s, one.announced_s))
        return PlayRow(
            self.job,
            id(self),
            last.iteration,
            exchange.what,
            tuple(one.number for one in parts),
            exchange.bucket,
            exchange.algorithm,
            exchange.size_bytes,
            self.members,
            last.announced_s,
            last.announced_by,
            last.set_out_s,
            tuple(zip(last.joined, last.joined_s, strict=True)),
            self.joins_late,
            exchange.first_sent if self.own_queues else -1,
            play,
            placement,
        )

    def hold(self) -> None:
        """Stop what is under way, and begin nothing until `resume`, as somebody is not there any more."""
        for queue in self._queues:
            queue.hold()
        for play, parts in list(self._playing.items()):
            if not stopped(self.fabric, play):
                continue
            self._under_way.end()
            del self._playing[play]
            self._stopped.append(parts)
            for one in parts:
                one.play, one.started = None, self.env.event()
                one.started.callbacks.append(_serve_who_waited_for(play, one))

    def move(self, nodes: Mapping[int, int]) -> None:
        """Have ranks on other nodes from now on."""
        self.exchanges = [self._elsewhere(exchange, nodes) for exchange in self.exchanges]

    def resume(self) -> None:
        """Begin again what was stopped, from its beginning."""
        again, self._stopped = self._stopped, []
        for parts in again:
            self._start(parts)
        for queue in self._queues:
            queue.release()

    def abandon(self) -> None:
        """Hold, and forget what has been announced: all members begin an iteration anew."""
        self.hold()
        for forgotten in (self._parts, self._agreed, self._stopped):
            forgotten.clear()
        # What is over at this very instant leaves the queues that it entered, where nothing begins any more.
        self._credit.hold()
        self._queue_anew()
        for queue in self._queues:
            queue.hold()

    def _elsewhere(self, exchange: Exchange, moved: Mapping[int, int]) -> Exchange:
        def placement(iteration: int) -> Placed:
            usual = exchange.placement(iteration)
            nodes = np.array([moved.get(rank, node) for rank, node in enumerate(usual.nodes.tolist())])
            return self.fabric.place(usual.schedule, nodes, owner=self.job)

        return replace(exchange, placement=placement)


def _serve(event: Alarm, again: simpy.Event) -> None:
    event.set(0.0, URGENT, again.value)


def _serve_who_waited_for(stopped_play: Play, part: _Part) -> Callable[[simpy.Event], None]:
    """Return what lets those who wait for a play that was stopped go on with the one in its place."""

    def wait_on(_: simpy.Event) -> None:
        assert part.play is not None
        for rank, event in stopped_play.rank_events.items():
            if not event.triggered:
                part.play.rank_complete(rank).callbacks.append(partial(_serve, event))

    return wait_on
