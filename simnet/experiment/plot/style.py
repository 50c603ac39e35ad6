"""What all pictures have in common: colours, marks, names of columns with their units, files."""

from __future__ import annotations

import re
from html import escape
from io import BytesIO, StringIO
from pathlib import Path
from textwrap import fill
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simnet.experiment.columns import COLUMNS
from simnet.writing import write_whole

__all__ = [
    "COLOURS",
    "HATCHES",
    "LINES",
    "MARKERS",
    "inline_svg",
    "label_axes",
    "label_of",
    "name_of",
    "save_figure",
    "unit_of",
    "words_of",
]

# M. Okabe and K. Ito, Color Universal Design (2008): told apart with every common kind of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")
_LABEL_LETTERS = 32
HATCHES = ("", "//", "\\\\", "..", "xx", "--")


def save_figure(figure: Figure, path: str | Path, form: str | None = None) -> None:
    """Write a figure as SVG, PNG or PDF, by the suffix of the path; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Figure
    path : str or Path
    form : str, optional
        ``svg``, ``png`` or ``pdf``, where the path does not say it.

    Raises
    ------
    InputError, OutputError
        It cannot be written.
    """
    path = Path(path)
    form = form or path.suffix[1:].lower()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "simnet", "svg.fonttype": "path"}):
        # Of a full disk matplotlib would say something else.
        figure.savefig(drawn := BytesIO(), format=form, dpi=150, metadata=metadata)
    with write_whole(path) as made:
        made.write_bytes(drawn.getvalue())


def inline_svg(figure: Figure, name: str, words: str) -> str:
    """Return a figure as an element of an HTML page, which asks no network for anything.

    Parameters
    ----------
    figure : Figure
    name : str
        Different for each figure of a page: names of its parts begin with it.
    words : str
        What is seen on it, for those who do not see it.
    """
    import matplotlib as mpl

    text = StringIO()
    with mpl.rc_context({"svg.hashsalt": "simnet", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    drawing = text.getvalue()
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing[drawing.index("<svg") :], flags=re.DOTALL)
    drawing = re.sub(r' xmlns(:xlink)?="[^"]*"', "", drawing).replace("xlink:href", "href")
    drawing = re.sub(r' id="([^"]+)"', rf' id="{name}-\1"', drawing)
    drawing = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", drawing)
    drawing = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', drawing)
    # It is as wide as the page lets it be, and no wider than it was drawn.
    width = re.search(r'width="([\d.]+)pt"', drawing)
    assert width is not None
    size = f'style="width:100%;max-width:{width[1]}pt;height:auto" role="img" aria-label="{escape(words)}"'
    return re.sub(r' width="[\d.]+pt"', f" {size}", re.sub(r' height="[\d.]+pt"', "", drawing, count=1), count=1)


def label_axes(axes: Axes, x: str, y: str, title: str, *, grid: Literal["x", "y"]) -> None:
    """Write names beside the axes and lines behind what is drawn."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    axes.grid(axis=grid, alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def label_of(value: object) -> str:
    """Return a value as a label, in lines that leave room for the picture: those of scenarios may be long."""
    return fill(str(value), _LABEL_LETTERS)


def name_of(column: str) -> str:
    """Return what an axis calls a column: words, and the unit behind them."""
    unit = unit_of(column)
    # Sizes have theirs beside each number.
    return "size" if column == "size_bytes" else words_of(column) + (f" [{unit}]" if unit else "")


def unit_of(column: str) -> str:
    """Return the unit of a column; empty where it has none, or is not known."""
    tables = (*COLUMNS["summary"], *COLUMNS["collective_sizes"])
    return next((known.unit for known in tables if known.name == column), "")


def words_of(column: str) -> str:
    """Return a column's name, or the last key of a parameter's path, in words and without its unit."""
    words = column.rpartition(".")[2]
    return words.removesuffix("_s").removesuffix("_us").removesuffix("_samples_per").replace("_", " ")
