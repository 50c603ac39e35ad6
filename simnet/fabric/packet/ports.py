"""The ports and nodes of a network at packet level: what of a topology and a protocol they come to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.engine.random_streams import random_stream
from simnet.fabric.network import INSIDE_KINDS, Network
from simnet.fabric.packet.kernels.records import CLASSES, NOWHERE
from simnet.fabric.packet.kernels.tables import PacketTables, make_packet_tables
from simnet.fabric.packet.settings import PacketSettings

__all__ = ["PICOSECOND", "Ports", "lay_out", "payload_of"]

PICOSECOND = 1e-12
_UNLIMITED = 1 << 60
_LARGEST_CUT = 8192.0
"""No packet of a link with credits is larger than that: InfiniBand's are up to 4096, and headers [bytes]."""
_CREDIT_DELAY_S = 50e-9
"""Until a packet of credit is made and understood; the order of magnitude of a switch's pipeline, from memory."""


def payload_of(network: Network, settings: PacketSettings) -> float:
    """Return the payload of a full packet [bytes]."""
    payload = network.protocol.payload_bytes
    return payload if np.isfinite(payload) else settings.packet_bytes


@dataclass(frozen=True, eq=False)
class Ports:
    """Which port is what.

    Attributes
    ----------
    resources : index of the resource of the network that each port is, shape (ports,)
    of_resource : port of each resource, `NOWHERE` where it has none, shape (resources,)
    is_stack : whether a port is the protocol stack of a host, not a link, shape (ports,)
    """

    resources: NDArray[np.int64]
    of_resource: NDArray[np.int64]
    is_stack: NDArray[np.bool_]


def lay_out(
    network: Network, settings: PacketSettings, seed: int, slow_hosts: Collection[int] = (), **rows: int
) -> tuple[Ports, PacketTables]:
    """Return the ports of a network, and tables that describe them and its nodes.

    Parameters
    ----------
    network : Network
    settings : PacketSettings
    seed : int
        Of losses and marks.
    slow_hosts : collection of int
        Hosts whose protocol stacks may be slower than usual for a while.
    **rows : int
        Of the tables for what comes and goes; see `make_packet_tables`.
    """
    compiled = network.compiled
    links = [link for link, kind in enumerate(compiled.link_kind) if kind not in INSIDE_KINDS]
    source = {link: int(compiled.link_source[link]) for link in links}
    target = {link: int(compiled.link_target[link]) for link in links}
    for host, resource in _slow_stacks(network, links, slow_hosts):
        source[resource] = target[resource] = host
    # The ports of a node stand together.
    resources = np.array(sorted(source, key=lambda resource: (source[resource], resource)), dtype=np.int64)
    of_resource = np.full(len(network.capacity), NOWHERE)
    of_resource[resources] = np.arange(len(resources))
    ports = Ports(resources, of_resource, resources >= len(compiled.link_kind))
    sources = np.array([source[resource] for resource in resources.tolist()], dtype=np.int64)
    targets = np.array([target[resource] for resource in resources.tolist()], dtype=np.int64)
    nodes = len(compiled.node_names)
    counts, inputs = np.bincount(sources, minlength=nodes), np.bincount(targets, minlength=nodes)
    is_switch = np.array([kind == "switch" for kind in compiled.node_kind])
    takes_turns = network.protocol.transport.link_flow_control == "credit" or settings.input_round_robin
    lanes = np.where(is_switch & takes_turns, counts * inputs * CLASSES, 0)
    tables = make_packet_tables(ports=len(resources), nodes=nodes, lanes=int(lanes.sum()), **rows)
    first_lanes = np.cumsum(lanes) - lanes
    tables.nodes["first_lane"] = np.where(lanes > 0, first_lanes, NOWHERE)
    tables.nodes["inputs"], tables.nodes["ports"] = inputs, counts
    tables.nodes["first_port"] = np.searchsorted(sources, np.arange(nodes))
    tables.nodes["is_switch"] = is_switch
    tables.ports["source"], tables.ports["target"] = sources, targets
    tables.ports["number"] = np.arange(len(resources)) - tables.nodes["first_port"][sources]
    tables.ports["entry"] = _numbered(targets)
    tables.ports["reverse"] = _reverses(sources.tolist(), targets.tolist())
    tables.ports["random"] = random_stream(seed, "packets").integers(1, 1 << 62, len(resources))
    tables.clock["room"] = 16 + 2 * CLASSES * int(counts.max(initial=0))
    _describe_links(network, settings, ports, tables)
    _describe_nodes(network, settings, tables)
    return ports, tables


def _slow_stacks(network: Network, links: Sequence[int], slow_hosts: Collection[int]) -> list[tuple[int, int]]:
    """Return the protocol stacks that are, or may be, slower than the links of their host, as hosts and resources."""
    compiled, found = network.compiled, []
    for sends, ends in ((True, compiled.link_source), (False, compiled.link_target)):
        line = np.zeros(len(compiled.node_names))
        for link in links:
            host = int(compiled.host_of_node[ends[link]])
            if host >= 0:
                line[host] += compiled.link_bandwidth[link]
        for host in np.flatnonzero(line > 0).tolist():
            stack = network.stack_of(host, sends=sends)
            if stack is not None and (network.capacity[stack] < line[host] or host in slow_hosts):
                found.append((host, stack))
    return found


