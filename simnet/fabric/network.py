"""A topology under a protocol as the flow level sees it: resources, and what a route between two nodes costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.loss import path_loss
from simnet.protocols import FlowProtocol
from simnet.topology import Router, Topology

__all__ = ["INSIDE_KINDS", "Network", "Route"]

INSIDE_KINDS = frozenset({"pcie", "nvlink", "upi"})
"""Links inside a host: no packet headers, no protocol stack."""


@dataclass(frozen=True)
class Route:
    """How bytes get from one node to another.

    Attributes
    ----------
    resources : tuple of int
        What they use, in order: links, then what the hosts at both ends contribute.
    framed : tuple of bool
        Whether packet headers count on that resource.
    coefficients : tuple of float
        Bytes of the resource for a byte of payload, without headers.
    latency_s : float
        One way, of links and protocol.
    forward_s_per_byte : float
        Sum of 1 / bandwidth over the network links after the first: what storing a byte before forwarding it costs.
    remote : bool
        Whether it leaves the host, so that the protocol's costs apply.
    setup_s : float
        Time to open a connection.
    loss : float
        Share of packets that is lost on its way.
    packet_s : float
        Time of a full packet where it takes longest [s].
    round_trip_s : float
        From the first bit of a full packet until its acknowledgement is here, when nothing else is on the way [s].
    """

    resources: tuple[int, ...]
    framed: tuple[bool, ...]
    coefficients: tuple[float, ...]
    latency_s: float
    forward_s_per_byte: float
    remote: bool
    setup_s: float
    loss: float = 0.0
    packet_s: float = 0.0
    round_trip_s: float = 0.0


class Network:
    """Resources and routes of a topology under a protocol.

    Parameters
    ----------
    topology : Topology
    protocol : FlowProtocol
    seed : int
        For the choice between equally short paths.
    """

    def __init__(self, topology: Topology, protocol: FlowProtocol, seed: int = 0) -> None:
        self.topology = topology
        self.protocol = protocol
        self.seed = seed
        self.compiled = topology.compiled
        self._router = Router(topology, seed)
        self._routes: dict[tuple[int, int], Route] = {}
        self._link_counts: dict[tuple[int, int], int] = {}
        self._connections: dict[tuple[int, int], int] = {}
        self._open_on: dict[int, int] = {}
        self._loses = bool((self.compiled.link_loss_probability > 0.0).any())
        # As lists: routes are found one by one, and numpy's numbers are slow one by one.
        self._framed = [kind not in INSIDE_KINDS for kind in self.compiled.link_kind]
        self._latency_s: list[float] = self.compiled.link_latency.tolist()
        names = list(self.compiled.link_name)
        capacity = list(self.compiled.link_bandwidth)
        self._host_resources: dict[tuple[int, str], int] = {}
        hosts = [node for node, kind in enumerate(self.compiled.node_kind) if kind == "host"]
        for node in hosts:
            for what, limit in (
                ("send stack", protocol.host_send_capacity_bytes_per_s),
                ("receive stack", protocol.host_receive_capacity_bytes_per_s),
                ("memory", float(self.compiled.node_memory_bandwidth[node])),
            ):
                if math.isfinite(limit):
                    self._host_resources[node, what] = len(names)
                    names.append(f"{self.compiled.node_names[node]}: {what}")
                    capacity.append(limit)
        self.resource_names: tuple[str, ...] = tuple(names)
        self.capacity: NDArray[np.float64] = np.array(capacity, dtype=np.float64)

    def route(self, source: int, target: int) -> Route:
        """Return how bytes get from one node to another; found once and kept.

        Parameters
        ----------
        source, target : int
            Node indices.
        """
        found = self._routes.get((source, target))
        if found is None:
            found = self._routes[source, target] = self._find(source, target)
        return found

    def links_between(self, source: int, target: int) -> tuple[int, ...]:
        """Return the links of a route, in order."""
        return self.route(source, target).resources[: self._link_counts[source, target]]

    def stack_of(self, host: int, *, sends: bool) -> int | None:
        """Return the resource that all sending, or all receiving, of a host shares; None if nothing limits it."""
        return self._host_resources.get((host, "send stack" if sends else "receive stack"))

    def all_paths(self, source: int, target: int) -> tuple[tuple[int, ...], ...]:
        """Return the links of the equally short ways from one node to another: those that 256 flows would take."""
        return tuple(sorted({self._router.path(source, target, key) for key in range(256)}))

    def connection(self, source: int, target: int) -> int:
        """Return the number of the connection from one node to another, from 0 on; it counts as open from now on."""
        found = self._connections.get((source, target))
        if found is None:
            found = self._connections[source, target] = len(self._connections)
            if (target, source) not in self._connections:
                for node in (source, target):
                    self._open_on[node] = self._open_on.get(node, 0) + 1
        return found

    def open_connections(self, node: int) -> float:
        """Return how many connections a node has, both ways counted once."""
        return self._open_on.get(node, 0) * self.protocol.transport.connections_per_pair

    def cache_miss_share(self, node: int) -> float:
        """Return for what share of the messages of a node the adapter has to fetch the state of their connection."""
        opened, cached = self.open_connections(node), self.protocol.transport.cached_connections
        return max(0.0, 1.0 - cached / opened) if opened > 0 else 0.0

    @property
    def from_switch(self) -> NDArray[np.bool_]:
        """Whether each resource is a link out of a switch, shape (resources,)."""
        found = np.zeros(len(self.capacity), np.bool_)
        is_switch = np.array([kind == "switch" for kind in self.compiled.node_kind], dtype=np.bool_)
        found[: len(self.compiled.link_name)] = is_switch[self.compiled.link_source]
        return found

    @property
    def buffer_bytes(self) -> NDArray[np.float64]:
        """The queue in front of each resource where a switch drops what finds it full, otherwise infinite [bytes]."""
        buffers = np.full(len(self.capacity), math.inf)
        compiled, transport = self.compiled, self.protocol.transport
        if transport.link_flow_control == "none" and transport.reliability == "sack":
            links = np.flatnonzero(self.from_switch)
            buffers[links] = compiled.link_buffer_bytes[links]
        return buffers

    def memory_route(self, node: int) -> Route:
        """Return how bytes go through the memory of the host that a node is, or is in."""
        memory = self._host_resources.get((int(self.compiled.host_of_node[node]), "memory"))
        resources = () if memory is None else (memory,)
        return Route(resources, (False,) * len(resources), (1.0,) * len(resources), 0.0, 0.0, False, 0.0)

    def _find(self, source: int, target: int) -> Route:
        compiled, protocol = self.compiled, self.protocol
        links = self._router.path(source, target, source * len(compiled.node_names) + target)
        framed = [self._framed[link] for link in links]
        self._link_counts[source, target] = len(links)
        remote = any(framed)
        latency = sum([self._latency_s[link] for link in links], 0.0)
        resources, coefficients = list(links), [1.0] * len(links)
        forward = 0.0
        if remote:
            latency += protocol.latency_s
            ends = (source, "send stack", protocol.copies_send), (target, "receive stack", protocol.copies_receive)
            for node, what, copies in ends if self._host_resources else ():
                host = int(compiled.host_of_node[node])
                # A copy reads and writes each byte once.
                for resource, coefficient in ((what, 1.0), ("memory", 2.0 * copies)):
                    if (host, resource) in self._host_resources and coefficient > 0:
                        resources.append(self._host_resources[host, resource])
                        coefficients.append(coefficient)
            if protocol.forwarding == "store_and_forward":
                wires = [link for link, wire in zip(links, framed, strict=True) if wire]
                forward = float(sum(1.0 / compiled.link_bandwidth[link] for link in wires[1:]))
        packet = protocol.payload_bytes + protocol.header_bytes
        slowest = 0.0
        loss = 0.0
        if remote and math.isfinite(packet):
            rates = [float(compiled.link_bandwidth[link]) for link, wire in zip(links, framed, strict=True) if wire]
            inside = [
                float(self.capacity[resource]) / coefficient
                for resource, coefficient in zip(resources[len(links) :], coefficients[len(links) :], strict=True)
            ]
            stacks = min([protocol.connection_cap_bytes_per_s, *inside])
            slowest = max(packet / min(rates), protocol.payload_bytes / stacks)
            loss = path_loss(compiled.link_loss_probability[list(links)]) if self._loses else 0.0
        opening_s = protocol.transport.connections_per_pair * protocol.connection_setup_s
        setup = opening_s + protocol.connection_setup_round_trips * 2.0 * latency if remote else 0.0
        return Route(
            tuple(resources),
            (*framed, *[False] * (len(resources) - len(links))),
            tuple(coefficients),
            latency,
            forward,
            remote,
            setup,
            loss,
            slowest,
            2.0 * latency + slowest + (packet * forward if forward else 0.0),
        )
