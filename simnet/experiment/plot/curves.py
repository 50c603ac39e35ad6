"""Curves of one column over another."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from simnet.experiment.plot.style import COLOURS, LINES, MARKERS, label_axes, name_of, unit_of, words_of
from simnet.experiment.quantities import as_numbers
from simnet.units import format_size

__all__ = ["curves", "draw_curves", "legend_below", "numbers_on_axis", "panel_axes", "panels"]

_MOST_LABELS = 8
_MOST_SIDE_BY_SIDE = 12
_MOST_LETTERS = 70
_MOST_IN_ROW = 4
_FEW_DECADES = 300.0
_LETTER_IN = 0.085
_HANDLE_LETTERS = 7


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

    Returns
    -------
    Figure
        Of matplotlib.
    """
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    draw_curves(axes, frame, x, y, by, title=title, log_x=log_x, log_y=log_y)
    axes.legend(title=None if as_numbers(frame[by]) is not None else name_of(by), frameon=False)
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
    log_y: bool = False,
    line: bool = True,
) -> Figure:
    """Return such curves side by side, for each value of a fourth column, with the same axis.

    Parameters
    ----------
    frame, x, y, by, title, log_x, log_y
        See `curves`.
    panel : str
        Column whose values are written above the panels, in the order of the frame.
    line : bool
        Join the points.

    Returns
    -------
    Figure
        Of matplotlib.
    """
    figure, cells = panel_axes(frame, panel, title)
    for axes, name, group in cells:
        draw_curves(axes, group, x, y, by, title=name, log_x=log_x, log_y=log_y, line=line, whole=frame)
    legend_below(figure)
    return figure


def panel_axes(frame: pd.DataFrame, panel: str, title: str) -> tuple[Figure, Iterator[tuple[Axes, str, pd.DataFrame]]]:
    """Return a figure, and on the way through it the axes, name and rows of each value of a column."""
    groups = list(frame.groupby(panel, sort=False))
    across = len(groups) if len(groups) <= _MOST_IN_ROW else _MOST_IN_ROW - 1
    down = -(-len(groups) // across)
    width_in = 6.6 if len(groups) == 1 else 1.2 + 3.6 * across
    figure = Figure(figsize=(width_in, 0.9 + 3.3 * down), layout="constrained")
    figure.suptitle(title, fontsize="medium")

    def cells() -> Iterator[tuple[Axes, str, pd.DataFrame]]:
        for number, (name, group) in enumerate(groups):
            axes = figure.add_subplot(down, across, number + 1)
            yield axes, _said(frame, panel, name), group
            axes.tick_params(axis="x", labelsize="small")
            if number % across:
                axes.set_ylabel("")
            if number + across < len(groups):
                axes.set_xlabel("")

    return figure, cells()


def _said(frame: pd.DataFrame, column: str, value: object) -> str:
    """Return a value as it is written beside what is drawn: a number with the name of its column before it."""
    return str(value) if as_numbers(frame[column]) is None else f"{words_of(column)} {value}"


def legend_below(figure: Figure) -> None:
    """Write below a figure what its curves are, once for all panels."""
    found: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if len(found) > 1:
        widths_in = [_LETTER_IN * (len(label) + _HANDLE_LETTERS) for label in found]
        width_in = figure.get_figwidth()
        across = len(found) if sum(widths_in) < width_in else max(int(width_in / max(widths_in)), 2)
        figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=across, frameon=False)


def draw_curves(
    axes: Axes,
    frame: pd.DataFrame,
    x: str,
    y: str,
    by: str | None,
    *,
    title: str = "",
    log_x: bool = True,
    log_y: bool = False,
    line: bool = True,
    whole: pd.DataFrame | None = None,
) -> None:
    """Draw curves, with 95 % intervals where the frame has them (``…_ci95``), and label their axes; see `curves`.

    Where the frame is one panel of a whole, its axis goes as far as that of the others, and a value of `by` looks the
    same in all of them.
    """
    whole = frame if whole is None else whole
    values = list(dict.fromkeys(frame[x]))
    numbers = numbers_on_axis(frame[x])
    if numbers is not None:
        place = dict(zip(frame[x], numbers, strict=True))
    else:
        place = {value: number for number, value in enumerate(values)}
    groups = frame.groupby(by, sort=False) if by is not None else [("", frame)]
    known = list(whole[by].unique()) if by is not None else [""]
    for name, group in groups:
        number = known.index(name)
        points = group.assign(place=group[x].map(place)).sort_values("place")
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(
            points["place"],
            points[y],
            label=_said(whole, by, name) if by is not None else str(name),
            color=colour,
            marker=MARKERS[number % len(MARKERS)],
            markersize=6 if len(points) <= 2 * _MOST_LABELS else 4,
            linestyle=LINES[number % len(LINES)] if line else "none",
        )
        interval = f"{y}_ci95"
        if interval in points and points[interval].any():
            axes.errorbar(points["place"], points[y], yerr=points[interval], fmt="none", capsize=3, ecolor=colour)
    places = sorted(place.values())
    if numbers is None:
        axes.set_xticks(range(len(values)), labels=[str(value) for value in values])
        if max(len(str(value)) for value in values) * len(values) > _MOST_LETTERS:
            axes.tick_params(axis="x", rotation=45)
    elif log_x and min(places) > 0:
        axes.set_xscale("log", base=2)
        shown = _shown(places)
        texts = {number: str(value) for value, number in place.items()}
        write = format_size if unit_of(x) == "bytes" else "{:g}".format
        is_number = pd.api.types.is_numeric_dtype(frame[x])
        axes.set_xticks(shown, labels=[write(number) if is_number else texts[number] for number in shown])
        axes.minorticks_off()
    if log_y:
        axes.set_yscale("log")
        low, high = _limits(whole, y, log=True)
        # With few decades, numbers between them as well.
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < _FEW_DECADES else (1.0,)))
        axes.yaxis.set_major_formatter(lambda number, _: f"{number:,.10g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(*_limits(whole, y, log=log_y))
    label_axes(axes, name_of(x), name_of(y) + (", log scale" if log_y else ""), title, grid="y")


def numbers_on_axis(values: pd.Series) -> pd.Series | None:
    """Return where values stand on an axis of numbers; None where they stand side by side, as texts do if few."""
    if pd.api.types.is_numeric_dtype(values) or values.nunique() > _MOST_SIDE_BY_SIDE:
        return as_numbers(values)
    return None


def _limits(frame: pd.DataFrame, y: str, *, log: bool) -> tuple[float, float]:
    """Return the ends of an axis: from zero, which a logarithmic one does not have."""
    values, interval = frame[y], frame.get(f"{y}_ci95")
    highest = float((values if interval is None else values + interval.fillna(0.0)).max())
    if not log:
        return 0.0, 1.05 * highest or 1.0
    # At least a decade, so that there are two numbers beside it.
    return min(0.85 * float(values[values > 0].min()), 0.1 * highest), 1.2 * highest


def _shown(values: list[float]) -> list[float]:
    """Return what to write beside a logarithmic axis: not so many numbers that they run into each other."""
    values = list(dict.fromkeys(values))
    powers = [value for value in values if math.log2(value).is_integer()]
    if len(values) > _MOST_LABELS and len(powers) > 2:
        values = powers
    return values[:: 1 + (len(values) - 1) // _MOST_LABELS]
