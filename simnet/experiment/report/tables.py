"""Tables of a report: what is in their cells, and what they are sorted by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from simnet.experiment.plot.style import name_of, words_of
from simnet.experiment.report.point import numbers_of_points
from simnet.experiment.sweep.view import SweepView

__all__ = ["Cell", "Table", "failures", "parameters", "points", "table"]

_SHOWN = (
    *("throughput_samples_per_s", "iteration_time_s", "compute_time_s", "exposed_communication_time_s"),
    *("waiting_time_s", "scaling_efficiency", "communication_compute_ratio"),
    *("baseline_speedup", "baseline_efficiency", "bottleneck"),
)
_MOST_ROWS = 3000
_MOST_VALUES = 40
_MOST_FAILURES = 300
_LARGE = 1e4


@dataclass(frozen=True)
class Cell:
    """What stands in a cell.

    Attributes
    ----------
    text : as it is shown
    number : what it is sorted by; None where that is its text
    """

    text: str
    number: float | None = None


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    head : names of the columns
    rows : cells
    note : what is said of it
    sortable : whether it can be sorted
    """

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    sortable: bool = False


def table(head: Iterable[str], rows: Iterable[Sequence[object]], note: str = "", *, sortable: bool = False) -> Table:
    """Return a table of values: numbers with four digits."""
    return Table(tuple(head), tuple(tuple(_cell(value) for value in row) for row in rows), note, sortable)


def parameters(view: SweepView) -> Table:
    """Return which parameters vary over which values."""
    return table(["parameter", "number of values", "values"], [_values(view, name) for name in view.parameters])


def _values(view: SweepView, name: str) -> tuple[str, int, str]:
    values = list(dict.fromkeys(view.shown[name].dropna()))
    shown = [_text(value) for value in values[:_MOST_VALUES]]
    return name, len(values), ", ".join(shown) + (", ..." if len(values) > _MOST_VALUES else "")


def points(view: SweepView) -> Table:
    """Return one row a point that has succeeded; of several seeds one row of means."""
    frame = view.frame
    workers = ["workers"] if view.workers == "workers" else []
    names = [*dict.fromkeys([*view.parameters, *workers, *(name for name in _SHOWN if name in frame)])]
    is_mean = "seeds" in frame
    numbers = numbers_of_points(view)[view.rows["status"] == "ok"].tolist()
    head = ["seeds" if is_mean else "point", *(name_of(name) for name in names)]
    rows: list[tuple[Cell, ...]] = []
    for place, row in enumerate(frame.head(_MOST_ROWS).to_dict(orient="records")):
        first = _cell(row["seeds"] if is_mean else numbers[place])
        rows.append((first, *(_with_interval(row, name) for name in names)))
    note = "" if len(frame) <= _MOST_ROWS else f"The first {_MOST_ROWS} of {len(frame)} rows; simnet table has all."
    if is_mean:
        note = f"Means over seeds, with the half-width of their 95 % confidence intervals. {note}".strip()
    return Table(tuple(head), tuple(rows), note, sortable=True)


def failures(view: SweepView) -> Table:
    """Return one row a point that has failed, with its error."""
    failed = view.failed
    numbers = numbers_of_points(view)
    names = [name for name in view.about.get("parameters", view.parameters) if name in failed]
    shown = failed.head(_MOST_FAILURES)
    rows = [
        [number, *(row[name] for name in names), row["error"]]
        for number, row in zip(numbers[shown.index].tolist(), shown.to_dict(orient="records"), strict=True)
    ]
    more = len(failed) - _MOST_FAILURES
    note = f"and {more} more; simnet table has all" if more > 0 else ""
    return table(["point", *map(words_of, names), "error"], rows, note)


def _with_interval(row: Mapping[Any, Any], name: str) -> Cell:
    cell = _cell(row[name])
    half = row.get(f"{name}_ci95")
    if not isinstance(half, float) or pd.isna(half) or half == 0:
        return cell
    return Cell(f"{cell.text} ± {f'{half:.2g}' if half < 100 else f'{half:,.0f}'}", cell.number)


def _cell(value: object) -> Cell:
    if isinstance(value, str):
        return Cell(value)
    if value is None or pd.isna(value):  # type: ignore[call-overload]
        return Cell("–")
    return Cell(_text(value), float(value))  # type: ignore[arg-type]


def _text(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if _LARGE <= abs(value) < math.inf else f"{value:.4g}"
