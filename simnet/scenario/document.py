"""Plain data, and where each piece of it was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simnet.errors import InputError, KeyPath, Problem

__all__ = [
    "DEEPEST",
    "MOST_VALUES",
    "UNREADABLE",
    "Document",
    "Place",
    "is_text",
    "problem_at",
    "python_document",
]

DEEPEST = 40  # mappings and lists inside each other
MOST_VALUES = 200_000  # after aliases are expanded
_LONGEST_KEY = 20  # characters, of a number
_LARGEST_KEY = 10**_LONGEST_KEY


class _Unreadable:
    """Stands for a value that is a problem of its document already, so that nothing more is said of it."""

    def __repr__(self) -> str:
        return "what cannot be read"


UNREADABLE = _Unreadable()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a key and its value stand in a text; lines and columns count from 1.

    The root and the elements of a list have no key; theirs is the value's place.
    """

    source: str
    lines: tuple[str, ...]
    key_line: int
    key_column: int
    line: int
    column: int


@dataclass(frozen=True)
class Document:
    """Plain data (mappings, lists, text, numbers, booleans, None) and where each piece was written.

    Attributes
    ----------
    data : the value at the root
    source : file name, or where else the text came from
    places : for each key path that was written as text, its `Place`
    problems : what was wrong and could be passed over, such as a key given twice
    """

    data: Any
    source: str
    places: Mapping[KeyPath, Place] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def problem(self, path: KeyPath, message: str, hint: str = "", *, at_key: bool = False) -> Problem:
        """Return a problem at a path.

        Parameters
        ----------
        path : tuple of str or int
            Where nothing was written there, the place of the mapping around it is shown.
        message, hint : str
            What is wrong and what would be right.
        at_key : bool
            Point at the key and not at its value.
        """
        known = path
        while known and known not in self.places:
            known = known[:-1]
        place = self.places.get(known)
        if place is None:
            return Problem(message, hint, path, self.source)
        if place.line == 0:
            return Problem(message, hint, path, place.source)
        key = at_key or (known != path and isinstance(self.known_part(known)[1], (dict, list)))
        line, column = (place.key_line, place.key_column) if key else (place.line, place.column)
        return problem_at(place.lines, place.source, message, hint, line, column, path)

    def known_part(self, path: KeyPath) -> tuple[KeyPath, Any]:
        """Return as much of a path as leads somewhere, and the value there.

        Parameters
        ----------
        path : tuple of str or int
        """
        value = self.data
        for length, key in enumerate(path):
            inside = range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
            if key not in inside:
                return path[:length], value
            value = value[key]
        return path, value

    def part(self, path: KeyPath) -> Document:
        """Return the document of what is at a path, with its places.

        Parameters
        ----------
        path : tuple of str or int
        """
        depth = len(path)
        places = {known[depth:]: place for known, place in self.places.items() if known[:depth] == path}
        return Document(self.known_part(path)[1], self.source, places)

    def is_unreadable(self, path: KeyPath) -> bool:
        """Tell whether what is at a path, or what it should be in, is a problem of the document already.

        Parameters
        ----------
        path : tuple of str or int
        """
        return self.known_part(path)[1] is UNREADABLE

    def at(self, path: KeyPath, problem: Problem) -> Problem:
        """Return a problem whose path is counted from `path` on with its place; one from another source as it is.

        Parameters
        ----------
        path : tuple of str or int
        problem : Problem
        """
        if problem.source:
            return problem
        at_key = problem.message.startswith("unknown key")
        return self.problem((*path, *problem.path), problem.message, problem.hint, at_key=at_key)

    @contextmanager
    def placing(self, *path: str | int) -> Iterator[None]:
        """Give the problems of what is raised inside their places; their paths are counted from `path` on.

        Parameters
        ----------
        *path : str or int

        Raises
        ------
        InputError
            What was raised inside, with places.
        """
        try:
            yield
        except InputError as error:
            raise InputError(self.at(path, problem) for problem in error.problems) from None

    def checked(self) -> Document:
        """Return the document itself, or raise `InputError` when it has problems.

        Raises
        ------
        InputError
            With the `problems`, where there are any.
        """
        if self.problems:
            raise InputError(self.problems)
        return self


def python_document(data: object, source: str) -> Document:
    """Return a document of Python values, which have no place in a text.

    Tuples count as lists; what YAML could not hold is a problem, and `UNREADABLE` stands for it.

    Parameters
    ----------
    data : object
        Mappings, lists and scalars of Python or numpy.
    source : str
        What messages call it.

    Returns
    -------
    Document
        Its `problems` name what YAML could not hold.

    Raises
    ------
    InputError
        It is nested too deeply, or too large.
    """
    problems: list[Problem] = []
    count = 0

    def plain(value: object, path: KeyPath) -> object:
        nonlocal count
        count += 1
        if len(path) > DEEPEST or count > MOST_VALUES:
            raise InputError(Problem("is nested too deeply or too large", path=path[:5], source=source))
        if value is None or isinstance(value, (bool, int, float)) or (isinstance(value, str) and is_text(value)):
            return value
        if isinstance(value, Mapping):
            found: dict[str | int, object] = {}
            for key, item in value.items():
                if not isinstance(key, (str, int)) or isinstance(key, bool):
                    message = f"the key {key!r} is neither text nor a whole number"
                    problems.append(Problem(message, path=path, source=source))
                elif (twin := _twin(key, found)) is not None:
                    problems.append(Problem(f"the key {key!r} is {twin!r} once more", "", (*path, key), source))
                else:
                    found[key] = plain(item, (*path, key))
            return found
        if isinstance(value, (list, tuple)):
            return [plain(item, (*path, place)) for place, item in enumerate(value)]
        if isinstance(value, Path):
            return str(value)
        if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a number of numpy's
            return plain(value.item(), path)
        if hasattr(value, "tolist"):
            return plain(value.tolist(), path)
        message = f"a {type(value).__name__} cannot stand in a scenario"
        problems.append(Problem(message, "give text, numbers, lists or mappings", path, source))
        return UNREADABLE

    return Document(plain(data, ()), source, {}, tuple(problems))


def _twin(key: str | int, known: Mapping[str | int, object]) -> str | int | None:
    """Return the known key that is the same number as text, or the same text as a number."""
    if isinstance(key, int):
        return str(key) if abs(key) < _LARGEST_KEY and str(key) in known else None
    number = int(key) if key.isascii() and key.removeprefix("-").isdecimal() and len(key) < _LONGEST_KEY else None
    return number if number is not None and str(number) == key and number in known else None


def is_text(text: str) -> bool:
    """Tell whether a text has no halves of characters, which could not be printed."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def problem_at(
    lines: tuple[str, ...], source: str, message: str, hint: str, line: int, column: int, path: KeyPath = ()
) -> Problem:
    """Return a problem with the line of the text that it is in."""
    # The end of a text that ends with a line end is shown at the end of its last line.
    if line > 1 and line >= len(lines) and not lines[-1]:
        line = len(lines) - 1
        column = len(lines[line - 1]) + 1
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return Problem(message, hint, path, source, line, column, text)
