"""The points of a sweep as one table: parameters, then the summary of each; on disk and in memory."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simnet.errors import InputError, Problem
from simnet.experiment.columns import COLUMNS, DTYPES
from simnet.experiment.parquet import read_parquet, write_parquet
from simnet.experiment.sweep.point import Outcome, keys_of
from simnet.experiment.sweep.store import Store
from simnet.scenario.sweep.load import SEED, Sweep
from simnet.writing import write_whole

__all__ = ["KEYS", "load_sweep", "means_of", "merge_sweeps", "shown", "table_of", "write_sweep"]

KEYS = ["status", "error"]
"""Columns that say what came of a point."""

_ABOUT, _TABLE, _MEANS = "sweep.json", "sweep", "means"
_CONFIDENCE_95 = (
    *(math.nan, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Two-sided 95 % quantile of Student's t by degrees of freedom, up to 30."""

_NORMAL_95 = 1.959963984540054
"""That of the normal distribution, which it comes near to."""


def shown(value: object) -> object:
    """Return a value that can be compared and grouped by."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (Mapping, list, tuple)) else value


def table_of(sweep: Sweep, outcomes: Mapping[str, Outcome]) -> pd.DataFrame:
    """Return one row a point and job, in the order of the sweep.

    Parameters
    ----------
    sweep : Sweep
    outcomes : mapping of str to Outcome
        By key; points that have none are left out.

    Returns
    -------
    DataFrame
        The parameters under their paths, ``status`` and ``error``, then the columns of the summary, empty where a point
        has failed; a parameter that has the name of one of these stands in its place.
    """
    records: list[dict[str, object]] = []
    for key, point in zip(keys_of(sweep), sweep.points, strict=True):
        outcome = outcomes.get(key)
        if outcome is None:
            continue
        given = {path: shown(point.values.get(path)) for path in sweep.parameters}
        about = {"status": "failed" if outcome.error else "ok", "error": outcome.error}
        records += [dict(row) | about | given for row in outcome.rows or ({},)]
    names = [column for column in COLUMNS["summary"] if column.name not in sweep.parameters]
    columns = [*sweep.parameters, *KEYS, *(column.name for column in names)]
    frame = pd.DataFrame(records, columns=columns)
    for column in names:
        # A point that failed has no numbers, and whole numbers have no sign for that.
        if not frame[column.name].isna().any():
            frame[column.name] = frame[column.name].astype(DTYPES[column.dtype])
        elif column.dtype != "str":
            frame[column.name] = frame[column.name].astype("float64")
    for path in sweep.parameters:
        kinds = {type(value) for value in frame[path]}
        if len(kinds) > 1 and not kinds <= {int, float}:
            frame[path] = frame[path].map(lambda value: "" if pd.isna(value) else str(value))
    return _with_baseline(frame, sweep) if sweep.baseline else frame


def _with_baseline(frame: pd.DataFrame, sweep: Sweep) -> pd.DataFrame:
    """Add speed-up and efficiency against the point that has the values of the baseline, and all others as each."""
    others = [path for path in sweep.parameters if path not in sweep.baseline]
    is_base = pd.Series(True, index=frame.index)
    for path, value in sweep.baseline.items():
        wanted = shown(value)
        # Where some points have no value, whole numbers have become floating-point ones.
        is_base &= frame[path].map(lambda known, wanted=wanted: known == wanted or str(known) == str(wanted))
    by = [*others, "job"]
    base = frame.loc[is_base].drop_duplicates(by).set_index(by)
    keys = pd.MultiIndex.from_frame(frame[by]) if len(by) > 1 else pd.Index(frame[by[0]])
    throughput = base["throughput_samples_per_s"].reindex(keys).to_numpy(dtype=float)
    workers = base["workers"].reindex(keys).to_numpy(dtype=float)
    speedup = frame["throughput_samples_per_s"].to_numpy(dtype=float) / throughput
    efficiency = speedup * workers / frame["workers"].to_numpy(dtype=float)
    return frame.assign(baseline_speedup=speedup, baseline_efficiency=efficiency)


def means_of(frame: pd.DataFrame, parameters: Sequence[str]) -> pd.DataFrame:
    """Return the mean over seeds of each number, with the half-width of its confidence interval of 95 %.

    Parameters
    ----------
    frame : DataFrame
        As of `table_of`.
    parameters : sequence of str

    Returns
    -------
    DataFrame
        The parameters but the seed, ``seeds``, and for each column of numbers itself and ``…_ci95``: t s / sqrt(n),
        with Student's t of n - 1 degrees of freedom.
    """
    by = [*(path for path in parameters if path != SEED), "job"]
    good = frame[frame["status"] == "ok"]
    numbers = [column.name for column in COLUMNS["summary"] if column.dtype != "str" and column.name in good]
    groups = good.groupby(by, sort=False, dropna=False)
    count = groups.size()
    t = np.array([_student_95(int(seeds) - 1) for seeds in count])
    means, deviations = groups[numbers].mean(), groups[numbers].std()
    columns: dict[str, Any] = {"seeds": count}
    for name in numbers:
        columns[name] = means[name]
        columns[f"{name}_ci95"] = deviations[name] * t / np.sqrt(count)
    return pd.DataFrame(columns).reset_index()


def _student_95(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's t; beyond the table by its expansion, to within 1e-5."""
    if freedom < len(_CONFIDENCE_95):
        return _CONFIDENCE_95[freedom]
    z = _NORMAL_95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def write_sweep(sweep: Sweep, store: Store) -> pd.DataFrame:
    """Write the table of all points that a store has, as parquet and CSV, and return it.

    Raises
    ------
    InputError
        The folder cannot be written.
    """
    outcomes = store.found(keys_of(sweep))
    frame = table_of(sweep, outcomes)
    _write(frame, store.folder, _TABLE)
    if sweep.is_repeated:
        _write(means_of(frame, sweep.parameters), store.folder, _MEANS)
    about = {
        "name": sweep.name,
        "parameters": list(sweep.parameters),
        "points": len(sweep.points),
        "finished": len(outcomes),
        "failed": sum(bool(outcome.error) for outcome in outcomes.values()),
        "baseline": dict(sweep.baseline),
        "keep": list(sweep.keep),
        **_given(sweep, store.folder),
    }
    with write_whole(store.folder / _ABOUT) as file:
        file.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return frame


