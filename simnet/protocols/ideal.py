"""A network that costs nothing but bandwidth and the latency of its links, for theory."""

from __future__ import annotations

import math

from simnet.protocols.defaults import Default, Definition
from simnet.protocols.fields import FIELDS
from simnet.protocols.flow_protocol import FlowProtocol

__all__ = ["IDEAL"]

_NOTHING = FlowProtocol()

IDEAL = Definition(
    name="ideal",
    summary="no overheads, no headers, no limits: bandwidth and link latency alone",
    link_kinds=(),
    framing=lambda mtu: (mtu, 0.0),
    framing_source="by definition",
    defaults=tuple(
        Default(field.name, value, "by definition: unlimited" if value == math.inf else "by definition")
        for field, value in ((field, field.of(_NOTHING)) for field in FIELDS.values())
        if field.name not in ("payload_bytes", "header_bytes")
        and (field.quantity == "choice" or not field.of_transport)
    ),
)
