"""What a scenario may set of a protocol: each field with its key, unit and meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from inspect import cleandoc
from types import MappingProxyType
from typing import Any, Literal, get_args

from simnet.protocols.defaults import EXTENSIONS, Value
from simnet.protocols.flow_protocol import FlowProtocol
from simnet.protocols.transport import CongestionControl, LinkFlowControl, Reliability, Transport
from simnet.units import format_bandwidth, format_duration, format_duration_per_byte, format_size

__all__ = ["FIELDS", "ProtocolField"]

_OF_TRANSPORT = frozenset(field.name for field in fields(Transport))

_UNITS = MappingProxyType({"size": "bytes", "duration": "s", "duration_per_byte": "s/byte", "bandwidth": "bytes/s"})
_WRITTEN: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {
        "size": format_size,
        "duration": format_duration,
        "duration_per_byte": format_duration_per_byte,
        "bandwidth": format_bandwidth,
        "count": lambda number: f"{number:g}",
    }
)


@dataclass(frozen=True)
class ProtocolField:
    """One field of a `FlowProtocol`, or of its `Transport`, that a scenario may set.

    Parameters
    ----------
    name : str
        Of the field.
    key : str
        In a scenario, where the unit stands with the value.
    quantity : {"size", "duration", "duration_per_byte", "bandwidth", "count", "choice", "flag"}
        What kind of value it takes.
    meaning : str
    least, most : float
        The smallest and the largest number that make sense; `above` says whether it has to be larger than `least`.
    above : bool
    unlimited : bool
        It is a limit that may be missing: infinite.
    choices : tuple of str
        What a choice may be.
    """

    name: str
    key: str
    quantity: Literal["size", "duration", "duration_per_byte", "bandwidth", "count", "choice", "flag"]
    meaning: str
    least: float = 0.0
    most: float = math.inf
    above: bool = False
    unlimited: bool = False
    choices: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """Of the field; empty where it has none."""
        return _UNITS.get(self.quantity, "")

    @property
    def of_transport(self) -> bool:
        """Whether it says how the protocol behaves (`Transport`) and not what it costs (`FlowProtocol`)."""
        return self.name in _OF_TRANSPORT

    def of(self, protocol: FlowProtocol) -> Any:
        """Return the value that a protocol has.

        Parameters
        ----------
        protocol : FlowProtocol
        """
        return getattr(protocol.transport if self.of_transport else protocol, self.name)

    def written(self, value: Value) -> str:
        """Return a value as a scenario would have it, shortened.

        Parameters
        ----------
        value : float, str or bool
            In the unit of the field.
        """
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            return value
        return "unlimited" if math.isinf(value) else _WRITTEN[self.quantity](value)


_COSTS = (
    ProtocolField(
        "mtu_bytes",
        "mtu",
        "size",
        "largest packet that the protocol hands to its link layer",
        above=True,
        unlimited=True,
    ),
    ProtocolField("payload_bytes", "payload", "size", "data of the user in a full packet", above=True, unlimited=True),
    ProtocolField("header_bytes", "header", "size", "everything else that a packet takes of a wire, gaps included"),
    ProtocolField("send_overhead_s", "send_overhead", "duration", "work of the sender for each message"),
    ProtocolField("receive_overhead_s", "receive_overhead", "duration", "work of the receiver for each message"),
    ProtocolField(
        "send_overhead_s_per_byte",
        "send_overhead_per_byte",
        "duration_per_byte",
        "work of the sender for each of the first bytes, before the flow begins",
    ),
    ProtocolField(
        "receive_overhead_s_per_byte",
        "receive_overhead_per_byte",
        "duration_per_byte",
        "work of the receiver for each of as many bytes, after the flow has arrived",
    ),
    ProtocolField(
        "pipeline_bytes",
        "pipeline",
        "size",
        "how many bytes of a message these are; the work for the rest overlaps with the flow",
    ),
    ProtocolField("latency_s", "latency", "duration", "one way, besides links, switches and overheads"),
    ProtocolField(
        "connection_cap_bytes_per_s",
        "connection_cap",
        "bandwidth",
        "the most that one connection carries",
        above=True,
        unlimited=True,
    ),
    ProtocolField(
        "host_send_capacity_bytes_per_s",
        "host_send_capacity",
        "bandwidth",
        "the most that all connections of a host send together",
        above=True,
        unlimited=True,
    ),
    ProtocolField(
        "host_receive_capacity_bytes_per_s",
        "host_receive_capacity",
        "bandwidth",
        "the most that all connections of a host receive together",
        above=True,
        unlimited=True,
    ),
    ProtocolField(
        "copies_send", "copies_send", "count", "copies in the sender's memory; each moves a byte twice, read and write"
    ),
    ProtocolField("copies_receive", "copies_receive", "count", "copies in the receiver's memory"),
    ProtocolField(
        "connection",
        "connection",
        "choice",
        "one connection for all messages of a pair, opened at first use, or a new one for each",
        choices=("persistent", "per_message"),
    ),
    ProtocolField("connection_setup_s", "connection_setup", "duration", "work of both hosts to open a connection"),
    ProtocolField(
        "connection_setup_round_trips",
        "connection_setup_round_trips",
        "count",
        "round trips on the path before the first byte can leave",
    ),
    ProtocolField(
        "verb",
        "verb",
        "choice",
        "the sender writes into the memory of the receiver, or the receiver reads, so that it has to ask first (RDMA)",
        choices=("write", "read"),
    ),
    ProtocolField(
        "rendezvous_bytes",
        "rendezvous",
        "size",
        "messages of so many bytes or more wait until the receiver has a place for them; smaller ones go at once",
        unlimited=True,
    ),
    ProtocolField(
        "inline_bytes",
        "inline",
        "size",
        "messages of so many bytes are part of the request; the adapter fetches larger ones from memory",
        unlimited=True,
    ),
    ProtocolField("fetch_s", "fetch", "duration", "what that takes before the first byte is there"),
    ProtocolField(
        "batch_packets", "batch_packets", "count", "messages of fewer packets wait until more are to be sent, or"
    ),
    ProtocolField("batch_delay_s", "batch_delay", "duration", "until so long has passed"),
    ProtocolField(
        "forwarding",
        "forwarding",
        "choice",
        "switches pass a packet on as it comes in, or when they have all of it",
        choices=("cut_through", "store_and_forward"),
    ),
    ProtocolField("divisible", "divisible", "flag", "cut buffers into exactly equal parts, as closed forms assume"),
)

_BEHAVIOUR = (
    ProtocolField(
        "reliability",
        "reliability",
        "choice",
        "what is sent again after a loss: all from there on, what acknowledgements show to be lost, what is reported "
        "missing, or nothing",
        choices=get_args(Reliability),
    ),
    ProtocolField(
        "congestion_control",
        "congestion_control",
        "choice",
        "what sets the window or the pace of a sender",
        choices=(*get_args(CongestionControl), *EXTENSIONS.names(get_args(CongestionControl))),
    ),
    ProtocolField(
        "link_flow_control",
        "link_flow_control",
        "choice",
        "what a switch with a full buffer does: drop, pause the neighbour, or give it no more credit",
        choices=get_args(LinkFlowControl),
    ),
    ProtocolField("spraying", "spraying", "flag", "packets of one connection take all shortest paths in turn"),
    # Windows and acknowledgements.
    ProtocolField(
        "initial_window_packets",
        "initial_window",
        "count",
        "packets that a new connection may have under way",
        least=1.0,
        unlimited=True,
    ),
    ProtocolField(
        "window_bytes",
        "window",
        "size",
        "the most that a connection may have under way, whatever its congestion control says",
        above=True,
        unlimited=True,
    ),
    ProtocolField(
        "acknowledge_every", "acknowledge_every", "count", "packets that one acknowledgement is for", least=1.0
    ),
    ProtocolField(
        "acknowledge_delay_s",
        "acknowledge_delay",
        "duration",
        "the longest that an acknowledgement waits for them; 0: until the end of the message",
    ),
    ProtocolField("acknowledgement_bytes", "acknowledgement", "size", "what an acknowledgement takes of a wire"),
    ProtocolField(
        "slow_start_after_idle",
        "slow_start_after_idle",
        "flag",
        "a connection that was idle for a timeout begins again with its first window",
    ),
    ProtocolField(
        "reorder_packets",
        "reorder_packets",
        "count",
        "later packets that have to arrive until one counts as lost",
        least=1.0,
    ),
    ProtocolField(
        "receive_ring_packets",
        "receive_ring",
        "count",
        "packets that an adapter keeps for the protocol stack, at packet level; what comes beyond is dropped",
        least=1.0,
        unlimited=True,
    ),
    # Timeouts.
    ProtocolField(
        "minimum_timeout_s", "minimum_timeout", "duration", "the shortest wait for an acknowledgement", above=True
    ),
    ProtocolField(
        "initial_timeout_s",
        "initial_timeout",
        "duration",
        "that wait while no round trip has been measured",
        above=True,
    ),
    ProtocolField(
        "maximum_timeout_s", "maximum_timeout", "duration", "the longest wait; each in vain doubles it", above=True
    ),
    ProtocolField(
        "adaptive_timeout_s",
        "adaptive_timeout",
        "duration",
        "go-back-N, the first wait; each in vain doubles it, up to minimum_timeout; all of these are one of retries",
        above=True,
        unlimited=True,
    ),
    ProtocolField(
        "retries",
        "retries",
        "count",
        "so many times in a row it sends again in vain, the next time the run ends, at packet level",
        unlimited=True,
    ),
    ProtocolField(
        "tail_loss_probe",
        "tail_loss_probe",
        "flag",
        "after two round trips of silence the last packet is sent again, which shows what was lost before it",
    ),
    ProtocolField("few_packets", "few_packets", "count", "up to so many packets under way another timeout holds"),
    ProtocolField("few_packets_timeout_s", "few_packets_timeout", "duration", "that timeout", above=True),
    # Marks.
    ProtocolField(
        "mark_from_s",
        "mark_from",
        "duration",
        "queues that take their link longer are marked, some packets at first (ECN)",
        unlimited=True,
    ),
    ProtocolField(
        "mark_all_s", "mark_all", "duration", "queues that take longer have every packet marked", unlimited=True
    ),
    ProtocolField("most_marked", "most_marked", "count", "share that is marked just below that", most=1.0),
    ProtocolField(
        "marks_at_departure",
        "marks_at_departure",
        "flag",
        "the queue that counts is the one behind a packet as it leaves, not the one before it as it comes",
    ),
    # DCQCN.
    ProtocolField(
        "alpha_gain",
        "alpha_gain",
        "count",
        "DCQCN, weight of the newest in the estimate of congestion",
        above=True,
        most=1.0,
    ),
    ProtocolField(
        "alpha_period_s",
        "alpha_period",
        "duration",
        "DCQCN, the estimate falls each time that so long nothing is notified",
        above=True,
    ),
    ProtocolField(
        "loss_notification",
        "loss_notification",
        "flag",
        "DCQCN, a receiver notifies a sender with each report of what is missing, too",
    ),
    ProtocolField(
        "notification_interval_s",
        "notification_interval",
        "duration",
        "DCQCN, a receiver notifies a sender of marks at most so often",
    ),
    ProtocolField(
        "notification_delay_s",
        "notification_delay",
        "duration",
        "DCQCN, time that the receiver's adapter takes for it",
    ),
    ProtocolField("decrease_interval_s", "decrease_interval", "duration", "DCQCN, the rate is cut at most so often"),
    ProtocolField(
        "increase_period_s",
        "increase_period",
        "duration",
        "DCQCN, time after which the rate rises a step",
        above=True,
        unlimited=True,
    ),
    ProtocolField(
        "increase_bytes",
        "increase_bytes",
        "size",
        "DCQCN, bytes after which the rate rises a step",
        above=True,
        unlimited=True,
    ),
    ProtocolField(
        "recovery_steps",
        "recovery_steps",
        "count",
        "DCQCN, each step goes half way back to the old rate; after so many that rate rises as well",
        least=1.0,
    ),
    ProtocolField(
        "additive_increase_bytes_per_s",
        "additive_increase",
        "bandwidth",
        "DCQCN, by what it rises then",
    ),
    ProtocolField(
        "hyper_increase_bytes_per_s",
        "hyper_increase",
        "bandwidth",
        "DCQCN, by what it rises when there were more of both kinds, by time and by bytes",
    ),
    ProtocolField("minimum_rate_bytes_per_s", "minimum_rate", "bandwidth", "DCQCN, the lowest rate", above=True),
    # Loss that is put up with.
    ProtocolField(
        "loss_budget",
        "loss_budget",
        "count",
        "share of a message that may stay lost; what goes beyond is sent again",
        most=1.0,
    ),
    ProtocolField(
        "critical_share",
        "critical_share",
        "count",
        "share of a message, its beginning, that has to come in any case",
        most=1.0,
    ),
    ProtocolField(
        "deadline_s",
        "deadline",
        "duration",
        "a message that began so long ago is taken as it is",
        above=True,
        unlimited=True,
    ),
    ProtocolField(
        "quiet_s",
        "quiet",
        "duration",
        "a message within its budget is taken when nothing came for so long",
        above=True,
        unlimited=True,
    ),
    # Connections.
    ProtocolField(
        "connections_per_pair",
        "connections_per_pair",
        "count",
        "connections that share the messages of a pair",
        least=1.0,
    ),
    ProtocolField(
        "connection_memory_bytes", "connection_memory", "size", "memory of a host that an open connection takes"
    ),
    ProtocolField(
        "cached_connections",
        "cached_connections",
        "count",
        "connections that an adapter has at hand; what it needs of others it fetches from the host",
        unlimited=True,
    ),
    ProtocolField("cache_miss_s", "cache_miss", "duration", "what a message waits where it has to"),
)

FIELDS = MappingProxyType({field.name: field for field in (*_COSTS, *_BEHAVIOUR)})
"""The fields that a scenario may set, by name, in the order in which they are shown."""


def _completed(kind: type) -> str:
    """Return the docstring of a dataclass, and behind it what `FIELDS` says of its fields."""
    lines = cleandoc(kind.__doc__ or "").splitlines()
    if "Parameters" not in lines:
        lines += ["", "Parameters", "----------"]
    for field in FIELDS.values():
        if field.of_transport == (kind is Transport):
            choices = ", ".join(f'"{choice}"' for choice in field.choices)
            value = f"{{{choices}}}" if choices else "bool" if field.quantity == "flag" else "float"
            unit = f" [{field.unit}]" if field.unit else ""
            lines += [f"{field.name} : {value}", f"    {field.meaning[0].upper()}{field.meaning[1:]}{unit}."]
    return "\n".join(lines)


for _kind in (FlowProtocol, Transport):
    _kind.__doc__ = _completed(_kind)
