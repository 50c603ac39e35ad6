"""Run a scenario."""

from __future__ import annotations

import math
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import simpy

from simnet.engine.recorder import Recorder
from simnet.errors import InvariantError, StalledError
from simnet.experiment.messages import MessageFile
from simnet.experiment.result import Result
from simnet.experiment.tables import (
    Measurement,
    collectives_table,
    iterations_table,
    links_table,
    ordered,
    workers_table,
)
from simnet.fabric.bounds import Bound, bound
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.warm_up import compile_kernels
from simnet.scenario import Override, Scenario, load_scenario
from simnet.training.job import Job, start_job
from simnet.training.records import CollectiveRow, IterationRow

__all__ = ["run", "run_scenario"]


def run(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    overrides: Mapping[str, object] | Iterable[Override] = (),
    say: Callable[[str], None] | None = None,
) -> Result:
    """Run a scenario.

    Parameters
    ----------
    scenario : str, Path, mapping or Scenario
        A file, the name of one that ships, or its content.
    overrides : mapping or iterable of Override
        Values to put in first, by path: ``{"training.workers": 32}``.
    say : callable, optional
        Told in a line what takes long; standard error by default.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        Everything that is wrong with the scenario.
    SimulationError
        The run came to a stop.
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, overrides)
    compile_kernels(say or _say)
    return run_scenario(scenario)


def run_scenario(scenario: Scenario) -> Result:
    """Run a scenario that is loaded, with kernels that are compiled."""
    began = time.perf_counter()
    env = simpy.Environment()
    network = Network(scenario.topology, scenario.protocol, scenario.run.seed)
    messages, writer = MessageFile.begin(scenario.job.name) if scenario.run.records_messages else (None, None)
    fabric = FluidFabric(env, network, engine=scenario.engine, record=writer.write if writer else None)
    recorder = Recorder()
    job = start_job(env, fabric, recorder, scenario.job, scenario.run)
    started = _Counters(fabric)
    job.measured.callbacks.append(lambda _: started.take())
    try:
        env.run(until=job.done)
    except RuntimeError:
        if job.done.triggered or env.peek() < math.inf:
            raise
        raise StalledError(f"nothing can move any more at {env.now:.9g} s: workers wait for each other") from None
    measurement = started.until_now()
    fabric.require_conservation()
    fabric.close()
    if writer is not None:
        writer.close()

    bounds = [bound(exchange.placement, network.capacity, fabric.costs) for exchange in job.exchanges]
    iterations = iterations_table(recorder.rows(IterationRow), scenario.run)
    workers = workers_table(job, fabric, iterations)
    collectives = collectives_table(recorder.rows(CollectiveRow), scenario.run, bounds)
    links = links_table(scenario.job.name, fabric, measurement)
    summary = _summary(scenario, job, iterations, workers, links, bounds, fabric, time.perf_counter() - began)
    about = {
        "seed": scenario.run.seed,
        "protocol": scenario.protocol.name,
        "messages": fabric.messages,
        "messages_simulated": fabric.simulated_messages,
        "rate_solves": fabric.solves,
        "simulated_s": float(env.now),
        "versions": _versions(),
    }
    return Result(
        summary,
        iterations,
        workers,
        collectives,
        links,
        scenario.resolved,
        about,
        scenario.warnings,
        messages,
    )


class _Counters:
    """Counters of a fabric at an instant."""

    def __init__(self, fabric: FluidFabric) -> None:
        self._fabric = fabric
        self.take()

    def take(self) -> None:
        """Remember the counters of now."""
        self._at_s = self._fabric.env.now
        self._carried, self._busy = self._fabric.carried_bytes(), self._fabric.busy_s()

    def until_now(self) -> Measurement:
        """Return what has come since."""
        return Measurement(
            self._fabric.carried_bytes() - self._carried,
            self._fabric.busy_s() - self._busy,
            self._fabric.env.now - self._at_s,
        )


def _summary(
    scenario: Scenario,
    job: Job,
    iterations: pd.DataFrame,
    workers: pd.DataFrame,
    links: pd.DataFrame,
    bounds: list[Bound],
    fabric: FluidFabric,
    wall_time_s: float,
) -> pd.DataFrame:
    """Return the one row of a job."""
    training, workload = job.settings.training, job.settings.workload
    measured = iterations[iterations["iteration"] >= 0]
    names = ("compute_time_s", "exposed_communication_time_s", "waiting_time_s", "communication_time_s")
    means = {name: float(measured[name].mean()) for name in names}
    iteration_time_s = means["compute_time_s"] + means["exposed_communication_time_s"] + means["waiting_time_s"]
    throughput = _ratio(training.workers * workload.batch_size, iteration_time_s)
    baseline = scenario.baseline_samples_per_s or workload.batch_size / _fastest_s(scenario, job)
    speedup = throughput / baseline
    bound_s = _bound_iteration_s(scenario, job, bounds, means["compute_time_s"])
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
        "messages": fabric.messages,
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


def _fastest_s(scenario: Scenario, job: Job) -> float:
    """Return the mean compute time of the fastest worker over the measured iterations, without jitter [s]."""
    run = scenario.run
    return job.compute.fastest_s(range(run.warmup, run.warmup + run.iterations))


def _bound_iteration_s(scenario: Scenario, job: Job, bounds: list[Bound], compute_s: float) -> float:
    """Return a lower bound on the mean iteration time.

    Exchanges follow each other on one stream, and each begins when the slowest worker has its bucket ready. The last
    iteration of a worker may end before those of others do, so that only what the first rank needs counts there.
    """
    if not bounds:
        return compute_s
    first = scenario.run.warmup
    whole = early = 0.0
    for iteration in range(first, first + scenario.run.iterations):
        timeline = job.compute.slowest(iteration)
        end = 0.0
        for bucket, limit in enumerate(bounds):
            ready = timeline.ready_s[bucket] if job.settings.training.overlap else timeline.gradients_s
            begin = max(end, ready)
            end = begin + limit.total_s
            early = begin + limit.first_rank_s
        whole += end + timeline.update_s
    whole += early - end
    return max(compute_s, whole / scenario.run.iterations)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("simnet-cluster", "simpy", "networkx", "numpy", "pandas", "numba"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            from simnet import __version__

            found[name] = __version__
    return found


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
