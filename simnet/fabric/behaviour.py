"""What follows for messages at flow level from how their transport behaves; see `simnet.protocols.Transport`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.losses import BEST_EFFORT, GO_BACK_N, RELIABLE, SACK, SELECTIVE_REPEAT
from simnet.fabric.kernels.tables import Table
from simnet.fabric.loss import stall_per_loss
from simnet.fabric.network import Network, Route
from simnet.fabric.startup import start_up_idle_s, window_rate_bytes_per_s
from simnet.protocols import FlowProtocol
from simnet.protocols.transport import PROBE_FLOOR_S
from simnet.units import KIBIBYTE

__all__ = [
    "SPLIT_BYTES",
    "connections_of",
    "describe_behaviour",
    "describe_connections",
    "describe_transport",
    "idle_of_each",
    "packets_of",
]

SPLIT_BYTES = 64.0 * KIBIBYTE
"""Messages from this size on are spread over all connections of a pair of hosts (NCCL: tasks of 64 KiB and more)."""

_CODES = {
    "go_back_n": GO_BACK_N,
    "sack": SACK,
    "selective_repeat": SELECTIVE_REPEAT,
    "best_effort": BEST_EFFORT,
}
_KEEPS = {"cubic": 0.7, "reno": 0.5, "dctcp": 0.5}
_CUBIC_GROWTH = 3.0 * (1.0 - 0.7) / (1.0 + 0.7)  # RFC 9438, section 4.3


def describe_transport(row: Table, protocol: FlowProtocol) -> None:
    """Fill in what all messages between hosts have in common."""
    transport = protocol.transport
    row["payload_bytes"] = protocol.payload_bytes
    row["packet_bytes"] = protocol.payload_bytes + protocol.header_bytes
    row["first_window"] = transport.initial_window_packets
    row["most_window"] = max(transport.window_bytes / protocol.payload_bytes, 1.0) if _has_packets(protocol) else np.inf
    row["growth"] = _CUBIC_GROWTH if transport.congestion_control == "cubic" else 1.0
    row["keeps"] = _KEEPS.get(transport.congestion_control, 1.0)
    row["is_cubic"] = transport.congestion_control == "cubic"
    row["has_marks"] = transport.congestion_control == "dctcp"
    row["probe"] = PROBE_FLOOR_S if transport.tail_loss_probe else np.inf
    row["acknowledge_delay"] = transport.acknowledge_delay_s
    row["restarts"] = transport.slow_start_after_idle
    row["timeout"] = transport.shortest_timeout_s
    # Opening the connection measures the round trip; where it does not, there is only the timeout to begin with.
    measured = protocol.connection_setup_round_trips > 0.0
    row["first_timeout"] = transport.minimum_timeout_s if measured else transport.initial_timeout_s
    row["few_packets"] = transport.few_packets
    row["few_timeout"] = transport.few_packets_timeout_s
    row["loss_budget"], row["critical_share"] = transport.loss_budget, transport.critical_share


def describe_connections(
    table: Table,
    ways: NDArray[np.int64],
    route_of: NDArray[np.int64],
    remote: NDArray[np.bool_],
    network: Network,
) -> None:
    """Fill in what it costs messages that a host has many connections, and let a message have all of its pair.

    An adapter keeps the state of so many connections; if messages go over all of them by turns, it has to fetch that of
    the others' share (A. Kalia et al., "Datacenter RPCs can be general and fast", NSDI 2019, section 4.1.2).

    Parameters
    ----------
    table : table
        Operations; their ``cap`` is there.
    ways : ndarray of int, shape (2, routes)
        Node indices of both ends of each route; its connection is open.
    route_of : ndarray of int, shape (operations,)
    remote : ndarray of bool, shape (operations,)
        Messages that leave their host.
    network : Network
    """
    transport = network.protocol.transport
    rows = np.flatnonzero(remote)
    if transport.cache_miss_s > 0.0 and math.isfinite(transport.cached_connections):
        for ends, what in zip(ways, ("more_send", "more_receive"), strict=True):
            share = np.array([network.cache_miss_share(node) for node in ends.tolist()])
            table[what][rows] = transport.cache_miss_s * share[route_of[rows]]
    table["cap"][rows] *= connections_of(table[rows], network.protocol)


def connections_of(messages: Table, protocol: FlowProtocol) -> NDArray[np.float64]:
    """Return over how many connections each message is spread, shape (messages,)."""
    sizes = np.where(messages["chunk_bytes"] > 0, messages["chunk_bytes"], messages["element_bytes"])
    return np.where(sizes >= SPLIT_BYTES, protocol.transport.connections_per_pair, 1.0)


def packets_of(messages: Table, protocol: FlowProtocol) -> NDArray[np.float64]:
    """Return of how many packets each message is, shape (messages,)."""
    sizes = np.where(messages["chunk_bytes"] > 0, messages["chunk_bytes"], messages["element_bytes"])
    return np.ceil(sizes / protocol.payload_bytes)


def describe_behaviour(
    table: Table,
    routes: Sequence[Route | None],
    route_of: NDArray[np.int64],
    remote: NDArray[np.bool_],
    network: Network,
) -> None:
    """Fill in how operations take loss, and what windows and connections allow them.

    Parameters
    ----------
    table : table
        Operations; their ``cap`` and ``deadline`` are there.
    routes : sequence
        Ways of bytes; None where they go nowhere.
    route_of : ndarray of int, shape (operations,)
    remote : ndarray of bool, shape (operations,)
        Messages that leave their host.
    network : Network
    """
    protocol = network.protocol
    transport = protocol.transport
    if not remote.any() or not _has_packets(protocol):
        return

    def column(what: str) -> NDArray[np.float64]:
        return np.array([getattr(route, what) if route else 0.0 for route in routes])[route_of]

    rows = np.flatnonzero(remote)
    round_trip_s = column("round_trip_s")[rows]
    table["packet_time"][rows] = column("packet_s")[rows]
    table["round_trip"][rows] = round_trip_s
    if math.isfinite(transport.window_bytes):
        allowed = np.array([window_rate_bytes_per_s(transport.window_bytes, each) for each in round_trip_s])
        table["cap"][rows] = np.minimum(table["cap"][rows], connections_of(table[rows], protocol) * allowed)
    loss = column("loss")[rows]
    losing = rows[loss > 0.0]
    table["loss"][rows] = loss
    table["reliability"][losing] = _CODES[transport.reliability]
    if transport.reliability == "selective_repeat":
        window = transport.window_bytes / protocol.payload_bytes
        stalls = np.array(
            [
                stall_per_loss(route.loss, route.round_trip_s / route.packet_s, window) if route and route.loss else 0.0
                for route in routes
            ]
        )
        table["stall"][losing] = stalls[route_of[losing]]
    if transport.reliability == "best_effort" and math.isfinite(transport.deadline_s):
        table["deadline"][rows] = np.minimum(table["deadline"][rows], transport.deadline_s)


def idle_of_each(table: Table, protocol: FlowProtocol) -> NDArray[np.float64]:
    """Return what messages idle whose connection is a new one each time, shape (operations,) [s]."""
    idle_s = np.zeros(len(table))
    windows = protocol.transport.initial_window_packets * connections_of(table, protocol)
    packets = packets_of(table, protocol)
    for row in np.flatnonzero((table["packet_time"] > 0.0) & (table["reliability"] == RELIABLE)).tolist():
        one = table[row]
        idle_s[row], _ = start_up_idle_s(
            float(packets[row]), float(windows[row]), float(one["packet_time"]), float(one["round_trip"])
        )
    return idle_s


def _has_packets(protocol: FlowProtocol) -> bool:
    """Tell whether messages are made of packets, which windows count and links can lose."""
    return math.isfinite(protocol.payload_bytes)
