"""Run a scenario."""

from __future__ import annotations

import math
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd
import simpy

from simnet.engine.recorder import Recorder
from simnet.errors import SimulationError, StalledError
from simnet.experiment.load import LoadSamples, sample_load
from simnet.experiment.messages import MessageFile
from simnet.experiment.result import Result
from simnet.experiment.sanity import Look, sanity_warnings
from simnet.experiment.summary import tables_of
from simnet.experiment.tables import Measurement, connections_table, faults_table, queues_table, spans_table
from simnet.fabric.faults import HostSlow, LinkFault, start_faults
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.interface import Fabric
from simnet.fabric.messages import TakeMessages
from simnet.fabric.network import Network
from simnet.fabric.packet.fabric import PacketFabric, compile_packet_kernels
from simnet.fabric.warm_up import compile_kernels
from simnet.scenario import Override, Scenario, load_scenario
from simnet.training.background import start_background
from simnet.training.job import Job, start_job
from simnet.training.records import CollectiveRow, IterationRow, SpanRow

__all__ = [
    "Simulation",
    "compile_for",
    "make_fabric",
    "mean_iteration_time_s",
    "result_of",
    "run",
    "run_scenario",
    "simulate",
]


def run(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    overrides: Mapping[str, object] | Iterable[Override] = (),
    say: Callable[[str], None] | None = None,
    *,
    timeline: bool = False,
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
    timeline : bool
        Keep what each worker does when, and the load of resources, for `simnet.experiment.timeline`; it takes longer.

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
    compile_for(scenario, say or _say)
    if timeline:
        scenario = replace(scenario, run=replace(scenario.run, records_timeline=True))
    return run_scenario(scenario)


def compile_for(scenario: Scenario, say: Callable[[str], None]) -> None:
    """Compile the kernels that a scenario needs, where they are not yet."""
    compile_kernels(say)
    if scenario.packet is not None:
        compile_packet_kernels(say)


def make_fabric(scenario: Scenario, env: simpy.Environment, network: Network, record: TakeMessages | None) -> Fabric:
    """Return the fabric that a scenario asks for."""
    common = (env, network, scenario.reduce_s_per_byte, scenario.engine, record)
    if scenario.packet is None:
        return FluidFabric(*common)
    slow_hosts = {fault.host for fault in scenario.faults if isinstance(fault, HostSlow)}
    return PacketFabric(*common, settings=scenario.packet, seed=scenario.run.seed, slow_hosts=slow_hosts)


@dataclass(frozen=True, eq=False)
class Simulation:
    """A scenario that has been simulated, before anything is made of it.

    Attributes
    ----------
    scenario : Scenario
    fabric : Fabric
    recorder : Recorder
        With all rows.
    jobs : list of Job
    measurement : Measurement
        Counters of the resources over the measured iterations.
    load : LoadSamples or None
        Where a timeline was wanted.
    messages : MessageFile or None
        Where messages were recorded.
    """

    scenario: Scenario
    fabric: Fabric
    recorder: Recorder
    jobs: list[Job]
    measurement: Measurement
    load: LoadSamples | None
    messages: MessageFile | None


def simulate(scenario: Scenario) -> Simulation:
    """Simulate a scenario that is loaded, with kernels that are compiled."""
    env = simpy.Environment()
    network = Network(scenario.topology, scenario.protocol, scenario.run.seed)
    messages, writer = MessageFile.begin() if scenario.run.records_messages else (None, None)
    record = writer.write if writer else None
    fabric = make_fabric(scenario, env, network, record)
    recorder = Recorder()
    busy = frozenset(int(host) for nodes in scenario.nodes for host in network.compiled.host_of_node[nodes])
    ends: list[simpy.Event] = []
    slow = [fault for fault in scenario.faults if isinstance(fault, HostSlow)]
    jobs = [
        start_job(env, fabric, recorder, settings, scenario.run, nodes, busy, ends, slow)
        for settings, nodes in zip(scenario.jobs, scenario.nodes, strict=True)
    ]
    if scenario.background is not None:
        start_background(env, fabric, scenario.background, scenario.run.seed)
    start_faults(env, fabric, [fault for fault in scenario.faults if isinstance(fault, (LinkFault, HostSlow))])
    started = _Counters(fabric)
    env.any_of([job.course.measured for job in jobs]).callbacks.append(lambda _: started.take())
    done = env.all_of([job.course.done for job in jobs])
    load = sample_load(env, fabric, done, _interval_s(scenario)) if scenario.run.records_timeline else None
    try:
        env.run(until=done)
    except RuntimeError:
        if done.triggered or env.peek() < math.inf:
            raise
        raise StalledError(f"nothing can move any more at {env.now:.9g} s: workers wait for each other") from None
    measurement = started.until_now()
    fabric.require_conservation()
    fabric.close()
    if writer is not None:
        writer.close()
    return Simulation(scenario, fabric, recorder, jobs, measurement, load, messages)


def run_scenario(scenario: Scenario) -> Result:
    """Run a scenario that is loaded, with kernels that are compiled."""
    began = time.perf_counter()
    return result_of(simulate(scenario), began)


def mean_iteration_time_s(simulation: Simulation, job: str) -> float:
    """Return what an iteration of a job takes, as in the summary, without making any tables [s]."""
    one = next(each for each in simulation.jobs if each.settings.name == job)
    rows = [row for row in simulation.recorder.rows(IterationRow) if row.job == job]
    times_s = [row.iteration_time_s for row in rows if row.iteration >= one.course.first[row.rank]]
    if not times_s:
        raise SimulationError(f"no worker of job {job} ended an iteration in the measured time")
    return math.fsum(times_s) / len(times_s) + (one.supervisor.recovery_s() if one.supervisor is not None else 0.0)


def result_of(simulation: Simulation, began: float) -> Result:
    """Make the tables of what has been simulated.

    Parameters
    ----------
    simulation : Simulation
    began : float
        When that began, by `time.perf_counter` [s].
    """
    scenario, fabric, recorder = simulation.scenario, simulation.fabric, simulation.recorder
    jobs, load, measurement = simulation.jobs, simulation.load, simulation.measurement
    tables = tables_of(scenario, jobs, recorder, fabric, measurement, lambda: time.perf_counter() - began)
    about = {
        "seed": scenario.run.seed,
        "protocol": scenario.protocol.name,
        "messages": fabric.counts.messages,
        "messages_simulated": fabric.counts.simulated_messages,
        "rate_solves": fabric.counts.solves,
        "simulated_s": float(fabric.env.now),
        "versions": _versions(),
    }
    if isinstance(fabric, PacketFabric):
        tables["queues"], tables["connections"] = queues_table(fabric), connections_table(fabric)
    if scenario.faults:
        tables["faults"] = faults_table(scenario.faults)
    if load is not None:
        tables["spans"], tables["load"] = spans_table(recorder.rows(SpanRow), jobs), load.table(fabric.network)
    return Result(
        **tables,
        scenario=scenario.resolved,
        about=about,
        warnings=(*scenario.warnings, *_odd(simulation, tables)),
        message_file=simulation.messages,
    )


def _odd(simulation: Simulation, tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Yield what is to be looked at twice; of which job, where there are several."""
    summary, iterations, links = tables["summary"], tables["iterations"], tables["links"]
    exchanges = simulation.recorder.rows(CollectiveRow)
    for place, job in enumerate(simulation.jobs):
        name = job.settings.name
        measured = iterations[(iterations["job"] == name) & (iterations["iteration"] >= 0)]
        own = [row for row in exchanges if row.job == name]
        look = Look(simulation.scenario, job, simulation.fabric, summary.iloc[place], measured, links, own)
        said = f"{name}: " if len(simulation.jobs) > 1 else ""
        yield from (f"{said}{warning}" for warning in sanity_warnings(look))


def _interval_s(scenario: Scenario) -> float:
    """Return how far apart samples of the load are at first: some hundred in what the fastest job computes [s]."""
    computing_s = [getattr(job.workload, "compute_time_s", 0.0) for job in scenario.jobs]
    return min((seconds for seconds in computing_s if seconds > 0.0), default=_SAMPLED_S) / _SAMPLES


_SAMPLED_S = 0.1
"""What is sampled where nothing says how long an iteration takes [s]."""

_SAMPLES = 200


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
