"""Traffic of others: flows between hosts that begin at random and share the links with everything else."""

from __future__ import annotations

import itertools

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.random_streams import random_stream
from simnet.engine.waits import Waits
from simnet.fabric.interface import Fabric
from simnet.fabric.play import Play
from simnet.topology import CompiledTopology
from simnet.traffic import Partition, Schedule, ScheduleBuilder
from simnet.training.settings import BackgroundSettings

__all__ = ["PAIRS", "SIZES", "flow_sizes", "start_background"]

SIZES = ("fixed", "exponential", "pareto")
"""Distributions of the sizes of flows."""

PAIRS = ("random", "permutation")
"""Who sends to whom."""

_FLOWS = 500  # that are drawn, and played as one schedule, at a time

_MOST_BATCHES = 16
"""Where the network cannot carry the load, others wait until it has carried some; a large flow keeps its batch."""


def start_background(env: simpy.Environment, fabric: Fabric, settings: BackgroundSettings, seed: int) -> None:
    """Let others use the network from now on, as long as the simulation runs.

    Flows begin as a Poisson process, in the mean `load` times the bandwidth of its way out for each host. Where the
    network cannot carry that, new ones wait until earlier ones are over.
    """
    if settings.load > 0.0:
        env.process(_flows(env, fabric, settings, seed))


def flow_sizes(settings: BackgroundSettings, count: int, stream: np.random.Generator) -> NDArray[np.float64]:
    """Draw the sizes of flows, shape (count,) [bytes]."""
    mean = settings.mean_bytes
    match settings.sizes:
        case "fixed":
            return np.full(count, mean)
        case "exponential":
            return stream.exponential(mean, count)
        case "pareto":
            # With the least size so that the mean is as given.
            least = mean * (settings.shape - 1.0) / settings.shape
            return np.asarray(least * (1.0 + stream.pareto(settings.shape, count)), dtype=np.float64)
    raise ValueError(f"unknown distribution {settings.sizes!r}")


def _flows(env: simpy.Environment, fabric: Fabric, settings: BackgroundSettings, seed: int) -> Waits:
    compiled = fabric.network.compiled
    hosts, rates = _ways_out(compiled)
    if len(hosts) < 2:
        return
    stream = random_stream(seed, "background")
    partner = _permutation(len(hosts), stream)
    flows_per_s = settings.load * rates / settings.mean_bytes
    under_way: list[Play] = []
    for number in itertools.count():
        starts_s = np.cumsum(stream.exponential(1.0 / flows_per_s.sum(), _FLOWS))
        source = stream.choice(len(hosts), _FLOWS, p=flows_per_s / flows_per_s.sum())
        if settings.pairs == "permutation":
            target = partner[source]
        else:
            target = (source + stream.integers(1, len(hosts), _FLOWS)) % len(hosts)
        schedule = _timed_sends(len(hosts), starts_s, source, target, flow_sizes(settings, _FLOWS, stream))
        under_way.append(fabric.play(fabric.place(schedule, hosts), f"background traffic, batch {number}"))
        yield env.timeout(float(starts_s[-1]))
        under_way = [play for play in under_way if not play.complete.triggered]
        if len(under_way) > _MOST_BATCHES:
            yield env.any_of([play.complete for play in under_way])


def _timed_sends(
    ranks: int,
    starts_s: NDArray[np.float64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    sizes: NDArray[np.float64],
) -> Schedule:
    """Return sends that each begin at a time of their own."""
    build = ScheduleBuilder("background traffic", ranks, Partition(1, 1.0))
    begin = build.calc(source, starts_s)
    build.depend(begin, build.send(source, target, width=0, fixed_bytes=sizes))
    return build.schedule()


def _ways_out(compiled: CompiledTopology) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the hosts, and the bandwidth of all links that leave each for the network, shape (hosts,) [bytes/s]."""
    hosts = np.array([node for node, kind in enumerate(compiled.node_kind) if kind == "host"], dtype=np.int64)
    owner = compiled.host_of_node
    leaves = (owner[compiled.link_source] >= 0) & (owner[compiled.link_target] != owner[compiled.link_source])
    out = np.bincount(
        owner[compiled.link_source[leaves]],
        weights=compiled.link_bandwidth[leaves],
        minlength=len(compiled.node_names),
    )
    return hosts, np.asarray(out[hosts], dtype=np.float64)


def _permutation(count: int, stream: np.random.Generator) -> NDArray[np.int64]:
    """Return for each host another, each once: a random cycle."""
    order = stream.permutation(count)
    partner = np.empty(count, dtype=np.int64)
    partner[order] = np.roll(order, -1)
    return partner
