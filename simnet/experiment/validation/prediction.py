"""Simulate a case, and return what was measured there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from simnet.errors import InputError, Problem
from simnet.experiment.collective import run_collective
from simnet.experiment.findings import findings_of
from simnet.experiment.simulation import compile_for, simulate
from simnet.experiment.telling import tell
from simnet.experiment.validation.cases import Case
from simnet.experiment.validation.measurements import TIME_UNITS, Measurement
from simnet.scenario import load_collective
from simnet.scenario.load import load_document
from simnet.scenario.overrides import Override, overrides_from_mapping
from simnet.units import GIGA, MICROSECOND

__all__ = ["Prediction", "predict"]

_RUN = {"run.iterations": 4, "run.warmup": 1}


@dataclass(frozen=True)
class Prediction:
    """What simnet says to a case.

    Attributes
    ----------
    case : Case
    value : float
        In the unit of the measurement.
    """

    case: Case
    value: float

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.value / self.case.measured.value - 1.0


def predict(case: Case) -> Prediction:
    """Simulate a case.

    Raises
    ------
    InputError
        What is wrong with what the rules make of it.
    """
    try:
        return Prediction(case, _rate(case) if case.play == "training" else _collective(case))
    except InputError as error:
        row = case.measured
        of_row = f"{row.data_set}, row {row.row}: "
        raise InputError([replace(one, message=of_row + one.message) for one in error.problems]) from None


def _rate(case: Case) -> float:
    """Return the samples that all workers together train in a second."""
    row = case.measured
    changes: dict[str, Any] = {**_RUN, "training.workers": row.workers}
    if row.batch is not None:
        changes["workload.batch_size"] = row.batch
    changes["workload.samples_per_s"] = case.one_gpu
    described = case.document.part(("scenario",))
    document = replace(described, data={"name": f"row{row.row}", **case.scenario})
    overrides = overrides_from_mapping({key: value for key, value in changes.items() if key not in case.overrides})
    overrides += [Override(tuple(key.split(".")), case.document.part(case.places[key])) for key in case.overrides]
    scenario = load_document(document, case.folder, "", overrides)
    compile_for(scenario, tell)
    summary = findings_of(simulate(scenario)).jobs[0].summary
    return float(summary["throughput_samples_per_s"])


def _collective(case: Case) -> float:
    """Return the time or the bandwidth of a collective, in the unit that was measured."""
    row = case.measured
    arguments = {**case.scenario, **case.overrides}
    if row.workers is not None:
        arguments.setdefault("ranks", row.workers)
    arguments.setdefault("sizes", f"{row.size_bytes} B")
    name = arguments.pop("collective")
    try:
        settings = load_collective(name, **arguments, source=str)
    except InputError as error:
        raise InputError([_placed(case, problem) for problem in error.problems]) from None
    one = run_collective(settings).iloc[0]
    return _in_unit(row, one.time_us * MICROSECOND, one.algbw_GBps * GIGA, one.busbw_GBps * GIGA)


def _placed(case: Case, problem: Problem) -> Problem:
    """Return a problem with an argument of a collective, which is its source, with its place in the description."""
    key, *rest = (problem.source, *problem.path) if problem.source else problem.path or ("",)
    if key not in case.overrides and key not in case.scenario:
        return problem
    bare = Problem(problem.message, problem.hint, tuple(rest))
    return case.document.at(case.places.get(str(key), ("scenario", key)), bare)


def _in_unit(row: Measurement, time_s: float, algorithm_bytes_per_s: float, bus_bytes_per_s: float) -> float:
    if row.unit in TIME_UNITS:
        return time_s / TIME_UNITS[row.unit]
    bandwidth: float = bus_bytes_per_s if "busbw" in row.metric else algorithm_bytes_per_s
    return bandwidth * row.value / row.si_value
