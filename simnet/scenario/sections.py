"""What the models of a scenario have in common, and how pydantic's findings become problems in plain words.

A `Section` is a mapping with known keys. A `Choice` is a mapping with exactly one of its keys, which may also be
written as the bare name: ``ring`` for ``{ring: {}}``. In both an empty value (``null``) means the default.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from simnet.errors import InputError, KeyPath, Problem
from simnet.scenario.document import Document
from simnet.scenario.fields import core_schema_of, hint_at, refuse, shown

__all__ = [
    "Choice",
    "NotKnownError",
    "OnDemand",
    "Section",
    "label",
    "one_key",
    "problems_of",
    "right_part",
    "section_of",
    "unknown_key",
]


class NotKnownError(Exception):
    """A value was asked for that is wrong, which is told already: what follows from it cannot be said."""


class Section(BaseModel):
    """A mapping with known keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, value: Any) -> Any:
        if isinstance(value, BaseModel):
            return value
        if not isinstance(value, Mapping):
            refuse(f"is {shown(value)}", f"a mapping is wanted, with keys out of {', '.join(cls.model_fields)}")
        optional = {key for key, field in cls.model_fields.items() if not field.is_required()}
        return {key: item for key, item in value.items() if item is not None or key not in optional}

    def __getattr__(self, name: str) -> Any:
        # Only `right_part` leaves fields out.
        if name in type(self).model_fields:
            raise NotKnownError(name)
        return super().__getattr__(name)  # type: ignore[misc]  # pydantic hides it from type checkers

    def known(self) -> Self:
        """Return the section itself if all of it is right."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Section):
                value.known()
        return self


class Choice(Section):
    """A mapping with one of its keys, or that key alone; each field is a `Section` or None."""

    @model_validator(mode="before")
    @classmethod
    def _one_key(cls, value: Any) -> Any:
        if isinstance(value, BaseModel):
            return value
        if isinstance(value, str):
            if value not in cls.model_fields:
                refuse(f"is {shown(value)}", hint_at(value, cls.model_fields))
            return {value: {}}
        return one_key(value, list(cls.model_fields))

    @property
    def name(self) -> str:
        """The one key that is given."""
        return next(name for name in type(self).model_fields if getattr(self, name) is not None)

    @property
    def options(self) -> Any:
        """What is below it."""
        return getattr(self, self.name)

    @model_serializer(mode="wrap")
    def _short(self, handler: SerializerFunctionWrapHandler) -> Any:
        data = {key: options for key, options in handler(self).items() if options is not None}
        return self.name if not any(data.values()) else data

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        made = handler.resolve_ref_schema(handler(schema))
        names = {"type": "string", "enum": list(cls.model_fields)}
        one = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False}
        return {"title": cls.__name__, "anyOf": [names, one | {"properties": made["properties"]}]}


def one_key(value: Any, known: list[str], beside: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """Return a mapping that has exactly one of the known keys, or refuse it.

    Parameters
    ----------
    value : object
        What stands in the scenario.
    known : list of str
        The keys of which one is wanted.
    beside : mapping
        Keys that may stand beside it, each with the one that it may stand beside.
    """
    if not isinstance(value, Mapping) or not value:
        refuse(
            f"is {'empty' if isinstance(value, (Mapping, list)) and not value else shown(value)}",
            f"a name, or {{name: {{option: value}}}}, is wanted; {hint_at('', known)}",
        )
    for key in value:
        if key not in known and key not in beside:
            refuse(f"does not know {shown(key)}", hint_at(str(key), known), key=key)
    names = [key for key in value if key in known]
    if len(names) > 1:
        refuse(f"names both {names[0]!r} and {names[1]!r}", "one of them is wanted", key=names[1])
    for key in value:
        if key in beside and beside[key] not in names:
            # Where there is nothing else nothing is left that is right.
            refuse(f"has {key!r}", f"it goes with {beside[key]!r} only", key=key if names else None)
    return {key: {} if options is None else options for key, options in value.items()}


def label(path: KeyPath) -> str:
    """Return what a message calls a place: the last key, with positions in a list behind it.

    Examples
    --------
    >>> label(("training", "speed_factors", 3))
    'speed_factors[3]'
    """
    named = max((place for place, key in enumerate(path) if isinstance(key, str)), default=-1)
    positions = "".join(f"[{key}]" for key in path[named + 1 :])
    return (str(path[named]) if named >= 0 else "the document") + positions


@dataclass(frozen=True)
class OnDemand:
    """Stands for the model of a section that is made when somebody asks for it: of something that a package adds.

    Parameters
    ----------
    model : callable
        Returns the model, or raises `InputError` with one problem.
    """

    model: Callable[[], type[Section]]

    def _check(self, value: object) -> Section:
        try:
            model = self.model()
        except InputError as error:
            [problem] = error.problems
            refuse(problem.message, problem.hint)
        return model.model_validate(value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema_of(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(self.model().__pydantic_core_schema__)


def section_of(model: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """Return the model that describes what is at `path`, or None where it is not a mapping with known keys.

    Of a list of mappings it describes each.
    """
    for key in path:
        if isinstance(key, int):
            continue
        field = model.model_fields.get(key) if isinstance(key, str) else None
        below = _section_in(field.annotation) if field else None
        if below is None:
            return None
        model = below
    return model


def is_list(model: type[BaseModel], key: str) -> bool:
    """Tell whether a key of a model holds a list of sections."""
    return section_of(model, (key,)) is not None and _has_sequence(model.model_fields[key].annotation)


def _has_sequence(annotation: Any) -> bool:
    return get_origin(annotation) in (list, tuple) or any(_has_sequence(part) for part in get_args(annotation))


def _section_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if isinstance(annotation, OnDemand):
        with suppress(InputError):
            return annotation.model()
    return next((found for part in get_args(annotation) if (found := _section_in(part))), None)


def right_part(model: type[Section], data: Any, wrong: Collection[KeyPath]) -> Section:
    """Return a section of which only what is right can be asked for; all else raises `NotKnownError`.

    So that checks can be made that have nothing to do with what is wrong.

    Parameters
    ----------
    model : type
        Of the section.
    data : object
        As it stands in the document.
    wrong : collection of tuple
        Paths from here to everything that is wrong.
    """
    fields = model.model_fields
    if issubclass(model, Choice) and isinstance(data, str):
        data = {data: {}}
    if not isinstance(data, Mapping) or any(not path for path in wrong):
        raise NotKnownError(model.__name__)
    if issubclass(model, Choice) and (len(data) != 1 or any(len(path) == 1 for path in wrong)):
        raise NotKnownError(model.__name__)
    # Any key that is not given may be what an unknown one was meant to be.
    unknown = any(path[0] not in fields for path in wrong)
    values: dict[str, Any] = {}
    lost = set()
    for key, field in fields.items():
        below = [path[1:] for path in wrong if path[0] == key]
        section = section_of(model, (key,)) if below else None
        try:
            if below and (section is None or not issubclass(section, Section)):
                raise NotKnownError(key)
            if below:
                assert section is not None
                assert issubclass(section, Section)
                values[key] = _right_parts(section, data.get(key), below)
            elif data.get(key) is None and (unknown or field.is_required()):
                raise NotKnownError(key)
            elif data.get(key) is None:
                values[key] = field.get_default(call_default_factory=True)
            else:
                adapter: TypeAdapter[Any] = TypeAdapter(field.rebuild_annotation())
                values[key] = adapter.validate_python(data[key])
        except (NotKnownError, ValidationError):
            # A check of the whole section may have failed before this key was looked at.
            lost.add(key)
    made = model.model_construct(**values)
    for key in lost:
        made.__dict__.pop(key, None)
    return made


def _right_parts(model: type[Section], data: Any, wrong: Collection[KeyPath]) -> Any:
    """Return what is right of a section, or of each of a list of sections."""
    if not isinstance(data, list):
        return right_part(model, data, wrong)
    if any(not path for path in wrong):
        raise NotKnownError(model.__name__)
    return tuple(
        right_part(model, item, [path[1:] for path in wrong if path[0] == number]) for number, item in enumerate(data)
    )


def problems_of(
    document: Document, model: type[BaseModel], error: ValidationError, below: KeyPath = ()
) -> list[Problem]:
    """Return everything that pydantic found, in plain words and with places.

    Parameters
    ----------
    document : Document
        What was validated.
    model : type
        The model it was validated with.
    error : ValidationError
    below : tuple of str or int
        Where in the document the validated value stands.
    """
    found = [_problem(document, model, detail, below) for detail in error.errors(include_url=False)]
    return [problem for problem in found if not document.is_unreadable(problem.path)]


def _problem(document: Document, model: type[BaseModel], detail: ErrorDetails, below: KeyPath) -> Problem:
    inner: KeyPath = detail["loc"]
    of_key = inner[-1:] == ("[key]",)
    path = (*below, *inner[:-1]) if of_key else (*below, *inner)
    match detail["type"]:
        case "simnet":
            context = detail["ctx"]
            if of_key:
                return _refused(document, path[:-1], f"has the key {shown(path[-1])}", context["hint"], path[-1])
            return _refused(document, path, context["message"], context["hint"], context["key"])
        case "missing":
            field = (section_of(model, inner[:-1]) or model).model_fields[str(inner[-1])]
            wanted = (field.description or "").rstrip(".")
            return document.problem(
                path, f"{label(path)!r} is missing{_in(path)}", f"wanted: {wanted[:1].lower()}{wanted[1:]}"
            )
        case "extra_forbidden" | "invalid_key":
            known = list((section_of(model, inner[:-1]) or model).model_fields)
            return unknown_key(document, path, known)
        case "list_type" | "tuple_type":
            return document.problem(path, f"{label(path)} is {shown(detail['input'])}", _list_wanted(model, inner))
    # Nothing known leads here; what pydantic says is better than nothing.
    return document.problem(path, f"{label(path)} is {shown(detail.get('input'))}: {detail['msg']}")


def _list_wanted(model: type[BaseModel], path: KeyPath) -> str:
    """Return how the list that belongs at `path` is written: of what its mappings need, or of numbers."""
    each = section_of(model, path)
    if each is None:
        return "a list is wanted, like [4, 4]"
    fields = each.model_fields
    needed = list(fields)[:1] if issubclass(each, Choice) else [key for key in fields if fields[key].is_required()]
    return f"a list is wanted, like [{{{', '.join(f'{key}: …' for key in needed) or '…'}}}]"


def _refused(document: Document, path: KeyPath, message: str, hint: str, key: str | int | None) -> Problem:
    # A short form, as "topology: x" for {file: x}, has no key of its own.
    known, value = document.known_part(path)
    subject = label(known if isinstance(value, str) else path)
    said = f"{subject} {message}" if message.split()[0] in _VERBS else f"{subject}: {message}"
    if key is not None:
        return document.problem((*path, key), said, hint, at_key=True)
    return document.problem(path, said, hint)


_VERBS = ("is", "has", "names", "does", "needs", "holds", "comes", "cannot", "asks")


def unknown_key(document: Document, path: KeyPath, known: list[str]) -> Problem:
    """Return the problem of a key that is not among the known ones."""
    key = path[-1]
    hint = hint_at(str(key), known)
    if isinstance(key, str) and ":" in key:
        name, _, value = key.partition(":")
        hint = f"write '{name}: {value.strip()}', with a space behind the colon"
    if key == "<<":
        hint = "YAML 1.2 has no merge keys"
    return document.problem(path, f"unknown key {shown(key)}{_in(path)}", hint, at_key=True)


def _in(path: KeyPath) -> str:
    return f" in {label(path[:-1])}" if len(path) > 1 else ""
