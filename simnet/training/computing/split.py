"""What each worker does of a model that is split over several: layers, gradients, and its part of their step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simnet.topology import CompiledTopology
from simnet.traffic import (
    ALL_REDUCE,
    DataflowEdge,
    DataflowOperation,
    Segment,
    Stage,
    Step,
    dataflow_step,
    pipeline_step,
)
from simnet.training.computing.step import StepParts
from simnet.training.plan import Moment, Plan, Stretch
from simnet.training.settings import JobSettings, Parallelism
from simnet.workload import (
    DataflowGraph,
    DataflowWorkload,
    Layer,
    Model,
    Workload,
    matrix_layers,
    output_bytes_per_sample,
    split_into_stages,
)

__all__ = ["JobParts", "StagePart", "split_job"]


@dataclass(frozen=True, eq=False)
class StagePart:
    """What workers of all replicas have in common that have the same part of the model.

    Attributes
    ----------
    stage, inner : of `simnet.training.settings.Parallelism`
    model : Model
        The layers of the stage, and of each of their gradients what this part has.
    """

    stage: int
    inner: int
    model: Model


@dataclass(frozen=True, eq=False)
class JobParts:
    """A job whose model is split.

    Attributes
    ----------
    stages : tuple of StagePart
        Those that exchange gradients.
    alone_s : float
        For how long one worker would compute all of it [s].
    step : callable
        Returns the step of a replica, given the plan of each of `stages`.
    """

    stages: tuple[StagePart, ...]
    alone_s: float
    step: Callable[[Sequence[Plan]], StepParts]


def split_job(job: JobSettings, compiled: CompiledTopology, nodes: NDArray[np.int64]) -> JobParts:
    """Return what each worker of a job does.

    Parameters
    ----------
    job : JobSettings
    compiled : CompiledTopology
        For the memory bandwidth of hosts.
    nodes : ndarray of int, shape (workers,)
        Node index of each worker.
    """
    workload, grid = job.workload, job.training.grid
    if isinstance(workload, DataflowWorkload):
        return _dataflow_parts(workload)
    assert isinstance(workload, Workload)
    loads = [part_of(workload, layers) for layers in split_into_stages(workload, grid.pipeline)]
    stages = tuple(
        StagePart(stage, inner, _shard(load.model, grid.tensor))
        for stage, load in enumerate(loads)
        for inner in range(grid.tensor)
    )
    bandwidth = compiled.node_memory_bandwidth[compiled.host_of_node[nodes]]

    def step(plans: Sequence[Plan]) -> StepParts:
        return _pipeline(loads, grid, [plans[stage * grid.tensor] for stage in range(grid.pipeline)], bandwidth)

    return JobParts(stages, workload.compute_time_s, step)


def part_of(workload: Workload, layers: range) -> Workload:
    """Return some adjacent layers of a workload as one."""
    model = workload.model
    tensors = tuple(
        replace(tensor, layer=tensor.layer - layers.start) for tensor in model.tensors if tensor.layer in layers
    )
    part = replace(model, layers=model.layers[layers.start : layers.stop], tensors=tensors)
    own = slice(layers.start, layers.stop)
    return replace(
        workload, model=part, forward_s=workload.forward_s[own].copy(), backward_s=workload.backward_s[own].copy()
    )


def _shard(model: Model, shares: int) -> Model:
    """Return a model with of each gradient the share of one of several workers, rounded up."""
    tensors = tuple(replace(tensor, elements=-(-tensor.elements // shares)) for tensor in model.tensors)
    return replace(model, tensors=tensors)


# -- dataflow graphs ---------------------------------------------------------------------------------------------------


def _dataflow_parts(workload: DataflowWorkload) -> JobParts:
    """Let each device of a graph be a stage."""
    graph = workload.graph
    stages = tuple(StagePart(device, 0, workload.of_device(device)) for device in range(graph.devices))

    def step(plans: Sequence[Plan]) -> StepParts:
        return _dataflow(graph, [part.model for part in stages], plans)

    return JobParts(stages, workload.compute_time_s, step)


def _dataflow(graph: DataflowGraph, models: Sequence[Model], plans: Sequence[Plan]) -> StepParts:
    """Return the step of a replica, whose gradients are ready when the operations that they come from are over."""
    one = graph.operations
    made = dataflow_step(
        [DataflowOperation(op.name, op.device, op.time_s, milestone=op.gradient_elements > 0) for op in one],
        [DataflowEdge(one[before].name, one[after].name, one[before].output_bytes) for before, after in graph.edges],
        devices=graph.devices,
    )
    place = {operation.name: index for index, operation in enumerate(graph.operations)}
    announcing = []
    for device, (model, plan) in enumerate(zip(models, plans, strict=True)):
        own = [stretch for stretch in plan.stretches if _in_step(stretch) and stretch.announces]
        names = [[model.tensors[tensor].name for tensor in _tensors(plan, stretch)] for stretch in own]
        announcing.append(
            [
                (stretch, tuple(int(made.ready[device, place[name]]) for name in of_bucket))
                for stretch, of_bucket in zip(own, names, strict=True)
            ]
        )
    compute_s = np.zeros(graph.devices)
    for operation in graph.operations:
        compute_s[operation.device] += operation.time_s
    return StepParts("dataflow graph", made.schedule, made.milestone_owner, announcing, compute_s)


def _tensors(plan: Plan, stretch: Stretch) -> list[int]:
    """Return the gradients that must be there when a stretch announces what it does."""
    buckets = [plan.parts[part].bucket for part in stretch.announces]
    return [tensor for one in buckets for tensor in range(one.first_tensor, one.last_tensor + 1)]


# -- pipelines, shared layers and shared memory ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Piece:
    """What one layer costs one worker in one pass of one micro-batch, and whether something becomes ready after it."""

    segment: Segment
    ends: bool


def _pipeline(
    loads: Sequence[Workload], grid: Parallelism, plans: Sequence[Plan], bandwidth: NDArray[np.float64]
) -> StepParts:
    """Return the step of a replica.

    Parameters
    ----------
    loads : sequence of Workload
        Of each stage.
    grid : Parallelism
    plans : sequence of Plan
        What the workers of each stage exchange.
    bandwidth : ndarray, shape (workers,)
        Memory bandwidth of the host of each worker of the job [bytes/s].
    """
    # What crosses each boundary; nothing enters the first stage or leaves the last.
    crossing = [_output_bytes(load)[-1] * _samples(load, grid) for load in loads[:-1]]
    passed_on = [0.0, *crossing, 0.0]
    stages, ready_after, compute_s = [], [], []
    for number, (load, plan) in enumerate(zip(loads, plans, strict=True)):
        reduced = _reduced_bytes(load, grid)
        forward, _ = _merged([_forward_piece(load, layer, grid, reduced) for layer in range(len(load.model.layers))])
        marks = [_lowest_layer(load.model, stretch.until) for stretch in plan.stretches if _in_step(stretch)]
        backwards = reversed(range(len(load.model.layers)))
        pieces = [_backward_piece(load, layer, grid, reduced, layer in marks) for layer in backwards]
        backward, places = _merged(pieces)
        ready_after.append([places[len(pieces) - 1 - layer] for layer in marks])
        stages.append(Stage(tuple(forward), tuple(backward), passed_on[number + 1], passed_on[number]))
        host = float(bandwidth[grid.rank_of(number, 0, 0)])
        compute_s.append(grid.micro_batches * sum(_alone_s(part, grid, host) for part in [*forward, *backward]))
    made: Step = pipeline_step(
        stages, grid.micro_batches, order=grid.order, tensor=grid.inner, all_reduce=ALL_REDUCE["ring"]
    )
    announcing = []
    for number, plan in enumerate(plans):
        own = [stretch for stretch in plan.stretches if _in_step(stretch)]
        for inner in range(grid.inner):
            member = number * grid.inner + inner
            milestones = [(int(made.ready[member, segment]),) for segment in ready_after[number]]
            announcing.append(list(zip(own, milestones, strict=True)))
    ops = made.schedule.operations
    # Workers that are on one node have cores of their own.
    apart = replace(made.schedule, operations=replace(ops, stream=np.where(ops.stream < 0, -1, ops.source)))
    return StepParts("step", apart, made.milestone_owner, announcing, np.repeat(compute_s, grid.inner))


def _in_step(stretch: Stretch) -> bool:
    return stretch.until.kind in ("ready", "gradients")


def _lowest_layer(model: Model, moment: Moment) -> int:
    """Return the layer whose backward pass ends at a moment."""
    if moment.kind == "gradients":
        return 0
    return int(model.tensor_layers[: moment.place + 1].min())


def _output_bytes(load: Workload) -> list[float]:
    """Return the output of each layer for one sample [bytes]."""
    sizes: list[float] = output_bytes_per_sample(load.model, load.precision).tolist()
    return sizes


def _samples(load: Workload, grid: Parallelism) -> float:
    """Return the samples of a micro-batch that one worker computes on."""
    return load.batch_size / grid.micro_batches / grid.shared_memory


def _reduced_bytes(load: Workload, grid: Parallelism) -> list[float]:
    """Return what workers that share layers all-reduce after each in one pass of one micro-batch [bytes]."""
    reduced = [0.0] * len(load.model.layers)
    if grid.tensor > 1:
        output = _output_bytes(load)
        for layer in matrix_layers(load.model):
            reduced[layer] = grid.all_reduces_per_layer * output[layer] * _samples(load, grid)
    return reduced


def _forward_piece(load: Workload, layer: int, grid: Parallelism, reduced: Sequence[float]) -> _Piece:
    return _Piece(_segment(load, layer, grid, float(load.forward_s[layer]), 1.0, reduced[layer]), ends=False)


def _backward_piece(load: Workload, layer: int, grid: Parallelism, reduced: Sequence[float], ends: bool) -> _Piece:
    # The backward pass reads and writes what the forward pass does for two gradients: of inputs, and of parameters.
    return _Piece(_segment(load, layer, grid, float(load.backward_s[layer]), 2.0, reduced[layer]), ends)


def _segment(load: Workload, layer: int, grid: Parallelism, seconds: float, accesses: float, reduced: float) -> Segment:
    """Return what one layer costs one worker in one pass of one micro-batch."""
    what: Layer = load.model.layers[layer]
    share = grid.micro_batches * grid.inner
    moved = 0.0
    if grid.shared_memory > 1:
        per_sample = what.memory_bytes - what.parameter_memory_bytes
        moved = accesses * (per_sample * load.batch_size / share + what.parameter_memory_bytes / grid.micro_batches)
    return Segment(seconds / share, reduced, moved)


def _alone_s(segment: Segment, grid: Parallelism, bandwidth: float) -> float:
    """Return for how long a segment computes if nothing but its own workers takes the memory of their host [s]."""
    return max(segment.seconds, grid.shared_memory * segment.memory_bytes / bandwidth)


def _merged(pieces: Sequence[_Piece]) -> tuple[list[Segment], list[int]]:
    """Join layers behind which nothing happens with the next ones; also return the segment that each is in."""
    segments: list[Segment] = []
    places: list[int] = []
    seconds = 0.0
    for index, piece in enumerate(pieces):
        part = piece.segment
        seconds += part.seconds
        places.append(len(segments))
        # What takes memory goes layer by layer: one may be bound by it, the next one not.
        last = index + 1 == len(pieces) or pieces[index + 1].segment.memory_bytes > 0.0
        if last or piece.ends or part.memory_bytes > 0.0 or part.all_reduce_bytes > 0.0:
            segments.append(replace(part, seconds=seconds))
            seconds = 0.0
    return segments, places
