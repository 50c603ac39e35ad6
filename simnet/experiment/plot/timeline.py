"""One iteration of some workers: what each does when, and below them the exchanges, bucket by bucket."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from simnet.experiment.plot.drawn import Drawn
from simnet.experiment.plot.style import COLOURS, HATCHES, label_axes
from simnet.units import MICROSECOND, MILLISECOND

__all__ = ["NO_TIMELINE", "time_unit", "timeline"]

NO_TIMELINE = "the run has no timeline: run(..., timeline=True) keeps one"
"""What is said where a picture needs one."""

_LOOKS = {
    "compute": (COLOURS[0], HATCHES[0]),
    "exposed communication": (COLOURS[1], HATCHES[1]),
    "waiting": (COLOURS[2], HATCHES[2]),
    "input": (COLOURS[3], HATCHES[3]),
    "checkpoint": (COLOURS[4], HATCHES[4]),
    "step": (COLOURS[5], HATCHES[5]),
    "step overhead": (COLOURS[5], HATCHES[5]),
}
_EXCHANGE, _QUEUED = "#444444", "#bbbbbb"
_MOST_WORKERS = 8
_MOST_LANES = 16
_SEEN = 1e-3


def timeline(result: Drawn, *, job: str | None = None, iteration: int | None = None) -> Figure:
    """Return one iteration of a group of workers: computing, exposed communication, waiting, and the exchanges.

    Parameters
    ----------
    result : Result
        Of ``simnet.run(..., timeline=True)``.
    job : str, optional
        The first by default.
    iteration : int, optional
        The last measured one by default.

    Raises
    ------
    ValueError
        The run has no timeline, or not that job or iteration.
    """
    if result.spans is None:
        raise ValueError(NO_TIMELINE)
    job = str(result.summary["job"].iloc[0]) if job is None else job
    spans = result.spans[result.spans["job"] == job]
    if spans.empty:
        raise ValueError(f"the run has no job {job!r}")
    ranks, words = _group(result, job)
    if iteration is None:
        # A job goes on while another one is measured.
        iteration = int(result.iterations.loc[result.iterations["job"] == job, "iteration"].max())
    own = spans[(spans["iteration"] == iteration) & spans["rank"].isin(ranks)]
    if own.empty:
        raise ValueError(f"job {job!r} has no iteration {iteration}")
    begin_s, end_s = float(own["start_s"].min()), float((own["start_s"] + own["duration_s"]).max())
    lanes = _lanes(result, job, ranks, begin_s, end_s)
    scale, unit = time_unit(end_s - begin_s)
    figure = Figure(figsize=(7.6, 1.5 + 0.27 * (len(ranks) + max(len(lanes), 1))), layout="constrained")
    heights = [len(ranks), max(len(lanes), 1)] if lanes else [1]
    panes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    # Workers go on by themselves under asp: then they are in other iterations meanwhile.
    shown = spans[
        spans["rank"].isin(ranks) & (spans["start_s"] < end_s) & (spans["start_s"] + spans["duration_s"] > begin_s)
    ]
    _draw_workers(panes[0], shown, ranks, begin_s, end_s, scale)
    if lanes:
        _draw_exchanges(panes[1], lanes, begin_s, scale)
    for pane in panes:
        label_axes(pane, "", "", "", grid="x")
        pane.tick_params(axis="y", length=0, labelsize=8)
    panes[0].set_title(f"iteration {iteration} of {words}", fontsize="medium")
    panes[-1].set_xlabel(f"time since it began [{unit}]")
    panes[-1].set_xlim(0, (end_s - begin_s) / scale or 1.0)
    looks = [what for what in _LOOKS if what in set(shown["what"])]
    handles = [
        Patch(facecolor=_LOOKS[what][0], hatch=_LOOKS[what][1], edgecolor="white", linewidth=0, label=what)
        for what in looks
    ]
    if lanes:
        handles.append(Patch(facecolor=_EXCHANGE, label="exchange"))
        if any(_shows_queued(lane, end_s - begin_s) for lane in lanes.values()):
            handles.append(Patch(facecolor=_QUEUED, label="ready, not begun"))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 5), frameon=False)
    return figure


def time_unit(seconds: float) -> tuple[float, str]:
    """Return a unit for times up to some length, in seconds, and its sign."""
    if seconds >= 1.0:
        return 1.0, "s"
    return (MILLISECOND, "ms") if seconds >= MILLISECOND else (MICROSECOND, "us")


def _group(result: Drawn, job: str) -> tuple[list[int], str]:
    """Return the workers to show, and who they are: those of one replica where a model is split, else some of all."""
    workers = result.workers[result.workers["job"] == job]
    first = workers[workers["replica"] == 0]
    split = len(first) > 1
    ranks = (first if split else workers)["rank"].tolist()
    words = f"the {len(ranks)} workers of one replica" if split else f"the {len(ranks)} workers"
    if len(ranks) > _MOST_WORKERS:
        places = np.linspace(0, len(ranks) - 1, _MOST_WORKERS).round().astype(int)
        words = f"{_MOST_WORKERS} out of {len(ranks)} workers"
        ranks = [ranks[place] for place in places]
    return ranks, words if len(ranks) > 1 else "the worker"


def _lanes(result: Drawn, job: str, ranks: list[int], begin_s: float, end_s: float) -> dict[str, list[Any]]:
    """Return the exchanges under way in a time by name of their line: one a bucket, or packed where these are many."""
    table = result.collectives
    own = table[(table["job"] == job) & ((table["worker"] < 0) | table["worker"].isin(ranks))]
    own = own[(own["start_s"] + own["duration_s"] > begin_s) & (own["start_s"] < end_s)]
    rows: list[Any] = list(own.sort_values("start_s", kind="stable").itertuples())
    names = sorted(own["bucket"].unique().tolist())
    lanes: dict[str, list[Any]] = {}
    if len(names) <= _MOST_LANES and (own["worker"] < 0).all():
        for bucket in names:
            lanes[f"bucket {bucket}"] = [row for row in rows if row.bucket == bucket]
        return lanes
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for row in rows:
        while busy and busy[0][0] <= row.start_s:
            heappush(free, heappop(busy)[1])
        lane = heappop(free) if free else len(busy)
        heappush(busy, (row.start_s + row.duration_s, lane))
        lanes.setdefault("exchanges" if lane == 0 else " " * lane, []).append(row)
    return dict(list(lanes.items())[:_MOST_LANES])


def _draw_workers(
    axes: Axes, spans: pd.DataFrame, ranks: list[int], begin_s: float, end_s: float, scale: float
) -> None:
    for what, (colour, hatch) in _LOOKS.items():
        some = spans[spans["what"] == what]
        for line, rank in enumerate(ranks):
            own = some[some["rank"] == rank]
            starts = own["start_s"].clip(lower=begin_s)
            ends = (own["start_s"] + own["duration_s"]).clip(upper=end_s)
            bars = list(zip((starts - begin_s) / scale, (ends - starts) / scale, strict=True))
            if bars:
                drawn = axes.broken_barh(
                    bars, (line - 0.4, 0.8), facecolor=colour, hatch=hatch, edgecolor="white", linewidth=0
                )
                drawn.set_gid(f"worker {rank}: {what}")
    axes.set_yticks(range(len(ranks)), labels=[f"worker {rank}" for rank in ranks])
    axes.set_ylim(len(ranks) - 0.4, -0.6)


def _shows_queued(lane: list[Any], whole_s: float) -> bool:
    """Return whether an exchange is seen to wait: not behind the one before it in its line."""
    end_s = -np.inf
    for row in lane:
        if row.start_s - max(row.announced_s, end_s) > _SEEN * whole_s:
            return True
        end_s = max(end_s, row.start_s + row.duration_s)
    return False


def _draw_exchanges(axes: Axes, lanes: dict[str, list[Any]], begin_s: float, scale: float) -> None:
    for line, rows in enumerate(lanes.values()):
        queued = [((row.announced_s - begin_s) / scale, (row.start_s - row.announced_s) / scale) for row in rows]
        under_way = [((row.start_s - begin_s) / scale, row.duration_s / scale) for row in rows]
        axes.broken_barh([bar for bar in queued if bar[1] > 0], (line - 0.15, 0.3), facecolor=_QUEUED)
        axes.broken_barh(under_way, (line - 0.4, 0.8), facecolor=_EXCHANGE, edgecolor="white", linewidth=0.3)
    axes.set_yticks(range(len(lanes)), labels=list(lanes))
    axes.set_ylim(len(lanes) - 0.4, -0.6)
