"""JSON that people give, read so that whatever is wrong with it is told by line and column."""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any

from simnet.errors import InputError, KeyPath, Problem

__all__ = ["DEEPEST", "json_keys", "json_places", "line_and_column", "parse_graph", "parse_json", "places_in"]

DEEPEST = 100
"""Objects and lists inside each other; Python itself gives up at some hundreds."""

MOST_VALUES = 10_000_000
"""About as many values are read, which take up to some 120 bytes each."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_INTEGER = re.compile(r"-?[0-9]+")


def parse_json(text: str, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Return the value of a JSON text.

    Parameters
    ----------
    text : str
    object_pairs_hook : callable, optional
        As of `json.loads`.

    Raises
    ------
    InputError
        It is not JSON, nested too deeply, has too many values, or a number of thousands of digits; with line and
        column, and without a source.
    """
    if sum(map(text.count, ",[{")) > MOST_VALUES:
        raise InputError(Problem(f"this JSON has more than {MOST_VALUES} values", line=1, column=1))
    try:
        data = json.loads(text, object_pairs_hook=object_pairs_hook)
    except json.JSONDecodeError as error:
        message = f"this is not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise InputError(Problem(message, line=error.lineno, column=error.colno)) from None
    except RecursionError:
        raise _too_deep(text) from None
    except ValueError:  # the only other one: Python does not convert so many digits
        raise _too_long(text) from None
    if _depth_exceeds(data):
        raise _too_deep(text)
    return data


def parse_graph(text: str) -> tuple[dict[str, Any], list[Problem]]:
    """Return the graph that node-link JSON holds, and what is given twice in it.

    Raises
    ------
    InputError
        It is not JSON, or no object.
    """
    repeated = False

    def one_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(pairs)
        repeated |= len(found) < len(pairs)
        return found

    data = parse_json(text, one_of_each)
    if not isinstance(data, dict):
        raise InputError(Problem("this JSON is not an object", 'expected {"nodes": […], "edges": […]}', (), "", 1, 1))
    return data, _repeated_keys(text) if repeated else []


def _repeated_keys(text: str) -> list[Problem]:
    problems = []
    place = places_in(text)
    seen: set[KeyPath] = set()
    for path, offset in json_keys(text):
        if path in seen:
            line, column = place(offset)
            problems.append(Problem(f"{path[-1]!r} is given twice", "leave one out", path, "", line, column))
        seen.add(path)
    return problems


def json_places(text: str, wanted: set[KeyPath]) -> dict[KeyPath, tuple[int, int]]:
    """Return line and column of the values at some paths of a JSON text, or of the objects that should hold them."""
    with_parents = {path[:length] for path in wanted for length in range(len(path) + 1)}
    place = places_in(text)
    return {path: place(offset) for path, offset, is_key in _walk(text) if not is_key and path in with_parents}


def json_keys(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield path and offset of every key of a text that is known to be JSON, also of those that repeat."""
    return ((path, offset) for path, offset, is_key in _walk(text) if is_key)


def places_in(text: str) -> Callable[[int], tuple[int, int]]:
    """Return what gives line and column, from 1, of a character, for many of one text."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(offset: int) -> tuple[int, int]:
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    return place


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, from 1, of a character."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _depth_exceeds(data: Any) -> bool:
    level = [data] if isinstance(data, (dict, list)) else []
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
    return bool(level)


def _too_deep(text: str) -> InputError:
    depth, place = 0, 0
    for match in _TOKEN.finditer(text):
        depth += (match[0] in ("{", "[")) - (match[0] in ("}", "]"))
        if depth > DEEPEST:
            place = match.start()
            break
    message = f"this JSON is nested too deeply: more than {DEEPEST} levels"
    line, column = line_and_column(text, place)
    return InputError(Problem(message, "is a bracket left open?", line=line, column=column))


def _too_long(text: str) -> InputError:
    most = sys.get_int_max_str_digits()
    for match in _TOKEN.finditer(text):
        digits = len(match[0].lstrip("-"))
        if digits > most and _INTEGER.fullmatch(match[0]):
            line, column = line_and_column(text, match.start())
            hint = f"at most {most} digits are read"
            return InputError(Problem(f"a number of {digits} digits is too long", hint, line=line, column=column))
    return InputError(Problem("this JSON cannot be read", line=1, column=1))


def _walk(text: str) -> Iterator[tuple[KeyPath, int, bool]]:
    """Yield path and offset of every key and every value of a text that is known to be JSON."""
    path: list[str | int] = []
    key_next = False
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in ("}", "]"):
            path.pop()
            key_next = False
        elif token == ",":
            if isinstance(path[-1], int):
                path[-1] += 1
            else:
                key_next = True
        elif token == ":":
            key_next = False
        elif key_next:
            path[-1] = json.loads(token)
            yield tuple(path), match.start(), True
        else:
            yield tuple(path), match.start(), False
            if token == "{":
                path.append("")
                key_next = True
            elif token == "[":
                path.append(0)
