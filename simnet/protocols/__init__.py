"""What transports cost and how they behave: one module a family, each value with its source beside it."""

from __future__ import annotations

from simnet.protocols.defaults import Default, Definition, changed
from simnet.protocols.fields import FIELDS, ProtocolField
from simnet.protocols.flow_protocol import FlowProtocol, lead_time_s, message_time_s, wire_bytes, with_no_overheads
from simnet.protocols.registry import (
    PROTOCOLS,
    ProtocolValue,
    mismatch,
    misnamed_protocols,
    own_controls,
    protocol_names,
    resolve,
    values,
)
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
    "changed",
    "lead_time_s",
    "message_time_s",
    "mismatch",
    "misnamed_protocols",
    "own_controls",
    "protocol_names",
    "resolve",
    "values",
    "wire_bytes",
    "with_no_overheads",
]
