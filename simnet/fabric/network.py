"""A topology under a protocol as the flow level sees it: resources, and what a route between two nodes costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.errors import InputError
from simnet.fabric.loss import path_loss
from simnet.fabric.packet.settings import DEFAULT_PACKETS
from simnet.protocols import FlowProtocol
from simnet.topology import Router, Topology

__all__ = ["INSIDE_KINDS", "Condition", "Network", "Route"]

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


@dataclass(frozen=True)
class Condition:
    """What of a network is not as its topology says, as far as routes depend on it.

    Attributes
    ----------
    avoided : links that are known to be down
    loss : share of packets lost by link, where it is another than that of the topology
    """

    avoided: frozenset[int] = frozenset()
    loss: frozenset[tuple[int, float]] = frozenset()


class Network:
    """Resources and routes of a topology under a protocol.

    Parameters
    ----------
    topology : Topology
    protocol : FlowProtocol
    seed : int
        For the choice between equally short paths.

    Attributes
    ----------
    condition : Condition
        As it is now. Routes are those of now; what does not use a link that is down keeps its path.
    lost : frozenset of int
        Links that are down for good.
    """

    def __init__(self, topology: Topology, protocol: FlowProtocol, seed: int = 0) -> None:
        self.topology = topology
        self.protocol = protocol
        self.seed = seed
        self.compiled = topology.compiled
        self._router = Router(topology, seed)
        self._detours: dict[frozenset[int], Router] = {}
        self._cuts: dict[tuple[frozenset[int], int, int], bool] = {}
        self.condition = Condition()
        self.lost: frozenset[int] = frozenset()
        self._routes: dict[tuple[int, int], Route] = {}
        self._link_counts: dict[tuple[int, int], int] = {}
        self._of_condition = {self.condition: (self._routes, self._link_counts)}
        self._link_loss = self.compiled.link_loss_probability
        self._connections: dict[tuple[int, int], int] = {}
        self._turns: dict[tuple[str, int, int], int] = {}
        self._open_on: dict[int, int] = {}
        self._loses = bool((self._link_loss > 0.0).any())
        outside = self.compiled.host_of_node < 0
        self._hosts_forward = not (outside & np.array([kind == "switch" for kind in self.compiled.node_kind])).any()
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

    def change(self, condition: Condition) -> None:
        """Let the network be in another condition; earlier ones are remembered."""
        self.condition = condition
        self._routes, self._link_counts = self._of_condition.setdefault(condition, ({}, {}))
        self._link_loss = self.compiled.link_loss_probability.copy()
        for link, share in condition.loss:
            self._link_loss[link] = share
        self._loses = bool((self._link_loss > 0.0).any())

    @property
    def was_rerouted(self) -> bool:
        """Whether there ever were other routes than the usual ones."""
        return any(condition.avoided for condition in self._of_condition)

    def is_cut(self, source: int, target: int, links: frozenset[int]) -> bool:
        """Tell whether nothing gets from one node to another without some links."""
        key = links, source, target
        if key not in self._cuts:
            usual = self._router.path(source, target, self._flow_key(source, target))
            self._cuts[key] = not links.isdisjoint(usual) and not self._detour(usual, source, target, links)
        return self._cuts[key]

    def links_between(self, source: int, target: int) -> tuple[int, ...]:
        """Return the links of a route, in order."""
        return self.route(source, target).resources[: self._link_counts[source, target]]

    def stack_of(self, host: int, *, sends: bool) -> int | None:
        """Return the resource that all sending, or all receiving, of a host shares; None if nothing limits it."""
        return self._host_resources.get((host, "send stack" if sends else "receive stack"))

    def resources_of(self, host: int) -> tuple[int, ...]:
        """Return the resources that a host has besides its links."""
        return tuple(resource for (owner, _), resource in self._host_resources.items() if owner == host)

    def all_paths(self, source: int, target: int) -> tuple[tuple[int, ...], ...]:
        """Return the links of the equally short ways from one node to another: those that 256 flows would take.

        Where all of them are known to be down, there is only the way around.
        """
        usual = {self._router.path(source, target, key) for key in range(256)}
        left = {path for path in usual if self.condition.avoided.isdisjoint(path)}
        return tuple(sorted(left)) or (self.links_between(source, target),)

    def connection(self, source: int, target: int) -> int:
        """Return the number of the connection from one node to another, from 0 on; it counts as open from now on."""
        found = self._connections.get((source, target))
        if found is None:
            found = self._connections[source, target] = len(self._connections)
            if (target, source) not in self._connections:
                for node in (source, target):
                    self._open_on[node] = self._open_on.get(node, 0) + 1
        return found

    def turns(self, owner: str, source: int, target: int) -> int:
        """Return the number, from 0 on, of the turns that an owner's messages from one node to another take."""
        return self._turns.setdefault((owner, source, target), len(self._turns))

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

    @property
    def unplayed_buffer_bytes(self) -> NDArray[np.float64]:
        """The queue in front of each resource where what it drops is not simulated at flow level [bytes].

        Otherwise infinite: links are lossless, or it is the queue of `buffer_bytes`.
        """
        buffers = np.full(len(self.capacity), math.inf)
        transport = self.protocol.transport
        if transport.link_flow_control == "none" and transport.reliability != "sack":
            links = np.flatnonzero(self.from_switch)
            given = self.compiled.link_buffer_bytes[links]
            buffers[links] = np.where(np.isfinite(given), given, DEFAULT_PACKETS.buffer_bytes)
        return buffers

    def memory_route(self, node: int) -> Route:
        """Return how bytes go through the memory of the host that a node is, or is in."""
        memory = self._host_resources.get((int(self.compiled.host_of_node[node]), "memory"))
        resources = () if memory is None else (memory,)
        return Route(resources, (False,) * len(resources), (1.0,) * len(resources), 0.0, 0.0, False, 0.0)

    def _flow_key(self, source: int, target: int) -> int:
        return source * len(self.compiled.node_names) + target

    def _path(self, source: int, target: int) -> tuple[int, ...]:
        """Return the links from one node to another: the usual ones, others where these are down, if there are any."""
        usual = self._router.path(source, target, self._flow_key(source, target))
        if self.condition.avoided.isdisjoint(usual):
            return usual
        return self._detour(usual, source, target, self.condition.avoided) or usual

    def _detour(self, usual: Sequence[int], source: int, target: int, without: frozenset[int]) -> tuple[int, ...]:
        """Return the way around some links; empty where there is none.

        Other hosts do not forward, unless that is how the cluster is connected.
        """
        router = self._detours.get(without)
        if router is None:
            router = self._detours[without] = Router(self.topology, self.seed, without)
        try:
            found = router.path(source, target, self._flow_key(source, target))
        except InputError:
            return ()
        return found if self._hosts_forward or self._passes_hosts(usual) or not self._passes_hosts(found) else ()

    def _passes_hosts(self, path: Sequence[int]) -> bool:
        """Tell whether a path goes through hosts that are at none of its ends."""
        compiled = self.compiled
        hosts = compiled.host_of_node[compiled.link_target[list(path)]]
        ends = (int(compiled.host_of_node[compiled.link_source[path[0]]]), int(hosts[-1]), -1)
        return any(host not in ends for host in hosts.tolist())

    def _find(self, source: int, target: int) -> Route:
        compiled, protocol = self.compiled, self.protocol
        links = self._path(source, target)
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
            loss = path_loss(self._link_loss[list(links)]) if self._loses else 0.0
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
