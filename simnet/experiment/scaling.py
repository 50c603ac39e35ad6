"""A scenario on more and more workers: speed-up, and what the laws of `simnet.training.laws.speedup` say about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from simnet.errors import InputError, Problem
from simnet.experiment.plot import curves
from simnet.experiment.sweep import sweep
from simnet.experiment.tables import ordered
from simnet.experiment.telling import Show, tell_nobody
from simnet.scenario import Scenario, load_scenario
from simnet.training.laws.speedup import (
    amdahl,
    fit_amdahl,
    fit_gustafson,
    gustafson,
    karp_flatt,
    speed_ratio,
    work_ratio,
)
from simnet.workload import Workload

__all__ = ["Scaling", "fitted_laws", "scaling", "scaling_curves"]

Scaling = Literal["strong", "weak"]


def scaling(
    scenario: str | Path | Mapping[str, Any],
    workers: Sequence[int],
    scaling: Scaling = "strong",
    overrides: Mapping[str, object] | None = None,
    say: Callable[[str], None] | None = None,
    show: Show = tell_nobody,
) -> pd.DataFrame:
    """Run a scenario with several numbers of workers, and compare with one worker.

    Parameters
    ----------
    scenario : str, Path or mapping
        As for `simnet.run`; of one job whose workers are all alike.
    workers : sequence of int
        Numbers of workers, one row each. One worker is run as well if it is not among them.
    scaling : str
        ``strong``: the samples of an iteration are those of the scenario as it stands, shared by the workers; ``weak``:
        each worker has as many as there, whatever their number.
    overrides : mapping, optional
        Values that are the same at every point.
    say : callable, optional
        Told in a line what takes long; standard error by default.
    show : callable
        Shown how many points are over.

    Returns
    -------
    DataFrame
        The columns are those of ``scaling`` in `simnet.experiment.columns.COLUMNS`.

    Raises
    ------
    InputError
        A scenario that does not scale so, or the first point that is wrong.

    Examples
    --------
    >>> import simnet
    >>> frame = simnet.scaling("resnet50_16gpu", workers=[1, 2, 4], scaling="weak")  # doctest: +SKIP
    """
    counts = [int(count) for count in workers]
    wrong = [*_wrong_counts(counts), *_wrong_scaling(scaling)]
    if wrong:
        raise InputError(wrong)
    as_it_stands = load_scenario(scenario, overrides or {})
    batch = _batch(as_it_stands, scaling)
    fixed = {**(overrides or {}), **batch}
    points = list(dict.fromkeys([1, *counts]))
    try:
        runs = sweep(scenario, {"training.workers": points}, fixed, say, show).set_index("workers", drop=False)
    except InputError as error:
        raise InputError(_with_batch_told(problem) for problem in error.problems) from None
    one_s, one_samples = (float(runs[name].to_dict()[1]) for name in ("iteration_time_s", "samples_per_iteration"))
    alone = load_scenario(scenario, {**fixed, "training.workers": 1}).jobs[0]
    assert isinstance(alone.workload, Workload)
    serial = alone.training.accumulation * alone.workload.serial_s / one_s
    frame = runs.loc[counts].reset_index(drop=True)
    ratios = frame["samples_per_iteration"] / one_samples
    frame["speedup"] = [
        speed_ratio(work_ratio(ratio, serial), time_s, 1.0, one_s)
        for ratio, time_s in zip(ratios, frame["iteration_time_s"], strict=True)
    ]
    frame["scaling"] = scaling
    frame["efficiency"] = frame["speedup"] / frame["workers"]
    frame["karp_flatt_serial_fraction"] = [
        karp_flatt(speedup, count) for speedup, count in zip(frame["speedup"], frame["workers"], strict=True)
    ]
    laws = fitted_laws(frame["workers"], frame["speedup"])
    for name, law in (("amdahl", amdahl), ("gustafson", gustafson)):
        fraction = laws[f"{name}_serial_fraction"]
        frame[f"{name}_serial_fraction"] = fraction
        frame[f"{name}_speedup"] = law(frame["workers"].to_numpy(dtype=np.float64), fraction)
    return ordered("scaling", frame)


def fitted_laws(workers: pd.Series, speedups: pd.Series) -> dict[str, float]:
    """Return what the laws of Amdahl and Gustafson make of speed-ups.

    Parameters
    ----------
    workers, speedups : Series

    Returns
    -------
    dict
        For each law ``…_serial_fraction``, that of the nearest curve, and ``…_r_squared``, the part of the variance of
        the speed-up that the curve explains: 1 where it goes through all points, below 0 where their mean is nearer.
        Not a number where there is nothing but one worker.
    """
    numbers, known = (values.to_numpy(dtype=np.float64) for values in (workers, speedups))
    found = {}
    for name, law, fit in (("amdahl", amdahl, fit_amdahl), ("gustafson", gustafson, fit_gustafson)):
        fraction = fit(numbers, known)
        left = float(((law(numbers, fraction) - known) ** 2).sum())
        whole = float(((known - known.mean()) ** 2).sum())
        found[f"{name}_serial_fraction"] = fraction
        found[f"{name}_r_squared"] = 1.0 - left / whole if whole > 0 else math.nan
    return found


def scaling_curves(frame: pd.DataFrame) -> Figure:
    """Return speed-up over the number of workers, beside the fitted laws and the ideal.

    Parameters
    ----------
    frame : DataFrame
        Of `scaling`.
    """
    lines = {
        "simulated": frame["speedup"],
        f"Amdahl, f = {frame['amdahl_serial_fraction'].iloc[0]:.3g}": frame["amdahl_speedup"],
        f"Gustafson, f = {frame['gustafson_serial_fraction'].iloc[0]:.3g}": frame["gustafson_speedup"],
        "linear": frame["workers"].astype(float),
    }
    long = pd.concat(
        [pd.DataFrame({"workers": frame["workers"], "speedup": values, "law": name}) for name, values in lines.items()],
        ignore_index=True,
    )
    return curves(long, "workers", "speedup", "law", title=f"{frame['scaling'].iloc[0]} scaling")


def _batch(scenario: Scenario, scaling: Scaling) -> dict[str, object]:
    """Return what sets the samples of each point, from those of a scenario as it stands.

    Raises
    ------
    InputError
        Several jobs, workers that are not alike, or times that do not go with a batch.
    """
    job = scenario.jobs[0]
    if len(scenario.jobs) > 1:
        raise InputError(Problem("a scenario with several jobs cannot be scaled", "one job is wanted"))
    if not isinstance(job.workload, Workload):
        hint = "what is wanted is a model, or a file with layers, for workers that are all alike"
        raise InputError(Problem(f"the workload {job.workload.model.name} cannot be scaled", hint, ("workload",)))
    if job.training.grid.replica > 1:
        hint = "leave parallelism out"
        raise InputError(Problem("a model that is split cannot run on one worker", hint, ("training", "parallelism")))
    each, all_of_them = job.workload.batch_size, job.workload.batch_size * job.training.workers
    return {
        "workload.batch_size": each if scaling == "weak" else None,
        "workload.global_batch_size": None if scaling == "weak" else all_of_them,
    }


def _with_batch_told(problem: Problem) -> Problem:
    """Return a problem that says where its batch comes from, which nobody has written into the scenario."""
    if problem.path[-1:] != ("global_batch_size",):
        return problem
    told = "strong scaling has all workers share the samples of an iteration, so that one worker has them all"
    return replace(problem, hint=f"{problem.hint}; {told}" if problem.hint else told)


def _wrong_counts(workers: Sequence[int]) -> list[Problem]:
    if not workers or min(workers) < 1 or len(set(workers)) < len(workers):
        listed = ",".join(map(str, workers)) or "nothing"
        return [Problem(f"workers are {listed}", "different numbers of at least 1 are wanted", ("workers",))]
    return []


def _wrong_scaling(scaling: str) -> list[Problem]:
    if scaling in get_args(Scaling):
        return []
    return [Problem(f"scaling is {scaling!r}", "known: strong, weak", ("scaling",))]
