"""Tables in CSV files, read so that everything wrong with them is told by line and column."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from simnet.errors import InputError, Problem, nearest

__all__ = ["Line", "Table", "parse_count", "parse_number", "problem_order", "read_table"]


LARGEST = 1e60
"""No quantity that somebody means is larger, and sums and products of such ones do not overflow."""

LARGEST_COUNT = 10**15
"""Whole numbers up to here are exact, also as floats, and so are their sums."""


@dataclass(frozen=True)
class Line:
    """One line of a table.

    Parameters
    ----------
    number : int
        From 1.
    text : str
        As it stands in the file.
    cells : tuple of str
        Without quotes and without space around.
    """

    number: int
    text: str
    cells: tuple[str, ...]

    def column(self, index: int) -> int:
        """Return where cell `index` starts, from 1."""
        quoted, cell = False, 0
        for position, character in enumerate(self.text):
            if cell == index and not character.isspace():
                return position + 1
            if character == '"':
                quoted = not quoted
            elif character == "," and not quoted:
                cell += 1
        return len(self.text) + 1


@dataclass(frozen=True)
class Table:
    """A table with a header.

    Parameters
    ----------
    path : str
        For messages.
    header : Line
    lines : tuple of Line
        All have as many cells as the header.
    """

    path: str
    header: Line
    lines: tuple[Line, ...]

    def __iter__(self) -> Iterator[dict[str, str]]:
        names = self.header.cells
        return (dict(zip(names, line.cells, strict=True)) for line in self.lines)

    def problem(self, row: int, name: str, message: str, hint: str = "") -> Problem:
        """Return a problem with the cell of row `row`, from 0, in the column of that name."""
        line = self.lines[row]
        index = self.header.cells.index(name) if name in self.header.cells else 0
        return Problem(message, hint, source=self.path, line=line.number, column=line.column(index), text=line.text)


def read_table(
    path: Path, required: Collection[str], optional: Collection[str] = (), problems: list[Problem] | None = None
) -> Table:
    """Read a comma-separated table whose first line names the columns; lines that start with ``#`` are comments.

    Parameters
    ----------
    path : Path
    required, optional : collection of str
        Names of the columns that have to be there, and of those that may.
    problems : list of Problem, optional
        Where to add what is wrong with single lines, which are then left out; raised at once when not given.

    Raises
    ------
    InputError
        If there is no such file, it is not text, or its header is wrong.
    """
    source = str(path)
    found: list[Problem] = [] if problems is None else problems
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError([*found, Problem(f"no such file: {source}", source=source)]) from None
    except UnicodeDecodeError:
        raise InputError([*found, Problem("not a text file", "UTF-8 is wanted", source=source)]) from None
    except OSError as error:
        raise InputError([*found, Problem(f"cannot be read: {error.strerror}", source=source)]) from None
    lines = [
        Line(number, line, _cells(line))
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.startswith("#")
    ]
    if not lines:
        hint = f"a header is wanted: {','.join([*required, *optional])}"
        raise InputError([*found, Problem("the file is empty", hint, source=source)])
    header, *rest = lines
    wrong = list(_header_problems(source, header, required, optional))
    if wrong:
        raise InputError([*found, *wrong])
    width = len(header.cells)
    kept = []
    for line in rest:
        if len(line.cells) == width:
            kept.append(line)
            continue
        message = f"{len(line.cells)} cells where the header has {width}"
        column = line.column(min(len(line.cells), width))
        found.append(Problem(message, source=source, line=line.number, column=column, text=line.text))
    if problems is None and found:
        raise InputError(found)
    return Table(source, header, tuple(kept))


def problem_order(problem: Problem) -> tuple[int, int]:
    """Return where a problem stands among those of a file; those that have no place come first."""
    return problem.line, problem.column


def parse_number(text: object) -> float | None:
    """Return a number from 0 to `LARGEST`, or None where `text` is none."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        return None
    if isinstance(text, str) and "_" in text:
        return None
    try:
        value = float(text)
    except (ValueError, OverflowError):
        return None
    return value if 0.0 <= value <= LARGEST else None


def parse_count(text: object) -> int | None:
    """Return a whole number from 0 to `LARGEST_COUNT`, or None where `text` is none."""
    value = parse_number(text)
    if value is None or value > LARGEST_COUNT or value != math.floor(value):
        return None
    return int(value)


def _cells(line: str) -> tuple[str, ...]:
    cells = line.split(",")
    if '"' in line:
        with suppress(csv.Error):
            cells = next(csv.reader([line], skipinitialspace=True))
    return tuple(cell.strip() for cell in cells)


def _header_problems(
    source: str, header: Line, required: Collection[str], optional: Collection[str]
) -> Iterator[Problem]:
    known = [*required, *optional]

    def problem(index: int, message: str, hint: str) -> Problem:
        return Problem(message, hint, source=source, line=header.number, column=header.column(index), text=header.text)

    if len(header.cells) == 1 and ";" in header.text:
        yield problem(0, "columns are separated by semicolons", "commas are wanted")
        return
    for index, name in enumerate(header.cells):
        if not name:
            yield problem(index, "a column has no name", f"known: {', '.join(known)}")
        elif name not in known:
            yield problem(index, f"unknown column {name!r}", nearest(name, known))
        elif name in header.cells[:index]:
            yield problem(index, f"column {name!r} stands twice", "leave one out")
    missing = [name for name in required if name not in header.cells]
    if missing:
        yield problem(len(header.cells), f"missing columns: {', '.join(missing)}", f"known: {', '.join(known)}")
