"""A job: workers, as SimPy processes, that compute and exchange gradients."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.recorder import Recorder
from simnet.fabric.fluid import FluidFabric
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


def start_job(
    env: simpy.Environment, fabric: FluidFabric, recorder: Recorder, settings: JobSettings, run: RunSettings
) -> Job:
    """Start the workers of a job.

    Parameters
    ----------
    env : simpy.Environment
    fabric : FluidFabric
    recorder : Recorder
        Receives an `IterationRow` for each worker and iteration, and a `CollectiveRow` for each exchange.
    settings : JobSettings
    run : RunSettings
    """
    training = settings.training
    nodes = participants(fabric.network.compiled, training.workers, training.architecture)
    buckets = make_buckets(
        settings.workload.tensor_elements.tolist(), training.gradient_element_bytes, training.bucket_bytes
    )
    exchanges: list[Exchange] = []
    if len(nodes) > 1:
        for bucket in buckets:
            schedule = exchange_schedule(
                training.architecture,
                training.workers,
                bucket.elements,
                training.gradient_element_bytes,
                divisible=fabric.network.protocol.divisible,
            )
            size = bucket.elements * training.gradient_element_bytes
            exchanges.append(Exchange(training.architecture.name, size, fabric.place(schedule, nodes)))
    compute = compute_times(settings, buckets, run.seed)
    communicator = Communicator(env, fabric, recorder, settings.name, training.workers, exchanges)
    measured, left = env.event(), [training.workers]

    def begin_measuring() -> None:
        left[0] -= 1
        if left[0] == 0:
            measured.succeed()

    def worker(rank: int) -> Generator[simpy.Event, object, None]:
        for iteration in range(run.warmup + run.iterations):
            if iteration == run.warmup:
                begin_measuring()
            yield from _iterate(
                env, fabric, recorder, settings, communicator, compute, int(nodes[rank]), iteration, rank
            )

    processes = [env.process(worker(rank)) for rank in range(training.workers)]
    return Job(settings, nodes, buckets, tuple(exchanges), compute, measured, env.all_of(processes))


def _iterate(
    env: simpy.Environment,
    fabric: FluidFabric,
    recorder: Recorder,
    settings: JobSettings,
    communicator: Communicator,
    compute: ComputeTimes,
    node: int,
    iteration: int,
    rank: int,
) -> Generator[simpy.Event, object, None]:
    """One iteration of one worker: compute, announce buckets on the way, wait until all are exchanged."""
    start_s, transferred_s = env.now, fabric.transfer_s(node)
    timeline = compute.timeline(iteration, rank)
    exchanges = range(len(communicator.exchanges))
    passed_s = 0.0
    if settings.training.overlap:
        for bucket in exchanges:
            ready_s = timeline.ready_s[bucket]
            if ready_s > passed_s:
                yield env.timeout(ready_s - passed_s)
                passed_s = ready_s
            communicator.announce(iteration, bucket)
    if timeline.total_s > passed_s:
        yield env.timeout(timeline.total_s - passed_s)
    if not settings.training.overlap:
        for bucket in exchanges:
            communicator.announce(iteration, bucket)
    stalled_at_s, busy_s = env.now, communicator.busy_s()
    for bucket in exchanges:
        yield from communicator.finish(iteration, bucket, rank)
    stall_s = env.now - stalled_at_s
    exposed_s = min(communicator.busy_s() - busy_s, stall_s)
    recorder.add(
        IterationRow(
            settings.name,
            iteration,
            rank,
            start_s,
            timeline.total_s,
            exposed_s,
            stall_s - exposed_s,
            fabric.transfer_s(node) - transferred_s,
        )
    )
