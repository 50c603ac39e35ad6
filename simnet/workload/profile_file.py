"""Reading PyTorch profiles: the events that `simnet.workload.profile` makes a trace of, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from simnet.errors import InputError, KeyPath, Problem
from simnet.json_text import json_places, parse_json
from simnet.reading import LARGEST_FILE, decoded, read_content
from simnet.units import MICROSECOND
from simnet.workload.csv_table import LARGEST_COUNT, shown

__all__ = [
    "ACCUMULATE",
    "SEQUENCE",
    "Event",
    "ProfileProblems",
    "profiled_rank",
    "read_events",
    "read_profile",
    "read_steps",
]

_STEP = "ProfilerStep#"
ACCUMULATE = "torch::autograd::AccumulateGrad"
SEQUENCE = "Sequence number"
_LONGEST = 1e18  # us; some 30,000 years
_MOST_PROBLEMS = 100  # that are told one by one


@dataclass(frozen=True)
class Event:
    """A complete event of the profile, number `index` of all; times in seconds after the first one."""

    index: int
    name: str
    category: str
    thread: Any
    start: float
    end: float
    args: dict[str, Any]
    elements: int | None


class ProfileProblems:
    """What is wrong with a profile so far."""

    def __init__(self, source: str, text: str) -> None:
        self.source = source
        self._text = text
        self._found: list[Problem] = []

    def add(self, event: int | None, message: str, hint: str = "", *, path: KeyPath = (), key: str = "") -> None:
        """Add what is wrong with an event, given its number, or with what is at a path."""
        if event is not None:
            path = ("traceEvents", event, key) if key else ("traceEvents", event)
        self._found.append(Problem(message, hint, path, self.source))

    def raise_any(self) -> None:
        """Raise the problems, each with its place, if there are any."""
        if not self._found:
            return
        found, rest = self._found[:_MOST_PROBLEMS], len(self._found) - _MOST_PROBLEMS
        # A file may also be nothing but the list of events.
        skip = 1 if self._text.lstrip()[:1] == "[" else 0
        places = json_places(self._text, {problem.path[skip:] for problem in found if problem.path})
        lines = self._text.split("\n")
        placed = []
        for problem in found:
            parts = (problem.path[skip:length] for length in range(len(problem.path), 0, -1))
            line, column = next((places[part] for part in parts if part in places), (0, 0))
            placed.append(replace(problem, line=line, column=column, text=lines[line - 1] if line else ""))
        if rest > 0:
            placed.append(Problem(f"and {rest} more problems", source=self.source))
        raise InputError(placed)


def read_profile(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text of a profile and what it says."""
    # Only here, because every run imports this module and hardly one reads a profile.
    import json

    source = str(path)
    raw = read_content(path, "a Chrome trace (JSON)")
    if raw[:2] == b"\x1f\x8b":
        raw = _uncompressed(raw, source)
    encoding = json.detect_encoding(raw)
    text = decoded(raw, source, "utf-8-sig" if encoding == "utf-8" else encoding)
    try:
        document = parse_json(text)
    except InputError as error:
        lines = text.split("\n")
        hint = "a whole Chrome trace is wanted"
        raise InputError(
            replace(problem, hint=problem.hint or hint, source=source, text=lines[problem.line - 1])
            for problem in error.problems
        ) from None
    if isinstance(document, list):
        document = {"traceEvents": document}
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        hint = "the file that torch.profiler's export_chrome_trace writes is wanted"
        raise InputError(Problem("the file has no list 'traceEvents'", hint, source=source))
    return text, document


def _uncompressed(raw: bytes, source: str) -> bytes:
    """Return what was compressed, which may be a thousand times as large; that of all members of the file."""
    import zlib

    pieces: list[bytes] = []
    size = 0
    while raw:
        reader = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            pieces.append(reader.decompress(raw, LARGEST_FILE + 1 - size))
        except zlib.error as error:
            raise _damaged(str(error), source) from None
        size += len(pieces[-1])
        if size > LARGEST_FILE:
            raise InputError(
                Problem("is too large uncompressed", f"at most {LARGEST_FILE} bytes are read", source=source)
            )
        if not reader.eof:
            raise _damaged("it ends too early", source)
        # Zeros may fill up the last block of a tape.
        raw = reader.unused_data.lstrip(b"\0")
    return b"".join(pieces)


def _damaged(why: str, source: str) -> InputError:
    return InputError(Problem(f"the compressed file is damaged: {why}", source=source))


