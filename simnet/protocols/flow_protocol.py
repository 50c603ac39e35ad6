"""What a transport costs, and the formulas that follow from it alone.

The cost of one message of S bytes follows LogGP with overheads (A. Alexandrov et al., "LogGP: incorporating long
messages into the LogP model", SPAA 1995): sender overhead, the flow itself, latency, receiver overhead. Overheads per
byte are paid on the first `pipeline_bytes` of a message; the rest is worked on while the flow goes on, and there limits
its rate: `connection_cap_bytes_per_s` is what one core does, the host capacities what all its cores do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simnet.protocols.transport import Transport

__all__ = ["FlowProtocol", "lead_time_s", "message_time_s", "wire_bytes", "with_no_overheads"]


@dataclass(frozen=True)
class FlowProtocol:
    """A transport: what it costs, and in `transport` how it behaves. Without arguments it costs nothing at all.

    `simnet.protocols.FIELDS` describes the fields that a scenario may set, and completes this text by them.

    Parameters
    ----------
    name : str
        What tables call it.
    summary : str
        A line on what it is.
    link_kinds : tuple of str
        Kinds of links that it is native to; any if empty.
    transport : Transport
        How it behaves.
    """

    name: str = "ideal"
    summary: str = ""
    mtu_bytes: float = math.inf
    payload_bytes: float = math.inf
    header_bytes: float = 0.0
    send_overhead_s: float = 0.0
    receive_overhead_s: float = 0.0
    send_overhead_s_per_byte: float = 0.0
    receive_overhead_s_per_byte: float = 0.0
    pipeline_bytes: float = 0.0
    latency_s: float = 0.0
    connection_cap_bytes_per_s: float = math.inf
    host_send_capacity_bytes_per_s: float = math.inf
    host_receive_capacity_bytes_per_s: float = math.inf
    copies_send: float = 0.0
    copies_receive: float = 0.0
    connection: Literal["persistent", "per_message"] = "persistent"
    connection_setup_s: float = 0.0
    connection_setup_round_trips: float = 0.0
    verb: Literal["write", "read"] = "write"
    rendezvous_bytes: float = math.inf
    inline_bytes: float = math.inf
    fetch_s: float = 0.0
    batch_packets: float = 0.0
    batch_delay_s: float = 0.0
    forwarding: Literal["cut_through", "store_and_forward"] = "cut_through"
    divisible: bool = False
    link_kinds: tuple[str, ...] = ()
    transport: Transport = field(default_factory=Transport)


def wire_bytes(protocol: FlowProtocol, message_bytes: ArrayLike) -> NDArray[np.float64]:
    """Return what messages take of a wire: payload and the headers of all their packets [bytes].

    Parameters
    ----------
    protocol : FlowProtocol
    message_bytes : array_like of float, any shape
        Sizes of messages [bytes]; a message of 0 bytes takes nothing.

    Returns
    -------
    array of float, same shape
        [bytes]

    Examples
    --------
    >>> wire_bytes(FlowProtocol(payload_bytes=1448, header_bytes=90), [0, 1, 1448, 1449]).tolist()
    [0.0, 91.0, 1538.0, 1629.0]
    """
    size = np.asarray(message_bytes, dtype=np.float64)
    return np.asarray(size + np.ceil(size / protocol.payload_bytes) * protocol.header_bytes, dtype=np.float64)


def message_time_s(
    protocol: FlowProtocol,
    message_bytes: ArrayLike,
    bandwidth_bytes_per_s: float,
    path_latency_s: float = 0.0,
    hops: int = 1,
) -> NDArray[np.float64]:
    """Return the time of one message on a path that is idle, over an open connection [s].

    Parameters
    ----------
    protocol : FlowProtocol
    message_bytes : array_like of float, any shape
        Sizes of messages [bytes].
    bandwidth_bytes_per_s : float
        Of every link of the path [bytes/s].
    path_latency_s : float
        Of links and switches together, one way [s].
    hops : int
        Links of the path.

    Returns
    -------
    array of float, same shape
        From the call of the sender until the receiver has the message [s].

    References
    ----------
    A. Alexandrov et al., "LogGP: incorporating long messages into the LogP model", SPAA 1995, to which overheads for
    each byte are added.
    """
    size = np.asarray(message_bytes, dtype=np.float64)
    on_wire = wire_bytes(protocol, size)
    stacks = min(
        protocol.connection_cap_bytes_per_s,
        protocol.host_send_capacity_bytes_per_s,
        protocol.host_receive_capacity_bytes_per_s,
    )
    flow = np.maximum(on_wire / bandwidth_bytes_per_s, size / stacks)
    first = np.minimum(size, protocol.pipeline_bytes)
    per_byte = protocol.send_overhead_s_per_byte + protocol.receive_overhead_s_per_byte
    overhead = protocol.send_overhead_s + protocol.receive_overhead_s + first * per_byte
    forwarding = np.zeros_like(size)
    if protocol.forwarding == "store_and_forward":
        packet = np.minimum(on_wire, protocol.payload_bytes + protocol.header_bytes)
        forwarding = (hops - 1) * packet / bandwidth_bytes_per_s
    one_way = protocol.latency_s + path_latency_s
    lead = lead_time_s(protocol, size, one_way)
    return np.asarray(lead + overhead + flow + one_way + forwarding, dtype=np.float64)


def lead_time_s(protocol: FlowProtocol, message_bytes: ArrayLike, one_way_s: ArrayLike) -> NDArray[np.float64]:
    """Return the time before the first byte of messages leaves, apart from the work of the sender [s].

    A read is asked for by the receiver. A message that is so large that it needs a rendezvous is announced by its
    sender, and sent when the receiver has a place for it, so that nothing is copied. One that is not in the request
    itself is fetched by the adapter. One of few packets waits for others where packets are sent in batches.

    Parameters
    ----------
    protocol : FlowProtocol
    message_bytes : array_like of float
        Sizes of messages [bytes].
    one_way_s : array_like of float
        Latency of the path and of the protocol [s].

    Returns
    -------
    array of float
        Of the shape to which sizes and latencies broadcast [s].
    """
    size, one_way = np.asarray(message_bytes, dtype=np.float64), np.asarray(one_way_s, dtype=np.float64)
    each = protocol.send_overhead_s + one_way + protocol.receive_overhead_s
    lead = np.where(size >= protocol.rendezvous_bytes, 2.0 * each, 0.0)
    lead += np.where(size > protocol.inline_bytes, protocol.fetch_s, 0.0)
    lead += np.where(np.ceil(size / protocol.payload_bytes) < protocol.batch_packets, protocol.batch_delay_s, 0.0)
    return np.asarray(lead + (each if protocol.verb == "read" else 0.0), dtype=np.float64)


def with_no_overheads(protocol: FlowProtocol) -> FlowProtocol:
    """Return the same protocol with everything that takes time left out: as fast as ``ideal``.

    Parameters
    ----------
    protocol : FlowProtocol

    Returns
    -------
    FlowProtocol
        With the name, summary, MTU, payload and kinds of links of the given one.
    """
    ideal = FlowProtocol()
    kept = {"name", "summary", "mtu_bytes", "payload_bytes", "divisible", "link_kinds"}
    return replace(
        protocol, **{field.name: getattr(ideal, field.name) for field in fields(ideal) if field.name not in kept}
    )
