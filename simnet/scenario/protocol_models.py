"""The keys of a protocol: its name and what differs from its defaults.

Names and fields are those of `simnet.protocols`; nothing is written twice.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field, create_model

from simnet.protocols import FIELDS, PROTOCOLS, FlowProtocol, ProtocolField
from simnet.scenario.fields import Flag, Quantity, Real, Word
from simnet.scenario.sections import Choice, NotKnownError, Section

__all__ = ["ProtocolSpec", "protocol_data", "protocol_overrides"]

MOST = 1e6  # of every count, so that nothing overflows


def _annotation(field: ProtocolField) -> Any:
    match field.quantity:
        case "flag":
            return Annotated[bool, Flag()]
        case "choice":
            return Annotated[str, Word(field.choices)]
        case "count":
            bounds = {"above": field.least} if field.above else {"minimum": field.least}
            return Annotated[float, Real(**bounds, maximum=min(field.most, MOST), limit=field.unlimited)]
    dimension = field.quantity.replace("_", " ")
    return Annotated[float, Quantity(dimension, positive=field.above, limit=field.unlimited)]


_OVERRIDES = create_model(
    "ProtocolOverrides",
    __base__=Section,
    __module__=__name__,
    **{
        field.key: (
            _annotation(field) | None,
            Field(None, description=f"{field.meaning[:1].upper()}{field.meaning[1:]}."),
        )
        for field in FIELDS.values()
    },  # type: ignore[call-overload]  # a field for each entry of FIELDS
)

_ProtocolSpec: Any = create_model(
    "_ProtocolSpec",
    __base__=Choice,
    __module__=__name__,
    **{
        name: (_OVERRIDES | None, Field(None, description=f"What differs from the defaults of {name}."))
        for name in PROTOCOLS
    },  # type: ignore[call-overload]
)


class ProtocolSpec(_ProtocolSpec):
    """The transport: a name, or one name with what differs from its defaults."""


def protocol_overrides(spec: ProtocolSpec) -> tuple[dict[str, Any], bool]:
    """Return what a scenario overrides, by the names of the fields, in SI units; and whether all of it is known."""
    given: dict[str, Any] = {}
    for field in FIELDS.values():
        with suppress(NotKnownError):
            given[field.name] = getattr(spec.options, field.key)
    overrides = {name: value for name, value in given.items() if value is not None}
    return overrides, len(given) == len(FIELDS)


def protocol_data(spec: ProtocolSpec, protocol: FlowProtocol) -> dict[str, Any]:
    """Return the specification of a protocol with every value that it has, as plain data."""
    options = {field.key: field.of(protocol) for field in FIELDS.values()}
    made = _OVERRIDES.model_construct(**options)
    return {spec.name: made.model_dump()}
