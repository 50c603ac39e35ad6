"""A run as a timeline in the format of Chrome's tracing, which Perfetto opens (ui.perfetto.dev).

Workers are threads of a process a job; exchanges are on threads of a process of their own, those that overlap on
different ones; the load of resources are counters, and faults instants. Format: "Trace Event Format", Google, 2016:
times in microseconds.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import pandas as pd

from simnet.errors import InputError, Problem
from simnet.experiment.result import Result
from simnet.units import MICROSECOND
from simnet.writing import write_whole

__all__ = ["trace_events", "write_timeline"]

_Event = dict[str, Any]


def write_timeline(result: Result, path: str | Path) -> None:
    """Write the timeline of a run.

    Parameters
    ----------
    result : Result
        Of ``simnet.run(..., timeline=True)``.
    path : str or Path
        ``.json``, or ``.json.gz`` to compress it.

    Raises
    ------
    InputError
        The file cannot be written.
    ValueError
        The run has no timeline.
    """
    text = json.dumps({"traceEvents": list(trace_events(result)), "displayTimeUnit": "ms"}, ensure_ascii=False)
    path = Path(path)
    if path.is_dir():
        raise InputError(Problem("is a folder", "a file such as timeline.json.gz is wanted", source=str(path)))
    with write_whole(path) as file:
        if path.suffix == ".gz":
            # Without the time of day, so that the same run gives the same bytes.
            file.write_bytes(gzip.compress(text.encode(), mtime=0))
        else:
            file.write_text(text, encoding="utf-8")


def trace_events(result: Result) -> Iterator[_Event]:
    """Yield the events of a timeline.

    Raises
    ------
    ValueError
        The run has no timeline.
    """
    if result.spans is None or result.load is None:
        raise ValueError("the run has no timeline: run(..., timeline=True) keeps one")
    process = 0
    for job in result.summary["job"]:
        process += 1
        yield _named("process_name", process, 0, f"workers of {job}")
        own = result.spans[result.spans["job"] == job]
        for rank in sorted(own["rank"].unique().tolist()):
            yield _named("thread_name", process, rank, f"worker {rank}")
        for row in _rows(own):
            about = {"iteration": int(row.iteration)}
            yield _span(process, int(row.rank), str(row.what), float(row.start_s), float(row.duration_s), about)
        process += 1
        yield from _exchanges(result, str(job), process)
    process += 1
    yield _named("process_name", process, 0, "load of resources")
    for row in _rows(result.load):
        yield _counted(process, str(row.resource), float(row.time_s), round(float(row.utilisation), 6))
    for row in _rows(result.load.drop_duplicates("resource", keep="last")):
        yield _counted(process, str(row.resource), float(row.time_s) + float(row.duration_s), 0.0)
    yield from _faults(result)


def _exchanges(result: Result, job: str, process: int) -> Iterator[_Event]:
    """Yield the exchanges of a job, each on the first thread that is free."""
    own = result.collectives[result.collectives["job"] == job].sort_values("start_s", kind="stable")
    yield _named("process_name", process, 0, f"exchanges of {job}")
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for row in _rows(own):
        start_s, duration_s = float(row.start_s), float(row.duration_s)
        while busy and busy[0][0] <= start_s:
            heappush(free, heappop(busy)[1])
        thread = heappop(free) if free else len(busy)
        heappush(busy, (start_s + duration_s, thread))
        by = f" by worker {row.worker}" if row.worker >= 0 else ""
        about = {"iteration": int(row.iteration), "bytes": float(row.size_bytes), "algorithm": str(row.algorithm)}
        yield _span(process, thread, f"{row.what} of bucket {row.bucket}{by}", start_s, duration_s, about)


def _faults(result: Result) -> Iterator[_Event]:
    """Yield when faults begin and end."""
    if result.faults is None:
        return
    for row in _rows(result.faults):
        for word, at_s in (("begins", float(row.begin_s)), ("ends", float(row.end_s))):
            if math.isfinite(at_s):
                name = f"{row.kind} {word}: {row.what}"
                yield {"ph": "i", "s": "g", "pid": 1, "tid": 0, "name": name, "ts": _us(at_s)}


def _span(process: int, thread: int, name: str, start_s: float, duration_s: float, about: _Event) -> _Event:
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "name": name,
        "ts": _us(start_s),
        "dur": _us(duration_s),
        "args": about,
    }


def _counted(process: int, name: str, at_s: float, utilisation: float) -> _Event:
    return {"ph": "C", "pid": process, "name": name, "ts": _us(at_s), "args": {"utilisation": utilisation}}


def _named(what: str, process: int, thread: int, name: str) -> _Event:
    return {"ph": "M", "pid": process, "tid": thread, "name": what, "args": {"name": name}}


def _rows(frame: pd.DataFrame) -> Iterator[Any]:
    return frame.itertuples()


def _us(seconds: float) -> float:
    return seconds / MICROSECOND
