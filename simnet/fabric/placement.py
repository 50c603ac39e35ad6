"""A schedule laid out on a network: the rows that the event kernel plays, numbered from 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.behaviour import describe_behaviour, describe_connections, idle_of_each
from simnet.fabric.kernels.incidence import UNLIMITED
from simnet.fabric.kernels.losses import RELIABLE
from simnet.fabric.kernels.records import DEPENDENCY, EDGE, GATE, HOP, LOCAL, OPERATION, REMOTE
from simnet.fabric.kernels.tables import Table
from simnet.fabric.network import Condition, Network
from simnet.protocols import lead_time_s, wire_bytes
from simnet.traffic.schedule import Kind, Schedule, Turns, Until

__all__ = ["Placement", "place"]


@dataclass(frozen=True, eq=False)
class Placement:
    """A schedule laid out on a network.

    Attributes
    ----------
    schedule : Schedule
    nodes : node index of each rank, shape (ranks,)
    operations, dependencies, outgoing, behind_gate, hops, gates : tables of the kernel, counted from 0
    setup_s : time to open the connection of each operation, shape (operations,) [s]
    wire_factor : bytes on the wire for a byte of payload, shape (operations,)
    condition : of the network, when it was laid out
    weight, deadline_s : of its flows, as they were asked for
    owner : whose it is
    """

    schedule: Schedule
    nodes: NDArray[np.int64]
    operations: Table
    dependencies: Table
    outgoing: Table
    behind_gate: Table
    hops: Table
    gates: Table
    setup_s: NDArray[np.float64]
    wire_factor: NDArray[np.float64]
    condition: Condition
    weight: float | NDArray[np.float64]
    deadline_s: float | NDArray[np.float64]
    owner: str

    @cached_property
    def paths(self) -> list[tuple[int, ...]]:
        """The resources that each operation uses, in order."""
        resources: list[int] = self.hops["resource"].tolist()
        first, count = self.operations["first_hop"].tolist(), self.operations["hops"].tolist()
        return [tuple(resources[at : at + hops]) for at, hops in zip(first, count, strict=True)]

    @cached_property
    def used_resources(self) -> NDArray[np.int64]:
        """Rows of the resources that it uses, each once."""
        return np.unique(self.hops["resource"])

    @cached_property
    def is_random(self) -> bool:
        """Whether some of its packets are lost at random."""
        return bool((self.operations["reliability"] != RELIABLE).any())

    @cached_property
    def used_connections(self) -> NDArray[np.int64]:
        """Connections that it uses, each once."""
        connection = self.operations["connection"]
        return np.unique(connection[connection >= 0])

    @cached_property
    def used_nodes(self) -> NDArray[np.int64]:
        """Nodes of its ranks, each once."""
        return np.unique(self.nodes)

    @cached_property
    def streams(self) -> tuple[tuple[int, tuple[int, int]], ...]:
        """Operations that are calculations on a stream, each with its node and stream."""
        ops = self.schedule.operations
        rows = np.flatnonzero((ops.kind == Kind.CALC) & (ops.stream >= 0)).tolist()
        return tuple((row, (int(self.nodes[ops.source[row]]), int(ops.stream[row]))) for row in rows)

    @cached_property
    def payload_bytes_sent(self) -> NDArray[np.float64]:
        """What each rank sends to other nodes, shape (ranks,) [bytes]."""
        return self._per_rank(self.schedule.operation_bytes())

    @cached_property
    def wire_bytes_sent(self) -> NDArray[np.float64]:
        """The same with packet headers, shape (ranks,) [bytes]."""
        return self._per_rank(self.schedule.operation_bytes() * self.wire_factor)

    @cached_property
    def core_s(self) -> dict[tuple[int, int], float]:
        """For how long one playing keeps each core busy, by node and stream [s]."""
        ops = self.schedule.operations
        busy: dict[tuple[int, int], float] = {}
        for row, core in self.streams:
            busy[core] = busy.get(core, 0.0) + float(ops.seconds[row] * ops.repeat[row])
        return busy

    def _per_rank(self, sent: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up what each rank sends; what stays on a node goes nowhere."""
        ops = self.schedule.operations
        leaving = np.where(self.nodes[ops.source] != self.nodes[ops.target], sent, 0.0)
        per_rank = np.bincount(ops.source, weights=leaving, minlength=self.schedule.ranks)
        return np.asarray(per_rank, dtype=np.float64)

    @cached_property
    def resource_bytes(self) -> dict[int, float]:
        """What one playing takes of each resource, by row of the resource [bytes]."""
        taken: dict[int, float] = {}
        carried = self.schedule.flow_bytes()[self.hops["flow"]] * self.hops["coefficient"]
        for resource, amount in zip(self.hops["resource"].tolist(), carried.tolist(), strict=True):
            taken[resource] = taken.get(resource, 0.0) + amount
        return taken


