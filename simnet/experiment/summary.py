"""The one row that says what came of a job."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simnet.errors import InvariantError, SimulationError
from simnet.experiment.columns import COLUMNS
from simnet.experiment.simulation import Simulation
from simnet.experiment.tables import PARTS, Columns, iteration_time
from simnet.training.bound import bound_iteration_s, carrying_s
from simnet.training.computing.compute import ratio
from simnet.training.course import Course
from simnet.training.job import Job
from simnet.training.laws.convergence import communication_rounds, iterations_to_target
from simnet.training.memory import largest_memory_use
from simnet.training.records import CollectiveRow
from simnet.training.settings import JobSettings
from simnet.workload import DataflowWorkload

__all__ = ["summarise"]


def summarise(
    simulation: Simulation,
    job: Job,
    iterations: Columns,
    measured: Columns,
    exchanges: Sequence[CollectiveRow],
    bottleneck: str,
) -> dict[str, Any]:
    """Return the row of a job, by the columns of the table ``summary``.

    Parameters
    ----------
    simulation : Simulation
    job : Job
    iterations : columns
        Of the job, as of `simnet.experiment.tables.iteration_columns`.
    measured : columns
        Of these the ones that are measured.
    exchanges : sequence of CollectiveRow
        Of the job.
    bottleneck : str
        The resource that is used most.

    Raises
    ------
    InvariantError
        It was faster than it can be.
    SimulationError
        The measured time was over before an iteration was.
    """
    scenario, fabric = simulation.scenario, simulation.fabric
    training, workload = job.settings.training, job.settings.workload
    if not len(measured["iteration"]):
        raise SimulationError(f"no worker of job {job.settings.name} ended an iteration in the measured time")
    numbers = range(scenario.run.warmup, scenario.run.warmup + scenario.run.iterations)
    means = {name: float(measured[name].mean()) for name in PARTS}
    recovery_time_s = job.supervisor.recovery_s() if job.supervisor is not None else 0.0
    iteration_time_s = iteration_time(means) + recovery_time_s
    together, duration_s = job.course.count.sum(), job.course.duration_s
    if math.isnan(duration_s):
        # Workers in step: as many iterations each, over the same time in the mean.
        updates_per_s = ratio(1.0, iteration_time_s)
        throughput = ratio(job.settings.samples_per_iteration, iteration_time_s)
    else:
        updates_per_s = ratio(float(together), duration_s)
        samples = sum(job.settings.samples_of(rank) * count for rank, count in enumerate(job.course.count.tolist()))
        throughput = ratio(float(samples), duration_s)
    baseline = scenario.baseline_samples_per_s or job.fastest_samples_per_s(numbers)
    speedup = throughput / baseline if math.isfinite(baseline) else math.nan
    begun_s = measured["start_s"][measured["iteration"] == 0]
    bound_s = means["compute_time_s"]
    if job.sent.lost_bytes == 0 and not fabric.network.was_rerouted and job.supervisor is None:
        # What is lost need not be waited for; and the bound holds for the usual paths and places.
        bound_s = max(bound_s, bound_iteration_s(job, fabric, numbers, begun_s))
    if bound_s > iteration_time_s * (1 + 1e-9):
        raise InvariantError(f"an iteration took {iteration_time_s} s, less than its lower bound of {bound_s} s")
    memory = largest_memory_use(job.settings)
    to_target = iterations_to_target(training.target_samples, job.settings.samples_per_iteration)
    step_s = ratio(job.settings.samples_per_iteration, throughput)
    begun_first = np.full(training.workers, math.inf)
    np.minimum.at(begun_first, iterations["rank"], iterations["start_s"])
    startup_s = float(begun_first[np.isfinite(begun_first)].max()) - job.settings.start_s
    row = {
        "scenario": scenario.name,
        "job": job.settings.name,
        "model": workload.model.name,
        "gpu": workload.gpu or "",
        "workers": training.workers,
        "parallelism": describe_parallelism(job.settings),
        "protocol": scenario.protocol_name,
        "architecture": training.architecture.name,
        "sync": training.sync.label,
        "fidelity": scenario.fidelity,
        "batch_size_per_worker": workload.batch_size,
        "samples_per_iteration": job.settings.samples_per_iteration,
        "iterations": round(together / training.workers),
        "iteration_time_s": iteration_time_s,
        "iteration_time_p95_s": float(np.percentile(measured["iteration_time_s"], 95)),
        **means,
        "compression_time_s": job.compute.extra_s(numbers) if job.compute is not None else 0.0,
        "communication_compute_ratio": ratio(means["communication_time_s"], means["compute_time_s"]),
        "throughput_samples_per_s": throughput,
        "speedup": speedup,
        "scaling_efficiency": speedup / training.workers,
        "updates_per_s": updates_per_s,
        "staleness_updates": float(measured["staleness_updates"].mean()),
        "staleness_max_updates": float(measured["staleness_updates"].max()),
        "ahead_max_iterations": float(measured["ahead_iterations"].max()),
        "straggler_cost": ratio(means["waiting_time_s"], iteration_time_s),
        "checkpoints": job.checkpoints.count if job.checkpoints is not None else 0,
        "recovery_time_s": recovery_time_s,
        "lost_iterations": job.supervisor.lost_iterations if job.supervisor is not None else 0.0,
        "goodput_ratio": 1.0 - ratio(means["checkpoint_time_s"] + recovery_time_s, iteration_time_s),
        "iterations_to_target": to_target,
        "rounds_to_target": communication_rounds(to_target, training.sync.rounds_period(to_target)),
        "time_to_target_s": startup_s + to_target * step_s if to_target else 0.0,
        "bytes_sent_per_worker": _per_iteration(job.sent.payload_bytes, job.course),
        "wire_bytes": _per_iteration(job.sent.wire_bytes, job.course),
        "lost_bytes": job.sent.lost_bytes * training.workers / together,
        "startup_time_s": startup_s,
        "memory_bytes_per_worker": memory.total_bytes if memory is not None else math.nan,
        "bound_iteration_time_s": bound_s,
        "bound_ratio": ratio(iteration_time_s, bound_s) if bound_s > 0.0 else math.nan,
        "carrying_time_s": carrying_s(job, fabric, exchanges),
        "bottleneck": bottleneck,
        "messages": fabric.counts.messages,
        "wall_time_s": time.perf_counter() - simulation.began_s,
    }
    return {column.name: _TYPES[column.dtype](row[column.name]) for column in COLUMNS["summary"]}


_TYPES: Mapping[str, Callable[[Any], Any]] = {"str": str, "int": int, "float": float}


def _per_iteration(of_workers: NDArray[np.float64], course: Course) -> float:
    """Return what a worker has of something in an iteration: the mean over workers in step, else over iterations."""
    if math.isnan(course.duration_s):
        return float(np.mean(of_workers / course.count))
    return float(of_workers.sum() / course.count.sum())


def describe_parallelism(settings: JobSettings) -> str:
    """Return how work is split, in words: ``data 4, pipeline 2``."""
    grid = settings.training.grid
    if isinstance(settings.workload, DataflowWorkload):
        return f"data {grid.data}, devices {grid.pipeline}"
    parts = [(what, getattr(grid, what)) for what in ("data", "pipeline", "tensor", "shared_memory")]
    return ", ".join(f"{what} {number}" for what, number in parts if number > 1 or what == "data")
