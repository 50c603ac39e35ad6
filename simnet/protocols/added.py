"""Protocols that installed packages add, checked, so that they can stand beside those that come with simnet."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

from simnet.protocols.checking import value_problems
from simnet.protocols.congestion import Control
from simnet.protocols.defaults import EXTENSIONS, Default, Definition, Framing, changed
from simnet.protocols.fields import FIELDS
from simnet.protocols.flow_protocol import FlowProtocol
from simnet.protocols.ideal import IDEAL

__all__ = ["added_definition"]


@cache
def added_definition(name: str) -> Definition:
    """Return the definition that a package adds under a name, which becomes the name of the protocol.

    Raises
    ------
    InputError
        It cannot be loaded, or is no protocol; names the package.
    """
    made = EXTENSIONS.load(name)
    if isinstance(made, FlowProtocol):
        made = _written_down(made)
    if not isinstance(made, Definition):
        hint = "a simnet.protocols.Definition or FlowProtocol is wanted"
        raise EXTENSIONS.refusal(name, f"is a {type(made).__name__}", hint)
    with EXTENSIONS.blaming(name, "is no protocol"):
        if made.control is not None:
            if not issubclass(made.control, Control):
                raise TypeError("its control is no class of simnet.protocols.congestion.Control")
            made = replace(made, defaults=changed(made.defaults, Default("congestion_control", name, "its own")))
        values = {default.field: default.value for default in made.defaults}
        wrong = [problem for field, value in values.items() for problem in value_problems(field, value)]
        made = replace(made, name=name, framing=_checked(name, made.framing))
        made.framing(float(values["mtu_bytes"]))
    if wrong:
        raise EXTENSIONS.refusal(name, f"is no protocol: {wrong[0].message}", wrong[0].hint)
    return made


def _checked(name: str, framing: Framing) -> Framing:
    """Return the framing of a package's protocol, which is held to two numbers; what is too small others refuse."""

    def checked(mtu_bytes: float) -> tuple[float, float]:
        with EXTENSIONS.blaming(name, "is no protocol"):
            found = framing(mtu_bytes)
            try:
                payload_bytes, header_bytes = map(float, found)
                fine = not math.isnan(payload_bytes) and 0 <= header_bytes < math.inf
            except (TypeError, ValueError):
                fine = False
            if not fine:
                raise TypeError(f"its framing returned {found!r}, and no payload and header in bytes")
        return payload_bytes, header_bytes

    return checked


def _written_down(protocol: FlowProtocol) -> Definition:
    """Return what a protocol is made of: all that has a meaning for every protocol, and all that is not ideal."""
    nothing, source = FlowProtocol(), "as its package has it"
    always = {default.field for default in IDEAL.defaults}
    headers = protocol.header_bytes
    beside_payload = 0.0 if math.isinf(protocol.payload_bytes) else protocol.mtu_bytes - protocol.payload_bytes
    return Definition(
        name=protocol.name,
        summary=protocol.summary,
        link_kinds=protocol.link_kinds,
        framing=lambda mtu_bytes: (mtu_bytes - beside_payload, headers),
        framing_source=source,
        defaults=tuple(
            Default(field.name, field.of(protocol), source)
            for field in FIELDS.values()
            if field.name not in ("payload_bytes", "header_bytes")
            and (field.name in always or field.of(protocol) != field.of(nothing))
        ),
    )
