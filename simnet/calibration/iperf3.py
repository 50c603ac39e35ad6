"""Logs of iperf3, as text and as JSON (``--json``): the rate of one or several TCP connections.

What the receiver got counts; the rates of intervals tell how far that may be off. Bits are in powers of 1000, bytes in
powers of 1024 (esnet/iperf, ``src/units.c``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from simnet.calibration.log import MOST_PROBLEMS, Log, LogText, Timing
from simnet.errors import InputError, KeyPath, Problem
from simnet.json_text import json_places, parse_json
from simnet.units import BITS_PER_BYTE, KIBIBYTE

__all__ = ["TABLE", "is_iperf3_json", "read_iperf3_json", "read_iperf3_text"]

TABLE = re.compile(r"^\[ ID\]\s*(?:\[Role\]\s*)?Interval\s+Transfer\s+(?:Bitrate|Bandwidth)\b.*$", re.MULTILINE)

_ROW = re.compile(
    r"^\[\s*(?P<id>\d+|SUM)\](?P<role>\[[A-Z]X-[CS]\])?\s+(?P<start>\d+(?:\.\d+)?)-\s*(?P<end>\d+(?:\.\d+)?)\s+sec"
    r"\s+(?P<size>\S+)\s+\S*Bytes\s+(?P<rate>\S+)\s+(?P<unit>\S+)/sec(?P<rest>[^\n]*)$",
    re.MULTILINE,
)
_BEGUN = re.compile(r"^\[\s*(?:\d+|SUM)\](?:\[[A-Z]X-[CS]\])?\s+\d[\d.]*-", re.MULTILINE)
_MOST = 1e30  # of anything that is measured
_PREFIXES = ("", "K", "M", "G", "T")
_UNITS = {f"{prefix}bits": 1000.0**n / BITS_PER_BYTE for n, prefix in enumerate(_PREFIXES)}
_UNITS |= {f"{prefix}Bytes": float(KIBIBYTE) ** n for n, prefix in enumerate(_PREFIXES)}
_VERSION = re.compile(r"^iperf (3\.\S+)", re.MULTILINE)
_DATE = re.compile(r"^Time:\s*(\S[^\n]*?)\s*$", re.MULTILINE)
_UDP = "what UDP sends is what its option -b says"
_LOG = Log("", "iperf3", "iperf3", "stream", ())


def is_iperf3_json(text: LogText) -> bool:
    """Tell whether a text begins as JSON does; nothing else that is read is JSON."""
    return text.text.lstrip()[:1] == "{"


def read_iperf3_json(text: LogText) -> Log:
    """Return what ``iperf3 --json`` says.

    Raises
    ------
    InputError
        No JSON, not that of iperf3, of UDP, of a test that failed.
    """
    try:
        data = parse_json(text.text)
    except InputError as error:
        raise InputError(text.problem_with_place(problem) for problem in error.problems) from None
    look = _Look(text, data)
    if not isinstance(data, dict) or "end" not in data or "start" not in data:
        failed = look.get(("error",))
        hint = "start and end are wanted, as iperf3 --json prints them"
        message = f"iperf3 failed: {failed[:200]!r}" if isinstance(failed, str) else "this JSON is not that of iperf3"
        raise look.error((), message, hint)
    if isinstance(look.get(("error",)), str):
        message = f"iperf3 failed: {data['error'][:200]!r}"
        raise look.error(("error",), message, "the log of a test that ended is wanted")
    if look.get(("start", "test_start", "protocol")) == "UDP":
        raise look.error(("start", "test_start", "protocol"), "the test is of UDP", f"TCP is wanted: {_UDP}")
    path: KeyPath = ("end", "sum_received") if look.get(("end", "sum_received")) is not None else ("end", "sum_sent")
    seconds, size = (look.positive((*path, key)) for key in ("seconds", "bytes"))
    streams = look.get(("end", "streams"))
    intervals = look.get(("intervals",))
    count = len(intervals) if isinstance(intervals, list) else 0
    rates = [look.number(("intervals", place, "sum", "bits_per_second")) for place in range(count)]
    version, date = (look.get(("start", *key)) for key in (("version",), ("timestamp", "time")))
    return replace(
        _LOG,
        source=text.source,
        tool=version if isinstance(version, str) and len(version) < 40 else "iperf3",
        timings=(Timing(size, seconds),),
        connections=max(len(streams), 1) if isinstance(streams, list) else 1,
        spread=_spread([rate for rate in rates if rate is not None]),
        date=date if isinstance(date, str) and len(date) < 60 else "",
    )


def read_iperf3_text(text: LogText) -> Log:
    """Return what iperf3 says as text.

    Raises
    ------
    InputError
        Damaged rows, all of them; UDP; both directions at once; several tests; no sum at the end.
    """
    problems = []
    rows = {found.start(): found for found in _ROW.finditer(text.text)}
    for begun in _BEGUN.finditer(text.text):
        row = rows.get(begun.start())
        if row is None or row["unit"] not in _UNITS or None in map(_number, row.group("start", "end", "rate")):
            message, hint = (
                "this row is not one of iperf3",
                "[ID], interval, size and rate are wanted, as 9.41 Gbits/sec",
            )
        elif row["role"]:
            message, hint = "the test has both directions", "one direction at a time is wanted, without --bidir"
        else:
            continue
        problems.append(text.problem_with(text.line_at(begun.start()), message, hint))
        if len(problems) == MOST_PROBLEMS:
            break
    if problems:
        raise InputError(problems)
    tables = list(TABLE.finditer(text.text))
    for table in tables:
        if "Datagrams" in table[0]:
            number = text.line_at(table.start())
            raise InputError(text.problem_with(number, "the test is of UDP", f"TCP is wanted: {_UDP}"))
    ends = [row for row in rows.values() if row["rest"].split()[-1:] in (["receiver"], ["sender"])]
    last = [row for row in ends if row["rest"].split()[-1] == "receiver"] or ends
    ids = [row["id"] for row in last if row["id"] != "SUM"]
    if not last:
        hint = "the rows that end with sender and receiver are wanted, below all others"
        number = text.line_at(tables[0].start())
        raise InputError(text.problem_with(number, "the test has no end", hint))
    if len(set(ids)) < len(ids):
        twice = next(row for n, row in enumerate(last) if row["id"] in [one["id"] for one in last[:n]])
        number = text.line_at(twice.start())
        raise InputError(text.problem_with(number, "another test ends here", "save each test into a file of its own"))
    total = next((row for row in last if row["id"] == "SUM"), last[0])
    rate = _rate(total)
    if rate <= 0:
        number = text.line_at(total.start())
        raise InputError(text.problem_with(number, "nothing came through", "a rate above 0 is wanted"))
    seconds = float(total["end"]) - float(total["start"])
    intervals = [row for row in rows.values() if row["id"] == total["id"] and row not in ends]
    version, date = _VERSION.search(text.text), _DATE.search(text.text)
    return replace(
        _LOG,
        source=text.source,
        tool=f"iperf {version[1]}" if version else "iperf3",
        timings=(Timing(rate * max(seconds, 1e-9), max(seconds, 1e-9)),),
        connections=max(len(ids), 1),
        spread=_spread([_rate(row) for row in intervals]),
        date=date[1] if date else "",
    )


class _Look:
    """Looks at parts of JSON, of which any may be missing or something else."""

    def __init__(self, text: LogText, data: Any) -> None:
        self._text = text
        self._data = data

    def get(self, path: KeyPath) -> Any:
        """Return what is at a path; None where nothing is."""
        found = self._data
        for key in path:
            if isinstance(key, int):
                found = found[key] if isinstance(found, list) else None
            else:
                found = found.get(key) if isinstance(found, dict) else None
        return found

    def number(self, path: KeyPath) -> float | None:
        """Return the number of at least 0 at a path; None where nothing is."""
        found = self.get(path)
        if found is None:
            return None
        if not (_is_number(found) and found >= 0):
            raise self._wrong(path, found, "a number of at least 0 is wanted")
        return float(found)

    def positive(self, path: KeyPath) -> float:
        """Return the number above 0 at a path."""
        found = self.get(path)
        if not (_is_number(found) and found > 0):
            raise self._wrong(path, found, "a number above 0 is wanted")
        return float(found)

    def _wrong(self, path: KeyPath, found: object, hint: str) -> InputError:
        said = "is missing" if found is None else f"is {str(found)[:40]}"
        return self.error(path, f"{'.'.join(map(str, path))} {said}", hint)

    def error(self, path: KeyPath, message: str, hint: str) -> InputError:
        """Return the error of what is at a path."""
        places = json_places(self._text.text, {path})
        known = path
        while known and known not in places:
            known = known[:-1]
        line, column = places.get(known, (1, 1))
        return InputError(self._text.problem_with_place(Problem(message, hint, (), "", line, column)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST


def _number(text: str) -> float | None:
    value = float(text) if re.fullmatch(r"\d+(?:\.\d+)?", text) else math.inf
    return value if value < _MOST else None


def _rate(row: re.Match[str]) -> float:
    """Return the rate in a row [bytes/s]."""
    return float(row["rate"]) * _UNITS[row["unit"]]


def _spread(rates: Sequence[float]) -> float | None:
    """Return the standard error of the mean rate, relative, as if intervals were independent."""
    count = len(rates)
    mean = sum(rates) / count if count else 0.0
    if count < 2 or mean <= 0:
        return None
    return math.sqrt(sum((rate - mean) ** 2 for rate in rates) / (count - 1) / count) / mean
