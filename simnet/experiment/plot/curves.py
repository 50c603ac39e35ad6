"""Curves of one column over another."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simnet.experiment.plot.style import COLOURS, LINES, MARKERS, label_axes, name_of, unit_of
from simnet.units import format_size

__all__ = ["curves", "panels"]

_MOST_LABELS = 8


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
    axes.legend(title=name_of(by), frameon=False)
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
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            linestyle=LINES[number % len(LINES)],
        )
    if not is_number:
        axes.set_xticks(range(len(values)), labels=[str(value) for value in values])
    elif log_x and min(values) > 0:
        axes.set_xscale("log", base=2)
        # Not so many that their labels run into each other.
        shown = sorted(values)[:: 1 + (len(values) - 1) // _MOST_LABELS]
        write = format_size if unit_of(x) == "bytes" else "{:g}".format
        axes.set_xticks(shown, labels=[write(value) for value in shown])
        axes.minorticks_off()
    if log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.05 * float(frame[y].max()) or 1.0)
    label_axes(axes, name_of(x), name_of(y), title, grid="y")
