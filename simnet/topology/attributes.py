"""The attributes of nodes and links in files: as text with a unit, or as a number with the unit in the name.

=======================  ========================================  ==============================
in a file, as text       or as a number, and in a topology         of
=======================  ========================================  ==============================
``bandwidth``            ``bandwidth_bytes_per_s``                 links; above 0
``latency``              ``latency_s``                             links; 0 or more
``buffer``               ``buffer_bytes``                          links, optional; above 0
``memory_bandwidth``     ``memory_bandwidth_bytes_per_s``          hosts, optional; above 0
=======================  ========================================  ==============================

Besides, ``kind`` of both, ``loss_probability`` of links, ``host`` and ``model`` of nodes. What else a file says about a
node or link is kept as it is; a name that is nearly one of these is taken for a slip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from simnet.errors import nearest
from simnet.topology.model import LINK_KINDS, NODE_KINDS
from simnet.units import (
    UnitError,
    format_bandwidth,
    format_duration,
    format_size,
    parse_bandwidth,
    parse_duration,
    parse_size,
)

__all__ = [
    "DEFAULTS_HINT",
    "LINK_ATTRIBUTES",
    "NODE_ATTRIBUTES",
    "AttributeProblem",
    "as_text",
    "read_link_attributes",
    "read_node_attributes",
]

DEFAULTS_HINT = "give it here or for all links: 'defaults: {bandwidth: 100 Gbps, latency: 1 us, kind: ethernet}'"

AttributeProblem = tuple[str, str, str]
"""The attribute (empty if one is missing), what is wrong, and what would be right."""


@dataclass(frozen=True)
class _Quantity:
    """An attribute with a unit: its name as text and as a number, and how to go from one to the other."""

    text_name: str
    number_name: str
    parse: Callable[[object], float]
    write: Callable[..., str]
    zero_allowed: bool = False


_BANDWIDTH = _Quantity("bandwidth", "bandwidth_bytes_per_s", parse_bandwidth, format_bandwidth)
_LATENCY = _Quantity("latency", "latency_s", parse_duration, format_duration, zero_allowed=True)
_BUFFER = _Quantity("buffer", "buffer_bytes", parse_size, format_size)
_MEMORY = _Quantity("memory_bandwidth", "memory_bandwidth_bytes_per_s", parse_bandwidth, format_bandwidth)
_OF_LINKS = (_BANDWIDTH, _LATENCY, _BUFFER)
_OF_NODES = (_MEMORY,)

_ALIKE = 0.8  # of two names, from 0 to 1
_HARDLY_DIFFERENT = 0.85

LINK_ATTRIBUTES = ("bandwidth", "latency", "kind", "buffer", "loss_probability")
"""What simnet knows of links, as files call it."""

NODE_ATTRIBUTES = ("kind", "host", "memory_bandwidth", "model")
"""What simnet knows of nodes, as files call it."""


def read_link_attributes(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[AttributeProblem]]:
    """Return the attributes of a link in SI units, and what is wrong with them; missing ones are not.

    Parameters
    ----------
    given : mapping
        Attributes as in a file.
    """
    found, problems = _read_quantities(given, _OF_LINKS)
    if "kind" in given:
        found["kind"] = _word(given["kind"])
        problems += _unknown_kind("link", found["kind"], LINK_KINDS)
    if "loss_probability" in given:
        loss = _number(given["loss_probability"])
        found["loss_probability"] = loss
        if not 0 <= loss < 1:
            message = f"loss_probability is {given['loss_probability']!r}"
            problems.append(("loss_probability", message, "a number from 0 to below 1 is wanted"))
    return found, problems + _slips(given, LINK_ATTRIBUTES, _OF_LINKS)


def read_node_attributes(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[AttributeProblem]]:
    """Return the attributes of a node in SI units, and what is wrong with them; missing ones are not.

    Parameters
    ----------
    given : mapping
        Attributes as in a file.
    """
    found, problems = _read_quantities(given, _OF_NODES)
    if "kind" in given:
        found["kind"] = _word(given["kind"])
        problems += _unknown_kind("node", found["kind"], NODE_KINDS)
    if "host" in given:
        found["host"] = str(given["host"])
    return found, problems + _slips(given, NODE_ATTRIBUTES, _OF_NODES)


def as_text(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as a file has them: quantities as text that is read back as the very same number."""
    written = {}
    for name, value in attributes.items():
        quantity = next((q for q in (*_OF_LINKS, *_OF_NODES) if q.number_name == name), None)
        if quantity is None:
            written[name] = value
        else:
            written[quantity.text_name] = _written(quantity, value)
    return written


