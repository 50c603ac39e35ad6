"""Lists and ranges of sizes, as on the command line: ``8B:1GiB:x2,3MiB``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simnet.errors import InputError, Problem
from simnet.scenario.document import problem_at
from simnet.scenario.fields import LARGEST_WHOLE, shown
from simnet.units import UnitError, format_size, parse_size

__all__ = ["MOST_SIZES", "parse_sizes"]

MOST_SIZES = 1000

_FACTOR = re.compile(r"x\s*([0-9]+(?:\.[0-9]+)?)")
_FORM = "write a size, such as '1 MiB', or a range, such as '8B:1GiB:x2' or '1MiB:8MiB:+1MiB'"


def parse_sizes(text: str, source: str) -> tuple[float, ...]:
    """Return the sizes that a text lists [bytes].

    Parameters
    ----------
    text : str
        Sizes and ranges, with commas between them. A range is its first size, its last and the step, with colons
        between them: ``x2`` multiplies, ``+1MiB`` adds. The last size is one of the range if the steps lead to it.
    source : str
        What messages call the text.

    Raises
    ------
    InputError
        Everything that is wrong, each with its place.

    Examples
    --------
    >>> parse_sizes("0B, 8B:64B:x2, 1kB:3kB:+1kB", "sizes")
    (0.0, 8.0, 16.0, 32.0, 64.0, 1000.0, 2000.0, 3000.0)
    """
    sizes: list[float] = []
    problems: list[Problem] = []
    for column, item in _pieces(text, 0, ","):
        try:
            sizes += _sizes(item, column)
        except _WrongError as wrong:
            problems.append(problem_at((text,), source, wrong.message, wrong.hint, 1, wrong.column + 1))
    if len(sizes) > MOST_SIZES:
        hint = f"at most {MOST_SIZES} are wanted; take a larger step"
        problems.append(problem_at((text,), source, "these are more sizes than anybody reads", hint, 1, 1))
    if problems:
        raise InputError(problems)
    return tuple(sizes)


class _WrongError(Exception):
    """What is wrong with a piece of the text, and where it begins, counted from 0."""

    def __init__(self, column: int, message: str, hint: str) -> None:
        self.column = column
        self.message = message
        self.hint = hint
        super().__init__(message)


def _pieces(text: str, column: int, separator: str) -> Iterator[tuple[int, str]]:
    """Yield the pieces between separators without the space around them, each with its column."""
    for piece in text.split(separator):
        yield column + len(piece) - len(piece.lstrip()), piece.strip()
        column += len(piece) + len(separator)


def _sizes(item: str, column: int) -> list[float]:
    """Return the sizes that one item between commas stands for, at most one more than are accepted."""
    parts = list(_pieces(item, column, ":"))
    if len(parts) == 1:
        return [_size(item, column)]
    if len(parts) != 3:
        raise _WrongError(column, f"{shown(item)} is neither a size nor a range", _FORM)
    first, last = _size(parts[0][1], parts[0][0]), _size(parts[1][1], parts[1][0])
    factor, term = _step(parts[2][1], parts[2][0])
    if last < first:
        message = f"{shown(item)} ends before it begins"
        raise _WrongError(parts[1][0], message, "the first size, the last and the step are wanted, in this order")
    if first == 0 and factor != 1:
        hint = "begin with '0B,' and a range from the smallest size above"
        raise _WrongError(parts[0][0], "a multiple of 0 B is 0 B", hint)
    found = [first]
    while len(found) <= MOST_SIZES and (following := found[-1] * factor + term) <= last:
        found.append(following)
    return found


def _size(text: str, column: int) -> float:
    try:
        size = parse_size(text)
    except UnitError as error:
        raise _WrongError(column, error.message, error.hint if text else _FORM) from None
    if size > LARGEST_WHOLE:
        raise _WrongError(column, f"{shown(text)} is too large", f"at most {format_size(LARGEST_WHOLE)} is wanted")
    return size


def _step(text: str, column: int) -> tuple[float, float]:
    """Return what a size is multiplied with for the next one, and what is added to that [bytes]."""
    if text.startswith("+"):
        term = _size(text[1:].strip(), column + len(text) - len(text[1:].lstrip()))
        if term > 0:
            return 1.0, term
    factor = _FACTOR.fullmatch(text)
    if factor is not None and float(factor[1]) > 1:
        return float(factor[1]), 0.0
    hint = "a factor above 1, such as 'x2', or a size that is added, such as '+1MiB', is wanted"
    raise _WrongError(column, f"{shown(text)} is no step from one size to the next", hint)
