"""The sections of a job: what is trained, by whom and how, and where the data comes from.

With `simnet.scenario.models`, the single source for validation, for ``simnet schema`` and for the documentation; how
gradients are exchanged is in `simnet.scenario.exchange_models`, how long workers compute in
`simnet.scenario.compute_models`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, TypeAdapter, WithJsonSchema

from simnet.scenario.algorithm_options import MOST_WORKERS, NoOptions, RingSpec
from simnet.scenario.compute_models import (
    LARGEST_BATCH,
    GroupSpec,
    JitterSpec,
    MemoryHierarchySpec,
    OverlapSlowdownSpec,
    SpeedFactors,
    StragglerSpec,
    TargetSpec,
)
from simnet.scenario.exchange_models import MOST_ITERATIONS, ArchitectureSpec, CompressionSpec, SyncSpec
from simnet.scenario.fields import Flag, Name, Quantity, Real, Text, Whole, Word, hint_at, refuse, shown
from simnet.scenario.scheduling import SchedulingSpec
from simnet.scenario.sections import Section
from simnet.training.communication.architectures import architecture_names
from simnet.training.layout import PLACEMENTS
from simnet.units import MEBIBYTE
from simnet.workload import GRADIENT_DTYPES, OPTIMIZERS, PRECISIONS

__all__ = [
    "CheckpointSpec",
    "DatasetSpec",
    "JobSpec",
    "ParallelismSpec",
    "PipelineSpec",
    "TensorSpec",
    "TrainingSpec",
    "WorkloadSpec",
]

MOST_STAGES = 100_000


class WorkloadSpec(Section):
    """What is trained, and how long it computes."""

    model: Annotated[str, Text("the name of a model")] | None = Field(
        None,
        description="A shipped model: resnet50, inception_v3, bert_base, … One of model, file, trace and graph is "
        "given.",
    )
    file: Annotated[str, Text("a file name")] | None = Field(
        None, description="An own workload, CSV or YAML: one row a layer. A path relative to the scenario's folder."
    )
    trace: Annotated[str, Text("a file name")] | None = Field(
        None,
        description="A recorded trace, CSV, replayed as recorded; model beside it says which gradients there are.",
    )
    graph: Annotated[str, Text("a file name")] | None = Field(
        None,
        description="A dataflow graph of one training step, YAML or JSON: operations on devices, and tensors between "
        "them. Device d is worker d of each replica.",
    )
    gpu: Annotated[str, Text("the name of a GPU")] | None = Field(
        None, description="GPU whose measured throughput gives the compute time; not needed with samples_per_s."
    )
    batch_size: Annotated[int, Whole(1, LARGEST_BATCH)] | None = Field(
        None, description="Samples per worker and iteration. One of batch_size and global_batch_size is given."
    )
    global_batch_size: Annotated[int, Whole(1, LARGEST_BATCH)] | None = Field(
        None, description="Samples per iteration over all workers, a multiple of their number."
    )
    precision: Annotated[str, Word(PRECISIONS)] = Field("fp32", description="Number format of the computation.")
    sequence_length: Annotated[int, Whole(1, 1_000_000)] | None = Field(
        None, description="Tokens per sample, for models of text; the model's own default where not given."
    )
    gradient_dtype: Annotated[str, Word(GRADIENT_DTYPES)] = Field(
        "fp32", description="Number format of the gradients on the wire, whatever the precision."
    )
    samples_per_s: Annotated[float, Real(minimum=1e-6, maximum=1e12)] | None = Field(
        None, description="Measured rate of one worker without communication [samples/s]; overrides the table."
    )
    groups: tuple[GroupSpec, ...] | None = Field(
        None,
        description="Groups of workers with other GPUs, rates or batches than the rest of this section says; together "
        "they are all workers.",
    )
    serial_time: Annotated[float, Quantity("duration")] | None = Field(
        None,
        description="What every worker computes before each forward pass, for as long whatever its batch: the serial "
        "part of the work. The times above are without it.",
    )
    memory_hierarchy: MemoryHierarchySpec | None = Field(
        None,
        description="Time on caches and memory, by the one that the working set fits into; the times above are then "
        "of arithmetic alone.",
    )


class ParallelismSpec(Section):
    """How work is split among workers."""

    data: Annotated[int, Whole(1, MOST_WORKERS)] | None = Field(
        None,
        description="Replicas of the model, each with samples of its own; batch_size is that of each. Where not given, "
        "as many as there are workers for.",
    )
    pipeline: Annotated[int, Whole(1, MOST_STAGES)] = Field(
        1, description="Stages that the layers are cut into, so that the longest takes as short as can be."
    )
    tensor: Annotated[int, Whole(1, MOST_STAGES)] = Field(
        1,
        description="Workers that share each layer of a stage, and add up activations after each layer with a matrix.",
    )
    shared_memory: Annotated[int, Whole(1, MOST_STAGES)] = Field(
        1,
        description="Workers on one host that share the samples of a replica, and the bandwidth of the host's memory.",
    )


class PipelineSpec(Section):
    """How pipeline stages work together."""

    micro_batches: Annotated[int, Whole(1, 4096)] = Field(
        1, description="Pieces that the samples of a replica go through the stages in; they divide its batch."
    )
    order: Annotated[Literal["gpipe", "1f1b"], Word(("gpipe", "1f1b"))] = Field(
        "1f1b", description="gpipe: forward passes of all micro-batches, then backward passes; 1f1b: alternately."
    )


class TensorSpec(Section):
    """How workers share the layers of a stage."""

    all_reduces_per_layer: Annotated[int, Whole(1, 16)] = Field(
        1, description="All-reduces of the output of each layer with a matrix, in each pass."
    )


def _placement(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, (list, tuple)):
        return _NODE_NAMES.validate_python(value)
    if not isinstance(value, str) or value not in PLACEMENTS:
        known = [*PLACEMENTS, "or a list of nodes"]
        refuse(f"is {shown(value)}", hint_at(value if isinstance(value, str) else "", known))
    return value


_NODE_NAMES: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[Annotated[str, Text("the name of a node")], ...])
_PLACEMENT_SCHEMA = {
    "anyOf": [{"type": "string", "enum": list(PLACEMENTS)}, {"type": "array", "items": {"type": "string"}}]
}


class CheckpointSpec(Section):
    """How the state of training is kept for the case of a crash."""

    every: Annotated[int, Whole(1, MOST_ITERATIONS)] = Field(
        description="Iterations from one checkpoint to the next, warm-up counted; under sync asp and ssp those of all "
        "together, over the workers."
    )
    storage: Annotated[str, Text("the name of a node")] | None = Field(
        None,
        description="Node that it is written to and read from, over the network; where not given, each worker or "
        "server has it on its own disk.",
    )
    blocking: Annotated[bool, Flag()] = Field(
        True, description="Training waits until it is written; otherwise it goes on beside it."
    )
    size: Annotated[float, Quantity("size", positive=True)] | None = Field(
        None,
        description="Of the state of a whole model; where not given, its parameters and what the optimizer keeps.",
    )
    rate: Annotated[float, Quantity("bandwidth", positive=True)] | None = Field(
        None,
        description="Of a worker's own disk, where there is no storage; 1.8 GB/s where not given, as an SSD Intel DC "
        "P4500 has.",
    )


class TrainingSpec(Section):
    """Who trains, and how they keep in step."""

    workers: Annotated[int, Whole(1, MOST_WORKERS)] | None = Field(
        None,
        description="Number of workers; the first ranks of the topology. Where not given, all ranks; on clusters "
        "without GPUs, as many as leave hosts for servers.",
    )
    architecture: ArchitectureSpec = Field(
        default_factory=lambda: ArchitectureSpec(ring=RingSpec()),
        description="How gradients are exchanged: " + ", ".join(architecture_names()) + ".",
    )
    sync: SyncSpec = Field(
        default_factory=lambda: SyncSpec(bsp=NoOptions()),
        description="When workers synchronise: " + ", ".join(SyncSpec.model_fields) + ".",
    )
    bucket_size: Annotated[float, Quantity("size", positive=True)] = Field(
        25.0 * MEBIBYTE,
        description="Gradients are sent in buckets of at least this size; '1 B' sends every tensor alone.",
    )
    overlap: Annotated[bool, Flag()] = Field(
        True, description="Send a bucket as soon as it is ready, during the backward pass, or all after it."
    )
    forward_overlap: Annotated[bool, Flag()] = Field(
        False,
        description="Begin the next iteration before all is exchanged (parameters are pulled as they are needed): the "
        "forward pass of a layer waits only for its own parameters.",
    )
    scheduling: SchedulingSpec = Field(
        default_factory=lambda: SchedulingSpec.model_validate({}),
        description="What travels together, and what goes first.",
    )
    compression: CompressionSpec = Field(
        default_factory=lambda: CompressionSpec.model_validate("none"),
        description="What travels instead of fp32 gradients: none, fp16, bf16, quantize, sparsify, low_rank.",
    )
    jitter: JitterSpec | None = Field(None, description="Random variation of the compute time; none where not given.")
    speed_factors: SpeedFactors = Field(
        default_factory=dict,
        description="Relative speed of workers, 1 where not given: a list, or {rank: factor}; 0.5 takes twice as long.",
    )
    stragglers: tuple[StragglerSpec, ...] | None = Field(
        None, description="Workers that are slower than they should be; beside speed_factors and jitter."
    )
    overlap_slowdown: OverlapSlowdownSpec | None = Field(
        None, description="How computing and communicating slow each other down; not at all where not given."
    )
    step_overhead: Annotated[float, Quantity("duration")] = Field(
        0.0,
        description="What each iteration takes besides where something is exchanged: a host that has waited for it "
        "then launches the optimizer's kernels one by one, which one worker alone does while its GPU is busy.",
    )
    accumulation: Annotated[int, Whole(1, 1_000_000)] = Field(
        1,
        description="Forward and backward passes of batch_size samples in an iteration; gradients are added up on each "
        "worker, and exchanged in the last pass only.",
    )
    target: TargetSpec | None = Field(
        None, description="How much the whole training goes through: the summary says how long that takes."
    )
    placement: Annotated[str | tuple[str, ...], PlainValidator(_placement), WithJsonSchema(_PLACEMENT_SCHEMA)] = Field(
        "in_order",
        description="Which worker is where: in_order of the topology; by_host, round robin over the hosts; random, the "
        "same nodes as in_order in random order, as of a scheduler that does not know the network; or a list of their "
        "nodes.",
    )
    parallelism: ParallelismSpec | None = Field(
        None, description="How work is split: the product of the four numbers is that of the workers."
    )
    pipeline: PipelineSpec = Field(
        default_factory=lambda: PipelineSpec.model_validate({}), description="How pipeline stages work together."
    )
    tensor: TensorSpec = Field(
        default_factory=lambda: TensorSpec.model_validate({}), description="How workers share the layers of a stage."
    )
    zero_stage: Annotated[int, Whole(0, 3)] = Field(
        0,
        description="What data-parallel workers share instead of each holding it (ZeRO): 1 the state of the optimizer, "
        "2 gradients too, 3 parameters too, which are then gathered in each pass. Needs architecture ring.",
    )
    optimizer: Annotated[str, Word(tuple(OPTIMIZERS))] = Field(
        "sgd_momentum", description="Optimizer, for the memory that its state takes."
    )
    allow_oversubscribed: Annotated[bool, Flag()] = Field(
        False, description="Go on where the memory of the GPUs does not suffice, as a note, not as an error."
    )
    checkpoint: CheckpointSpec | None = Field(
        None,
        description="How the state of training is kept for the case of a crash; where not given, it is not, and "
        "training begins anew.",
    )


class DatasetSpec(Section):
    """Where training data comes from."""

    bytes_per_sample: Annotated[float, Quantity("size", positive=True)] = Field(
        description="What a sample takes on storage and links, such as 110 kB for a JPEG of ImageNet."
    )
    storage: Annotated[str, Text("the name of a node")] | None = Field(
        None,
        description="Node that the data is read from; where not given, all nodes of kind storage, worker r from the "
        "one with number r modulo their number.",
    )
    split: Annotated[str, Word(("sampled", "sharded", "features"))] = Field(
        "sampled",
        description="sampled: workers read the samples of each iteration from storage; sharded: each gets its share at "
        "the beginning; features: likewise, a part of every sample, and partial sums are added up in each iteration.",
    )
    samples: Annotated[int, Whole(1)] | None = Field(
        None, description="Samples in the data set; needed where each worker has a share of them."
    )
    prefetch: Annotated[int, Whole(0, 1000)] = Field(2, description="Batches that a worker reads ahead.")
    reshuffle: Annotated[bool, Flag()] = Field(
        False, description="With sharded: workers exchange samples, all with all, after each epoch."
    )
    partial_sum_size: Annotated[float, Quantity("size")] = Field(
        4.0, description="With features: what is added up for each sample."
    )


class JobSpec(Section):
    """One of several jobs on a cluster."""

    name: Annotated[str, Name()] = Field(description="Name in tables.")
    workload: WorkloadSpec = Field(description="What is trained, and how long it computes.")
    training: TrainingSpec = Field(default_factory=TrainingSpec, description="Who trains, and how they keep in step.")
    dataset: DatasetSpec | None = Field(
        None, description="Where training data comes from; where not given, samples are there when they are needed."
    )
    start: Annotated[float, Quantity("duration")] = Field(0.0, description="When its workers begin.")
