"""Predict everything that was measured, and compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from simnet.errors import InputError, Problem, SimulationError, nearest
from simnet.experiment.processes import Processes
from simnet.experiment.simulation import compile_all
from simnet.experiment.telling import Show, counting, tell, tell_nobody, watched
from simnet.experiment.validation.cases import Case, DataSet, load_data_sets
from simnet.experiment.validation.measurements import Measurement, read_measurements
from simnet.experiment.validation.prediction import Prediction, predict
from simnet.experiment.validation.scores import score_groups
from simnet.shipped import shipped_folder

__all__ = ["Validation", "validate"]


@dataclass(frozen=True)
class Validation:
    """What simnet predicts beside what was measured.

    Attributes
    ----------
    table : DataFrame
        One row a measurement: what was measured, `measured` and `predicted` in its unit, `error` = predicted / measured
        - 1, `linear` = workers times the rate of one GPU, and what had to be assumed.
    scores : DataFrame
        One row a data set and use; see `score_groups`.
    left_out : DataFrame
        Rows that are not predicted, and why.
    """

    table: pd.DataFrame
    scores: pd.DataFrame
    left_out: pd.DataFrame


def validate(
    folder: str | Path | None = None,
    data_sets: Sequence[str] = (),
    uses: Sequence[str] = (),
    *,
    jobs: int = 1,
    say: Callable[[str], None] | None = None,
    show: Show = tell_nobody,
) -> Validation:
    """Predict measurements, and compare.

    Parameters
    ----------
    folder : str or Path, optional
        With ``measurements.csv`` and a description ``NAME.yaml`` for each data set; what ships where not given.
    data_sets : sequence of str
        Names of those that are wanted; all where empty.
    uses : sequence of str
        ``calibration``, ``validation``; both where empty.
    jobs : int
        Processes.
    say : callable, optional
        Told in a line what takes long; standard error by default.
    show : callable
        Shown how many cases are over.

    Raises
    ------
    InputError
        Everything that is wrong with the files, or the first case that cannot be simulated as it is described.
    """
    place = shipped_folder("validation") if folder is None else Path(folder)
    rows = read_measurements(place / "measurements.csv")
    described = load_data_sets(place)
    known = [one.name for one in described]
    unknown = [name for name in data_sets if name not in known]
    if unknown:
        raise InputError([Problem(f"unknown data set {name!r}", nearest(name, known)) for name in unknown])
    chosen = [one for one in described if not data_sets or one.name in data_sets]
    cases, left_out = _cases(chosen, rows, uses)
    if not data_sets:
        left_out += [
            (row, f"nothing says how it is simulated: there is no {row.data_set}.yaml")
            for row in rows
            if row.data_set not in known and row.use != "input" and (not uses or row.use in uses)
        ]
    compile_all(say or tell, show)
    predictions: list[Prediction] = []
    with watched(show, counting("cases", len(cases), lambda: len(predictions))):
        predictions.extend(_predicted(cases, jobs))
    table = pd.DataFrame([_row(one) for one in predictions])
    scores = score_groups(table) if len(table) else pd.DataFrame()
    why = [
        {"row": row.row, "data_set": row.data_set, "setting": row.setting, "why": reason} for row, reason in left_out
    ]
    return Validation(table, scores, pd.DataFrame(why, columns=["row", "data_set", "setting", "why"]))


def _cases(
    data_sets: Iterable[DataSet], rows: Sequence[Measurement], uses: Sequence[str]
) -> tuple[list[Case], list[tuple[Measurement, str]]]:
    wanted = [row for row in rows if not uses or row.use in (*uses, "input")]
    cases: list[Case] = []
    left_out: list[tuple[Measurement, str]] = []
    for one in data_sets:
        found, not_found = one.cases(wanted)
        cases += found
        left_out += not_found
    return cases, left_out


def _predicted(cases: Sequence[Case], jobs: int) -> Iterable[Prediction]:
    if jobs <= 1:
        yield from map(predict, cases)
        return
    with Processes(jobs) as pool:
        coming = [pool.submit(predict, case) for case in cases]
        try:
            for one in coming:
                yield one.result()
        except BrokenProcessPool:
            raise SimulationError("a process was killed, perhaps for lack of memory") from None


def _row(one: Prediction) -> dict[str, object]:
    row, case = one.case.measured, one.case
    linear = case.one_gpu * row.workers if case.one_gpu is not None and row.workers is not None else math.nan
    return {
        "row": row.row,
        "data_set": row.data_set,
        "use": row.use,
        "hardware": row.hardware,
        "network": row.network,
        "protocol": row.protocol,
        "setting": row.setting,
        "model": row.model,
        "batch": row.batch,
        "precision": row.precision,
        "workers": row.workers,
        "size_bytes": row.size_bytes,
        "metric": row.metric,
        "unit": row.unit,
        "measured": row.value,
        "predicted": one.value,
        "error": one.error,
        "linear": linear,
        "assumed": "; ".join(case.assumed),
    }
