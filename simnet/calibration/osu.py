"""Logs of the OSU micro-benchmarks: ``osu_latency``, ``osu_bw``, ``osu_bibw`` and ``osu_allreduce``.

Latencies are one way, half of a ping-pong, in microseconds. Bandwidths are in MB/s of a million bytes; both ways
together where both send.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from simnet.calibration.log import MOST_PROBLEMS, Log, LogText, Measures, Timing, Word
from simnet.errors import InputError, Problem, attempt
from simnet.units import MEGA, MICROSECOND

__all__ = ["HEADING", "read_osu"]

HEADING = re.compile(
    r"# OSU (?P<library>\S+?) (?P<name>[^\n#]+?) Test(?:[ \t]+v(?P<version>\S+))?[ \t]*$", re.MULTILINE
)

_TESTS: dict[str, tuple[str, Measures]] = {
    "Latency": ("osu_latency", "ping_pong"),
    "Bandwidth": ("osu_bw", "stream"),
    "Bi-Directional Bandwidth": ("osu_bibw", "stream"),
    "Allreduce Latency": ("osu_allreduce", "collective"),
}


def read_osu(text: LogText, ranks: int | None) -> Log:
    """Return what a log of an OSU micro-benchmark says.

    Parameters
    ----------
    text : LogText
    ranks : int or None
        Of an all-reduce, whose log does not say.

    Raises
    ------
    InputError
        Damaged rows, all of them; a test that is not known; several tests.
    """
    headings = list(HEADING.finditer(text.text))
    heading = headings[0]
    number = text.line_at(heading.start())
    if heading["name"] not in _TESTS:
        hint = f"known: {', '.join(name for name, _ in _TESTS.values())}"
        raise InputError(text.problem_with(number, f"simnet does not read the OSU test {heading['name']!r}", hint))
    for other in headings[1:]:
        if other["name"] != heading["name"]:
            line = text.line_at(other.start())
            hint = "save each benchmark into a file of its own"
            raise InputError(text.problem_with(line, "another benchmark begins here", hint))
    benchmark, measures = _TESTS[heading["name"]]
    timings: list[Timing] = []
    problems: list[Problem] = []
    empty = 0
    for words in text.rows(number + 1):
        if not text.is_row(words):
            continue
        row = attempt(problems, partial(_row, text, words, "the bandwidth" if measures == "stream" else "the latency"))
        if len(problems) >= MOST_PROBLEMS:
            break
        if row is None:
            continue
        size, value = row
        if value == 0 or (size == 0 and measures != "ping_pong"):
            empty += 1
        elif measures == "stream":
            directions = 2 if benchmark == "osu_bibw" else 1
            timings.append(Timing(size, size * directions / (MEGA * value)))
        else:
            timings.append(Timing(size, MICROSECOND * value))
    if not problems and not timings:
        problems.append(
            text.problem_with(number, "there is no row below this heading", "rows of size and value are wanted")
        )
    if measures == "collective" and ranks is None:
        hint = "give their number, --ranks N"
        problems.append(text.problem_with(number, f"a log of {benchmark} does not say how many ranks there are", hint))
    if problems:
        raise InputError(problems)
    notes = [f"left out: {empty} with a 0"] if empty else []
    if measures == "collective":
        notes.append("MPI libraries reduce small sizes in other ways than by a ring: alpha is what a ring would have")
    version = f" {heading['version']}" if heading["version"] else ""
    return Log(
        text.source,
        f"OSU micro-benchmarks{version}",
        benchmark,
        measures,
        tuple(timings),
        collective="all_reduce" if measures == "collective" else "",
        ranks=ranks or 2 if measures == "collective" else 2,
        notes=tuple(notes),
    )


def _row(text: LogText, words: Sequence[Word], what: str) -> tuple[float, float]:
    """Return the size, and what was measured."""
    if len(words) < 2:
        raise InputError(text.problem(words[0], "a row of one cell", "a size and what was measured are wanted"))
    return text.size(words[0]), text.number(words[1], what)
