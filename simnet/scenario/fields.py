"""The kinds of value a scenario is made of: how each is checked, refused in plain words, and described in JSON Schema.

Every kind is a marker for ``typing.Annotated``, as in ``hosts: Annotated[int, Whole(minimum=1)]``. A refusal says what
is there and what is wanted, and leaves out the key, which whoever reports it puts in front.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from simnet import units
from simnet.units import UnitError

__all__ = [
    "LARGEST_WHOLE",
    "Flag",
    "Name",
    "Quantity",
    "Real",
    "Text",
    "Whole",
    "Word",
    "core_schema_of",
    "hint_at",
    "refuse",
    "shown",
]

REFUSED = "simnet"
"""The type of every error that these markers raise."""

LARGEST_WHOLE = 2**53  # the largest up to which every whole number is also a float
LONGEST_TEXT = 4000  # characters
_MOST_LISTED = 16  # words beside the one that was probably meant


def refuse(message: str, hint: str = "", *, key: str | int | None = None) -> NoReturn:
    """Raise what pydantic collects as one error.

    Parameters
    ----------
    message : str
        What is wrong; starts with ``is`` or ``has`` where the key is its subject.
    hint : str
        What would be right.
    key : str or int, optional
        The error is at this key of the value, not at the value.
    """
    context: dict[str, Any] = {"message": message, "hint": hint, "key": key}
    raise PydanticCustomError(REFUSED, "{message}", context)


def shown(value: object) -> str:
    """Return a value as it would be written in YAML, shortened."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a number of more than 30 digits"
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def hint_at(word: str, known: Iterable[str]) -> str:
    """Return the known words as a hint, and which one was probably meant; of many words only that.

    Examples
    --------
    >>> hint_at("rng", ["ring", "star"])
    "did you mean 'ring'? known: ring, star"
    """
    names = list(known)
    close = get_close_matches(word.casefold(), names, n=1, cutoff=0.6) if len(names) > 1 and len(word) < 100 else []
    listed = f"known: {', '.join(names)}" if names else "there are none here"
    if not close:
        return listed
    meant = f"did you mean {close[0]!r}?"
    return f"{meant} {listed}" if len(names) <= _MOST_LISTED else meant


def core_schema_of(check: Callable[[Any], Any], write: Callable[[Any], Any] | None = None) -> CoreSchema:
    """Return how pydantic checks a value with `check` and, if it is not itself plain data, writes it with `write`."""
    serialization = core_schema.plain_serializer_function_ser_schema(write) if write else None
    return core_schema.no_info_plain_validator_function(check, serialization=serialization)


