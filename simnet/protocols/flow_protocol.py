"""What a transport costs at the flow level, and the formulas that follow from it alone.

The cost of one message of S bytes follows LogGP with overheads (A. Alexandrov et al., "LogGP: incorporating long
messages into the LogP model", SPAA 1995): sender overhead, the flow itself, latency, receiver overhead. Overheads per
byte are paid on the first `pipeline_bytes` of a message; the rest is worked on while the flow goes on, and there limits
its rate: `connection_cap_bytes_per_s` is what one core does, the host capacities what all its cores do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["FIELDS", "FlowProtocol", "ProtocolField", "message_time_s", "wire_bytes", "with_no_overheads"]


@dataclass(frozen=True)
class FlowProtocol:
    """A transport as the flow-level fabric sees it. As it stands without arguments it costs nothing at all.

    `FIELDS` describes each field: its unit, its name in a scenario, what it means.
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
    forwarding: Literal["cut_through", "store_and_forward"] = "cut_through"
    divisible: bool = False
    link_kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProtocolField:
    """One field of a `FlowProtocol` that a scenario may set.

    Parameters
    ----------
    name : str
        Of the field.
    key : str
        In a scenario, where the unit stands with the value.
    quantity : {"size", "duration", "duration_per_byte", "bandwidth", "count", "choice", "flag"}
        What kind of value it takes.
    unit : str
        Of the field; empty where it has none.
    meaning : str
    least : float
        The smallest number that makes sense; `above` says whether the number has to be larger.
    above : bool
    choices : tuple of str
        What a choice may be.
    """

    name: str
    key: str
    quantity: Literal["size", "duration", "duration_per_byte", "bandwidth", "count", "choice", "flag"]
    unit: str
    meaning: str
    least: float = 0.0
    above: bool = False
    choices: tuple[str, ...] = ()


FIELDS = MappingProxyType(
    {
        field.name: field
        for field in (
            ProtocolField(
                "mtu_bytes",
                "mtu",
                "size",
                "bytes",
                "largest packet that the protocol hands to its link layer",
                above=True,
            ),
            ProtocolField("payload_bytes", "payload", "size", "bytes", "data of the user in a full packet", above=True),
            ProtocolField(
                "header_bytes",
                "header",
                "size",
                "bytes",
                "everything else that a packet takes of a wire, gaps included",
            ),
            ProtocolField("send_overhead_s", "send_overhead", "duration", "s", "work of the sender for each message"),
            ProtocolField(
                "receive_overhead_s", "receive_overhead", "duration", "s", "work of the receiver for each message"
            ),
            ProtocolField(
                "send_overhead_s_per_byte",
                "send_overhead_per_byte",
                "duration_per_byte",
                "s/byte",
                "work of the sender for each of the first bytes, before the flow begins",
            ),
            ProtocolField(
                "receive_overhead_s_per_byte",
                "receive_overhead_per_byte",
                "duration_per_byte",
                "s/byte",
                "work of the receiver for each of as many bytes, after the flow has arrived",
            ),
            ProtocolField(
                "pipeline_bytes",
                "pipeline",
                "size",
                "bytes",
                "how many bytes of a message these are; the work for the rest overlaps with the flow",
            ),
            ProtocolField("latency_s", "latency", "duration", "s", "one way, besides links, switches and overheads"),
            ProtocolField(
                "connection_cap_bytes_per_s",
                "connection_cap",
                "bandwidth",
                "bytes/s",
                "the most that one connection carries",
                above=True,
            ),
            ProtocolField(
                "host_send_capacity_bytes_per_s",
                "host_send_capacity",
                "bandwidth",
                "bytes/s",
                "the most that all connections of a host send together",
                above=True,
            ),
            ProtocolField(
                "host_receive_capacity_bytes_per_s",
                "host_receive_capacity",
                "bandwidth",
                "bytes/s",
                "the most that all connections of a host receive together",
                above=True,
            ),
            ProtocolField(
                "copies_send",
                "copies_send",
                "count",
                "",
                "copies in the sender's memory; each moves a byte twice, read and write",
            ),
            ProtocolField("copies_receive", "copies_receive", "count", "", "copies in the receiver's memory"),
            ProtocolField(
                "connection",
                "connection",
                "choice",
                "",
                "one connection for all messages of a pair, opened at first use, or a new one for each",
                choices=("persistent", "per_message"),
            ),
            ProtocolField(
                "connection_setup_s", "connection_setup", "duration", "s", "work of both hosts to open a connection"
            ),
            ProtocolField(
                "connection_setup_round_trips",
                "connection_setup_round_trips",
                "count",
                "",
                "round trips on the path before the first byte can leave",
            ),
            ProtocolField(
                "forwarding",
                "forwarding",
                "choice",
                "",
                "switches pass a packet on as it comes in, or when they have all of it",
                choices=("cut_through", "store_and_forward"),
            ),
            ProtocolField(
                "divisible", "divisible", "flag", "", "cut buffers into exactly equal parts, as closed forms assume"
            ),
        )
    }
)
"""The fields that a scenario may set, by name, in the order in which they are shown."""


def wire_bytes(protocol: FlowProtocol, message_bytes: ArrayLike) -> NDArray[np.float64]:
    """Return what messages take of a wire: payload and the headers of all their packets [bytes].

    Parameters
    ----------
    protocol : FlowProtocol
    message_bytes : array_like of float
        Sizes of messages [bytes]; a message of 0 bytes takes nothing.

    Returns
    -------
    array of float, same shape

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
    message_bytes : array_like of float
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
        From the call of the sender until the receiver has the message.
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
    return np.asarray(overhead + flow + protocol.latency_s + path_latency_s + forwarding, dtype=np.float64)


def with_no_overheads(protocol: FlowProtocol) -> FlowProtocol:
    """Return the same protocol with everything that takes time left out: as fast as ``ideal``."""
    ideal = FlowProtocol()
    kept = {"name", "summary", "mtu_bytes", "payload_bytes", "divisible", "link_kinds"}
    return replace(
        protocol, **{field.name: getattr(ideal, field.name) for field in fields(ideal) if field.name not in kept}
    )
