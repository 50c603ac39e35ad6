"""Lying bars: one number a row, or where the time of an iteration goes."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simnet.experiment.columns import COLUMNS
from simnet.experiment.plot.style import COLOURS, HATCHES, label_axes, label_of, name_of, words_of
from simnet.experiment.quantities import as_numbers

__all__ = ["bars", "breakdown"]

_PARTS = ("compute_time_s", "exposed_communication_time_s", "waiting_time_s")
_RARE_PARTS = ("input_time_s", "checkpoint_time_s", "recovery_time_s")


def bars(frame: pd.DataFrame, y: str = "scaling_efficiency", by: Iterable[str] = (), *, title: str = "") -> Figure:
    """Return a bar for each row, with its value at the end.

    Parameters
    ----------
    frame : DataFrame
        As of `simnet.sweep`, or summaries of results.
    y : str
        Column that the length of a bar shows.
    by : iterable of str
        Columns that name the bars; by default those of the sweep's parameters in which rows differ.
    title : str

    Returns
    -------
    Figure
        Of matplotlib.
    """
    figure, axes, names = _lying_bars(frame, by)
    drawn = axes.barh(range(len(frame)), frame[y], color=COLOURS[0], height=0.7)
    axes.bar_label(drawn, labels=[f"{value:.4g}" for value in frame[y]], padding=3)
    axes.set_xlim(0, 1.15 * float(frame[y].max()) or 1.0)
    label_axes(axes, name_of(y), names, title, grid="x")
    return figure


def breakdown(frame: pd.DataFrame, by: Iterable[str] = (), *, title: str = "") -> Figure:
    """Return where an iteration's time goes: stacked bars of computing, exposed communication and waiting.

    Waiting for training data is shown where there is any.

    Parameters
    ----------
    frame : DataFrame
        As of `simnet.sweep`, or summaries of results.
    by : iterable of str
        Columns that name the bars; by default those of the sweep's parameters in which rows differ.
    title : str

    Returns
    -------
    Figure
        Of matplotlib; the length of a bar is the time of an iteration.
    """
    figure, axes, names = _lying_bars(frame, by)
    left = pd.Series(0.0, index=frame.index)
    parts = [*_PARTS, *(part for part in _RARE_PARTS if part in frame and frame[part].any())]
    for number, part in enumerate(parts):
        axes.barh(
            range(len(frame)),
            frame[part],
            left=left,
            label=words_of(part),
            color=COLOURS[number],
            hatch=HATCHES[number],
            edgecolor="white",
            linewidth=0,
            height=0.7,
        )
        left = left + frame[part]
    axes.set_xlim(0, 1.05 * float(left.max()) or 1.0)
    label_axes(axes, name_of("iteration_time_s"), names, title, grid="x")
    figure.legend(loc="outside lower center", ncols=len(parts), frameon=False)
    return figure


def _lying_bars(frame: pd.DataFrame, by: Iterable[str]) -> tuple[Figure, Axes, str]:
    """Return axes for one lying bar a row, the first on top; lying, because their names may be long.

    What the names are of comes with them, where there are numbers among them, which do not say it.
    """
    columns = list(by) or _telling_columns(frame)
    names = [label_of(", ".join(map(str, row))) for row in frame[columns].itertuples(index=False)]
    lines = max((name.count("\n") + 1 for name in names), default=1)
    figure = Figure(figsize=(6.4, 1.6 + max(0.4, 0.17 * lines + 0.1) * len(frame)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_yticks(range(len(frame)), labels=names)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    has_numbers = any(as_numbers(frame[column]) is not None for column in columns)
    return figure, axes, ", ".join(map(words_of, columns)) if has_numbers else ""


def _telling_columns(frame: pd.DataFrame) -> list[str]:
    """Return the parameters, or what summaries call the case, in which rows differ; the protocol where none do."""
    measures = {column.name for column in COLUMNS["summary"] if column.dtype != "str"}
    # Keys of a scenario have dots or are no columns of a summary; those of a summary are of use where they are names.
    unhelpful = {"scenario", "bottleneck"}
    if "parallelism" in frame and (frame["parallelism"] == "data " + frame["workers"].astype(str)).all():
        unhelpful.add("parallelism")  # says no more than the number of workers
    names = [column for column in frame.columns if column not in measures | unhelpful]
    return [column for column in names if len(set(map(str, frame[column]))) > 1] or ["protocol"]