def _given(sweep: Sweep, folder: Path) -> dict[str, Any]:
    """Return what any of the points can be run again from: the scenario, and what is the same at every point."""
    values = sweep.points[0].values
    common = {".".join(one.path): one.document.data for one in sweep.points[0].overrides}
    place = os.path.relpath(sweep.folder.resolve(), folder.resolve())
    return {
        "scenario": sweep.scenario.data,
        "scenario_name": sweep.scenario_name,
        "scenario_folder": Path(place).as_posix(),
        "set": {path: value for path, value in common.items() if path not in values},
    }


def _write(frame: pd.DataFrame, folder: Path, name: str) -> None:
    with write_whole(folder / f"{name}.parquet") as file:
        write_parquet(frame, file)
    with write_whole(folder / f"{name}.csv") as file:
        frame.to_csv(file, index=False, lineterminator="\n", na_rep="nan")


def load_sweep(folder: str | Path, *, index: bool = False) -> pd.DataFrame:
    """Read the table of a sweep.

    Parameters
    ----------
    folder : str or Path
        That ``simnet sweep`` wrote.
    index : bool
        Make the parameters the index.

    Returns
    -------
    DataFrame
        One row a point and job, as of `simnet.sweep`; `simnet.experiment.columns` has each column and its unit.

    Raises
    ------
    InputError
        The folder holds no sweep.
    """
    about = sweep_about(folder)
    try:
        frame = read_parquet(Path(folder) / f"{_TABLE}.parquet")
    except (OSError, ValueError) as error:
        raise InputError(Problem(f"the sweep cannot be read: {error}", source=str(folder))) from None
    return frame.set_index(about["parameters"]) if index and about["parameters"] else frame


def sweep_about(folder: str | Path) -> dict[str, Any]:
    """Return what a folder says of its sweep: name, parameters, how many points are there.

    Raises
    ------
    InputError
        The folder holds no sweep.
    """
    try:
        about = json.loads((Path(folder) / _ABOUT).read_text(encoding="utf-8"))
        if not isinstance(about, dict) or not isinstance(about.get("parameters"), list):
            raise ValueError("it names no parameters")
        return about
    except (OSError, ValueError) as error:
        hint = "the folder that `simnet sweep` wrote is wanted"
        if (Path(folder) / "summary.csv").exists():
            hint += "; this is one run, whose tables simnet.load_result reads"
        raise InputError(Problem(f"no sweep: {_ABOUT} cannot be read: {error}", hint, source=str(folder))) from None


def merge_sweeps(folders: Sequence[str | Path], into: str | Path) -> int:
    """Put the points of several folders, such as those of shards, into one; return how many there are then.

    Raises
    ------
    InputError
        One of them holds no sweep.
    """
    for folder in folders:
        sweep_about(folder)
    target = Store(Path(into))
    for folder in folders:
        for file in sorted(Path(folder).glob("points/??/*")):
            place = target.folder / file.relative_to(folder)
            if not file.name.startswith(".") and not place.exists():
                with write_whole(place) as made:
                    shutil.copyfile(file, made)
    return len(list(target.keys()))
