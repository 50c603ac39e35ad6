"""Simulate a scenario: from what is loaded to what was recorded, before any table is made of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import simpy

from simnet.engine.recorder import Recorder
from simnet.errors import StalledError
from simnet.experiment.load import LoadSamples, sample_load
from simnet.experiment.messages import MessageFile
from simnet.experiment.tables import Measurement
from simnet.experiment.telling import Progress, Show, counting, tell_nobody, watched
from simnet.fabric.faults import HostSlow, LinkFault, start_faults
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.interface import Fabric
from simnet.fabric.messages import TakeMessages
from simnet.fabric.network import Network
from simnet.fabric.packet.fabric import PacketFabric, compile_packet_kernels
from simnet.fabric.warm_up import compile_kernels
from simnet.protocols import own_controls
from simnet.scenario import Scenario
from simnet.training.background import start_background
from simnet.training.job import Job, start_job
from simnet.training.records import IterationRow
from simnet.training.settings import RunSettings

__all__ = ["COMPILING", "Simulation", "compile_all", "compile_for", "make_fabric", "simulate"]

COMPILING = "compiling"
"""What is going on while kernels are compiled, of which nobody knows how far it is."""


def compile_for(scenario: Scenario, say: Callable[[str], None], show: Show = tell_nobody) -> None:
    """Compile the kernels that a scenario needs, where they are not yet."""
    compile_all(say, show, packets=scenario.packet is not None)


def compile_all(say: Callable[[str], None], show: Show = tell_nobody, *, packets: bool = False) -> None:
    """Compile the kernels, also those of the packet level if they are wanted, where they are not yet."""
    with watched(show, counting(COMPILING, 0, lambda: 0)):
        compile_kernels(say)
        if packets:
            compile_packet_kernels(say)


def make_fabric(scenario: Scenario, env: simpy.Environment, network: Network, record: TakeMessages | None) -> Fabric:
    """Return the fabric that a scenario asks for."""
    common = (env, network, scenario.reduce_s_per_byte, scenario.engine, record)
    if scenario.packet is None:
        return FluidFabric(*common)
    slow_hosts = {fault.host for fault in scenario.faults if isinstance(fault, HostSlow)}
    controls = own_controls(scenario.protocol.transport.congestion_control)
    return PacketFabric(
        *common, settings=scenario.packet, seed=scenario.run.seed, controls=controls, slow_hosts=slow_hosts
    )


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
    began_s : float
        When that began, by `time.perf_counter` [s].
    """

    scenario: Scenario
    fabric: Fabric
    recorder: Recorder
    jobs: list[Job]
    measurement: Measurement
    load: LoadSamples | None
    messages: MessageFile | None
    began_s: float


def simulate(scenario: Scenario, show: Show = tell_nobody) -> Simulation:
    """Simulate a scenario that is loaded, with kernels that are compiled.

    Parameters
    ----------
    scenario : Scenario
    show : callable
        Shown how many iterations are over.
    """
    began_s = time.perf_counter()
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
        with watched(show, _course(env, scenario.run, recorder, sum(len(nodes) for nodes in scenario.nodes))):
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
    return Simulation(scenario, fabric, recorder, jobs, measurement, load, messages, began_s)


def _course(env: simpy.Environment, run: RunSettings, recorder: Recorder, workers: int) -> Callable[[], Progress]:
    """Return what tells how many iterations are over, in the mean over all workers, or how much of a given time."""
    if run.duration_s is not None:
        rate = _PARTS / run.duration_s
        return counting("thousandths of the time", _PARTS, lambda: min(int(env.now * rate), _PARTS))
    return counting("iterations", run.warmup + run.iterations, lambda: recorder.count(IterationRow) // workers)


def _interval_s(scenario: Scenario) -> float:
    """Return how far apart samples of the load are at first: some hundred in what the fastest job computes [s]."""
    computing_s = [getattr(job.workload, "compute_time_s", 0.0) for job in scenario.jobs]
    return min((seconds for seconds in computing_s if seconds > 0.0), default=_SAMPLED_S) / _SAMPLES


_SAMPLED_S = 0.1
"""What is sampled where nothing says how long an iteration takes [s]."""

_SAMPLES = 200
_PARTS = 1000


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
