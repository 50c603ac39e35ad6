"""An obvious simulator of schedules on a network, written from the definitions and sharing nothing with the kernel.

Time is a list of things to come, looked through from one instant to the next. Whatever may fire, fires, found by asking
every operation; rates come from `fair.fair_rates` for all flows at every instant. Slow, and meant to be read.

A send's life: dependencies met and rank joined, overhead of the sender (first in, first out), its turn between its two
nodes where the schedule goes in order, opening of a connection, the flow drains, latency and store-and-forward,
overhead of the receiver (first in, first out) and reduction, delivered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from simnet.traffic import Kind, Schedule, Turns, Until

from .fair import Flow, fair_rates, unfairness

EPSILON = 4e-15
"""Relative width of one instant."""


@dataclass
class Costs:
    """Of one message; per byte they are charged on its first `pipeline_bytes`, or on all of it where it is reduced."""

    send_s: float = 0.0
    send_s_per_byte: float = 0.0
    receive_s: float = 0.0
    receive_s_per_byte: float = 0.0
    pipeline_bytes: float = 0.0
    reduce_s_per_byte: float = 0.0
    packet_bytes: float = math.inf


@dataclass
class Path:
    """How a send gets from its source to its target: resources with their coefficients, and what else it costs."""

    uses: list[tuple[int, float]] = field(default_factory=list)
    latency_s: float = 0.0
    forward_s_per_byte: float = 0.0
    setup_s: float = 0.0
    cap: float = math.inf
    costs: Costs = field(default_factory=Costs)
    inside: bool = False


@dataclass
class Player:
    """What a play asks for: a schedule, the node of each rank and that of its host, the path of each send."""

    schedule: Schedule
    nodes: list[int]
    hosts: list[int]
    paths: list[Path]
    weights: list[float]
    deadlines_s: list[float]


@dataclass
class _Operation:
    play: _Play
    index: int
    path: Path
    weight: float
    cap: float
    deadline_s: float
    begun: int = 0
    busy: bool = False
    left: float | None = None  # bytes of the flow under way
    drained_at: list[float] = field(default_factory=list)
    delivered_at: list[float] = field(default_factory=list)
    last_arrival: float = 0.0
    last_delivery: float = 0.0


@dataclass
class _Play:
    player: Player
    began: float
    operations: list[_Operation]
    joined: set[int]
    cancelled: bool = False
    complete_at: dict[int, float] = field(default_factory=dict)


class Reference:
    """Plays schedules; the outcome is in its attributes once `run` is through.

    Attributes
    ----------
    durations : per play, from the beginning to the completion of each rank, -1 where it never comes [s]
    carried, busy : per resource [bytes, s]
    transfer : per node, with at least one transfer of its own under way [s]
    sent, lost : bytes
    messages : int
    """

    def __init__(self, capacity: list[float], nodes: int) -> None:
        self.now = 0.0
        self.capacity = list(capacity)
        self.carried = [0.0] * len(capacity)
        self.busy = [0.0] * len(capacity)
        self.transfer = [0.0] * nodes
        self.sent = self.lost = 0.0
        self.messages = 0
        self._under_way = [0] * nodes
        self._plays: list[_Play] = []
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._free_at: dict[tuple, float] = {}
        self._turns: dict[tuple[int, int], list[_Operation]] = {}
        self._rates: dict[int, float] = {}
        self._flowing: list[_Operation] = []

    # What may happen from outside.

    def at(self, time: float, what: Callable[[], None]) -> None:
        """Do something at a time."""
        self._count += 1
        self._agenda.append((time, self._count, what))

    def begin(self, player: Player, joined: set[int]) -> int:
        """Begin a play, of which some ranks have joined; return its number."""
        play = _Play(player, self.now, [], set(joined))
        rows = range(len(player.schedule.operations))
        play.operations = [
            _Operation(play, i, player.paths[i], player.weights[i], player.paths[i].cap, player.deadlines_s[i])
            for i in rows
        ]
        self._plays.append(play)
        return len(self._plays) - 1

    def join(self, play: int, ranks: set[int]) -> None:
        """Let ranks of a play join."""
        self._plays[play].joined |= ranks

    def cancel(self, play: int) -> None:
        """End a play; what it has not delivered is lost."""
        self._plays[play].cancelled = True
        for operation in self._plays[play].operations:
            if self._is_send(operation):
                for firing in range(len(operation.delivered_at), operation.begun):
                    self.lost += self._bytes(operation, firing)
                    self._count_transfers(operation, -1)
        for operation in self._plays[play].operations:
            self._leave_turns(operation)

    def is_over(self, play: int) -> bool:
        """Tell whether a play is complete, or was cancelled."""
        found = self._plays[play]
        return found.cancelled or len(found.complete_at) == found.player.schedule.ranks

    def set_cap(self, play: int, index: int, cap: float) -> None:
        """Change the cap of a send."""
        self._plays[play].operations[index].cap = cap

    def reroute(self, play: int, index: int, uses: list[tuple[int, float]], latency_s: float) -> None:
        """Change the path of a send."""
        operation = self._plays[play].operations[index]
        old = operation.path
        operation.path = replace(old, uses=uses, latency_s=latency_s)

    # Time.

    def run(self) -> None:
        """Go on until nothing is to come."""
        while True:
            moved = True
            while moved:
                moved = self._take_due() or self._drain() or self._fire()
            self._complete()
            flows = self._solve()
            to_come = [time for time, _, _ in self._agenda]
            to_come += [self.now + o.left / rate for o, rate in flows if rate > 0 and o.left > 0]
            if not to_come:
                break
            self._pass(max(min(to_come), self.now) - self.now, flows)

    @property
    def durations(self) -> list[list[float]]:
        """Seconds until each rank of each play was complete."""
        return [
            [p.complete_at[r] - p.began if r in p.complete_at else -1.0 for r in range(p.player.schedule.ranks)]
            for p in self._plays
        ]

    def _take_due(self) -> bool:
        due = sorted(entry for entry in self._agenda if entry[0] <= self.now * (1 + EPSILON))
        if due:
            self._agenda.remove(due[0])
            due[0][2]()
        return bool(due)

    def _solve(self) -> list[tuple[_Operation, float]]:
        flowing = [o for p in self._plays for o in p.operations if o.left is not None and not p.cancelled]
        flows = [Flow(tuple(o.path.uses), o.weight, o.cap) for o in flowing]
        rates = fair_rates(flows, self.capacity)
        assert unfairness(flows, self.capacity, rates) == []
        return list(zip(flowing, rates, strict=True))

    def _pass(self, span: float, flows: list[tuple[_Operation, float]]) -> None:
        used = set()
        for operation, rate in flows:
            if operation.left > 0:
                moved = operation.left if rate == math.inf else min(rate * span, operation.left)
                operation.left -= moved
                for resource, coefficient in operation.path.uses:
                    self.carried[resource] += coefficient * moved
            used |= {resource for resource, _ in operation.path.uses}
        for resource in used:
            self.busy[resource] += span
        for node, count in enumerate(self._under_way):
            self.transfer[node] += span if count else 0.0
        self.now += span

    # The life of operations.

    def _may_fire(self, operation: _Operation) -> bool:
        play, k = operation.play, operation.begun
        schedule = play.player.schedule
        if operation.busy or operation.play.cancelled or k == schedule.operations.repeat[operation.index]:
            return False
        if int(schedule.operations.source[operation.index]) not in play.joined:
            return False
        deps = schedule.dependencies
        for i in range(len(deps)):
            if deps.after[i] == operation.index and k >= deps.offset[i]:
                before = play.operations[deps.before[i]]
                times = before.drained_at if deps.until[i] == Until.DRAINED else before.delivered_at
                awaited = min(k - deps.offset[i], schedule.operations.repeat[before.index] - 1)
                if len(times) <= awaited or times[awaited] + deps.delay_s[i] > self.now * (1 + EPSILON):
                    return False
        return True

    def _fire(self) -> bool:
        for play in self._plays:
            for operation in play.operations:
                if self._may_fire(operation):
                    self._begin(operation)
                    return True
        return False

    def _begin(self, operation: _Operation) -> None:
        firing, ops, costs = operation.begun, operation.play.player.schedule.operations, operation.path.costs
        node = operation.play.player.nodes[ops.source[operation.index]]
        operation.begun += 1
        operation.busy = True
        if not self._is_send(operation):
            seconds = float(ops.seconds[operation.index])
            stream = int(ops.stream[operation.index])
            end = self.now + seconds if stream < 0 else self._serve(("stream", node, stream), seconds)
            self.at(end, lambda: self._end_calc(operation))
            return
        size = self._bytes(operation, firing)
        self.messages += 1
        self.sent += size
        self._count_transfers(operation, 1)
        work = costs.send_s + costs.send_s_per_byte * min(size, costs.pipeline_bytes)
        ready = self._serve(("send", node), work) if work > 0 else self.now
        if self._pair(operation) is None:
            self.at(ready + operation.path.setup_s, lambda: self._flow(operation, firing))
        else:
            self.at(ready, lambda: self._take_turn(operation))

    def _pair(self, operation: _Operation) -> tuple[int, int] | None:
        """Return between which nodes, or hosts, a message waits for those before it, None where it waits for none."""
        player, index = operation.play.player, operation.index
        ops, nodes = player.schedule.operations, player.nodes
        source, target = nodes[ops.source[index]], nodes[ops.target[index]]
        if player.schedule.turns == Turns.NONE or not self._is_send(operation) or source == target:
            return None
        hosts = player.hosts[ops.source[index]], player.hosts[ops.target[index]]
        return hosts if player.schedule.turns == Turns.HOSTS and hosts[0] != hosts[1] else (source, target)

    def _take_turn(self, operation: _Operation) -> None:
        """Have a message join those between its two nodes: the first of them is being sent, the others wait."""
        if operation.play.cancelled:
            return
        turns = self._turns.setdefault(self._pair(operation), [])
        turns.append(operation)
        if operation.path.inside:
            # Those of plays that began earlier go first.
            turns[1:] = sorted(turns[1:], key=lambda other: self._plays.index(other.play))
        if len(turns) == 1:
            self._set_out(operation)

    def _set_out(self, operation: _Operation) -> None:
        firing = operation.begun - 1
        self.at(self.now + operation.path.setup_s, lambda: self._flow(operation, firing))

    def _leave_turns(self, operation: _Operation) -> None:
        turns = self._turns.get(self._pair(operation), [])
        if operation in turns:
            had_it = turns[0] is operation
            turns.remove(operation)
            if had_it and turns:
                self._set_out(turns[0])

    def _flow(self, operation: _Operation, firing: int) -> None:
        if operation.play.cancelled:
            return
        operation.left = self._bytes(operation, firing)
        if operation.deadline_s < math.inf:
            self.at(self.now + operation.deadline_s, lambda: self._give_up(operation, firing))

    def _give_up(self, operation: _Operation, firing: int) -> None:
        if not operation.play.cancelled and operation.left is not None and operation.begun == firing + 1:
            self.lost += operation.left
            operation.left = 0.0

    def _drain(self) -> bool:
        for play in self._plays:
            for operation in play.operations:
                if operation.left is None or operation.play.cancelled:
                    continue
                firing = operation.begun - 1
                size, path = self._bytes(operation, firing), operation.path
                if operation.left <= 1e-12 * size or (not path.uses and operation.cap == math.inf):
                    operation.left = None
                    operation.busy = False
                    self._leave_turns(operation)
                    self._over(operation, operation.drained_at, Until.DRAINED)
                    stored = path.forward_s_per_byte * min(size, path.costs.packet_bytes)
                    operation.last_arrival = max(self.now + path.latency_s + stored, operation.last_arrival)
                    self.at(operation.last_arrival, lambda o=operation, k=firing: self._arrive(o, k))
                    self._go_on(operation)
                    return True
        return False

    def _arrive(self, operation: _Operation, firing: int) -> None:
        if operation.play.cancelled:
            return
        size, costs = self._bytes(operation, firing), operation.path.costs
        ops = operation.play.player.schedule.operations
        work = costs.receive_s + costs.receive_s_per_byte * min(size, costs.pipeline_bytes)
        if firing < ops.reduce_firings[operation.index]:
            work += costs.reduce_s_per_byte * size
        node = operation.play.player.nodes[ops.target[operation.index]]
        end = self._serve(("receive", node), work) if work > 0 else self.now
        operation.last_delivery = max(end, operation.last_delivery)
        self.at(operation.last_delivery, lambda: self._deliver(operation))

    def _deliver(self, operation: _Operation) -> None:
        if not operation.play.cancelled:
            self._over(operation, operation.delivered_at, Until.DELIVERED)
            self._count_transfers(operation, -1)

    def _end_calc(self, operation: _Operation) -> None:
        if not operation.play.cancelled:
            operation.busy = False
            self._over(operation, operation.drained_at, Until.DRAINED)
            self._over(operation, operation.delivered_at, Until.DELIVERED)
            self._go_on(operation)

    def _go_on(self, operation: _Operation) -> None:
        """Let an operation that fires again do so before what waited for it: where both queue, it is first."""
        if self._may_fire(operation):
            self._begin(operation)

    def _over(self, operation: _Operation, times: list[float], until: Until) -> None:
        """Note that a firing is over, and look again when delays after it have passed."""
        times.append(self.now)
        deps = operation.play.player.schedule.dependencies
        for i in range(len(deps)):
            if deps.before[i] == operation.index and deps.until[i] == until and deps.delay_s[i] > 0:
                self.at(self.now + float(deps.delay_s[i]), lambda: None)

    def _complete(self) -> None:
        for play in (play for play in self._plays if not play.cancelled):
            ops = play.player.schedule.operations
            for rank in play.joined - set(play.complete_at):
                own = [o for o in play.operations if ops.source[o.index] == rank]
                coming = [o for o in play.operations if ops.target[o.index] == rank]
                if all(len(o.drained_at) == ops.repeat[o.index] for o in own) and all(
                    len(o.delivered_at) == ops.repeat[o.index] for o in coming
                ):
                    play.complete_at[rank] = self.now

    def _serve(self, server: tuple, work: float) -> float:
        """Let a first-in-first-out server work; return when it is through."""
        self._free_at[server] = max(self._free_at.get(server, 0.0), self.now) + work
        return self._free_at[server]

    def _count_transfers(self, operation: _Operation, change: int) -> None:
        ops, nodes = operation.play.player.schedule.operations, operation.play.player.nodes
        for rank in (ops.source[operation.index], ops.target[operation.index]):
            self._under_way[nodes[rank]] += change

    @staticmethod
    def _is_send(operation: _Operation) -> bool:
        return bool(operation.play.player.schedule.operations.kind[operation.index] == Kind.SEND)

    @staticmethod
    def _bytes(operation: _Operation, firing: int) -> float:
        return operation.play.player.schedule.firing_bytes(operation.index, firing)
