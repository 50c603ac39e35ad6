"""Every error that simnet raises on purpose.

::

    SimnetError
    ├── InputError          the input is wrong; carries every problem at once; exit status 2
    ├── OutputError         what came of it cannot be written, for lack of room for example; exit status 1
    └── SimulationError     the input is right, the run cannot give a number; exit status 1
        ├── DeadlockError   a schedule whose firings wait for each other in a circle
        ├── StalledError    nothing can move any more, and somebody still waits
        └── InvariantError  a law that every run obeys does not hold: a fault of simnet itself
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

__all__ = [
    "DeadlockError",
    "InputError",
    "InvariantError",
    "KeyPath",
    "OutputError",
    "Problem",
    "SimnetError",
    "SimulationError",
    "StalledError",
    "attempt",
    "nearest",
    "under",
]

_Made = TypeVar("_Made")
_MOST_SHOWN = 200  # problems; nobody reads more
_LONGEST_WORD = 100  # characters; nobody means a known one by more

KeyPath = tuple[str | int, ...]
"""Where in a document: mapping keys and list positions from the root."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with the input.

    Parameters
    ----------
    message : str
        What is wrong, naming the value that is.
    hint : str
        What would be right; may be empty where the message says it all.
    path : tuple of str or int
        Keys from the root of the document to the place.
    source : str
        File name, or where else the text came from (``--set``).
    line, column : int
        Counted from 1; 0 when not known.
    text : str
        The offending line of the source, without its line end.
    """

    message: str
    hint: str = ""
    path: KeyPath = ()
    source: str = ""
    line: int = 0
    column: int = 0
    text: str = ""

    def under(self, *prefix: str | int) -> Problem:
        """Return the same problem seen from a document that holds this one below `prefix`.

        Parameters
        ----------
        *prefix : str or int
            Keys from the root of that document to this one.
        """
        return replace(self, path=(*prefix, *self.path))

    def __str__(self) -> str:
        place = _escaped(self.source)
        if self.line:
            place += f":{self.line}:{max(self.column, 1)}"
        elif self.path:
            place = ": ".join(part for part in (place, ".".join(_escaped(str(key)) for key in self.path)) if part)
        said = f"{self.message}, {self.hint}" if self.hint else self.message
        head = f"{place}: {_escaped(said)}" if place else _escaped(said)
        if not self.text:
            return head
        shown, caret = _window(self.text, max(self.column, 1))
        return f"{head}\n    {shown}\n    {' ' * (caret - 1)}^"


class SimnetError(Exception):
    """Root of all errors that simnet raises on purpose."""


class InputError(SimnetError):
    """The input is wrong.

    Parameters
    ----------
    problems : iterable of Problem
        Everything that was found, not only the first.
    """

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        shown = [str(problem) for problem in self.problems[:_MOST_SHOWN]]
        rest = len(self.problems) - len(shown)
        return "\n".join([*shown, f"and {rest} more"] if rest else shown)


class OutputError(SimnetError):
    """The machine does not take what is to be written."""


class SimulationError(SimnetError):
    """The run cannot give a number."""


class DeadlockError(SimulationError):
    """A schedule in which firings wait for each other in a circle."""


class StalledError(SimulationError):
    """Nothing can move any more, and somebody still waits."""


class InvariantError(SimulationError):
    """A law that every run obeys does not hold: please report it."""


def attempt(problems: list[Problem], make: Callable[[], _Made]) -> _Made | None:
    """Return what `make` makes; where the input is wrong add its problems to `problems` and return None.

    Parameters
    ----------
    problems : list of Problem
        Grows by what is wrong.
    make : callable
        Takes nothing.

    Returns
    -------
    object or None
        What it made.
    """
    try:
        return make()
    except InputError as error:
        problems.extend(error.problems)
        return None


@contextmanager
def under(*prefix: str | int) -> Iterator[None]:
    """Have the problems of what is raised inside seen from a document that holds this one below `prefix`.

    Parameters
    ----------
    *prefix : str or int
        Keys from the root of that document to this one.

    Yields
    ------
    None

    Raises
    ------
    InputError
        What was raised inside, with the paths of its problems behind `prefix`.
    """
    try:
        yield
    except InputError as error:
        raise InputError(problem.under(*prefix) for problem in error.problems) from None


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint with the known word closest to `word`, or the list of all of them.

    Parameters
    ----------
    word : str
        What was given.
    known : iterable of str
        What might have been meant.

    Returns
    -------
    str
        Fit to be the hint of a `Problem`.

    Examples
    --------
    >>> nearest("protocl", ["protocol", "topology"])
    "did you mean 'protocol'?"
    """
    from difflib import get_close_matches

    names = sorted(known)
    close = get_close_matches(word, names, n=1, cutoff=0.6) if len(word) < _LONGEST_WORD else []
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}"


def _escaped(text: str) -> str:
    """Return text in which what would steer a terminal is written as in Python."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text)


def _window(text: str, column: int, width: int = 120) -> tuple[str, int]:
    """Cut a long line around `column`; return the piece and the caret's place in it, from 1.

    A character that would steer a terminal has another in its place, so that all below it stays where it is.
    """
    if len(text) <= width:
        return _harmless(text), min(column, len(text) + 1)
    start = max(0, min(column - 1 - width // 2, len(text) - width))
    piece = _harmless(text[start : start + width])
    piece = ("…" if start else "") + piece + ("…" if start + width < len(text) else "")
    return piece, column - start + (1 if start else 0)


def _harmless(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else " " if letter == "\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
