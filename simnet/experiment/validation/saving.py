"""The tables and the picture of a validation, as files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from simnet.experiment.plot import save_figure
from simnet.experiment.plot.style import label_axes
from simnet.experiment.validation.validate import Validation
from simnet.writing import write_whole

__all__ = ["save_validation", "scatter"]


def save_validation(validation: Validation, folder: Path) -> Iterator[Path]:
    """Write ``cases.csv``, ``errors.csv``, ``left_out.csv`` and ``predicted_over_measured.svg``; yield each.

    Raises
    ------
    InputError
        Files that cannot be written.
    """
    tables = {"cases": validation.table, "errors": validation.scores, "left_out": validation.left_out}
    for name, table in tables.items():
        path = folder / f"{name}.csv"
        with write_whole(path) as file:
            table.to_csv(file, index=False, lineterminator="\n", float_format="%.6g")
        yield path
    if len(validation.table):
        path = folder / "predicted_over_measured.svg"
        save_figure(scatter(validation.table), path)
        yield path


def scatter(table: pd.DataFrame) -> Figure:
    """Draw predicted over measured: of training as efficiency, predicted against measured; of the rest as their ratio.

    Parameters
    ----------
    table : DataFrame
        As of `Validation.table`.
    """
    training = table[table.linear.notna()]
    others = table[table.linear.isna()]
    panels = int(len(training) > 0) + int(len(others) > 0)
    figure = Figure(figsize=(5.4 * panels, 4.6), layout="constrained")
    axes = iter(figure.subplots(1, panels, squeeze=False)[0])
    if len(training):
        one = next(axes)
        for name, rows in training.groupby("data_set"):
            one.scatter(rows.measured / rows.linear, rows.predicted / rows.linear, s=9, alpha=0.7, label=str(name))
        one.plot([0, 1.05], [0, 1.05], color="black", linewidth=0.8)
        label_axes(one, "scaling efficiency, measured", "scaling efficiency, predicted", "training", grid="y")
        one.legend(fontsize=8, loc="upper left", frameon=False)
    if len(others):
        one = next(axes)
        for name, rows in others.groupby("data_set"):
            one.scatter(rows.size_bytes.fillna(1).clip(lower=1), 1.0 + rows.error, s=9, alpha=0.7, label=str(name))
        one.axhline(1.0, color="black", linewidth=0.8)
        one.set(xscale="log", yscale="log", ylim=(0.4, 2.5), yticks=(0.5, 0.75, 1.0, 1.5, 2.0))
        one.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        one.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        one.yaxis.set_minor_formatter(NullFormatter())
        label_axes(one, "size [bytes]", "predicted / measured", "collectives and single messages", grid="y")
        one.legend(fontsize=8, loc="lower right", frameon=False)
    return figure
