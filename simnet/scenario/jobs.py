"""From the sections of a job to settings, and whether these fit together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simnet.errors import InputError, Problem, nearest
from simnet.scenario.job_models import DatasetSpec
from simnet.scenario.room import Room
from simnet.topology import Topology
from simnet.training.communication.architectures import arrange
from simnet.training.communication.compression import NUMBER_BYTES, is_factored
from simnet.training.layout import lay_out_workers
from simnet.training.memory import is_measured, largest_memory_use, memory_limit_bytes, splits_that_fit
from simnet.training.settings import DatasetSettings, JobSettings, Parallelism, RunSettings, TrainingSettings
from simnet.units import format_bandwidth, format_size
from simnet.workload import DataflowWorkload, GroupedWorkload, RecordedTrace, Workload, parts_of

__all__ = ["PlacedJob", "build_dataset", "fit_to_workload", "place_job"]


@dataclass(frozen=True, eq=False)
class PlacedJob:
    """A job whose workers have their places.

    Attributes
    ----------
    settings : JobSettings
    nodes : ndarray of int, shape (workers,)
        Node index of each worker.
    notes : tuple of str
        What is odd about it, in words.
    """

    settings: JobSettings
    nodes: NDArray[np.int64]
    notes: tuple[str, ...]


def build_dataset(spec: DatasetSpec, topology: Topology) -> DatasetSettings:
    """Return where training data comes from.

    Raises
    ------
    InputError
        A node that is not there, no storage where it is needed, or no number of samples.
    """
    problems = []
    compiled = topology.compiled
    storage = tuple(
        name for name, kind in zip(compiled.node_names, compiled.node_kind, strict=True) if kind == "storage"
    )
    if spec.storage is not None:
        storage = (spec.storage,)
        if spec.storage not in compiled.node_index:
            message = f"topology {topology.name} has no node {spec.storage!r}"
            problems.append(Problem(message, nearest(spec.storage, compiled.node_names), ("storage",)))
        elif compiled.node_kind[compiled.node_index[spec.storage]] not in ("storage", "host"):
            message = f"{spec.storage!r} is a {compiled.node_kind[compiled.node_index[spec.storage]]}"
            problems.append(Problem(message, "a node of kind storage or host is wanted", ("storage",)))
    elif not storage and spec.split == "sampled":
        message = f"topology {topology.name} has no node of kind storage"
        problems.append(Problem(message, "name the node that the data is on, or add one", ("storage",)))
    if spec.split != "sampled" and spec.samples is None:
        message = f"'samples' is missing in dataset, and {spec.split} workers have a share of them each"
        problems.append(Problem(message, "give the number of samples", ("samples",)))
    if spec.reshuffle and spec.split != "sharded":
        message = f"reshuffle has no effect where samples are {spec.split}"
        problems.append(Problem(message, "it goes with split: sharded", ("reshuffle",)))
    if problems:
        raise InputError(problems)
    return DatasetSettings(
        spec.bytes_per_sample,
        storage,
        spec.split,
        spec.samples or 0,
        spec.prefetch,
        spec.reshuffle,
        spec.partial_sum_size,
    )


def fit_to_workload(training: TrainingSettings, workload: object) -> TrainingSettings:
    """Return settings in which each device of a dataflow graph is a worker, as stages of a pipeline are."""
    if not isinstance(workload, DataflowWorkload) or training.grid.replica > 1:
        return training
    devices = workload.graph.devices
    if training.workers % devices:
        return training
    return replace(training, parallelism=Parallelism(data=training.workers // devices, pipeline=devices))


def place_job(job: JobSettings, room: Room, run: RunSettings, notes: tuple[str, ...] = ()) -> PlacedJob:
    """Give the workers of a job their places, and see whether all of it fits together.

    Parameters
    ----------
    job : JobSettings
    room : Room
    run : RunSettings
    notes : tuple of str
        What is odd about it already.

    Raises
    ------
    InputError
        Workers or servers that have no room, a model that cannot be split so, or does not fit into memory.
    """
    problems = [*_split_problems(job), *_compression_problems(job), *_sync_problems(job, run)]
    sync = job.training.sync
    if sync.name == "local_sgd" and run.iterations % sync.period:
        notes += (f"{run.iterations} iterations are no multiple of the period of local_sgd, {sync.period}",)
    nodes = np.empty(0, dtype=np.int64)
    try:
        nodes = lay_out_workers(room.topology.compiled, job, run.seed, room.taken)
    except InputError as error:
        problems += (problem.under("training") for problem in error.problems)
    if not problems:
        try:
            group = nodes[[job.training.grid.rank_of(0, replica, 0) for replica in range(job.training.grid.data)]]
            arrange(job.training.architecture, room.topology, group)
        except InputError as error:
            name = job.training.architecture.name
            problems += (problem.under("training", "architecture", name) for problem in error.problems)
    if not problems:
        notes += tuple(_bandwidth_notes(job, float(room.topology.compiled.node_memory_bandwidth[nodes].min())))
        memory = list(_memory_problems(job))
        if job.training.allow_oversubscribed:
            notes += tuple(f"{problem.message}, which is allowed" for problem in memory)
        else:
            problems += memory
    if problems:
        raise InputError(problems)
    return PlacedJob(job, nodes, notes)


def _split_problems(job: JobSettings) -> Iterator[Problem]:
    """Yield why a model cannot be split as it is wanted."""
    workload, grid = job.workload, job.training.grid
    if isinstance(workload, DataflowWorkload):
        devices = workload.graph.devices
        if job.training.accumulation > 1:
            message = "accumulation stands beside a dataflow graph"
            yield Problem(message, "a step of the graph is an iteration", ("training", "accumulation"))
        if grid.pipeline != devices or grid.inner > 1:
            message = f"{job.training.workers} workers cannot be the {devices} devices of each replica of the graph"
            yield Problem(message, f"a multiple of {devices} is wanted", ("training", "workers"))
            return
        # How many replicas there are is known only here.
        architecture = job.training.architecture
        for option in ("group", "rows", "columns"):
            number = architecture.options.get(option)
            if number is not None and grid.data % number:
                message = f"{grid.data} replicas of the graph do not go with {option}: {number}"
                place = ("training", "architecture", architecture.name, option)
                yield Problem(message, f"a divisor of {grid.data} is wanted", place)
        return
    if job.dataset is not None and 0 < job.dataset.samples < job.samples_per_iteration:
        message = f"a data set of {job.dataset.samples} samples is less than the {grid.data} batches of one iteration"
        yield Problem(message, f"at least {job.samples_per_iteration} is wanted", ("dataset", "samples"))
    if isinstance(workload, RecordedTrace) and job.training.accumulation > 1:
        message = "accumulation stands beside a recorded trace"
        yield Problem(message, "a step is recorded with all its passes", ("training", "accumulation"))
    if grid.replica == 1:
        return
    if isinstance(workload, RecordedTrace):
        message = "a recorded trace is of workers with the whole model"
        yield Problem(message, "only data parallelism is possible", ("training", "parallelism"))
        return
    if isinstance(workload, GroupedWorkload):
        message = "groups of workers have the whole model each"
        yield Problem(message, "only data parallelism is possible", ("training", "parallelism"))
        return
    for given, seconds in (("serial_time", workload.serial_s), ("memory_hierarchy", workload.memory_s)):
        if seconds:
            message = f"{given} stands beside a model that is split"
            yield Problem(message, "only data parallelism is possible", ("training", "parallelism"))
    layers = len(workload.model.layers)
    if grid.pipeline > layers:
        message = f"the {layers} layers of {workload.model.name} cannot be cut into {grid.pipeline} stages"
        yield Problem(message, f"at most {layers} are possible", ("training", "parallelism", "pipeline"))
    pieces = grid.micro_batches * grid.shared_memory
    if workload.batch_size % pieces:
        message = f"a batch of {workload.batch_size} samples cannot be cut into {pieces} equal pieces"
        key = ("pipeline", "micro_batches") if grid.micro_batches > 1 else ("parallelism", "shared_memory")
        yield Problem(
            message, "micro-batches, and workers that share memory, have as many samples each", ("training", *key)
        )
    if grid.shared_memory > 1 and not any(layer.memory_bytes for layer in workload.model.layers):
        message = f"{workload.model.name} does not say how much memory its layers read and write"
        yield Problem(message, "give them memory_bytes", ("training", "parallelism", "shared_memory"))


def _sync_problems(job: JobSettings, run: RunSettings) -> Iterator[Problem]:
    """Yield why workers cannot synchronise as it is wanted."""
    sync = job.training.sync
    if run.duration_s is not None and not sync.waits_alone:
        hint = "give iterations, or sync: asp or ssp"
        yield Problem(f"sync {sync.name} stands beside run.duration", hint, ("training", "sync"))
    if sync.waits_alone and isinstance(job.workload, DataflowWorkload):
        message = f"sync {sync.name} stands beside a dataflow graph"
        yield Problem(message, "only workers with the whole model exchange by themselves", ("training", "sync"))


def _compression_problems(job: JobSettings) -> Iterator[Problem]:
    """Yield why the gradients of a model cannot be compressed so."""
    training, model = job.training, job.workload.model
    if training.compression is None:
        return
    name = training.compression.name
    place = ("training", "compression", name)
    if training.grid.replica > 1 or isinstance(job.workload, DataflowWorkload):
        yield Problem(
            f"{name} stands beside a model that is split", "workers with the whole model compress: leave one out", place
        )
    if training.gradient_element_bytes != NUMBER_BYTES:
        message = f"gradient_dtype stands beside compression {name}"
        yield Problem(message, "what is compressed is fp32: leave one of them out", ("workload", "gradient_dtype"))
    if name == "low_rank":
        rank = int(training.compression.options["rank"])
        if not any(is_factored(tensor, rank) for tensor in model.tensors):
            message = f"no gradient of {model.name} is a matrix that two factors of rank {rank} are smaller than"
            known = any(len(tensor.shape) > 1 for tensor in model.tensors)
            hint = "a smaller rank is wanted" if known else "a shipped model is wanted, whose gradients have shapes"
            yield Problem(message, hint, place)


def _bandwidth_notes(job: JobSettings, bandwidth: float) -> Iterator[str]:
    """Yield that one worker alone already asks for more memory bandwidth than its host has, whose times cannot be."""
    workload, grid = job.workload, job.training.grid
    if grid.shared_memory == 1 or not isinstance(workload, Workload):
        return
    moved = 3.0 * workload.batch_size * sum(layer.memory_bytes for layer in workload.model.layers)
    demand = moved / workload.compute_time_s
    if demand > bandwidth:
        asked, there = format_bandwidth(demand), format_bandwidth(bandwidth)
        name = workload.model.name
        yield f"the layers of {name} move {asked} in their times, more than the {there} of a host's memory"


def _memory_problems(job: JobSettings) -> Iterator[Problem]:
    """Yield that a job does not fit into memory, with the sum, and what would fit."""
    for number, part in enumerate(parts_of(job.workload)):
        alike = replace(job, workload=part)
        use, limit = largest_memory_use(alike), memory_limit_bytes(alike)
        if use is None or limit is None or use.total_bytes <= limit or is_measured(alike):
            continue
        parts = ", ".join(
            f"{format_size(getattr(use, f'{part}_bytes'))} {part}"
            for part in ("parameters", "gradients", "optimizer", "activations", "buffers")
        )
        total, there = format_size(use.total_bytes), format_size(limit)
        message = f"{total} a worker do not fit into the {there} of {part.gpu}: {parts}"
        found = list(splits_that_fit(alike, limit))
        hint = (
            f"these would fit: {'; '.join(found)}"
            if found
            else "a smaller batch, or more workers to split the model over"
        )
        in_group = ("groups", number) if isinstance(job.workload, GroupedWorkload) else ("gpu",)
        yield Problem(message, f"{hint}; with allow_oversubscribed: true it goes on", ("workload", *in_group))
