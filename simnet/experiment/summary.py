"""What came of a run: its tables, and the one row that says it of each job."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simnet.engine.recorder import Recorder
from simnet.errors import InvariantError, SimulationError
from simnet.experiment.tables import (
    PARTS,
    Measurement,
    collectives_table,
    iteration_time,
    iterations_table,
    links_table,
    ordered,
    staleness_table,
    workers_table,
)
from simnet.fabric.interface import Fabric
from simnet.scenario import Scenario
from simnet.training.bound import bound_iteration_s, carrying_s
from simnet.training.computing.compute import ratio
from simnet.training.course import Course
from simnet.training.job import Job
from simnet.training.laws.convergence import communication_rounds, iterations_to_target
from simnet.training.memory import largest_memory_use
from simnet.training.records import CollectiveRow, IterationRow
from simnet.training.settings import JobSettings
from simnet.workload import DataflowWorkload

__all__ = ["tables_of"]


def tables_of(
    scenario: Scenario,
    jobs: Sequence[Job],
    recorder: Recorder,
    fabric: Fabric,
    measurement: Measurement,
    wall_time_s: Callable[[], float],
) -> dict[str, pd.DataFrame]:
    """Return the tables of a run, those of several jobs one below the other.

    Parameters
    ----------
    scenario : Scenario
    jobs : sequence of Job
    recorder : Recorder
    fabric : Fabric
    measurement : Measurement
        Counters of the resources.
    wall_time_s : callable
        Returns how long the run has taken so far [s].

    Raises
    ------
    InvariantError
        It was faster than it can be, or a resource carried more than it can.
    SimulationError
        The measured time was over before an iteration was.
    """
    name = jobs[0].settings.name if len(jobs) == 1 else "all"
    links = links_table(name, fabric, measurement, [job.sent for job in jobs])
    if links["utilisation"].max() > 1 + 1e-9:
        raise InvariantError(f"{_bottleneck(links)} carried more than its capacity")
    iterations, exchanges = recorder.rows(IterationRow), recorder.rows(CollectiveRow)
    found: dict[str, list[pd.DataFrame]] = {
        "summary": [],
        "iterations": [],
        "workers": [],
        "collectives": [],
        "staleness": [],
    }
    for job in jobs:
        own = job.settings.name
        times = iterations_table([row for row in iterations if row.job == own], job.course)
        workers = workers_table(job, fabric, times)
        played = [row for row in exchanges if row.job == own]
        collectives = collectives_table(played, job.course, fabric)
        carrying = carrying_s(job, fabric, played)
        row = _summary(scenario, job, fabric, times, carrying, _bottleneck(links), wall_time_s())
        for table, frame in zip(found, (row, times, workers, collectives, staleness_table(times)), strict=True):
            found[table].append(frame)
    if not any(job.settings.training.sync.waits_alone for job in jobs):
        del found["staleness"]
    tables = {table: pd.concat(frames, ignore_index=True) for table, frames in found.items()}
    return {**tables, "links": links}


def _summary(
    scenario: Scenario,
    job: Job,
    fabric: Fabric,
    iterations: pd.DataFrame,
    carrying_time_s: float,
    bottleneck: str,
    wall_time_s: float,
) -> pd.DataFrame:
    """Return the one row of a job."""
    training, workload = job.settings.training, job.settings.workload
    measured = iterations[iterations["iteration"] >= 0]
    if measured.empty:
        raise SimulationError(f"no worker of job {job.settings.name} ended an iteration in the measured time")
    begun_first = iterations.groupby("rank")["start_s"].min()
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
    begun_s = measured.loc[measured["iteration"] == 0, "start_s"].to_numpy()
    bound_s = means["compute_time_s"]
    if job.sent.lost_bytes == 0 and not fabric.network.was_rerouted and job.supervisor is None:
        # What is lost need not be waited for; and the bound holds for the usual paths and places.
        bound_s = max(bound_s, bound_iteration_s(job, fabric, numbers, begun_s))
    if bound_s > iteration_time_s * (1 + 1e-9):
        raise InvariantError(f"an iteration took {iteration_time_s} s, less than its lower bound of {bound_s} s")
    memory = largest_memory_use(job.settings)
    to_target = iterations_to_target(training.target_samples, job.settings.samples_per_iteration)
    step_s = ratio(job.settings.samples_per_iteration, throughput)
    startup_s = float(begun_first.max()) - job.settings.start_s
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
        "carrying_time_s": carrying_time_s,
        "bottleneck": bottleneck,
        "messages": fabric.counts.messages,
        "wall_time_s": wall_time_s,
    }
    return ordered("summary", pd.DataFrame([row]))


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


def _bottleneck(links: pd.DataFrame) -> str:
    """Return the resource that is used most, the first of those that are used alike; none where nothing is used.

    Not the one with a flow for the longest time: the memory of a host has one whenever any of its links has.
    """
    used = links["utilisation"].to_numpy()
    if used.max() <= 0:
        return ""
    return str(links["resource"].iloc[int(np.argmax(used >= used.max() * (1 - 1e-6)))])
