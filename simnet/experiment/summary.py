"""The one row that says what came of a job."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from simnet.errors import InvariantError
from simnet.experiment.tables import ordered
from simnet.fabric.bounds import Bound
from simnet.scenario import Scenario
from simnet.training.bound import bound_iteration_s
from simnet.training.job import Job

__all__ = ["summary_table"]


def summary_table(
    scenario: Scenario,
    job: Job,
    iterations: pd.DataFrame,
    workers: pd.DataFrame,
    links: pd.DataFrame,
    bounds: list[Bound],
    messages: int,
    wall_time_s: float,
) -> pd.DataFrame:
    """Return the one row of a job.

    Parameters
    ----------
    scenario : Scenario
    job : Job
    iterations, workers, links : DataFrame
        Its tables.
    bounds : list of Bound
        Of each exchange.
    messages : int
        Simulated, warm-up included.
    wall_time_s : float
        That the simulation took [s].

    Raises
    ------
    InvariantError
        It was faster than it can be, or a resource carried more than it can.
    """
    training, workload = job.settings.training, job.settings.workload
    measured = iterations[iterations["iteration"] >= 0]
    numbers = range(scenario.run.warmup, scenario.run.warmup + scenario.run.iterations)
    names = ("compute_time_s", "exposed_communication_time_s", "waiting_time_s", "communication_time_s")
    means = {name: float(measured[name].mean()) for name in names}
    iteration_time_s = means["compute_time_s"] + means["exposed_communication_time_s"] + means["waiting_time_s"]
    throughput = _ratio(training.workers * workload.batch_size, iteration_time_s)
    baseline = scenario.baseline_samples_per_s or workload.batch_size / job.compute.fastest_s(numbers)
    speedup = throughput / baseline
    begun_s = measured.loc[measured["iteration"] == 0, "start_s"].to_numpy()
    bound_s = max(means["compute_time_s"], bound_iteration_s(job, bounds, numbers, begun_s) if bounds else 0.0)
    if bound_s > iteration_time_s * (1 + 1e-9):
        raise InvariantError(f"an iteration took {iteration_time_s} s, less than its lower bound of {bound_s} s")
    if links["utilisation"].max() > 1 + 1e-9:
        raise InvariantError(f"{_bottleneck(links)} carried more than its capacity")
    row = {
        "scenario": scenario.name,
        "job": job.settings.name,
        "model": workload.model.name,
        "gpu": workload.gpu or "",
        "workers": training.workers,
        "protocol": scenario.protocol_name,
        "architecture": training.architecture.name,
        "sync": training.sync,
        "fidelity": scenario.fidelity,
        "batch_size_per_worker": workload.batch_size,
        "iterations": scenario.run.iterations,
        "iteration_time_s": iteration_time_s,
        "iteration_time_p95_s": float(np.percentile(measured["iteration_time_s"], 95)),
        **means,
        "communication_compute_ratio": _ratio(means["communication_time_s"], means["compute_time_s"]),
        "throughput_samples_per_s": throughput,
        "speedup": speedup,
        "scaling_efficiency": speedup / training.workers,
        "bytes_sent_per_worker": float(workers["bytes_sent"].mean()),
        "wire_bytes": float(workers["wire_bytes"].mean()),
        "bound_iteration_time_s": bound_s,
        "bottleneck": _bottleneck(links),
        "messages": messages,
        "wall_time_s": wall_time_s,
    }
    return ordered("summary", pd.DataFrame([row]))


def _ratio(part: float, whole: float) -> float:
    """Return a ratio that is infinite, or not a number, where random factors let nobody compute at all."""
    return part / whole if whole > 0 else math.inf if part > 0 else math.nan


def _bottleneck(links: pd.DataFrame) -> str:
    """Return the resource that is used most, the first of those that are used alike; none where nothing is used.

    Not the one with a flow for the longest time: the memory of a host has one whenever any of its links has.
    """
    used = links["utilisation"].to_numpy()
    if used.max() <= 0:
        return ""
    return str(links["resource"].iloc[int(np.argmax(used >= used.max() * (1 - 1e-6)))])