def profiled_rank(document: dict[str, Any], said: ProfileProblems) -> int:
    """Return the rank that a profile says it is of, or 0."""
    told = document.get("distributedInfo")
    rank = told.get("rank") if isinstance(told, dict) else None
    if rank is None:
        return 0
    if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank <= LARGEST_COUNT:
        hint = f"a whole number from 0 to {LARGEST_COUNT:g} is wanted"
        said.add(None, f"rank is {shown(rank)}", hint, path=("distributedInfo", "rank"))
        return 0
    return rank


def read_events(document: dict[str, Any], said: ProfileProblems) -> list[Event]:
    """Return the complete events, in seconds after the first of them."""
    chosen: list[tuple[int, dict[str, Any], float, float]] = []
    for index, event in enumerate(document["traceEvents"]):
        if isinstance(event, dict) and event.get("ph") == "X":
            title = f"event {index} ({shown(_name(event))})"
            start = _microseconds(event.get("ts"), -_LONGEST)
            duration = _microseconds(event.get("dur", 0.0), 0.0)
            for key, value, least in (("ts", start, -_LONGEST), ("dur", duration, 0.0)):
                if value is None:
                    told = shown(event[key]) if event.get(key) is not None else "missing"
                    hint = f"microseconds from {least:g} to {_LONGEST:g} are wanted"
                    said.add(index, f"{title}: {key} is {told}", hint, key=key)
            chosen.append((index, event, start or 0.0, duration or 0.0))
    # Counted from the first one, because microseconds since the epoch do not leave room for nanoseconds.
    origin = min((start for _, _, start, _ in chosen), default=0.0)
    found = []
    for index, event, start, duration in chosen:
        name, thread = _name(event), event.get("tid")
        args = event["args"] if isinstance(event.get("args"), dict) else {}
        for key, value in (("tid", thread), *((key, args.get(key)) for key in (SEQUENCE, "correlation"))):
            if isinstance(value, (list, dict)):
                said.add(index, f"event {index} ({shown(name)}): {key!r} is {shown(value)}", "a number is wanted")
                args, thread = {}, None
        elements = _elements(index, args["Input Dims"], said) if name == ACCUMULATE and args.get("Input Dims") else None
        begin, end = ((time - origin) * MICROSECOND for time in (start, start + duration))
        found.append(Event(index, name, str(event.get("cat", "")), thread, begin, end, args, elements))
    return found


def _name(event: dict[str, Any]) -> str:
    name = event.get("name", "")
    return name if isinstance(name, str) else shown(name)


def _microseconds(value: Any, least: float) -> float | None:
    """Return a time that somebody can mean, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= _LONGEST:
        return None
    return float(value)


def _elements(index: int, shapes: Any, said: ProfileProblems) -> int | None:
    """Return how many elements the gradient has that an event accumulates; None where it is no plain tensor."""
    title = f"event {index} ({ACCUMULATE!r})"
    shape = shapes[0] if isinstance(shapes, list) else None
    if not isinstance(shape, list):
        said.add(index, f"{title}: 'Input Dims' is {shown(shapes)}", "a list of shapes is wanted")
        return None
    if not all(isinstance(size, int) and not isinstance(size, bool) for size in shape):
        return None
    if any(size < 0 for size in shape) or math.prod(shape) > LARGEST_COUNT:
        hint = f"sizes of 0 or more are wanted, with at most {LARGEST_COUNT:g} elements"
        said.add(index, f"{title}: a gradient has the shape {shown(shape)}", hint)
        return None
    return math.prod(shape)


def read_steps(events: Sequence[Event], said: ProfileProblems) -> list[Event]:
    """Return the profiled steps in order of time; each is there once, and they do not overlap."""
    steps = sorted(
        (event for event in events if event.category == "user_annotation" and event.name.startswith(_STEP)),
        key=lambda event: event.start,
    )
    if not steps:
        hint = "call profiler.step() at the end of each iteration"
        said.add(None, f"the profile has no {_STEP}n ranges", hint)
    first: dict[str, int] = {}
    for step in sorted(steps, key=lambda event: event.index):
        if step.name in first:
            hint = "one profile of one process a file is wanted"
            said.add(step.index, f"event {step.index}: {step.name} was event {first[step.name]} already", hint)
        first.setdefault(step.name, step.index)
    for before, step in pairwise(steps):
        # Some versions of PyTorch round both ends to whole microseconds.
        if step.name != before.name and step.start < before.end - 2.0 * MICROSECOND:
            message = f"event {step.index}: {step.name} begins before {before.name} (event {before.index}) is over"
            said.add(step.index, message, "steps follow each other")
    return steps
