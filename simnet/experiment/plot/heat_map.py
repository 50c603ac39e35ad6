"""A number over two parameters, as a map."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from simnet.experiment.plot.style import label_of, name_of

__all__ = ["heat_map"]

_MOST_ACROSS, _MOST_UP = 14, 20
_MOST_LETTERS = 8
_DECADE = 10.0
_COLOURS = "cividis"  # told apart with every common kind of colour blindness, and in grey


def heat_map(frame: pd.DataFrame, x: str, y: str, value: str, *, title: str = "") -> Figure:
    """Return a map of a number over two columns, with the numbers in it where there is room.

    Parameters
    ----------
    frame : DataFrame
        One row for each pair of values; a pair that has none is hatched.
    x, y : str
        Columns; their values stand side by side in the order of the frame, those of y from below.
    value : str
        Column of the number. Where it spans a decade, colours go by its logarithm.
    title : str
    """
    across, up = (list(dict.fromkeys(frame[name])) for name in (x, y))
    numbers = np.full((len(up), len(across)), np.nan)
    for row, column, number in zip(frame[y], frame[x], frame[value], strict=True):
        numbers[up.index(row), across.index(column)] = number
    known = numbers[np.isfinite(numbers)]
    spans = bool(len(known) and known.min() > 0 and known.max() / known.min() >= _DECADE)
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    # A colour is no length: it need not begin at zero, and the bar beside it says where it does.
    norm = LogNorm(low, high) if spans else Normalize(low, high)
    is_written = len(across) <= _MOST_ACROSS and len(up) <= _MOST_UP
    width_in = 0.62 if is_written else 0.3
    figure = Figure(figsize=(2.6 + width_in * max(len(across), 5), 1.5 + 0.36 * max(len(up), 4)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_facecolor("white")
    axes.patch.set_hatch("///")
    axes.patch.set_edgecolor("#bbbbbb")
    image = axes.pcolormesh(np.ma.masked_invalid(numbers), cmap=_COLOURS, norm=norm, edgecolors="white", linewidth=0.5)
    for values, set_ticks in ((across, axes.set_xticks), (up, axes.set_yticks)):
        step = -(-len(values) // 30)
        set_ticks(np.arange(0, len(values), step) + 0.5, labels=[label_of(one) for one in values[::step]])
    if max(len(str(one)) for one in across) > (_MOST_LETTERS if is_written else 3):
        axes.tick_params(axis="x", rotation=45)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if is_written:
        _write(axes, numbers, norm)
    axes.set_xlabel(name_of(x))
    axes.set_ylabel(name_of(y))
    axes.set_title(title, fontsize="medium")
    bar = figure.colorbar(image, label=name_of(value) + (", log scale" if spans else ""))
    if spans:
        bar.ax.yaxis.set_major_formatter(lambda number, _: f"{number:,.10g}")
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
    return figure


def _write(axes: Axes, numbers: NDArray[np.float64], norm: Normalize) -> None:
    """Write each number into its field, dark on light and light on dark."""
    shades = colormaps[_COLOURS]
    for (row, column), number in np.ndenumerate(numbers):
        if not np.isfinite(number):
            axes.text(column + 0.5, row + 0.5, "none", ha="center", va="center", fontsize=7, backgroundcolor="white")
            continue
        red, green, blue, _ = shades(float(norm(number)))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
        axes.text(
            column + 0.5,
            row + 0.5,
            _digits(number),
            ha="center",
            va="center",
            fontsize=8,
            color="black" if dark else "white",
        )


def _digits(number: float) -> str:
    """Return a number with three digits, zeroes at its end too; those of thousands in full."""
    if 1e3 <= abs(number) < 1e6:
        return f"{number:,.0f}"
    return f"{number:.3g}" if number == round(number) else f"{number:#.3g}".rstrip(".")
