"""Tables in CSV files, read so that everything wrong with them is told by line and column."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from simnet.errors import InputError, Problem, nearest
from simnet.reading import read_text

__all__ = [
    "COUNT_WANTED",
    "LARGEST",
    "LARGEST_COUNT",
    "NUMBER_WANTED",
    "Line",
    "Table",
    "parse_count",
    "parse_number",
    "problem_order",
    "read_table",
    "shown",
    "table_from_text",
]


LARGEST_TABLE = 64_000_000  # bytes
MOST_LINES = 1_000_000
_MOST_COLUMNS = 100

LARGEST = 1e60
"""No quantity that somebody means is larger, and sums and products of such ones do not overflow."""

LARGEST_COUNT = 10**15
"""Whole numbers up to here are exact, also as floats, and so are their sums."""

NUMBER_WANTED = f"a number from 0 to {LARGEST:g} is wanted"
COUNT_WANTED = f"a whole number from 0 to {LARGEST_COUNT:g} is wanted"

_LONGEST_SHOWN = 60  # characters

# As in scenarios; Python alone would also read "1_000" and the digits of other scripts.
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_CELL = re.compile(r'\s*"((?:[^"]|"")*+)"\s*(?=,|\Z)|([^",]*)(?=,|\Z)')


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
    try:
        text = read_text(path, "a comma-separated table", LARGEST_TABLE)
    except InputError as error:
        raise InputError([*(problems or []), *error.problems]) from None
    return table_from_text(text, str(path), required, optional, problems)


def table_from_text(
    text: str,
    source: str,
    required: Collection[str],
    optional: Collection[str] = (),
    problems: list[Problem] | None = None,
) -> Table:
    """Return the table in a text; the rest is as for `read_table`.

    Parameters
    ----------
    text : str
    source : str
        What messages call it.
    required, optional : collection of str
    problems : list of Problem, optional
    """
    found: list[Problem] = [] if problems is None else problems
    lines: list[Line] = []
    damaged = False
    all_lines = text.splitlines()
    if len(all_lines) > MOST_LINES:
        raise InputError(
            [*found, Problem(f"has {len(all_lines)} lines", f"at most {MOST_LINES} are read", source=source)]
        )
    for number, written in enumerate(all_lines, start=1):
        if not written.strip() or written.startswith("#"):
            continue
        try:
            lines.append(Line(number, written, _cells(written)))
        except _QuoteError as error:
            # Of what is below a header that cannot be read nothing can be said.
            damaged = damaged or not lines
            found.append(Problem(error.message, error.hint, (), source, number, error.column, written))
    if damaged:
        raise InputError(found)
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
    if isinstance(text, str) and not _NUMBER.fullmatch(text):
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


def shown(value: object) -> str:
    """Return a value for a message, shortened."""
    if isinstance(value, int) and abs(value) >= 10**_LONGEST_SHOWN:
        return f"a number of more than {_LONGEST_SHOWN} digits"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


class _QuoteError(Exception):
    """A line whose quotes do not pair, and where the first of these stands, from 1."""

    def __init__(self, column: int, message: str, hint: str) -> None:
        self.column = column
        self.message = message
        self.hint = hint
        super().__init__(message)


def _cells(line: str) -> tuple[str, ...]:
    if '"' not in line:
        return tuple(cell.strip() for cell in line.split(","))
    cells = []
    place = 0
    while place <= len(line):
        match = _CELL.match(line, place)
        if match is None:
            quote = line.index('"', place)
            if line[place:quote].strip():
                hint = "put the whole cell in quotes, and write two for each in it"
                raise _QuoteError(quote + 1, "a quote inside of a cell", hint)
            if re.match(r'(?:[^"]|"")*+"', line[quote + 1 :]):
                hint = "a comma is wanted; a quote in a cell is written twice"
                raise _QuoteError(quote + 1, "text follows the cell in quotes", hint)
            raise _QuoteError(quote + 1, "this quote is not closed in its line", "a cell ends in the line it begins in")
        quoted, plain = match.groups()
        cells.append((plain if quoted is None else quoted.replace('""', '"')).strip())
        place = match.end() + 1
    return tuple(cells)


def _header_problems(
    source: str, header: Line, required: Collection[str], optional: Collection[str]
) -> Iterator[Problem]:
    known = [*required, *optional]

    def problem(index: int, message: str, hint: str) -> Problem:
        return Problem(message, hint, source=source, line=header.number, column=header.column(index), text=header.text)

    if len(header.cells) == 1 and ";" in header.text:
        yield problem(0, "columns are separated by semicolons", "commas are wanted")
        return
    if len(header.cells) > _MOST_COLUMNS:
        yield problem(_MOST_COLUMNS, f"{len(header.cells)} columns are too many", f"known: {', '.join(known)}")
        return
    for index, name in enumerate(header.cells):
        if not name:
            yield problem(index, "a column has no name", f"known: {', '.join(known)}")
        elif name not in known:
            yield problem(index, f"unknown column {shown(name)}", nearest(name, known))
        elif name in header.cells[:index]:
            yield problem(index, f"column {name!r} stands twice", "leave one out")
    missing = [name for name in required if name not in header.cells]
    if missing:
        yield problem(len(header.cells), f"missing columns: {', '.join(missing)}", f"known: {', '.join(known)}")