# A file repeats a few quantities thousands of times.
@lru_cache(maxsize=4096)
def _written(quantity: _Quantity, value: float) -> str:
    return quantity.write(value, exact=True)


@lru_cache(maxsize=4096)
def _parsed(quantity: _Quantity, text: str) -> float:
    return quantity.parse(text)


def _read_quantities(
    given: Mapping[str, Any], quantities: Iterable[_Quantity]
) -> tuple[dict[str, Any], list[AttributeProblem]]:
    """Read quantities, and pass on everything else."""
    found = dict(given)
    problems: list[AttributeProblem] = []
    for quantity in quantities:
        text, number = quantity.text_name, quantity.number_name
        if text in given and number in given:
            problems.append((number, f"{text} and {number} are both given", "leave one out"))
        name = text if text in given else number
        if name not in given:
            continue
        shown = given[name]
        if name == text:
            del found[text]
            try:
                value = _parsed(quantity, shown) if isinstance(shown, str) else quantity.parse(shown)
            except UnitError as error:
                problems.append((name, f"{name}: {error.message}", error.hint))
                # Known to be wrong already; a number keeps it from counting as missing.
                found[number] = math.nan
                continue
        else:
            value = _number(shown)
        found[number] = value
        if not (0 <= value < math.inf and (value > 0 or quantity.zero_allowed)):
            least = "0 or more" if quantity.zero_allowed else "more than 0"
            problems.append((name, f"{name} is {shown!r}", f"it must be {least}, and finite"))
    return found, problems


def _number(value: object) -> float:
    """Return a number as it is, infinity for one that is too large, and NaN for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _word(value: object) -> str:
    return value.strip() if isinstance(value, str) else str(value)


def _unknown_kind(of: str, kind: str, known: Iterable[str]) -> list[AttributeProblem]:
    return [] if kind in known else [("kind", f"unknown kind of {of} {kind!r}", nearest(kind.lower(), known))]


def _slips(
    given: Mapping[str, Any], known: tuple[str, ...], quantities: tuple[_Quantity, ...]
) -> list[AttributeProblem]:
    problems = []
    twins = {quantity.text_name: quantity.number_name for quantity in quantities}
    twins |= {number: text for text, number in twins.items()}
    words = (*known, *(quantity.number_name for quantity in quantities))
    for name in given:
        meant, ratio = _nearly(str(name), words)
        if not meant:
            continue
        # Beside the known one it is a slip only if hardly a letter differs, and no name of its own, as `latency_ms` is.
        beside = meant in given or twins.get(meant) in given
        own = ratio <= _HARDLY_DIFFERENT or any(word in str(name) for word in known)
        if not (beside and own):
            problems.append((name, f"unknown attribute {name!r}", f"did you mean {meant!r}?"))
    return problems


@lru_cache(maxsize=1024)
def _nearly(name: str, known: tuple[str, ...]) -> tuple[str, float]:
    """Return the known name that this one is nearly, but not quite, and how much they are alike, from 0 to 1."""
    longest = 2 * max(map(len, known))
    if name in known or len(name) > longest:
        return "", 0.0
    ratios = {word: SequenceMatcher(None, name.lower(), word).ratio() for word in known}
    best = max(ratios, key=lambda word: ratios[word])
    return (best, ratios[best]) if ratios[best] > _ALIKE else ("", 0.0)