@dataclass(frozen=True)
class Whole:
    """A whole number between two bounds, both included."""

    minimum: int = 0
    maximum: int = LARGEST_WHOLE

    def check(self, value: object) -> int:
        """Return the number or refuse it; ``1e3`` is one."""
        number = value
        if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_WHOLE:
            number = int(value)
        if isinstance(number, bool) or not isinstance(number, int):
            too_large = isinstance(number, float) and number > self.maximum
            refuse(f"is {shown(value)}", self._wanted(self.maximum + 1 if too_large else self.minimum))
        if not self.minimum <= number <= self.maximum:
            refuse(f"is {shown(value)}", self._wanted(number))
        return number

    def _wanted(self, number: int) -> str:
        if number > self.maximum:
            return f"a whole number of at most {self.maximum} is wanted"
        return f"a whole number of at least {self.minimum} is wanted"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema_of(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


UNLIMITED = "unlimited"


@dataclass(frozen=True)
class Real:
    """A finite number; `above` excludes the bound, `minimum` and `maximum` include theirs.

    With `limit` it is a cap: the word ``unlimited`` is read as infinity.
    """

    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    limit: bool = False

    def check(self, value: object) -> float:
        """Return the number as a float or refuse it."""
        if self.limit and value == UNLIMITED:
            return math.inf
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            refuse(f"is {shown(value)}", self._wanted())
        try:
            number = float(value)
        except OverflowError:
            refuse(f"is {shown(value)}", self._wanted())
        fits = (
            math.isfinite(number)
            and (self.minimum is None or number >= self.minimum)
            and (self.above is None or number > self.above)
            and (self.maximum is None or number <= self.maximum)
        )
        if not fits:
            refuse(f"is {shown(value)}", self._wanted())
        return number

    def _wanted(self) -> str:
        bounds = [
            f"{word} {bound:g}"
            for word, bound in (("of at least", self.minimum), ("above", self.above), ("at most", self.maximum))
            if bound is not None
        ]
        also = f", or {UNLIMITED!r}" if self.limit else ""
        return " ".join(["a number", " and ".join(bounds), "is wanted"]).replace("  ", " ") + also

    def write(self, number: float) -> float | str:
        """Return what is read back as the very same number."""
        return UNLIMITED if self.limit and math.isinf(number) else number

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema_of(self.check, self.write)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        bounds = {"minimum": self.minimum, "exclusiveMinimum": self.above, "maximum": self.maximum}
        number = {"type": "number"} | {word: bound for word, bound in bounds.items() if bound is not None}
        return {"anyOf": [number, {"const": UNLIMITED}]} if self.limit else number


@dataclass(frozen=True)
class _Dimension:
    words: str
    parse: Callable[[object], float]
    write: Callable[..., str]
    examples: tuple[str, ...]
    largest: str
    smallest: str = ""


# The bounds are far from everything real, and keep what is computed from several quantities finite.
_DIMENSIONS = {
    "bandwidth": _Dimension(
        "a bandwidth", units.parse_bandwidth, units.format_bandwidth, ("100 Gbps", "12.5 GB/s"), "1e9 Gbps", "1 bps"
    ),
    "size": _Dimension("a size", units.parse_size, units.format_size, ("25 MiB", "4096 B"), "1e6 TB"),
    "duration": _Dimension("a duration", units.parse_duration, units.format_duration, ("1 us", "2.5 ms"), "1e6 h"),
    "duration per byte": _Dimension(
        "a duration per byte",
        units.parse_duration_per_byte,
        units.format_duration_per_byte,
        ("0.09 ns/B", "92 us/MiB"),
        "1 s/B",
    ),
}


@dataclass(frozen=True)
class Quantity:
    """Text with a unit, as `simnet.units` reads it; SI inside.

    Parameters
    ----------
    dimension : str
        ``bandwidth``, ``size``, ``duration`` or ``duration per byte``.
    positive : bool
        0 is refused.
    limit : bool
        A cap: the word ``unlimited`` is read as infinity.
    """

    dimension: str
    positive: bool = False
    limit: bool = False

    def check(self, value: object) -> float:
        """Return the quantity in SI units or refuse it."""
        dimension = _DIMENSIONS[self.dimension]
        if self.limit and value == UNLIMITED:
            return math.inf
        if value is None or isinstance(value, (bool, list, tuple, Mapping)):
            refuse(f"is {shown(value)}", f"{dimension.words} such as {dimension.examples[0]!r} is wanted")
        try:
            quantity = dimension.parse(value)
        except UnitError as error:
            also = f", or {UNLIMITED!r}" if self.limit and isinstance(value, str) else ""
            refuse(error.message, error.hint + also)
        if self.positive and quantity == 0:
            refuse(f"is {shown(value)}", f"{dimension.words} above 0 is wanted")
        if quantity > dimension.parse(dimension.largest):
            refuse(f"is {shown(value)}", f"{dimension.words} of at most {dimension.largest} is wanted")
        if dimension.smallest and 0 < quantity < dimension.parse(dimension.smallest):
            refuse(f"is {shown(value)}", f"{dimension.words} of at least {dimension.smallest} is wanted")
        return quantity

    def write(self, quantity: float) -> str:
        """Return text that is read back as the very same number."""
        return _DIMENSIONS[self.dimension].write(quantity, exact=True)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema_of(self.check, self.write)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        examples = list(_DIMENSIONS[self.dimension].examples) + [UNLIMITED] * self.limit
        number = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*[A-Za-zµμ/]+\s*$"
        return {"type": "string", "pattern": f"{number}|^{UNLIMITED}$" if self.limit else number, "examples": examples}


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def check(self, value: object) -> bool:
        """Return the value or refuse it."""
        if not isinstance(value, bool):
            meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(str(value).lower(), "")
            also = f"; YAML 1.2 reads {value} as text, write {meant}" if meant else ""
            refuse(f"is {shown(value)}", f"true or false is wanted{also}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema_of(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Text:
    """Text; `wanted` says what it stands for."""

    wanted: str = "text"
    may_be_empty: bool = False

    def check(self, value: object) -> str:
        """Return the text or refuse it."""
        fits = isinstance(value, str) and (self.may_be_empty or value.strip()) and len(value) <= LONGEST_TEXT
        if not fits:
            too_long = isinstance(value, str) and len(value) > LONGEST_TEXT
            limit = f" of at most {LONGEST_TEXT} characters" if too_long else ""
            refuse(f"is {shown(value)}", f"{self.wanted}{limit} is wanted")
        return str(value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema_of(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string"} if self.may_be_empty else {"type": "string", "minLength": 1}


@dataclass(frozen=True)
class Name:
    """A name that can also be the name of a folder."""

    longest = 100  # characters
    pattern = re.compile(r"\w[\w.+-]{0,99}")

    def check(self, value: object) -> str:
        """Return the name or refuse it."""
        if not isinstance(value, str) or not self.pattern.fullmatch(value):
            wanted = "a name of letters, digits, '_', '-', '+' and '.' is wanted"
            if isinstance(value, str) and len(value) > self.longest:
                wanted = f"a name of at most {self.longest} characters is wanted"
            elif isinstance(value, str) and re.fullmatch(r"[.+-][\w.+-]*", value):
                wanted = "a name that begins with a letter, a digit or '_' is wanted"
            refuse(f"is {shown(value)}", wanted)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema_of(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{self.pattern.pattern}$"}


@dataclass(frozen=True)
class Word:
    """One of a few words."""

    known: tuple[str, ...]

    def check(self, value: object) -> str:
        """Return the word or refuse it."""
        if not isinstance(value, str) or value not in self.known:
            refuse(f"is {shown(value)}", hint_at(value if isinstance(value, str) else "", self.known))
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema_of(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.known)}
