"""A job: workers, as SimPy processes, that compute and exchange gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.random_streams import random_stream
from simnet.engine.recorder import Recorder
from simnet.fabric.interface import Fabric
from simnet.training.buckets import Bucket, make_buckets
from simnet.training.communicator import Communicator, Exchange
from simnet.training.compute import ComputeTimes, compute_times
from simnet.training.exchange import exchange_schedule, participants
from simnet.training.records import IterationRow
from simnet.training.settings import JobSettings, RunSettings

__all__ = ["Job", "start_job"]


@dataclass(frozen=True, eq=False)
class Job:
    """A job that has been started.

    Attributes
    ----------
    settings : JobSettings
    nodes : node index of each worker, then of each server
    buckets : tuple of Bucket
    exchanges : tuple of Exchange
        One a bucket; empty where there is nobody to exchange with.
    compute : ComputeTimes
    measured : simpy.Event
        Happens when the last worker begins its first measured iteration.
    done : simpy.Event
        Happens when the last worker is through.
    """

    settings: JobSettings
    nodes: NDArray[np.int64]
    buckets: tuple[Bucket, ...]
    exchanges: tuple[Exchange, ...]
    compute: ComputeTimes
    measured: simpy.Event
    done: simpy.Event


@dataclass(frozen=True, eq=False)
class _Group:
    """What the workers of a job share."""

    env: simpy.Environment
    fabric: Fabric
    recorder: Recorder
    settings: JobSettings
    run: RunSettings
    nodes: NDArray[np.int64]
    compute: ComputeTimes
    communicator: Communicator


def start_job(
    env: simpy.Environment, fabric: Fabric, recorder: Recorder, settings: JobSettings, run: RunSettings
) -> Job:
    """Start the workers of a job.

    Parameters
    ----------
    env : simpy.Environment
    fabric : Fabric
    recorder : Recorder
        Receives an `IterationRow` for each worker and iteration, and a `CollectiveRow` for each exchange.
    settings : JobSettings
    run : RunSettings
    """
    training = settings.training
    nodes = participants(fabric.network.compiled, training.workers, training.architecture)
    if training.placement == "random":
        shuffled = random_stream(run.seed, "placement", settings.name).permutation(nodes[: training.workers])
        nodes = np.concatenate([shuffled, nodes[training.workers :]])
    elements = settings.workload.tensor_elements.tolist()
    buckets = make_buckets(elements, training.gradient_element_bytes, training.bucket_bytes)
    exchanges = tuple(_exchange(fabric, settings, nodes, bucket) for bucket in buckets) if len(nodes) > 1 else ()
    compute = compute_times(settings, buckets, run.seed)
    communicator = Communicator(env, fabric, recorder, settings.name, training.workers, exchanges)
    group = _Group(env, fabric, recorder, settings, run, nodes, compute, communicator)
    begin_measuring, measured = _after(env, training.workers)
    processes = [env.process(_worker(group, rank, begin_measuring)) for rank in range(training.workers)]
    return Job(settings, nodes, buckets, exchanges, compute, measured, env.all_of(processes))


def _exchange(fabric: Fabric, settings: JobSettings, nodes: NDArray[np.int64], bucket: Bucket) -> Exchange:
    """Lay out how a bucket is exchanged."""
    training = settings.training
    element_bytes = training.gradient_element_bytes
    divisible = fabric.network.protocol.divisible
    schedule = exchange_schedule(
        training.architecture, training.workers, bucket.elements, element_bytes, divisible=divisible
    )
    return Exchange(training.architecture.name, bucket.elements * element_bytes, fabric.place(schedule, nodes))


def _after(env: simpy.Environment, count: int) -> tuple[Callable[[], None], simpy.Event]:
    """Return a function, and an event that happens when it has been called so many times."""
    event, left = env.event(), [count]

    def call() -> None:
        left[0] -= 1
        if left[0] == 0:
            event.succeed()

    return call, event


def _worker(group: _Group, rank: int, begin_measuring: Callable[[], None]) -> Generator[simpy.Event, object, None]:
    for iteration in range(group.run.warmup + group.run.iterations):
        if iteration == group.run.warmup:
            begin_measuring()
        yield from _iterate(group, iteration, rank)


def _iterate(group: _Group, iteration: int, rank: int) -> Generator[simpy.Event, object, None]:
    """One iteration of one worker: compute, announce buckets on the way, wait until all are exchanged, update."""
    env, communicator, node = group.env, group.communicator, int(group.nodes[rank])
    start_s, transferred_s = env.now, group.fabric.transfer_s(node)
    timeline = group.compute.timeline(iteration, rank)
    exchanges = range(len(communicator.exchanges))
    overlap = group.settings.training.overlap
    passed_s = 0.0
    if overlap:
        for bucket in exchanges:
            ready_s = timeline.ready_s[bucket]
            if ready_s > passed_s:
                yield env.timeout(ready_s - passed_s)
                passed_s = ready_s
            communicator.announce(iteration, bucket)
    if timeline.gradients_s > passed_s:
        yield env.timeout(timeline.gradients_s - passed_s)
    if not overlap:
        for bucket in exchanges:
            communicator.announce(iteration, bucket)
    stalled_at_s, busy_s = env.now, communicator.busy_s()
    for bucket in exchanges:
        yield from communicator.finish(iteration, bucket, rank)
    stall_s = env.now - stalled_at_s
    exposed_s = min(communicator.busy_s() - busy_s, stall_s)
    if stall_s - exposed_s <= 8.0 * math.ulp(env.now):
        # Both come from the clock, which shows no shorter time.
        exposed_s = stall_s
    if timeline.update_s > 0.0:
        yield env.timeout(timeline.update_s)
    group.recorder.add(
        IterationRow(
            group.settings.name,
            iteration,
            rank,
            start_s,
            timeline.total_s,
            exposed_s,
            stall_s - exposed_s,
            group.fabric.transfer_s(node) - transferred_s,
        )
    )
