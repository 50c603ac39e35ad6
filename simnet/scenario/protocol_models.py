"""The keys of a protocol: its name and what differs from its defaults, or a file with both.

Names and fields are those of `simnet.protocols`; nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field, GetJsonSchemaHandler, create_model, model_serializer, model_validator
from pydantic_core import CoreSchema
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from simnet.protocols import FIELDS, FlowProtocol, ProtocolField, protocol_names
from simnet.scenario.fields import Flag, Name, Quantity, Real, Text, Word, hint_at, refuse, shown
from simnet.scenario.sections import NotKnownError, Section, one_key

__all__ = [
    "PROTOCOL_SUFFIXES",
    "ProtocolFile",
    "ProtocolSpec",
    "is_protocol_file",
    "protocol_data",
    "protocol_overrides",
    "values_data",
]

PROTOCOL_SUFFIXES = (".yaml", ".yml")

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

_NAMES = protocol_names()
_KINDS = [*_NAMES, "file"]

_NAMED: dict[str, Any] = {
    name: (_OVERRIDES | None, Field(None, description=f"What differs from the defaults of {name}.")) for name in _NAMES
}
_ProtocolSpec: Any = create_model("_ProtocolSpec", __base__=Section, __module__=__name__, **_NAMED)
_ProtocolFile: Any = create_model("_ProtocolFile", __base__=_OVERRIDES, __module__=__name__)


class ProtocolFile(_ProtocolFile):
    """What a protocol file holds, as `simnet calibrate` writes it: a known protocol, and what differs from it."""

    base: Annotated[str, Word(_NAMES)] = Field(description="The protocol that has all other values.")
    name: Annotated[str, Name()] | None = Field(None, description="What tables call it; the file's name by default.")
    source: Annotated[str, Text("where the values are from")] | None = Field(
        None, description="Where the values are from."
    )


class ProtocolSpec(_ProtocolSpec):
    """The transport: a name, or one name with what differs from its defaults; or a file."""

    file: Annotated[str, Text("the name of a protocol, or a file name")] | None = Field(
        None, description="A protocol file, as `simnet calibrate` writes it."
    )
    changes: _OVERRIDES | None = Field(
        None, description="With file: what differs from its values; the keys are those of any protocol."
    )
    name: Annotated[str, Name()] | None = Field(
        None, description="What tables call the protocol; by its name, or as its file says, where not given."
    )

    @model_validator(mode="before")
    @classmethod
    def _one_key(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value in _NAMES:
                return {value: {}}
            if not is_protocol_file(value):
                refuse(f"is {shown(value)}", f"{hint_at(value, _NAMES)}; or a file, which ends with .yaml")
            return {"file": value}
        if not isinstance(value, Mapping):
            return one_key(value, list(_NAMES))
        given = one_key({key: one for key, one in value.items() if key != "name"}, _KINDS, beside={"changes": "file"})
        return given | {key: one for key, one in value.items() if key == "name"}

    @property
    def protocol(self) -> str:
        """The name of the protocol; empty where a file says which it is."""
        return next((name for name in _NAMES if getattr(self, name) is not None), "")

    @property
    def options(self) -> Any:
        """What differs from the defaults, or from the file."""
        return getattr(self, self.protocol or "changes")

    @model_serializer(mode="wrap")
    def _short(self, handler: SerializerFunctionWrapHandler) -> Any:
        data = {key: value for key, value in handler(self).items() if value is not None}
        if len(data) > 1 or any(data.get(name) for name in _NAMES):
            return data
        return self.protocol or self.file

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        keys = handler.resolve_ref_schema(handler(schema))["properties"]
        closed = {"type": "object", "additionalProperties": False}
        named = {key: keys[key] for key in (*_NAMES, "name")}
        of_file = {key: keys[key] for key in ("file", "changes", "name")}
        one_of = [{"required": [name]} for name in _NAMES]
        return {
            "title": "Protocol",
            "anyOf": [
                {"type": "string", "enum": list(_NAMES)},
                {"type": "string", "pattern": r"\.ya?ml$"},
                closed | {"properties": of_file, "required": ["file"]},
                closed | {"properties": named, "oneOf": one_of},
            ],
        }


def is_protocol_file(text: str) -> bool:
    """Tell whether a text names a file, and not a protocol."""
    return text.lower().endswith(PROTOCOL_SUFFIXES)


def protocol_overrides(section: Any) -> tuple[dict[str, Any], bool]:
    """Return what a section overrides, by the names of the fields, in SI units; and whether all of it is known.

    Parameters
    ----------
    section : Section or None
        With the keys that any protocol has.
    """
    given: dict[str, Any] = {}
    for field in FIELDS.values():
        with suppress(NotKnownError):
            given[field.name] = getattr(section, field.key, None)
    overrides = {name: value for name, value in given.items() if value is not None}
    return overrides, len(given) == len(FIELDS)


def protocol_data(protocol: FlowProtocol, base: str, name: str) -> dict[str, Any]:
    """Return the specification of a protocol with every value that it has, as plain data.

    Parameters
    ----------
    protocol : FlowProtocol
    base : str
        One of `simnet.protocols.protocol_names`.
    name : str
        What tables call it.
    """
    made = _OVERRIDES.model_construct(**{field.key: field.of(protocol) for field in FIELDS.values()})
    return {base: made.model_dump()} | ({} if name == base else {"name": name})


def values_data(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values, by the names of their fields, as a scenario has them: by key, with units."""
    made = _OVERRIDES.model_construct(**{FIELDS[name].key: value for name, value in values.items()})
    return {FIELDS[name].key: made.model_dump()[FIELDS[name].key] for name in values}
