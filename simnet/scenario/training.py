"""From the section ``training`` of a validated job to settings."""

from __future__ import annotations

from types import MappingProxyType

from simnet.errors import InputError
from simnet.scenario.algorithm_options import fitted
from simnet.scenario.compute import build_stragglers, target_samples
from simnet.scenario.compute_models import DISTRIBUTIONS
from simnet.scenario.exchange_models import CompressionSpec
from simnet.scenario.job_models import CheckpointSpec, PipelineSpec, TensorSpec, TrainingSpec
from simnet.scenario.room import Room, architecture_of, worker_count, workers_of_a_replica
from simnet.scenario.scheduling import build_scheduling, idle_scheduling
from simnet.scenario.training_problems import training_problems
from simnet.training.communication.compression import SCHEMES, standard_costs_s_per_byte
from simnet.training.communication.settings import Architecture, Compression, Sync
from simnet.training.recovery.settings import DISK_BYTES_PER_S, Checkpoint
from simnet.training.settings import Jitter, OverlapSlowdown, Parallelism, TrainingSettings
from simnet.workload import DTYPE_BYTES

__all__ = ["build_training", "idle_notes"]


def build_training(spec: TrainingSpec, gradient_dtype: str, room: Room) -> TrainingSettings:
    """Return the training settings in SI units.

    Raises
    ------
    InputError
        More workers than ranks, options or speeds of workers that do not exist; all at once.
    """
    problems = training_problems(spec, room)
    if problems:
        raise InputError(problems)
    workers = worker_count(spec, room)
    speeds = [1.0] * workers
    if isinstance(spec.speed_factors, tuple):
        speeds = list(spec.speed_factors) or speeds
    else:
        for rank, speed in spec.speed_factors.items():
            speeds[rank] = speed
    jitter = None
    if spec.jitter is not None:
        parameter = getattr(spec.jitter, DISTRIBUTIONS[spec.jitter.distribution])
        jitter = Jitter(spec.jitter.distribution, parameter)
    grid = _grid(spec, workers)
    architecture = architecture_of(spec.architecture)
    options = fitted(architecture.options, room.topology.compiled, grid.data if grid else workers)
    return TrainingSettings(
        workers=workers,
        architecture=Architecture(architecture.name, MappingProxyType(options)),
        sync=Sync(spec.sync.name, **dict(spec.sync.options)),
        bucket_bytes=spec.bucket_size,
        overlap=spec.overlap,
        forward_overlap=spec.forward_overlap,
        gradient_element_bytes=float(DTYPE_BYTES[gradient_dtype]),
        jitter=jitter,
        speed_factors=tuple(speeds),
        stragglers=build_stragglers(spec.stragglers or ()),
        overlap_slowdown=OverlapSlowdown(spec.overlap_slowdown.compute, spec.overlap_slowdown.communication)
        if spec.overlap_slowdown
        else None,
        step_overhead_s=spec.step_overhead,
        accumulation=spec.accumulation,
        target_samples=target_samples(spec.target),
        placement=spec.placement,
        parallelism=grid,
        zero_stage=spec.zero_stage,
        optimizer=spec.optimizer,
        allow_oversubscribed=spec.allow_oversubscribed,
        compression=_compression(spec.compression),
        scheduling=build_scheduling(spec.scheduling),
        checkpoint=_checkpoint(spec.checkpoint),
    )


def idle_notes(spec: TrainingSpec) -> tuple[str, ...]:
    """Return what is given and has no effect, in words; a sweep may well end where nothing is split."""
    split = spec.parallelism
    notes = []
    if spec.pipeline != PipelineSpec.model_validate({}) and workers_of_a_replica(spec) == 1:
        notes.append("pipeline has no effect where no model is split")
    if spec.tensor != TensorSpec.model_validate({}) and (split is None or split.tensor == 1):
        notes.append("tensor has no effect where no layers are shared")
    return (
        *notes,
        *idle_scheduling(spec.scheduling, architecture=spec.architecture.name, forward_overlap=spec.forward_overlap),
    )


def _compression(spec: CompressionSpec) -> Compression | None:
    """Return how gradients are compressed, with what it takes; None where they are not."""
    if spec.name == "none":
        return None
    given, option = spec.options, SCHEMES[spec.name].option
    options = {option: getattr(given, option)} if option else {}
    compress_s, decompress_s = standard_costs_s_per_byte(spec.name, options)
    return Compression(
        spec.name,
        MappingProxyType(options),
        compress_s if given.compress_rate is None else 1.0 / given.compress_rate,
        decompress_s if given.decompress_rate is None else 1.0 / given.decompress_rate,
        given.error_feedback,
    )


def _checkpoint(spec: CheckpointSpec | None) -> Checkpoint | None:
    if spec is None:
        return None
    return Checkpoint(spec.every, spec.storage, spec.blocking, spec.size, spec.rate or DISK_BYTES_PER_S)


def _grid(spec: TrainingSpec, workers: int) -> Parallelism | None:
    """Return how work is split; None where it is all data-parallel."""
    split = spec.parallelism
    if split is None:
        return None
    return Parallelism(
        data=workers // workers_of_a_replica(spec),
        pipeline=split.pipeline,
        tensor=split.tensor,
        shared_memory=split.shared_memory,
        micro_batches=spec.pipeline.micro_batches,
        order=spec.pipeline.order,
        all_reduces_per_layer=spec.tensor.all_reduces_per_layer,
    )