def place(
    schedule: Schedule,
    nodes: Sequence[int] | NDArray[np.int64],
    network: Network,
    weight: float | NDArray[np.float64] = 1.0,
    deadline_s: float | NDArray[np.float64] = math.inf,
    *,
    owner: str = "",
    behaves: bool = True,
) -> Placement:
    """Lay a schedule out on a network.

    Parameters
    ----------
    schedule : Schedule
    nodes : sequence of int, shape (ranks,)
        Node index of each rank.
    network : Network
    weight : float or ndarray, shape (operations,)
        Flows share in proportion to it.
    deadline_s : float or ndarray, shape (operations,)
        A firing that has not drained so long after its flow began ends, and what is left of it is lost [s].
    owner : str
        Whose it is: what takes turns does so with what is of the same owner.
    behaves : bool
        Whether windows and losses are part of it; otherwise somebody else sees to them.
    """
    nodes = np.asarray(nodes, dtype=np.int64)
    if len(nodes) != schedule.ranks:
        raise ValueError(f"{schedule.name} has {schedule.ranks} ranks, but {len(nodes)} nodes are given")
    ops = schedule.operations
    count = len(ops)
    table = np.zeros(count, OPERATION)
    flows = np.flatnonzero(ops.kind != Kind.CALC)
    _describe_operations(table, schedule)
    table["weight"], table["deadline"] = weight, deadline_s
    table["server"] = np.where(ops.kind == Kind.SEND, 2 * nodes[ops.source], -1)
    table["receive_server"] = 2 * nodes[ops.target] + 1

    ways = np.stack([nodes[ops.source], nodes[ops.target], ops.kind == Kind.MEMORY])
    ways, route_of = np.unique(ways, axis=1, return_inverse=True)
    routes = [
        network.memory_route(source) if memory else network.route(source, target) if source != target else None
        for source, target, memory in ways.T.tolist()
    ]
    route_of = route_of.reshape(-1)
    protocol = network.protocol
    remote = np.array([route is not None and route.remote for route in routes], dtype=bool)[route_of]
    remote &= table["is_message"]
    sizes = np.where(table["chunk_bytes"] > 0, table["chunk_bytes"], table["element_bytes"])
    wire_factor = np.ones(count)
    if remote.any():
        wire_factor[remote] = wire_bytes(protocol, sizes[remote]) / sizes[remote]
    table["cost"] = np.where(remote, REMOTE, LOCAL)
    table["cap"] = np.where(remote, protocol.connection_cap_bytes_per_s, np.inf)
    latency = np.array([route.latency_s if route else 0.0 for route in routes])
    forward = np.array([route.forward_s_per_byte if route else 0.0 for route in routes])
    table["latency"][flows] = latency[route_of[flows]]
    table["forward_per_byte"][flows] = forward[route_of[flows]]
    table["turn"] = _turns(table, schedule, ways, route_of, network, owner)
    table["connection"] = -1
    pairs = zip(ways.T.tolist(), routes, strict=True)
    connection = [
        network.connection(source, target) if route and route.remote else -1 for (source, target, _), route in pairs
    ]
    table["connection"][remote] = np.array(connection, dtype=np.int64)[route_of][remote]
    describe_connections(table, ways[:2], route_of, remote, network)
    if behaves:
        describe_behaviour(table, routes, route_of, remote, network)
    table["most"] = table["cap"]
    setup = np.array([route.setup_s if route else 0.0 for route in routes])[route_of] * table["is_message"]
    if protocol.connection == "per_message":
        setup += idle_of_each(table, protocol) if behaves else 0.0
        table["first_setup"] = setup
        table["each_setup"] = setup
        setup = np.zeros(count)

    lead = np.where(remote, lead_time_s(protocol, sizes, latency[route_of]), 0.0)
    table["first_setup"] += lead
    table["each_setup"] += lead

    lengths = np.array([len(route.resources) if route else 0 for route in routes], dtype=np.int64)
    table["hops"][flows] = lengths[route_of[flows]]
    table["first_hop"] = np.concatenate([[0], np.cumsum(table["hops"])[:-1]]) if count else 0
    hops = np.zeros(int(table["hops"].sum()), HOP)
    hops["flow"] = np.repeat(np.arange(count), table["hops"])
    if len(hops):
        starts = np.concatenate([[0], np.cumsum(lengths)])
        within = np.arange(len(hops)) - table["first_hop"][hops["flow"]]
        entry = starts[route_of[hops["flow"]]] + within
        flat = [route for route in routes if route]
        hops["resource"] = _joined([route.resources for route in flat], np.int64)[entry]
        coefficient = _joined([route.coefficients for route in flat], np.float64)[entry]
        framed = _joined([route.framed for route in flat], np.bool_)[entry]
        hops["coefficient"] = np.where(framed, coefficient * wire_factor[hops["flow"]], coefficient)

    dependencies, outgoing = _describe_dependencies(table, schedule)
    behind_gate = np.zeros(count, EDGE)
    behind_gate["row"] = np.argsort(ops.source, kind="stable")
    gates = np.zeros(schedule.ranks, GATE)
    gates["rank"] = np.arange(schedule.ranks)
    gates["node"] = nodes
    gates["operations"] = np.bincount(ops.source, minlength=schedule.ranks)
    gates["first_operation"] = np.cumsum(gates["operations"]) - gates["operations"]
    gates["left"] = gates["operations"] + np.bincount(ops.target[flows], minlength=schedule.ranks)
    gates["complete_at"] = np.nan
    return Placement(
        schedule=schedule,
        nodes=nodes,
        operations=table,
        dependencies=dependencies,
        outgoing=outgoing,
        behind_gate=behind_gate,
        hops=hops,
        gates=gates,
        setup_s=setup,
        wire_factor=np.where(remote, wire_factor, 1.0),
        condition=network.condition,
        weight=weight,
        deadline_s=deadline_s,
        owner=owner,
    )


