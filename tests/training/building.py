"""Small workloads and jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import simpy

from simnet.engine.recorder import Recorder
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.protocols import FlowProtocol
from simnet.topology import star
from simnet.training.job import Job, start_job
from simnet.training.records import CollectiveRow, IterationRow
from simnet.training.settings import JobSettings, RunSettings, TrainingSettings
from simnet.workload import GradientTensor, Layer, Model, RecordedTrace, Workload

B, P = 1e9, 1e-4
"""Bandwidth of the links of a star [bytes/s], latency of two of them [s]."""

SHORT = RunSettings(iterations=3, warmup=1)


def workload(
    elements: Sequence[int], *, forward_s: float = 0.01, backward_s: Sequence[float] | float = 0.02
) -> Workload:
    """One layer for each tensor; `elements` in the order in which they become ready, so from the last layer on."""
    count = len(elements)
    layers = tuple(Layer(f"layer{i}", parameters) for i, parameters in enumerate(reversed(elements)))
    tensors = tuple(GradientTensor(f"tensor{i}", size, count - 1 - i) for i, size in enumerate(elements))
    backward = np.full(count, backward_s / count) if isinstance(backward_s, float) else np.array(backward_s)
    forward = np.full(count, forward_s / count)
    return Workload(Model("made up", layers, tensors), "", "fp32", 8, forward, backward, "made up")


def run_job(
    load: Workload | RecordedTrace,
    training: TrainingSettings,
    run: RunSettings = SHORT,
    *,
    hosts: int = 0,
    start_s: float = 0.0,
    divisible: bool = True,
    latency_s: float = P,
) -> tuple[Job, list[IterationRow], list[CollectiveRow], FluidFabric]:
    """Run a job on a star under `ideal`; return its rows as well."""
    env, recorder = simpy.Environment(start_s), Recorder()
    topology = star(hosts=hosts or training.workers, bandwidth_bytes_per_s=B, latency_s=latency_s / 2)
    fabric = FluidFabric(env, Network(topology, FlowProtocol(divisible=divisible)))
    job = start_job(env, fabric, recorder, JobSettings("job", load, training), run)
    env.run(job.course.done)
    fabric.require_conservation()
    return job, recorder.rows(IterationRow), recorder.rows(CollectiveRow), fabric


def iteration_s(row: IterationRow) -> float:
    """Length of an iteration [s]."""
    return row.compute_time_s + row.exposed_communication_time_s + row.waiting_time_s


def ring_s(workers: int, size_bytes: float) -> float:
    """Ring all-reduce: 2 (N - 1) (S / (N B) + p)."""
    return 2 * (workers - 1) * (size_bytes / (workers * B) + P)


__all__ = ["B", "P", "iteration_s", "ring_s", "run_job", "workload"]
