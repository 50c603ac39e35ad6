"""What is public says what it takes, gives and raises, in numpydoc's sections, with units.

Public is what packages export, and the methods of exported classes; of these the first line may say what they return.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

import simnet.errors
from simnet.errors import InputError, Problem

PACKAGES = (
    "topology",
    "traffic",
    "protocols",
    "workload",
    "fabric",
    "training",
    "engine",
    "experiment",
    "experiment.plot",
    "scenario",
    "calibration",
    "units",
    "errors",
)
ERRORS = {
    name for name, thing in vars(simnet.errors).items() if inspect.isclass(thing) and issubclass(thing, Exception)
}
NOTHING = (None, "None", "Iterator[None]", inspect.Signature.empty)
UNIT_IN_NAME = re.compile(r"_(s|bytes|per_s|per_byte)$")
ELSEWHERE = re.compile(r"\b(As of|As for|as of|as for|See) `")


def public() -> dict[str, Any]:
    """Return everything public by its full name, each once."""
    found: dict[int, tuple[str, Any]] = {}
    for module in map(importlib.import_module, ["simnet", *(f"simnet.{name}" for name in PACKAGES)]):
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found.setdefault(id(thing), (f"{thing.__module__}.{name}", thing))
    return dict(found.values())


def sections(thing: Any) -> dict[str, dict[str, str]]:
    """Return, for each section of a docstring, what it says of each name, the type at first."""
    parts = re.split(r"^(\S.*)\n-{3,}$", inspect.getdoc(thing) or "", flags=re.MULTILINE)
    found: dict[str, dict[str, str]] = {}
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        found[title] = {}
        for entry in re.split(r"\n(?=\S)", text.strip("\n")):
            names, _, said = entry.partition("\n")
            names, _, kind = names.partition(" : ")
            found[title] |= {name.lstrip("*"): f"{kind} {said}" for name in names.split(", ")}
    return found


def parameters_of(thing: Any) -> list[str]:
    """Return the names that have to be described."""
    if inspect.isfunction(thing):
        return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]
    if issubclass(thing, enum.Enum):
        return list(thing.__members__)
    if is_dataclass(thing):
        return [field.name for field in fields(thing) if not field.name.startswith("_")]
    if issubclass(thing, tuple):
        return list(thing._fields)
    return parameters_of(vars(thing)["__init__"]) if "__init__" in vars(thing) else []


def raised_by(function: Any) -> set[str]:
    """Return the errors of simnet that stand behind a ``raise`` of the function itself."""
    return set(re.findall(r"\braise (\w+)\(", inspect.getsource(function))) & ERRORS


def faults(thing: Any, *, is_method: bool = False) -> Iterator[str]:
    """Yield what is wrong with the docstring of a function or class."""
    if inspect.isclass(thing) and issubclass(thing, BaseModel):
        # A key of a scenario is described where it is defined, for the schema and the docs; `scenario_keys` has it all.
        for name, field in thing.model_fields.items():
            if not field.description:
                yield f"key without description: {name}"
        return
    found = sections(thing)
    described = found.get("Parameters", {}) | found.get("Attributes", {})
    wanted = parameters_of(thing)
    if missing := [name for name in wanted if name not in described]:
        yield f"not described: {', '.join(missing)}"
    if absent := [name for name in described if name not in wanted]:
        yield f"described, but not there: {', '.join(absent)}"
    for name, said in described.items():
        if UNIT_IN_NAME.search(name) and "[" not in said and not ELSEWHERE.search(said):
            yield f"no [unit]: {name}"
    text = inspect.getdoc(thing) or ""
    if not text:
        yield "no docstring"
    if unknown := set(re.findall(r"(\[\d+\])_", text)) - set(re.findall(r"^\.\. (\[\d+\])", text, re.MULTILINE)):
        yield f"not in its References: {', '.join(sorted(unknown))}"
    if inspect.isfunction(thing):
        gives = inspect.signature(thing).return_annotation not in NOTHING
        told = is_method and re.match(r"Tell |.*\breturn\b", text, re.IGNORECASE)
        if gives and not told and not {"Returns", "Yields"} & set(found):
            yield "no Returns"
        named = {name for entry in found.get("Raises", {}) for name in re.findall(r"\w+", entry)}
        if silent := raised_by(thing) - named:
            yield f"not in its Raises: {', '.join(sorted(silent))}"


def faults_with_methods(thing: Any) -> Iterator[str]:
    """Yield the faults of a function, or of a class and of the public methods that it defines itself."""
    yield from faults(thing)
    if inspect.isclass(thing):
        for name, member in vars(thing).items():
            method = getattr(member, "__func__", member)
            if inspect.isfunction(method) and not name.startswith("_"):
                yield from (f"{name}(): {fault}" for fault in faults(method, is_method=True))


def test_everything_public_is_described():
    found = {name: list(faults_with_methods(thing)) for name, thing in public().items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_much_is_public():
    """So that the walk cannot come back empty: what a user of each package begins with is among it."""
    assert {"run", "star", "ring_all_reduce", "resolve", "load_scenario", "parse_size"} <= {
        name.rpartition(".")[2] for name in public()
    }


def bad(size_bytes: float, count: int) -> float:
    """Return something [1]_.

    Parameters
    ----------
    size_bytes : float
    number : int
    """
    raise InputError([Problem(f"{size_bytes} {count}")])


def good(first: int, *others: int, size_bytes: float) -> float:
    """Return something [1]_.

    Parameters
    ----------
    first, *others : int
        Of any number.
    size_bytes : float
        [bytes]

    Returns
    -------
    float

    Raises
    ------
    InputError, ValueError
        Always.

    References
    ----------
    .. [1] Somebody.
    """
    raise InputError([Problem(f"{first} {others} {size_bytes}")])


class Pair(NamedTuple):
    """Two.

    Attributes
    ----------
    one : the first
    """

    one: int
    other: int


@dataclass
class Box:
    """A box.

    Parameters
    ----------
    side : float
    """

    side: float

    def grown(self, by: float) -> float:
        """Return a larger one."""
        return self.side + by


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (
            bad,
            [
                "not described: count",
                "described, but not there: number",
                "no [unit]: size_bytes",
                "not in its References: [1]",
                "no Returns",
                "not in its Raises: InputError",
            ],
        ),
        (good, []),
        (Pair, ["not described: other"]),
        (Box, ["grown(): not described: by"]),
    ],
)
def test_faults_are_found(thing, expected):
    assert list(faults_with_methods(thing)) == expected
