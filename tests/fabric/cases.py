"""What a case is: a network, schedules, and what happens to them; and how kernel and reference play it."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from itertools import pairwise

import networkx as nx
import numpy as np
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.play import Play
from simnet.fabric.settings import DEFAULT_ENGINE, EngineSettings
from simnet.protocols import FlowProtocol
from simnet.topology import Topology
from simnet.traffic import Kind, Schedule

from .reference import Costs, Path, Player, Reference

PLAIN = EngineSettings(recurrence=False, skip_periods=False, local_repair=False, repeats=False)
"""Every event is played, and every change of rates solved for a whole component."""


@dataclass(frozen=True)
class PlayCase:
    """A schedule that is played: on which nodes, from when on, and when which ranks join."""

    schedule: Schedule
    nodes: list[int]
    at: float
    joins: dict[int, float]  # rank -> time; from the beginning where a rank is not in it
    weights: list[float]
    deadlines_s: list[float]


@dataclass(frozen=True)
class Case:
    """All that is to be simulated."""

    topology: Topology
    protocol: FlowProtocol
    reduce_s_per_byte: float
    plays: list[PlayCase]
    changes: list[tuple]  # (time, what, ...): see `play_compiled`
    noise: list[float] = field(default_factory=list)

    @property
    def network(self) -> Network:
        return Network(self.topology, self.protocol)


@dataclass
class Outcome:
    """What came of it; as of `Reference`."""

    durations: list[list[float]]
    carried: list[float]
    busy: list[float]
    transfer: list[float]
    sent: float
    lost: float
    messages: int


def path_between(case: Case, source: int, target: int) -> Path:
    """Work out, from the graph alone, what a message between two nodes uses and costs."""
    if source == target:
        return Path(costs=Costs(reduce_s_per_byte=case.reduce_s_per_byte))
    graph, protocol = case.topology.graph, case.protocol
    names, resources = list(graph), case.network.resource_names
    nodes = nx.shortest_path(graph, names[source], names[target])
    links = [(f"{a}->{b}", graph.edges[a, b, 0]) for a, b in pairwise(nodes)]
    uses = [(name, 1.0, link["kind"]) for name, link in links]
    latency = sum(link["latency_s"] for _, link in links)
    wires = [link["bandwidth_bytes_per_s"] for _, link in links if link["kind"] == "ethernet"]
    if not wires:
        named = [(resources.index(name), coefficient) for name, coefficient, _ in uses]
        return Path(named, latency, costs=Costs(reduce_s_per_byte=case.reduce_s_per_byte), inside=True)
    latency += protocol.latency_s
    for node, side, copies in (
        (source, "send stack", protocol.copies_send),
        (target, "receive stack", protocol.copies_receive),
    ):
        host = graph.nodes[names[node]].get("host", names[node])
        uses += [(f"{host}: {side}", 1.0, "stack"), (f"{host}: memory", 2.0 * copies, "memory")]
    known = [(name, coefficient, kind) for name, coefficient, kind in uses if name in resources and coefficient > 0]
    forward = sum(1 / rate for rate in wires[1:]) if protocol.forwarding == "store_and_forward" else 0.0
    setup = 0.0
    if protocol.connection == "per_message":
        setup = protocol.connection_setup_s + protocol.connection_setup_round_trips * 2 * latency
    costs = Costs(
        protocol.send_overhead_s,
        protocol.send_overhead_s_per_byte,
        protocol.receive_overhead_s,
        protocol.receive_overhead_s_per_byte,
        protocol.pipeline_bytes,
        case.reduce_s_per_byte,
        protocol.payload_bytes + protocol.header_bytes,
    )
    framed = [
        (resources.index(name), coefficient * (-1 if kind == "ethernet" else 1)) for name, coefficient, kind in known
    ]
    return Path(framed, latency, forward, setup, protocol.connection_cap_bytes_per_s, costs)


def wire_factor(case: Case, play: PlayCase, operation: int) -> float:
    """Bytes on the wire for a byte of payload: headers of all packets of the smallest message that is not empty."""
    ops, partition = play.schedule.operations, play.schedule.partition
    width = int(ops.chunk_width[operation])
    size = width * partition.chunk_bytes if width else float(ops.fixed_bytes[operation])
    size = size or partition.element_bytes
    return 1 + math.ceil(size / case.protocol.payload_bytes) * case.protocol.header_bytes / size


def player_of(case: Case, play: PlayCase) -> Player:
    """What the reference is told of a play."""
    ops, paths = play.schedule.operations, []
    for operation in range(len(ops)):
        path = Path()
        if ops.kind[operation] == Kind.SEND:
            path = path_between(case, play.nodes[ops.source[operation]], play.nodes[ops.target[operation]])
            # Coefficients below 0 mark what packet headers count on.
            factor = wire_factor(case, play, operation)
            path.uses = [(resource, a if a > 0 else -a * factor) for resource, a in path.uses]
        paths.append(path)
    graph = case.topology.graph
    names = list(graph)
    hosts = [names.index(graph.nodes[names[node]].get("host", names[node])) for node in play.nodes]
    return Player(play.schedule, play.nodes, hosts, paths, play.weights, play.deadlines_s)


def play_reference(case: Case) -> Outcome:
    """Play a case by the obvious simulator."""
    reference = Reference(case.network.capacity.tolist(), case.topology.graph.number_of_nodes())
    number: dict[int, int] = {}

    def begin(index: int, play: PlayCase) -> None:
        number[index] = reference.begin(player_of(case, play), set(range(play.schedule.ranks)) - set(play.joins))

    def change(what: str, *which) -> None:
        if what == "capacity":
            reference.capacity[which[0]] = which[1]
        elif which[0] in number and not reference.is_over(number[which[0]]):
            play = number[which[0]]
            if what == "cap":
                reference.set_cap(play, which[1], which[2])
            elif what == "cancel":
                reference.cancel(play)
            elif what == "reroute":
                remote = case.protocol if _is_remote(case, which[0], which[1]) else None
                factor = wire_factor(case, case.plays[which[0]], which[1]) if remote else 1.0
                reference.reroute(play, which[1], [(resource, factor) for resource in which[2]], which[3])
            elif what == "join":
                reference.join(play, {which[1]})

    for index, play in enumerate(case.plays):
        reference.at(play.at, lambda index=index, play=play: begin(index, play))
        for rank, time in play.joins.items():
            reference.at(time, lambda index=index, rank=rank: change("join", index, rank))
    for time, *what in case.changes:
        reference.at(time, lambda what=what: change(*what))
    reference.run()
    durations = [reference.durations[number[index]] for index in range(len(case.plays))]
    return Outcome(
        durations,
        reference.carried,
        reference.busy,
        reference.transfer,
        reference.sent,
        reference.lost,
        reference.messages,
    )


def _is_remote(case: Case, play: int, operation: int) -> bool:
    ops, nodes = case.plays[play].schedule.operations, case.plays[play].nodes
    path = path_between(case, nodes[ops.source[operation]], nodes[ops.target[operation]])
    return any(a < 0 for _, a in path.uses)


def play_compiled(
    case: Case,
    start_s: float = 0.0,
    *,
    engine: EngineSettings = DEFAULT_ENGINE,
    look: Callable[[FluidFabric], None] | None = None,
) -> tuple[Outcome, FluidFabric]:
    """Play a case by `FluidFabric`, with a SimPy process for everything that happens.

    Parameters
    ----------
    case : Case
    start_s : float
        When all this begins [s].
    engine : EngineSettings
    look : callable
        Called with the fabric whenever there is noise.
    """
    env = simpy.Environment(start_s)
    fabric = FluidFabric(env, case.network, case.reduce_s_per_byte, engine)
    plays: dict[int, Play] = {}

    def begin(index: int) -> Generator[simpy.Event, object, None]:
        play = case.plays[index]
        yield env.timeout(play.at)
        weight, deadline_s = np.array(play.weights), np.array(play.deadlines_s)
        placement = fabric.place(play.schedule, play.nodes, weight=weight, deadline_s=deadline_s)
        plays[index] = fabric.play(placement, f"play {index}", gates_open=not play.joins)
        if play.joins:
            plays[index].open([rank for rank in range(play.schedule.ranks) if rank not in play.joins])

    def change(time: float, what: str, *which) -> Generator[simpy.Event, object, None]:
        yield env.timeout(time)
        if what == "capacity":
            fabric.conditions.set_capacity(*which)
        elif which[0] in plays and fabric.is_playing(plays[which[0]]):
            play = plays[which[0]]
            if what == "cap":
                fabric.set_flow_cap(play, *which[1:])
            elif what == "cancel":
                fabric.cancel(play)
            elif what == "reroute":
                fabric.reroute(play, *which[1:])
            elif what == "join":
                play.open([which[1]])

    def disturb(time: float) -> Generator[simpy.Event, object, None]:
        yield env.timeout(time)
        if look:
            look(fabric)

    for index, play in enumerate(case.plays):
        env.process(begin(index))
        for rank, time in play.joins.items():
            env.process(change(time, "join", index, rank))
    for time, what, *which in case.changes:
        env.process(change(time, what, *which))
    for time in case.noise:
        env.process(disturb(time))
    env.run()
    durations = [
        [-1.0 if math.isnan(d) else d for d in plays[index].rank_duration_s.tolist()]
        for index in range(len(case.plays))
    ]
    clock = fabric._tables.clock[0]
    outcome = Outcome(
        durations,
        fabric.carried_bytes().tolist(),
        fabric.busy_s().tolist(),
        [fabric.transfer_s(node) for node in range(case.topology.graph.number_of_nodes())],
        float(clock["sent_bytes"]),
        float(clock["lost_bytes"]),
        fabric.counts.messages,
    )
    return outcome, fabric
