"""A sweep as pictures and reports want it: what varies, what is fixed, what has succeeded, what has failed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simnet.errors import InputError, Problem
from simnet.experiment.columns import COLUMNS
from simnet.experiment.sweep.tables import load_sweep, means_of, sweep_about
from simnet.scenario.sweep.load import SEED

__all__ = ["AS_GIVEN", "SweepView", "view_frame", "view_sweep"]

AS_GIVEN = "as given"
"""The value of a parameter that a point leaves as its scenario has it."""

_FEW = 8
_WORKERS = ("training.workers", "workers")


@dataclass(frozen=True, eq=False)
class SweepView:
    """A sweep, sorted out.

    Attributes
    ----------
    name : of the sweep
    rows : one row a point and job, as the sweep has them, failed ones too
    shown : the same, with values of parameters as they are shown
    frame : those that have succeeded; with several seeds their means, and ``…_ci95`` beside each number
    parameters : those with several values, without the seed; several jobs are a parameter as well
    fixed : those with one value
    seeds : how many there are of a point at most
    about : what the folder says of it
    """

    name: str
    rows: pd.DataFrame
    shown: pd.DataFrame
    frame: pd.DataFrame
    parameters: tuple[str, ...]
    fixed: Mapping[str, object]
    seeds: int
    about: Mapping[str, Any]

    @property
    def good(self) -> pd.DataFrame:
        """The points that have succeeded, each seed by itself."""
        return self.shown[self.shown["status"] == "ok"]

    @property
    def failed(self) -> pd.DataFrame:
        """The points that have failed."""
        return self.shown[self.shown["status"] == "failed"]

    @property
    def workers(self) -> str | None:
        """The column of the number of workers, where that varies."""
        known = (name for name in _WORKERS if name in self.frame)
        numbers = (name for name in known if pd.api.types.is_numeric_dtype(self.frame[name]))
        return next((name for name in numbers if len(self.values(name)) > 1), None)

    @property
    def drawn(self) -> list[str]:
        """Parameters with so many values that hardly any comes twice: they are drawn at random, and make no curves."""
        rows = len(self.frame)
        if rows <= _FEW or len(self.parameters) < 2:
            return []
        return [name for name in self.parameters if len(self.values(name)) > rows / 2]

    def values(self, parameter: str) -> list[Any]:
        """Return the values of a column, in the order of the sweep."""
        return list(dict.fromkeys(self.frame[parameter]))


def view_sweep(folder: str | Path) -> SweepView:
    """Return the sweep in a folder.

    Raises
    ------
    InputError
        It holds no sweep, or none of its points has succeeded.
    """
    about = sweep_about(folder)
    return view_frame(load_sweep(folder), about["parameters"], about, source=str(folder))


def view_frame(
    frame: pd.DataFrame,
    parameters: Sequence[str] | None = None,
    about: Mapping[str, Any] | None = None,
    *,
    source: str = "",
) -> SweepView:
    """Return the sweep in a table.

    Parameters
    ----------
    frame : DataFrame
        Of `simnet.sweep` or `simnet.load_sweep`.
    parameters : sequence of str, optional
        By default the columns before those of the summary.
    about : mapping, optional
        What is known of it besides.
    source : str
        Where it is from, for messages.

    Raises
    ------
    InputError
        None of its points has succeeded.
    """
    names = list(_leading(frame)) if parameters is None else list(parameters)
    rows = frame if "status" in frame else frame.assign(status="ok", error="")
    shown = _shown(rows, [name for name in names if name != SEED])
    good = shown[shown["status"] == "ok"]
    if good.empty:
        first = f", the first failed with: {rows['error'].iloc[0].splitlines()[0]}" if len(rows) else ""
        raise InputError(Problem(f"no point of the sweep has succeeded{first}", source=source))
    varied = [name for name in names if name != SEED and len(set(shown[name])) > 1]
    by = [*varied, "job"]
    if len(set(rows["job"].dropna())) > 1:
        varied.append("job")
    fixed = {name: shown[name].iloc[0] for name in names if name not in (*varied, SEED)}
    seeds = 1
    points = good
    if SEED in names:
        means = means_of(good, by[:-1])
        seeds = int(means["seeds"].max())
        text = [column.name for column in COLUMNS["summary"] if column.dtype == "str" and column.name in good]
        points = means.merge(good.drop_duplicates(by)[list(dict.fromkeys([*by, *text]))], on=by, how="left")
    plain = _whole(points.reset_index(drop=True), varied)
    name = str((about or {}).get("name", "sweep"))
    return SweepView(name, rows, shown, plain, tuple(varied), fixed, seeds, about or {})


def _leading(frame: pd.DataFrame) -> Iterator[str]:
    for name in frame.columns:
        if name in ("status", "scenario"):
            return
        yield str(name)


def _whole(frame: pd.DataFrame, parameters: Sequence[str]) -> pd.DataFrame:
    """Return points that have succeeded with whole numbers whole: a table with failed points has none."""
    for column in COLUMNS["summary"]:
        if column.dtype == "int" and column.name in frame and column.name not in parameters:
            numbers = frame[column.name]
            if (numbers == numbers.round()).all():
                frame[column.name] = numbers.astype("int64")
    return frame


def _shown(rows: pd.DataFrame, parameters: Sequence[str]) -> pd.DataFrame:
    """Return rows with values of parameters as they are shown: mappings in short, and a word for what is as given."""
    frame = rows.copy()
    for name in parameters:
        values = frame[name]
        if pd.api.types.is_float_dtype(values) and values.isna().any():
            known = [AS_GIVEN if np.isnan(value) else f"{value:g}" for value in values]
            frame[name] = pd.Series(known, index=frame.index, dtype="object")
        elif pd.api.types.is_float_dtype(values) and (values == values.round()).all() and values.abs().max() < 2**53:
            frame[name] = values.astype("int64")
        elif not pd.api.types.is_numeric_dtype(values):
            frame[name] = values.map(_in_short)
    return frame


def _in_short(value: object) -> object:
    """Return a value of a table in few words: ``parameter_server, servers 4`` for a mapping."""
    if value is None or value == "":
        return AS_GIVEN
    if not isinstance(value, str) or value[:1] not in "{[":
        return value
    try:
        return _words(json.loads(value))
    except ValueError:
        return value


def _words(value: object) -> str:
    if isinstance(value, dict):
        joined = ((key, ", " if isinstance(inner, dict) else " ", _words(inner)) for key, inner in value.items())
        return ", ".join(f"{key}{sign}{words}" for key, sign, words in joined)
    return ", ".join(map(_words, value)) if isinstance(value, list) else str(value)
