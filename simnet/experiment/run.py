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

import simpy

from simnet.engine.recorder import Recorder
from simnet.errors import StalledError
from simnet.experiment.messages import MessageFile
from simnet.experiment.result import Result
from simnet.experiment.summary import summary_table
from simnet.experiment.tables import Measurement, collectives_table, iterations_table, links_table, workers_table
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.interface import Fabric
from simnet.fabric.network import Network
from simnet.fabric.warm_up import compile_kernels
from simnet.scenario import Override, Scenario, load_scenario
from simnet.training.job import start_job
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
    record = writer.write if writer else None
    fabric: Fabric = FluidFabric(env, network, engine=scenario.engine, record=record)
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

    bounds = [fabric.bound(exchange.placement) for exchange in job.exchanges]
    iterations = iterations_table(recorder.rows(IterationRow), scenario.run)
    workers = workers_table(job, fabric, iterations)
    collectives = collectives_table(recorder.rows(CollectiveRow), scenario.run, bounds)
    links = links_table(scenario.job.name, fabric, measurement)
    wall_time_s = time.perf_counter() - began
    summary = summary_table(scenario, job, iterations, workers, links, bounds, fabric.counts.messages, wall_time_s)
    about = {
        "seed": scenario.run.seed,
        "protocol": scenario.protocol.name,
        "messages": fabric.counts.messages,
        "messages_simulated": fabric.counts.simulated_messages,
        "rate_solves": fabric.counts.solves,
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

    def __init__(self, fabric: Fabric) -> None:
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
