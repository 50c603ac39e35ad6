"""Pictures of tables: readable in print and to colour-blind readers, axes with units."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simnet.experiment.columns import COLUMNS

__all__ = ["breakdown", "curves", "save_figure"]

# M. Okabe and K. Ito, Color Universal Design (2008): told apart with every common kind of colour blindness.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES = ("-", "--", "-.", ":")
_HATCHES = ("", "//", "..", "xx")

_PARTS = ("compute_time_s", "exposed_communication_time_s", "waiting_time_s")


def curves(
    frame: pd.DataFrame,
    x: str = "workers",
    y: str = "scaling_efficiency",
    by: str = "protocol",
    *,
    title: str = "",
    log_x: bool = True,
) -> Figure:
    """Return curves of one column over another, one for each value of a third.

    Parameters
    ----------
    frame : DataFrame
        As of `simnet.sweep`.
    x, y, by : str
        Columns.
    title : str
    log_x : bool
        Double the value with each step of the axis.
    """
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for number, (name, group) in enumerate(frame.groupby(by, sort=False)):
        points = group.sort_values(x)
        axes.plot(
            points[x],
            points[y],
            label=str(name),
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            linestyle=_LINES[number % len(_LINES)],
        )
    if log_x:
        axes.set_xscale("log", base=2)
        ticks = sorted(frame[x].unique())
        axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    axes.set_ylim(bottom=0)
    _label(axes, x, y, title)
    axes.legend(title=_name(by), frameon=False)
    return figure


def breakdown(frame: pd.DataFrame, by: Iterable[str] = ("protocol",), *, title: str = "") -> Figure:
    """Return where an iteration's time goes: stacked bars of computing, exposed communication and waiting.

    Parameters
    ----------
    frame : DataFrame
        As of `simnet.sweep`, or summaries of results.
    by : iterable of str
        Columns that name the bars.
    title : str
    """
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    names = [", ".join(map(str, row)) for row in frame[list(by)].itertuples(index=False)]
    bottom = pd.Series(0.0, index=frame.index)
    for number, part in enumerate(_PARTS):
        axes.bar(
            range(len(frame)),
            frame[part],
            bottom=bottom,
            label=_name(part),
            color=_COLOURS[number],
            hatch=_HATCHES[number],
            edgecolor="white",
            width=0.7,
        )
        bottom = bottom + frame[part]
    axes.set_xticks(range(len(frame)), labels=names, rotation=30 if len(frame) > 5 else 0)
    _label(axes, ", ".join(map(_name, by)), "iteration_time_s", title)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as SVG, PNG or PDF, by the suffix of the path; the same figure gives the same bytes."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "simnet", "svg.fonttype": "path"}):
        figure.savefig(path, dpi=150, metadata=metadata)


def _label(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(_name(x))
    axes.set_ylabel(_name(y))
    axes.set_title(title)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _name(column: str) -> str:
    """Return what an axis calls a column: words, and the unit behind them."""
    known = next((c for c in COLUMNS["summary"] if c.name == column), None)
    words = column.rpartition(".")[2]
    if known is None:
        return words.replace("_", " ")
    unit = known.unit
    words = words.removesuffix("_s").removesuffix("_samples_per") if unit in ("s", "samples/s") else words
    return words.replace("_", " ") + (f" [{unit}]" if unit else "")
