"""Random cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from simnet.errors import DeadlockError
from simnet.protocols import FlowProtocol
from simnet.topology import Topology
from simnet.traffic import Kind, Partition, Schedule, ScheduleBuilder, Turns, Until, check_deadlock, ring_all_reduce

from .cases import Case, PlayCase


@dataclass(frozen=True)
class Numbers:
    """Where sizes, times and rates come from, and how many there are of everything.

    Parameters
    ----------
    random : Random
    ties : bool
        Small whole numbers, so that much happens at one instant; otherwise reals, so that hardly anything does.
    draw : callable or None
        Of hypothesis, for what it may make smaller when a test fails; otherwise the random numbers decide.
    """

    random: Random
    ties: bool
    draw: Callable[[st.SearchStrategy], int] | None = None

    def count(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most)) if self.draw else self.random.randint(least, most)

    def positive(self, scale: float = 1.0) -> float:
        return scale * (float(self.random.choice([1, 1, 2, 4])) if self.ties else self.random.uniform(0.3, 3.0))

    def maybe(self, chance: float, scale: float = 1.0, otherwise: float = 0.0) -> float:
        return self.positive(scale) if self.random.random() < chance else otherwise

    def time(self, until: float) -> float:
        return float(self.random.randint(0, int(until))) if self.ties else self.random.uniform(0.0, until)


@st.composite
def cases(draw, *, servers: bool, changes: bool, plays: int = 3) -> Case:
    """Draw a case; see `random_case`."""
    random = Random(draw(st.integers(0, 2**32 - 1)))
    return random_case(Numbers(random, not servers, draw), servers=servers, changes=changes, plays=plays)


def random_case(numbers: Numbers, *, servers: bool, changes: bool, plays: int = 3) -> Case:
    """Make up a case.

    Parameters
    ----------
    numbers : Numbers
    servers : bool
        Messages cost overhead, calculations have streams, messages of some schedules take turns: first in, first out,
        so that order matters, and there are no ties, and nothing that takes no time at all; otherwise nothing queues
        and much happens at once.
    changes : bool
        Capacities and caps change, sends are rerouted and given up, plays are cancelled.
    plays : int
        At most so many schedules.
    """
    topology = random_tree(numbers)
    protocol, reduce_s_per_byte = random_protocol(numbers, servers=servers)
    names = list(topology.graph)
    able = [i for i, name in enumerate(names) if topology.graph.nodes[name]["kind"] != "switch"]
    chosen = []
    for _ in range(numbers.count(1, plays)):
        ranks = numbers.count(1, min(4, len(able)))
        # Two ranks on one node share its servers, in an order that the definition leaves open.
        nodes = numbers.random.sample(able, ranks) if servers else numbers.random.choices(able, k=ranks)
        schedule = random_schedule(numbers, ranks, servers=servers)
        # Of two ranks in one host who is ready at the same instant comes first is left open, too.
        hosts = {topology.graph.nodes[names[node]].get("host", names[node]) for node in nodes}
        known = (Turns.NONE, Turns.NODES, Turns.HOSTS if len(hosts) == ranks else Turns.NODES)
        schedule = replace(schedule, turns=numbers.random.choice(known) if servers else Turns.NONE)
        count = len(schedule.operations)
        at = numbers.time(6.0) if servers or numbers.count(0, 1) else 0.0
        joins = {rank: at + numbers.time(4.0) for rank in range(ranks) if numbers.count(0, 3) == 0}
        deadlines = [numbers.maybe(0.3, 2.0, math.inf) if changes else math.inf for _ in range(count)]
        weights = [numbers.maybe(0.3, otherwise=1.0) for _ in range(count)]
        chosen.append(PlayCase(schedule, nodes, at, joins, weights, deadlines))
    noise = [numbers.time(12.0) for _ in range(numbers.count(0, 5))]
    case = Case(topology, protocol, reduce_s_per_byte, chosen, [], noise)
    return replace(case, changes=random_changes(case, numbers)) if changes else case


def random_tree(numbers: Numbers) -> Topology:
    """Join switches and hosts that form a tree, so that there is one path only; some hosts have GPUs."""
    graph: nx.MultiDiGraph = nx.MultiDiGraph()

    def cable(one: str, other: str, kind: str) -> None:
        for ends in ((one, other), (other, one)):
            bandwidth, latency = numbers.positive(4.0), numbers.maybe(0.7 if numbers.ties else 1.0, 0.2)
            graph.add_edge(*ends, bandwidth_bytes_per_s=bandwidth, latency_s=latency, kind=kind)

    switches = max(numbers.count(0, 3), 1)
    for switch in range(switches):
        graph.add_node(f"switch{switch}", kind="switch")
        if switch:
            cable(f"switch{switch}", f"switch{numbers.random.randrange(switch)}", "ethernet")
    for host in range(numbers.count(2, 4)):
        memory = {"memory_bandwidth_bytes_per_s": numbers.positive(12.0)} if numbers.random.random() < 0.3 else {}
        graph.add_node(f"host{host}", kind="host", **memory)
        cable(f"host{host}", f"switch{numbers.random.randrange(switches)}", "ethernet")
        for gpu in range(max(numbers.count(-1, 2), 0)):
            graph.add_node(f"gpu{host}.{gpu}", kind="gpu", host=f"host{host}")
            cable(f"gpu{host}.{gpu}", f"host{host}", "pcie")
    return Topology.from_graph("tree", graph)


def random_protocol(numbers: Numbers, *, servers: bool) -> tuple[FlowProtocol, float]:
    """Return a protocol and the time to reduce a byte; without servers nothing that queues."""
    protocol = FlowProtocol(
        name="random",
        payload_bytes=numbers.positive(2.0),
        header_bytes=numbers.maybe(0.5, 0.2),
        latency_s=numbers.maybe(0.5, 0.1),
        connection_cap_bytes_per_s=numbers.maybe(0.4, 2.0, math.inf),
        host_send_capacity_bytes_per_s=numbers.maybe(0.3, 6.0, math.inf),
        host_receive_capacity_bytes_per_s=numbers.maybe(0.3, 6.0, math.inf),
        copies_send=float(numbers.random.choice([0, 0, 1, 2])),
        copies_receive=float(numbers.random.choice([0, 0, 1])),
        forwarding=numbers.random.choice(["cut_through", "store_and_forward"]),
    )
    if numbers.random.random() < 0.3:
        protocol = replace(
            protocol,
            connection="per_message",
            connection_setup_s=numbers.positive(0.1),
            connection_setup_round_trips=numbers.maybe(0.5),
        )
    if not servers:
        return protocol, 0.0
    overheads = {
        "send_overhead_s": numbers.positive(0.1),
        "receive_overhead_s": numbers.maybe(0.7, 0.1),
        "send_overhead_s_per_byte": numbers.maybe(0.5, 0.02),
        "receive_overhead_s_per_byte": numbers.maybe(0.5, 0.02),
        "pipeline_bytes": numbers.positive(3.0),
    }
    return replace(protocol, **overheads), numbers.maybe(0.5, 0.1)


def random_schedule(numbers: Numbers, ranks: int, *, servers: bool) -> Schedule:
    """Make up a live schedule: a ring, rounds in which each rank sends to another, or any graph."""
    random, kind = numbers.random, ("graph", "graph", "ring", "rounds")[numbers.count(0, 3)]
    if kind == "ring":
        elements, divisible = random.randint(0, 30), random.random() < 0.5
        return ring_all_reduce(ranks, elements, numbers.positive(0.5), divisible=divisible)
    if kind == "rounds" and ranks > 1:
        return random_rounds(numbers, ranks)
    return random_graph(numbers, ranks, servers=servers)


def random_rounds(numbers: Numbers, ranks: int) -> Schedule:
    """Make up sends that share no rank at either end, all with the same repeat: what can be played as a recurrence."""
    random, chunks = numbers.random, numbers.random.randint(1, 4)
    build = ScheduleBuilder("rounds", ranks, Partition(random.randint(0, 30), numbers.positive(0.5), chunks))
    shift, repeat = random.randint(1, ranks - 1), random.choice([1, 2, 5, 12])
    for rank in range(ranks):
        chunk, step, reduce = random.randrange(chunks), random.choice([0, 1, -1]), random.randint(0, repeat)
        build.send(rank, (rank + shift) % ranks, repeat=repeat, chunk=chunk, step=step, reduce=reduce)
    live: list[tuple] = []
    for _ in range(numbers.count(0, 6)):
        before, after = random.sample(range(ranks), 2)
        until = random.choice([Until.DRAINED, Until.DELIVERED])
        wait = (before, after, random.randint(0, 3), until, numbers.maybe(0.3, 0.5))
        if _is_live(build, [*live, wait]):
            live.append(wait)
    return _with(build, live)


def random_graph(numbers: Numbers, ranks: int, *, servers: bool) -> Schedule:
    """Make up a marked graph: sends of chunks or of fixed sizes, calculations, dependencies with any offset."""
    random = numbers.random
    partition = Partition(random.randint(0, 30), numbers.positive(0.5), random.randint(1, 4), random.random() < 0.3)
    build = ScheduleBuilder("random", ranks, partition)
    count = numbers.count(0, 7)
    repeats, calcs = [], set()
    for _ in range(count):
        repeat = random.choice([1, 1, 2, 3, 4])
        repeats.append(repeat)
        if random.random() < 0.25:
            stream = random.choice([-1, 0, 1]) if servers else -1
            seconds = numbers.positive() if servers else numbers.maybe(0.8)
            build.calc(random.randrange(ranks), seconds, stream=stream, repeat=repeat)
            calcs.add(len(repeats) - 1)
            continue
        source, target, reduce = random.randrange(ranks), random.randrange(ranks), random.randint(0, repeat)
        if servers and source == target:
            target = (source + 1) % ranks
        if random.random() < 0.5:
            size = numbers.maybe(0.8, 5.0)
            build.send(source, target, repeat=repeat, width=0, fixed_bytes=size, reduce=reduce)
            continue
        width = random.randint(1, partition.chunks)
        offset = random.randint(0, partition.chunks - width)
        modulus = random.randint(1, partition.chunks - width - offset + 1)
        chunk, step = random.randint(0, 5), random.randint(-3, 3)
        places = {"chunk": chunk, "step": step, "modulus": modulus, "offset": offset, "width": width}
        build.send(source, target, repeat=repeat, reduce=reduce, **places)
    live: list[tuple] = []
    for _ in range(numbers.count(0, 10) if count else 0):
        before, after = random.randrange(count), random.randrange(count)
        if servers and before == after:
            continue
        offset = random.choice([-2, -1, 0, 0, 0, 1, 1, 2, 1 - repeats[before]])
        # For calculations that is the same moment, and who is told first of it is open.
        until = Until.DELIVERED if before in calcs else random.choice([Until.DRAINED, Until.DELIVERED])
        wait = (before, after, offset, until, numbers.maybe(0.3, 0.5))
        if _is_live(build, [*live, wait]):
            live.append(wait)
    return _with(build, live)


def _with(build: ScheduleBuilder, waits: list[tuple]) -> Schedule:
    copy = ScheduleBuilder(build.name, build.ranks, build.partition)
    copy._operations, copy._count = list(build._operations), build._count
    for before, after, offset, until, delay in waits:
        copy.depend(before, after, offset=offset, until=until, delay_s=delay)
    return copy.schedule()


def _is_live(build: ScheduleBuilder, waits: list[tuple]) -> bool:
    try:
        check_deadlock(_with(build, waits))
    except DeadlockError:
        return False
    return True


def random_changes(case: Case, numbers: Numbers) -> list[tuple]:
    """Make up what happens to a network and its plays; whatever is stopped goes on again later."""
    random, capacity = numbers.random, case.network.capacity
    found: list[tuple] = []
    for _ in range(numbers.count(0, 6)):
        time, play = numbers.time(10.0), random.randrange(len(case.plays))
        ops = case.plays[play].schedule.operations
        sends = np.flatnonzero(ops.kind == Kind.SEND).tolist()
        what = random.choice(["capacity", "capacity", "cap", "reroute", "cancel"])
        if what == "capacity":
            resource = random.randrange(len(capacity))
            factor = random.choice([0.0, 0.0, 0.5, 2.0])
            found.append((time, "capacity", resource, factor * float(capacity[resource])))
            found.append((time + numbers.positive(2.0), "capacity", resource, float(capacity[resource])))
        elif what == "cancel":
            # What would be complete at this very instant is open.
            found.append((time + 0.0137, "cancel", play))
        elif sends and what == "cap":
            send = random.choice(sends)
            found.append((time, "cap", play, send, numbers.maybe(0.7)))
            found.append((time + numbers.positive(2.0), "cap", play, send, numbers.positive(4.0)))
        elif sends:
            uses = [random.randrange(len(capacity)) for _ in range(random.choice([0, 1, 2, 3]))]
            found.append((time, "reroute", play, random.choice(sends), uses, numbers.maybe(0.5)))
    return sorted(found, key=lambda change: change[0])
