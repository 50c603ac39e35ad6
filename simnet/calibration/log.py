"""What a log of a benchmark says, and the text that it is read from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from simnet.errors import InputError, Problem
from simnet.reading import read_text
from simnet.scenario.document import problem_at
from simnet.workload.csv_table import parse_number

__all__ = ["LARGEST_LOG", "MOST_PROBLEMS", "Log", "LogText", "Measures", "Timing", "Word", "read_log_text"]

LARGEST_LOG = 64_000_000  # bytes
SMALLEST = 1e-30  # besides 0; what is less is no measurement, and its inverse may be none
MOST_PROBLEMS = 20  # that are told of one log

Measures = Literal["collective", "ping_pong", "read", "stream"]
"""A collective; one message, one way; the read of a message; messages behind one another."""

_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_WORD = re.compile(r"\S+")
# What mpirun puts in front of the lines of a rank (--tag-output).
_TAG = re.compile(r"\[\d+,\d+\]<std\w+>:")


@dataclass(frozen=True)
class Timing:
    """One row of a log.

    Parameters
    ----------
    size_bytes : float
        Of a message, or of a collective as nccl-tests has it [bytes].
    time_s : float
        Of a collective, of a message one way, of a read, or from one message of a stream to the next [s].
    """

    size_bytes: float
    time_s: float


@dataclass(frozen=True)
class Log:
    """What a log says.

    Parameters
    ----------
    source : str
        Its file.
    tool, benchmark : str
        ``nccl-tests``, ``all_reduce_perf``.
    measures : str
        What the times are of.
    timings : tuple of Timing
        At least one; sizes and times are above 0, but that a message may have 0 bytes.
    collective : str
        Name out of `simnet.traffic.COLLECTIVES`; empty where it is none.
    ranks : int
        Who take part.
    hosts : int
        On how many hosts these are; 0 where the log does not say.
    connections : int
        Of a stream: what its rate is shared by.
    link_kind : str
        ``ethernet`` or ``infiniband``; empty where the log does not say.
    spread : float or None
        Standard error of the rate of a stream of which only one rate is known, relative.
    date : str
        As the log has it; empty where it has none.
    notes : tuple of str
        What whoever uses this should know.
    """

    source: str
    tool: str
    benchmark: str
    measures: Measures
    timings: tuple[Timing, ...]
    collective: str = ""
    ranks: int = 2
    hosts: int = 0
    connections: int = 1
    link_kind: str = ""
    spread: float | None = None
    date: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Word:
    """A word of a log and where it stands, counted from 1."""

    text: str
    line: int
    column: int

    @property
    def is_size(self) -> bool:
        """Whether it is a whole number from 0 on."""
        return self.text.isdecimal() and self.text.isascii()


class LogText:
    """The text of a log, by lines and words.

    Parameters
    ----------
    text : str
    source : str
        What messages call it.
    """

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines, without their ends."""
        return tuple(self.text.split("\n"))

    def rows(self, start: int = 1) -> Iterator[list[Word]]:
        """Yield the words of each line that has any, from a line on; tags of mpirun are none."""
        for number, line in enumerate(self.lines[start - 1 :], start):
            tag = _TAG.match(line.lstrip())
            begin = len(line) - len(line.lstrip()) + tag.end() if tag else 0
            words = [Word(found[0], number, found.start() + 1) for found in _WORD.finditer(line, begin)]
            if words:
                yield words

    def is_row(self, words: list[Word]) -> bool:
        """Tell whether a line is a row of a table: all begin with a size, and a damaged one with another number."""
        if words[0].is_size:
            return True
        return len(words) > 1 and all(_NUMBER.fullmatch(word.text) for word in words[:2])

    def problem(self, word: Word, message: str, hint: str) -> Problem:
        """Return a problem with a word."""
        return problem_at(self.lines, self.source, message, hint, word.line, word.column)

    def problem_with(self, number: int, message: str, hint: str) -> Problem:
        """Return a problem with a line, from 1."""
        return problem_at(self.lines, self.source, message, hint, number, 1)

    def problem_with_place(self, problem: Problem) -> Problem:
        """Return a problem that has line and column with the source and the text of the line."""
        return problem_at(self.lines, self.source, problem.message, problem.hint, problem.line, problem.column)

    def line_at(self, place: int) -> int:
        """Return the number of the line that a place in the text is in, from 1."""
        return self.text.count("\n", 0, place) + 1

    def size(self, word: Word) -> float:
        """Return the size that a word is [bytes].

        Raises
        ------
        InputError
            It is no whole number from 0 on.
        """
        if not word.is_size:
            raise InputError(
                self.problem(word, f"the size is {_shown(word.text)}", "a whole number of bytes is wanted")
            )
        return self.number(word, "the size")

    def number(self, word: Word, what: str) -> float:
        """Return the number that a word is, from 0 on.

        Raises
        ------
        InputError
            It is none, or not finite.
        """
        value = parse_number(word.text)
        if value is None or 0.0 < value < SMALLEST:
            raise InputError(self.problem(word, f"{what} is {_shown(word.text)}", "a number of at least 0 is wanted"))
        return value


def read_log_text(path: Path) -> LogText:
    """Return the text in a file.

    Raises
    ------
    InputError
        Missing, a directory, too large, empty, or not UTF-8.
    """
    source = str(path)
    text = read_text(path, "the output of a benchmark", LARGEST_LOG)
    if not text.strip():
        raise InputError(Problem("is empty", "the output of a benchmark is wanted", source=source))
    return LogText(text.replace("\r\n", "\n"), source)


def _shown(text: str) -> str:
    return f"{text!a}" if len(text) <= 40 else f"{text[:40]!a}…"