def _turns(
    table: Table,
    schedule: Schedule,
    ways: NDArray[np.int64],
    route_of: NDArray[np.int64],
    network: Network,
    owner: str,
) -> NDArray[np.int64]:
    """Return which turns each operation of a schedule waits for, -1 where none, shape (operations,)."""
    if schedule.turns == Turns.NONE:
        return np.full(len(table), -1)
    host = network.compiled.host_of_node
    found = []
    for source, target, _ in ways.T.tolist():
        between = (source, target)
        if schedule.turns == Turns.HOSTS and host[source] != host[target]:
            between = int(host[source]), int(host[target])
        found.append(network.turns(owner, *between) if source != target else -1)
    return np.where(table["is_message"], np.array(found, dtype=np.int64)[route_of], -1)


def _joined(parts: Sequence[Sequence[Any]], kind: type) -> NDArray[Any]:
    """Return the elements of many short sequences, one after the other."""
    return np.fromiter(chain.from_iterable(parts), dtype=kind)


def _describe_operations(table: Table, schedule: Schedule) -> None:
    """Fill in what an operation is, apart from where it runs."""
    ops, partition = schedule.operations, schedule.partition
    table["is_flow"], table["is_message"] = ops.kind != Kind.CALC, ops.kind == Kind.SEND
    table["firings"] = ops.repeat
    for column in ("source", "target", "reduce_firings", "seconds"):
        table[column] = getattr(ops, column)
    for column in ("chunk_offset", "chunk_first", "chunk_step", "chunk_width"):
        table[column] = getattr(ops, column)
    table["chunk_modulus"] = np.maximum(ops.chunk_modulus, 1)
    whole = ops.chunk_width > 0
    table["chunk_bytes"] = np.where(whole, ops.chunk_width * partition.chunk_bytes, ops.fixed_bytes)
    table["element_bytes"] = partition.element_bytes
    table["longer"] = np.where(whole & table["is_message"], partition.longer_chunks, 0)
    table["heap_position"] = -1
    table["limit"] = UNLIMITED


def _describe_dependencies(table: Table, schedule: Schedule) -> tuple[Table, Table]:
    """Lay out dependencies by the operation that waits, and edges to them by the one that is waited for."""
    deps, count = schedule.dependencies, len(table)
    order = np.argsort(deps.after, kind="stable")
    dependencies = np.zeros(len(deps), DEPENDENCY)
    dependencies["before"] = deps.before[order]
    dependencies["after"] = deps.after[order]
    dependencies["offset"] = deps.offset[order]
    dependencies["until_delivered"] = deps.until[order] == Until.DELIVERED
    dependencies["delay"] = deps.delay_s[order]
    outgoing = np.zeros(len(deps), EDGE)
    outgoing["row"] = np.argsort(dependencies["before"], kind="stable")
    table["ins"] = np.bincount(deps.after, minlength=count)
    table["first_in"] = np.cumsum(table["ins"]) - table["ins"]
    table["outs"] = np.bincount(deps.before, minlength=count)
    table["first_out"] = np.cumsum(table["outs"]) - table["outs"]
    return dependencies, outgoing
