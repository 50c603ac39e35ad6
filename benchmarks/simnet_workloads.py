"""The work of compare_simgrid.py in simnet: ``python simnet_workloads.py FILE``; without a file it starts and ends.

Prints one JSON object: the simulated time, counts, how long each flow took, and seconds of CPU by phase. ``start`` is
the interpreter with its imports, ``kernels`` the loading of the compiled kernels; neither depends on the work.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray
from works import BUFFER_ELEMENTS, ELEMENT_BYTES, Flows, Work, build_topology, read_work

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.play import Play
from simnet.fabric.settings import EngineSettings
from simnet.fabric.warm_up import compile_kernels
from simnet.protocols import FlowProtocol
from simnet.topology import Topology, star
from simnet.traffic import (
    Dependencies,
    Partition,
    Schedule,
    ScheduleBuilder,
    Until,
    parameter_server_push_pull,
    ring_all_reduce,
)

__all__ = ["flow_schedule", "load_kernels", "simulate", "waiting_for_delivery"]

FREE = FlowProtocol()
"""The protocol `ideal`: it costs nothing."""


def simulate(work: Work, phases: dict[str, float] | None = None, without: Sequence[str] = ()) -> dict[str, Any]:
    """Simulate a work.

    Parameters
    ----------
    work : Work
    phases : dict, optional
        Seconds of CPU by phase are added to it.
    without : sequence of str
        Fields of `EngineSettings` that are switched off.

    Returns
    -------
    dict
        ``simulated_s``; counts; ``flow_duration_s``, a list, empty where the work has no flows.
    """
    phases = {} if phases is None else phases
    engine = EngineSettings(**dict.fromkeys(without, False))
    with timed(phases, "topology"):
        topology = build_topology(work)
        fabric = FluidFabric(simpy.Environment(), Network(topology, FREE), engine=engine)
    if work.flows is not None:
        return _simulate_flows(work.flows, topology, fabric, phases)
    with timed(phases, "place"):
        placement = fabric.place(_collective(work), topology.compiled.rank_nodes[work.hosts])
    with timed(phases, "play"):
        skewed = bool(work.start_s.any())
        play = fabric.play(placement, work.collective, gates_open=not skewed)
        if skewed:
            fabric.env.process(_join(fabric.env, play, work.start_s))
        fabric.env.run()
    return _counts(fabric) | {"simulated_s": play.duration_s, "flow_duration_s": []}


def waiting_for_delivery(schedule: Schedule) -> Schedule:
    """Return a schedule in which each send waits until its previous message is delivered, not only drained.

    That is what an actor of SimGrid that waits for its message does.
    """
    old, each = schedule.dependencies, np.arange(len(schedule.operations))
    until, delay_s = np.full(len(each), Until.DELIVERED, dtype=np.int8), np.zeros(len(each))
    added = Dependencies(before=each, after=each, offset=np.ones_like(each), until=until, delay_s=delay_s)
    columns = {name: np.concatenate([getattr(old, name), column]) for name, column in vars(added).items()}
    return replace(schedule, dependencies=Dependencies(**columns))


def flow_schedule(flows: Flows, hosts: int, delay_s: NDArray[np.float64]) -> Schedule:
    """Return a schedule of single sends that begin at given times.

    Rank f < F is the sender of flow f, so that its completion is known by itself; ranks F .. F + hosts - 1 receive.

    Parameters
    ----------
    flows : Flows
    hosts : int
    delay_s : ndarray, shape (flows,)
        When each send begins [s].
    """
    count = len(flows)
    build = ScheduleBuilder("flows", count + hosts, Partition(1, 1.0))
    begin = build.calc(count)
    send = build.send(np.arange(count), count + flows.target, width=0, fixed_bytes=flows.size_bytes)
    build.depend(begin, send, delay_s=delay_s)
    return build.schedule()


def load_kernels() -> None:
    """Compile the kernels if they are not, and call the most important ones, which loads them."""
    compile_kernels(lambda _: None)
    topology = star(hosts=2)
    fabric = FluidFabric(simpy.Environment(), Network(topology, FREE))
    fabric.play(fabric.place(ring_all_reduce(2, 2, 4.0), topology.compiled.rank_nodes), "load")
    fabric.env.run()


@contextmanager
def timed(phases: dict[str, float], name: str) -> Iterator[None]:
    """Add the CPU time of a block to a phase."""
    begun = time.process_time()
    yield
    phases[name] = phases.get(name, 0.0) + time.process_time() - begun


def _collective(work: Work) -> Schedule:
    ranks = len(work.hosts)
    if work.collective == "push_pull":
        return parameter_server_push_pull(ranks - 1, 1, BUFFER_ELEMENTS, ELEMENT_BYTES)
    ring = ring_all_reduce(ranks, BUFFER_ELEMENTS, ELEMENT_BYTES, divisible=work.divisible)
    # Where all paths have the same latency, as on a star, waiting changes nothing.
    return ring if work.topology == "star" else waiting_for_delivery(ring)


def _join(env: simpy.Environment, play: Play, start_s: NDArray[np.float64]) -> Iterator[simpy.Event]:
    """Let each rank join at its time."""
    order = np.argsort(start_s, kind="stable")
    for rank, start in zip(order.tolist(), start_s[order].tolist(), strict=True):
        if start > env.now:
            yield env.timeout(start - env.now)
        play.open([rank])


def _simulate_flows(flows: Flows, topology: Topology, fabric: FluidFabric, phases: dict[str, float]) -> dict[str, Any]:
    """Play flows that wait for their latency before they take bandwidth, weighted by 1/latency, as those of CM02 do.

    So each begins later by its latency, and is over when it has drained.
    """
    with timed(phases, "place"):
        nodes = topology.compiled.rank_nodes
        source, target = nodes[flows.source], nodes[flows.target]
        pairs = zip(source.tolist(), target.tolist(), strict=True)
        latency = np.array([fabric.network.route(*pair).latency_s for pair in pairs])
        # The schedule's first operation is the calculation that all sends wait for.
        weight = np.concatenate([[1.0], latency.max() / latency])
        schedule = flow_schedule(flows, len(nodes), flows.start_s + latency)
        placement = fabric.place(schedule, [*source, *nodes], weight=weight)
    with timed(phases, "play"):
        play = fabric.play(placement, "flows")
        fabric.env.run()
    drained = play.rank_duration_s[: len(flows)]
    duration = (drained - flows.start_s).tolist()
    return _counts(fabric) | {"simulated_s": float(drained.max()), "flow_duration_s": duration}


def _counts(fabric: FluidFabric) -> dict[str, Any]:
    return asdict(fabric.counts)


def main() -> None:
    """Simulate the work of a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", help="written by compare_simgrid.py")
    parser.add_argument("--without", nargs="+", default=[], help="fields of EngineSettings to switch off")
    arguments = parser.parse_args()
    phases = {"start": time.process_time()}
    with timed(phases, "kernels"):
        load_kernels()
    result: dict[str, Any] = {}
    if arguments.file is not None:
        with timed(phases, "read"):
            work = read_work(arguments.file)
        result = simulate(work, phases, arguments.without)
    print(json.dumps(result | {"cpu_s": phases}))


if __name__ == "__main__":
    main()
