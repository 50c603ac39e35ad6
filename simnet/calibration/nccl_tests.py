"""Logs of nccl-tests: ``all_reduce_perf`` and its kin.

The header names the columns; times are in microseconds, in and out of place. Which collective it is stands in logs of
newer versions; in others it follows from the two bandwidths, whose ratio it is that tells the collectives apart
(NVIDIA/nccl-tests, ``doc/PERFORMANCE.md``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from simnet.calibration.log import MOST_PROBLEMS, Log, LogText, Timing, Word
from simnet.errors import InputError, Problem, attempt
from simnet.traffic import BUS_FACTOR
from simnet.units import MICROSECOND

__all__ = ["HEADER", "read_nccl_tests"]

HEADER = re.compile(r"^.*#\s+size\s+count\b.*\btime\s+algbw\s+busbw\b.*$", re.MULTILINE)

BENCHMARKS = {
    "all_reduce_perf": "all_reduce",
    "all_gather_perf": "all_gather",
    "reduce_scatter_perf": "reduce_scatter",
    "broadcast_perf": "broadcast",
    "reduce_perf": "reduce",
    "alltoall_perf": "all_to_all",
    "sendrecv_perf": "send_recv",
}
_NAMED = re.compile(rf"\b({'|'.join(BENCHMARKS)})\b")
_RANK = re.compile(r"#\s+Rank\s+(\d+)\s.*?\bPid\s+\d+\s+on\s+(\S+)\s+device\b")
_OF_ONE_PROCESS = re.compile(r"#\s*nThread\s+(\d+)\s+nGpus\s+(\d+)\b")
_REDUCING = ("all_reduce", "reduce_scatter", "reduce")
_ROOTED = ("broadcast", "reduce")
_RATIO_ERROR = 0.03  # bandwidths are printed with two digits behind the point


def read_nccl_tests(text: LogText, ranks: int | None, collective: str | None) -> Log:
    """Return what a log of nccl-tests says.

    Parameters
    ----------
    text : LogText
    ranks : int or None
        Where the log does not say.
    collective : str or None
        Where the log does not say.

    Raises
    ------
    InputError
        Damaged rows, all of them; rows of several benchmarks; none at all.
    """
    found = HEADER.search(text.text)
    assert found is not None
    header = text.line_at(found.start())
    names: list[str] = []
    timings: list[Timing] = []
    bandwidths: list[tuple[float, float]] = []
    problems: list[Problem] = []
    cells: dict[str, str] = {}
    empty = 0
    for words in text.rows(header):
        if HEADER.fullmatch(text.lines[words[0].line - 1]):
            columns = [word.text for word in words if word.text != "#"]
            if names and columns != names:
                hint = "save each benchmark into a file of its own"
                problems.append(text.problem(words[0], "another table begins here", hint))
                break
            names = columns
        elif text.is_row(words):
            row = attempt(problems, partial(_row, text, words, names))
            if len(problems) >= MOST_PROBLEMS:
                break
            if row is None:
                continue
            size, times, both = row
            if size == 0 or not all(times):
                empty += 1
                continue
            timings += [Timing(size, MICROSECOND * time) for time in times]
            bandwidths += both
            cells = dict(zip(names, (word.text for word in words), strict=True))
    if not problems and not timings:
        hint = "rows that begin with a size, a count and a type are wanted below it"
        problems.append(text.problem_with(header, "there is no row of a size above 0 below this header", hint))
    if problems:
        raise InputError(problems)
    hosts = list(dict(_RANK.findall(text.text)).values())
    ranks = _ranks(text, hosts, ranks, header)
    name = _collective(text, collective, bandwidths, cells, ranks, header)
    notes = [f"left out: {empty} without bytes or time"] if empty else []
    if hosts and len(set(hosts)) == 1:
        notes.append("all ranks are on one host, where simnet has links and no protocol: use the rate for its links")
    elif hosts and len(set(hosts)) < len(hosts):
        notes.append(
            f"{len(hosts)} ranks on {len(set(hosts))} hosts: steps inside and between hosts are taken as alike"
        )
    benchmark = next(one for one, of in BENCHMARKS.items() if of == name)
    return Log(
        text.source,
        "nccl-tests",
        benchmark,
        "collective",
        tuple(timings),
        collective=name,
        ranks=ranks,
        hosts=len(set(hosts)),
        notes=tuple(notes),
    )


def _row(
    text: LogText, words: Sequence[Word], names: Sequence[str]
) -> tuple[float, list[float], list[tuple[float, float]]]:
    """Return size, times [us] and pairs of both bandwidths [GB/s] of a row."""
    if len(words) != len(names):
        where = words[min(len(words), len(names)) - 1]
        hint = f"as many as in the header are wanted: {' '.join(names)}"
        raise InputError(text.problem(where, f"{len(words)} cells where the header has {len(names)}", hint))
    size = text.size(words[0])
    times, bandwidths = [], []
    for place, name in enumerate(names):
        # Not every collective can be done in place.
        if name == "time" and words[place].text != "N/A":
            times.append(text.number(words[place], "the time"))
            algorithm, bus = (text.number(words[place + more], f"the {names[place + more]}") for more in (1, 2))
            bandwidths.append((algorithm, bus))
    return size, times, bandwidths


def _ranks(text: LogText, hosts: Sequence[str], given: int | None, header: int) -> int:
    found = len(hosts)
    if not found and (one := _OF_ONE_PROCESS.search(text.text)) and len(one[1]) + len(one[2]) < 8:
        found = int(one[1]) * int(one[2])
        # One GPU of one process: others are of other processes, which are not listed.
        found = found if found > 1 else 0
    if found and given and found != given:
        raise InputError(Problem(f"the log has {found} ranks, not {given}", "leave the number out", source="--ranks"))
    ranks = found or given
    if not ranks:
        hint = "give their number, --ranks N; logs that list their ranks need none"
        raise InputError(text.problem_with(header, "the log does not say how many ranks there are", hint))
    if ranks < 2:
        raise InputError(text.problem_with(header, "one rank alone sends nothing", "at least 2 ranks are wanted"))
    return ranks


def _collective(
    text: LogText,
    given: str | None,
    bandwidths: Sequence[tuple[float, float]],
    cells: Mapping[str, str],
    ranks: int,
    header: int,
) -> str:
    """Return the collective: as the log names it, as given, or as a row tells by its bandwidths and its other cells."""
    named = list(dict.fromkeys(BENCHMARKS[name] for name in _NAMED.findall(text.text)))
    if len(named) == 1:
        if given and given != named[0]:
            message = f"the log is of {named[0]}, not of {given}"
            raise InputError(Problem(message, "leave the name out", source="--collective"))
        return named[0]
    tables = [text.line_at(found.start()) for found in HEADER.finditer(text.text)]
    if len(named) > 1 and len(tables) > 1:
        message = f"another table begins here, and the log names {' and '.join(named)}"
        raise InputError(text.problem_with(tables[1], message, "save each benchmark into a file of its own"))
    if given:
        return given
    algorithm, bus = max(bandwidths)
    ratio = bus / algorithm if algorithm else 0.0
    fitting = [name for name in BENCHMARKS.values() if abs(BUS_FACTOR[name](ranks) - ratio) <= _RATIO_ERROR * ratio]
    if "redop" in cells:
        fitting = [name for name in fitting if (name in _REDUCING) == (cells["redop"] != "none")]
    if "root" in cells:
        fitting = [name for name in fitting if (name in _ROOTED) == (cells["root"] != "-1")]
    if len(fitting) == 1:
        return fitting[0]
    listed = f"it may be {' or '.join(fitting)}" if fitting else f"known: {', '.join(BUS_FACTOR)}"
    hint = f"give it, --collective NAME; {listed}"
    raise InputError(text.problem_with(header, "the log does not say which collective it is of", hint))
