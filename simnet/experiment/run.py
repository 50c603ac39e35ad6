"""Run a scenario."""

from __future__ import annotations

import math
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import simpy

from simnet.engine.recorder import Recorder
from simnet.errors import StalledError
from simnet.experiment.load import sample_load
from simnet.experiment.messages import MessageFile
from simnet.experiment.result import Result
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
from simnet.training.job import start_job
from simnet.training.records import SpanRow

__all__ = ["run", "run_scenario"]


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
    compile_kernels(say or _say)
    if scenario.packet is not None:
        compile_packet_kernels(say or _say)
    if timeline:
        scenario = replace(scenario, run=replace(scenario.run, records_timeline=True))
    return run_scenario(scenario)


def _fabric(scenario: Scenario, env: simpy.Environment, network: Network, record: TakeMessages | None) -> Fabric:
    """Return the fabric that a scenario asks for."""
    common = (env, network, scenario.reduce_s_per_byte, scenario.engine, record)
    if scenario.packet is None:
        return FluidFabric(*common)
    slow_hosts = {fault.host for fault in scenario.faults if isinstance(fault, HostSlow)}
    return PacketFabric(*common, settings=scenario.packet, seed=scenario.run.seed, slow_hosts=slow_hosts)


def run_scenario(scenario: Scenario) -> Result:
    """Run a scenario that is loaded, with kernels that are compiled."""
    began = time.perf_counter()
    env = simpy.Environment()
    network = Network(scenario.topology, scenario.protocol, scenario.run.seed)
    messages, writer = MessageFile.begin() if scenario.run.records_messages else (None, None)
    record = writer.write if writer else None
    fabric = _fabric(scenario, env, network, record)
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

    tables = tables_of(scenario, jobs, recorder, fabric, measurement, lambda: time.perf_counter() - began)
    about = {
        "seed": scenario.run.seed,
        "protocol": scenario.protocol.name,
        "messages": fabric.counts.messages,
        "messages_simulated": fabric.counts.simulated_messages,
        "rate_solves": fabric.counts.solves,
        "simulated_s": float(env.now),
        "versions": _versions(),
    }
    if isinstance(fabric, PacketFabric):
        tables["queues"], tables["connections"] = queues_table(fabric), connections_table(fabric)
    if scenario.faults:
        tables["faults"] = faults_table(scenario.faults)
    if load is not None:
        tables["spans"], tables["load"] = spans_table(recorder.rows(SpanRow), jobs), load.table(network)
    warnings = (*scenario.warnings, *_overflows(scenario, fabric))
    return Result(**tables, scenario=scenario.resolved, about=about, warnings=warnings, message_file=messages)


def _overflows(scenario: Scenario, fabric: Fabric) -> Iterator[str]:
    """Yield in words where the flow level is known not to be right."""
    links = fabric.overflowing if isinstance(fabric, FluidFabric) else []
    if links:
        more = f" and {len(links) - 1} more" if len(links) > 1 else ""
        yield (
            f"the queue of {links[0]}{more} would overflow with {scenario.protocol.name}, and what is dropped and sent "
            "again then is not simulated at fidelity flow: the time may be far too short, see fidelity: packet"
        )


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
