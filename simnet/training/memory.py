"""Whether a job fits into the memory of its GPUs, and what would make it fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from simnet.training.settings import JobSettings, Parallelism
from simnet.workload import (
    GroupedWorkload,
    MemoryUse,
    Workload,
    gpu_memory_bytes,
    list_models,
    list_throughput,
    parts_of,
    split_into_stages,
    training_memory,
)

__all__ = ["is_measured", "largest_memory_use", "memory_limit_bytes", "splits_that_fit", "state_bytes"]

_MOST_STAGES, _MOST_SHARES = 64, 8


def largest_memory_use(job: JobSettings) -> MemoryUse | None:
    """Return what the worker holds that holds most, or None where that is not known."""
    workload, training, grid = job.workload, job.training, job.training.grid
    if isinstance(workload, GroupedWorkload):
        found = [use for part in workload.parts if (use := largest_memory_use(replace(job, workload=part)))]
        return max(found, key=lambda use: use.total_bytes, default=None)
    if not isinstance(workload, Workload):
        return None
    stages = split_into_stages(workload, grid.pipeline)
    uses = []
    for number, layers in enumerate(stages):
        in_flight = grid.micro_batches
        if grid.order == "1f1b":
            in_flight = min(grid.pipeline - number, grid.micro_batches)
        samples = -(-workload.batch_size // (grid.micro_batches * grid.shared_memory))
        uses.append(
            training_memory(
                workload.model,
                samples,
                layers=layers,
                precision=workload.precision,
                gradient_bytes_per_element=training.gradient_element_bytes,
                optimizer=training.optimizer,
                zero_stage=training.zero_stage,
                data_parallel=grid.data,
                tensor_parallel=grid.tensor,
                bucket_bytes=training.bucket_bytes,
                micro_batches_in_flight=in_flight,
            )
        )
    largest = max(uses, key=lambda use: use.total_bytes)
    if training.compression is not None and training.compression.error_feedback:
        # What compression has lost of each gradient, beside the gradient.
        lost_bytes = training.gradient_element_bytes * workload.model.parameters
        largest = replace(largest, gradients_bytes=largest.gradients_bytes + lost_bytes)
    return largest


def state_bytes(job: JobSettings) -> tuple[float, float]:
    """Return what the parameters of a whole model take, and what the optimizer keeps of them [bytes].

    Without a table of layers, as of recorded traces and dataflow graphs, both are in fp32.
    """
    workload, training = parts_of(job.workload)[0], job.training
    use = training_memory(
        workload.model,
        1,
        precision=workload.precision if isinstance(workload, Workload) else "fp32",
        gradient_bytes_per_element=0.0,
        optimizer=training.optimizer,
    )
    return use.parameters_bytes, use.optimizer_bytes


def memory_limit_bytes(job: JobSettings) -> float | None:
    """Return the memory of each GPU, or None where that is not known or workers are no GPUs [bytes]."""
    if job.training.grid.shared_memory > 1 or not job.workload.gpu:
        return None
    return gpu_memory_bytes(job.workload.gpu)


def is_measured(job: JobSettings) -> bool:
    """Tell whether somebody has trained the whole model on such a GPU with as large a batch, so that it fits.

    What is kept of activations is estimated from the layers; frameworks keep less of some.
    """
    workload = job.workload
    if not isinstance(workload, Workload) or job.training.grid.replica > 1:
        return False
    model = workload.model
    if model.name not in list_models():
        return False
    rows = list_throughput(model.name, workload.gpu, workload.precision, model.sequence_length)
    return any(row.batch_size >= workload.batch_size for row in rows)


def splits_that_fit(job: JobSettings, limit_bytes: float) -> Iterator[str]:
    """Yield, in words, ways to split a job so that it fits: of each kind the one that changes least."""
    # Only workers with the whole model compress.
    whole = (_smaller_batches,)
    for kind in whole if job.training.compression else (_sharded, *whole, _shared_layers, _pipelined):
        for words, other in kind(job):
            use = largest_memory_use(other)
            if use is not None and use.total_bytes <= limit_bytes:
                yield words
                break


_Others = Iterator[tuple[str, JobSettings]]


def _sharded(job: JobSettings) -> _Others:
    training = job.training
    if training.grid.replica == 1 and training.workers > 1 and training.architecture.name == "ring":
        for stage in range(training.zero_stage + 1, 4):
            yield f"zero_stage: {stage}", replace(job, training=replace(training, zero_stage=stage))


def _smaller_batches(job: JobSettings) -> _Others:
    assert isinstance(job.workload, Workload)
    batch = job.workload.batch_size
    while batch > 1:
        batch //= 2
        yield f"batch_size: {batch}", replace(job, workload=replace(job.workload, batch_size=batch))


def _shared_layers(job: JobSettings) -> _Others:
    for shares in range(2, min(_MOST_SHARES, job.training.workers) + 1):
        if job.training.grid.replica == 1 and job.training.workers % shares == 0:
            yield f"parallelism: {{tensor: {shares}}}", _with_grid(job, tensor=shares)


def _pipelined(job: JobSettings) -> _Others:
    workload, workers = job.workload, job.training.workers
    assert isinstance(workload, Workload)
    for stages in range(2, min(_MOST_STAGES, workers, len(workload.model.layers)) + 1):
        if job.training.grid.replica == 1 and workers % stages == 0:
            pieces = max(count for count in range(1, 2 * stages + 1) if workload.batch_size % count == 0)
            words = f"parallelism: {{pipeline: {stages}}} with pipeline: {{micro_batches: {pieces}}}"
            yield words, _with_grid(job, pipeline=stages, micro_batches=pieces)


def _with_grid(job: JobSettings, tensor: int = 1, pipeline: int = 1, micro_batches: int = 1) -> JobSettings:
    data = job.training.workers // (tensor * pipeline)
    grid = Parallelism(data=data, pipeline=pipeline, tensor=tensor, micro_batches=micro_batches)
    return replace(job, training=replace(job.training, parallelism=grid, zero_stage=0))