def _numbered(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of each element among the equal ones."""
    order = np.argsort(groups, kind="stable")
    first = np.searchsorted(groups[order], groups[order])
    numbers = np.empty(len(groups), dtype=np.int64)
    numbers[order] = np.arange(len(groups)) - first
    return numbers


def _reverses(sources: list[int], targets: list[int]) -> list[int]:
    """Return the port of the other direction of each; parallel cables in their order."""
    ends: dict[tuple[int, int], list[int]] = {}
    for row, end in enumerate(zip(sources, targets, strict=True)):
        ends.setdefault(end, []).append(row)
    found = [NOWHERE] * len(sources)
    for (source, target), rows in ends.items():
        for row, reverse in zip(rows, ends.get((target, source), []), strict=False):
            found[row] = reverse
    return found


def _describe_links(network: Network, settings: PacketSettings, ports: Ports, tables: PacketTables) -> None:
    compiled, transport, table = network.compiled, network.protocol.transport, tables.ports
    links = ~ports.is_stack
    of_link = ports.resources[links]
    capacity = network.capacity[ports.resources]
    payload = payload_of(network, settings)
    # A stack works on payload, which on the wire is more.
    framed = (payload + network.protocol.header_bytes) / payload
    table["bytes_per_s"] = np.maximum(np.round(np.where(links, capacity, capacity * framed)), 1)
    table["delay"][links] = np.round(compiled.link_latency[of_link] / PICOSECOND)
    if np.isfinite(network.protocol.payload_bytes):
        table["loss"][links] = compiled.link_loss_probability[of_link]
    table["limit"] = _UNLIMITED
    buffers = compiled.link_buffer_bytes[of_link]
    from_switch = tables.nodes["is_switch"][table["source"][links]]
    table["limit"][links] = np.where(
        from_switch, np.where(np.isfinite(buffers), buffers, settings.buffer_bytes), _UNLIMITED
    )
    if np.isfinite(transport.receive_ring_packets):
        ring = round(transport.receive_ring_packets * (payload + network.protocol.header_bytes))
        hosts = zip(table["source"].tolist(), ports.resources.tolist(), strict=True)
        receives = np.array([network.stack_of(host, sends=False) == resource for host, resource in hosts], dtype=bool)
        table["limit"][receives & ports.is_stack] = ring
    table["mark_from"] = table["mark_all"] = _UNLIMITED
    for column, delay_s in (("mark_from", transport.mark_from_s), ("mark_all", transport.mark_all_s)):
        queue = np.round(delay_s * table["bytes_per_s"].astype(np.float64))
        table[column][links] = np.minimum(queue, _UNLIMITED)[links]
    table["most_marked"], table["marks_at_departure"] = transport.most_marked, transport.marks_at_departure
    if transport.link_flow_control == "credit":
        # A packet that adapters cut into several has room as these do, one by one; here it is one, and some must fit.
        largest = payload_of(network, settings) + network.protocol.header_bytes
        table["credit"][links] = round(max(settings.credit_bytes, 4 * largest if largest > _LARGEST_CUT else 0.0))
        back = np.where(table["reverse"] != NOWHERE, table["delay"][table["reverse"]], table["delay"])
        table["return_delay"][links] = (back + round(_CREDIT_DELAY_S / PICOSECOND))[links]


def _describe_nodes(network: Network, settings: PacketSettings, tables: PacketTables) -> None:
    protocol, nodes = network.protocol, tables.nodes
    nodes["cuts_through"] = nodes["is_switch"] & (protocol.forwarding == "cut_through")
    if settings.shared_buffer_bytes > 0:
        nodes["shares_buffer"] = nodes["is_switch"]
        nodes["buffer"] = round(settings.shared_buffer_bytes)
        nodes["threshold_shift"] = settings.threshold_shift
    if protocol.transport.link_flow_control == "credit":
        nodes["has_credits"] = nodes["is_switch"]
    elif protocol.transport.link_flow_control == "pause":
        lossless = sum(1 << number for number in range(1, CLASSES))
        nodes["lossless"] = np.where(nodes["is_switch"], lossless, 0)
        nodes["pause_at"], nodes["resume_at"] = round(settings.pause_at_bytes), round(settings.resume_at_bytes)
        largest = payload_of(network, settings) + protocol.header_bytes
        nodes["headroom"] = round(settings.headroom_bytes) or _headroom(tables, largest)
    for number, weight in enumerate(settings.class_weights, start=1):
        tables.queues["level"][number::CLASSES] = 1
        tables.queues["weight"][number::CLASSES] = weight


def _headroom(tables: PacketTables, largest_bytes: float) -> NDArray[np.int64]:
    """Return what still comes after a pause, for the longest cable of each node, shape (nodes,) [bytes].

    What is on the way there and back, a packet that has begun on either side, and the pause itself (IEEE 802.1Q, annex
    N).
    """
    ports, largest = tables.ports, round(largest_bytes)
    needed = np.zeros(len(tables.nodes), dtype=np.int64)
    on_the_way = 2 * ports["delay"] * PICOSECOND * ports["bytes_per_s"]
    np.maximum.at(needed, ports["target"], np.ceil(on_the_way).astype(np.int64) + 3 * largest + 2 * 84)
    return needed
