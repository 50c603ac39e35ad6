"""Pictures of tables: readable in print and to colour-blind readers, axes with units."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simnet.experiment.columns import COLUMNS
from simnet.units import format_size

__all__ = ["bars", "breakdown", "curves", "panels", "save_figure"]

# M. Okabe and K. Ito, Color Universal Design (2008): told apart with every common kind of colour blindness.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES = ("-", "--", "-.", ":")
_MOST_LABELS = 8
_HATCHES = ("", "//", "\\\\", "..", "xx", "--")

_PARTS = ("compute_time_s", "exposed_communication_time_s", "waiting_time_s")
_RARE_PARTS = ("input_time_s", "checkpoint_time_s", "recovery_time_s")


def curves(
    frame: pd.DataFrame,
    x: str = "workers",
    y: str = "scaling_efficiency",
    by: str = "protocol",
    *,
    title: str = "",
    log_x: bool = True,
    log_y: bool = False,
) -> Figure:
    """Return curves of one column over another, one for each value of a third.

    Parameters
    ----------
    frame : DataFrame
        As of `simnet.sweep`.
    x, y, by : str
        Columns. An x of text (``25 MiB``) has its values side by side, in the order of the frame.
    title : str
    log_x : bool
        Double the value with each step of the axis, where x is a number.
    log_y : bool
        Have ten times the value with each step of the other axis.
    """
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    _draw_curves(axes, frame, x, y, by, title=title, log_x=log_x, log_y=log_y)
    axes.legend(title=_name(by), frameon=False)
    return figure


def panels(
    frame: pd.DataFrame,
    x: str = "workers",
    y: str = "scaling_efficiency",
    by: str = "protocol",
    panel: str = "architecture",
    *,
    title: str = "",
    log_x: bool = True,
) -> Figure:
    """Return such curves side by side, for each value of a fourth column, with the same axis.

    Parameters
    ----------
    frame, x, y, by, title, log_x
        See `curves`.
    panel : str
        Column whose values are written above the panels, in the order of the frame.
    """
    groups = list(frame.groupby(panel, sort=False))
    figure = Figure(figsize=(1.2 + 3.6 * len(groups), 4.2), layout="constrained")
    for number, (name, group) in enumerate(groups, start=1):
        axes = figure.add_subplot(1, len(groups), number)
        _draw_curves(axes, group, x, y, by, title=str(name), log_x=log_x)
        axes.set_ylim(0, 1.05 * float(frame[y].max()) or 1.0)
        axes.tick_params(axis="x", labelsize="small")
        if number > 1:
            axes.set_ylabel("")
    lines = figure.axes[0].get_lines()
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), frameon=False)
    figure.suptitle(title)
    return figure


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
    """
    figure, axes = _lying_bars(frame, by)
    drawn = axes.barh(range(len(frame)), frame[y], color=_COLOURS[0], height=0.7)
    axes.bar_label(drawn, labels=[f"{value:.4g}" for value in frame[y]], padding=3)
    axes.set_xlim(0, 1.15 * float(frame[y].max()) or 1.0)
    _label(axes, _name(y), "", title, grid="x")
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
    """
    figure, axes = _lying_bars(frame, by)
    left = pd.Series(0.0, index=frame.index)
    parts = [*_PARTS, *(part for part in _RARE_PARTS if part in frame and frame[part].any())]
    for number, part in enumerate(parts):
        axes.barh(
            range(len(frame)),
            frame[part],
            left=left,
            label=_words(part),
            color=_COLOURS[number],
            hatch=_HATCHES[number],
            edgecolor="white",
            linewidth=0,
            height=0.7,
        )
        left = left + frame[part]
    axes.set_xlim(0, 1.05 * float(left.max()) or 1.0)
    _label(axes, _name("iteration_time_s"), "", title, grid="x")
    figure.legend(loc="outside lower center", ncols=len(parts), frameon=False)
    return figure


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as SVG, PNG or PDF, by the suffix of the path; the same figure gives the same bytes."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "simnet", "svg.fonttype": "path"}):
        figure.savefig(path, dpi=150, metadata=metadata)


def _draw_curves(
    axes: Axes,
    frame: pd.DataFrame,
    x: str,
    y: str,
    by: str,
    *,
    title: str = "",
    log_x: bool = True,
    log_y: bool = False,
) -> None:
    """Draw curves and label their axes; see `curves`."""
    values = list(dict.fromkeys(frame[x]))
    is_number = pd.api.types.is_numeric_dtype(frame[x])
    place = {value: value if is_number else number for number, value in enumerate(values)}
    for number, (name, group) in enumerate(frame.groupby(by, sort=False)):
        points = group.assign(place=group[x].map(place)).sort_values("place")
        axes.plot(
            points["place"],
            points[y],
            label=str(name),
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            linestyle=_LINES[number % len(_LINES)],
        )
    if not is_number:
        axes.set_xticks(range(len(values)), labels=[str(value) for value in values])
    elif log_x and min(values) > 0:
        axes.set_xscale("log", base=2)
        # Not so many that their labels run into each other.
        shown = sorted(values)[:: 1 + (len(values) - 1) // _MOST_LABELS]
        write = format_size if _unit(x) == "bytes" else "{:g}".format
        axes.set_xticks(shown, labels=[write(value) for value in shown])
        axes.minorticks_off()
    if log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.05 * float(frame[y].max()) or 1.0)
    _label(axes, _name(x), _name(y), title, grid="y")


def _lying_bars(frame: pd.DataFrame, by: Iterable[str]) -> tuple[Figure, Axes]:
    """Return axes for one lying bar a row, the first on top; lying, because their names may be long."""
    figure = Figure(figsize=(6.4, 1.6 + 0.4 * len(frame)), layout="constrained")
    axes = figure.add_subplot()
    columns = list(by) or _telling_columns(frame)
    names = [", ".join(map(str, row)) for row in frame[columns].itertuples(index=False)]
    axes.set_yticks(range(len(frame)), labels=names)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    return figure, axes


def _telling_columns(frame: pd.DataFrame) -> list[str]:
    """Return the parameters, or what summaries call the case, in which rows differ; the protocol where none do."""
    measures = {column.name for column in COLUMNS["summary"] if column.dtype != "str"}
    # Keys of a scenario have dots or are no columns of a summary; those of a summary are of use where they are names.
    unhelpful = {"scenario", "bottleneck"}
    if "parallelism" in frame and (frame["parallelism"] == "data " + frame["workers"].astype(str)).all():
        unhelpful.add("parallelism")  # says no more than the number of workers
    names = [column for column in frame.columns if column not in measures | unhelpful]
    return [column for column in names if len(set(map(str, frame[column]))) > 1] or ["protocol"]


def _label(axes: Axes, x: str, y: str, title: str, *, grid: Literal["x", "y"]) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    axes.grid(axis=grid, alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _name(column: str) -> str:
    """Return what an axis calls a column: words, and the unit behind them."""
    unit = _unit(column)
    # Sizes have theirs beside each number.
    return "size" if column == "size_bytes" else _words(column) + (f" [{unit}]" if unit else "")


def _unit(column: str) -> str:
    tables = (*COLUMNS["summary"], *COLUMNS["collective_sizes"])
    return next((known.unit for known in tables if known.name == column), "")


def _words(column: str) -> str:
    """Return a column's name, or the last key of a parameter's path, in words and without its unit."""
    words = column.rpartition(".")[2]
    return words.removesuffix("_s").removesuffix("_us").removesuffix("_samples_per").replace("_", " ")
