"""What transports cost and how they behave: one module a family, each value with its source beside it."""

from __future__ import annotations

from simnet.protocols.defaults import Default, Definition
from simnet.protocols.fields import FIELDS, ProtocolField
from simnet.protocols.flow_protocol import FlowProtocol, lead_time_s, message_time_s, wire_bytes, with_no_overheads
from simnet.protocols.registry import PROTOCOLS, ProtocolValue, mismatch, resolve, values
from simnet.protocols.transport import Transport

__all__ = [
    "FIELDS",
    "PROTOCOLS",
    "Default",
    "Definition",
    "FlowProtocol",
    "ProtocolField",
    "ProtocolValue",
    "Transport",
    "lead_time_s",
    "message_time_s",
    "mismatch",
    "resolve",
    "values",
    "wire_bytes",
    "with_no_overheads",
]
