"""The sections of a job: what is trained, by whom and how, and where the data comes from.

With `simnet.scenario.models`, the single source for validation, for ``simnet schema`` and for the documentation.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, TypeAdapter, WithJsonSchema

from simnet.scenario.algorithm_options import (
    MOST_WORKERS,
    DoubleTreeSpec,
    GossipSpec,
    HierarchicalSpec,
    InNetworkSpec,
    MapReduceSpec,
    MeshSpec,
    NoOptions,
    ParameterServerSpec,
    RingSpec,
    StarSpec,
    TorusSpec,
    TreeSpec,
)
from simnet.scenario.compute_models import (
    LARGEST_BATCH,
    GroupSpec,
    MemoryHierarchySpec,
    StragglerSpec,
    TargetSpec,
)
from simnet.scenario.fields import Flag, Name, Quantity, Real, Text, Whole, Word, hint_at, refuse, shown
from simnet.scenario.scheduling import SchedulingSpec
from simnet.scenario.sections import Choice, Section
from simnet.training.communication.architectures import ARCHITECTURES
from simnet.training.layout import PLACEMENTS
from simnet.units import MEBIBYTE
from simnet.workload import GRADIENT_DTYPES, OPTIMIZERS, PRECISIONS

__all__ = [
    "DISTRIBUTIONS",
    "MOST_ITERATIONS",
    "ArchitectureSpec",
    "CheckpointSpec",
    "CompressionSpec",
    "DatasetSpec",
    "JitterSpec",
    "JobSpec",
    "ParallelismSpec",
    "PipelineSpec",
    "SyncSpec",
    "TensorSpec",
    "TrainingSpec",
    "WorkloadSpec",
]

MOST_STAGES = 100_000
MOST_ITERATIONS = 1_000_000


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


class ArchitectureSpec(Choice):
    """How gradients are exchanged."""

    ring: RingSpec | None = Field(None, description="Ring all-reduce.")
    star: StarSpec | None = Field(None, description="Star all-reduce, with its hub a rank.")
    tree: TreeSpec | None = Field(None, description="Tree reduce, then broadcast.")
    double_tree: DoubleTreeSpec | None = Field(None, description="Two trees with half of the buffer each.")
    butterfly: NoOptions | None = Field(None, description="Recursive doubling, with a fold where not a power of two.")
    halving_doubling: NoOptions | None = Field(
        None, description="Recursive halving, then doubling (Rabenseifner), with a fold where not a power of two."
    )
    mesh: MeshSpec | None = Field(None, description="Direct exchange between all ranks.")
    hierarchical: HierarchicalSpec | None = Field(None, description="Within groups, across them, within them again.")
    torus: TorusSpec | None = Field(None, description="Rings along the rows and columns of a grid of ranks.")
    parameter_server: ParameterServerSpec | None = Field(None, description="Parameter servers on hosts.")
    mapreduce: MapReduceSpec | None = Field(
        None, description="A driver on a host of its own gathers what the workers have, and broadcasts the new model."
    )
    gossip: GossipSpec | None = Field(None, description="Each worker averages with its neighbours in a graph.")
    in_network: InNetworkSpec | None = Field(
        None, description="Switches add up what comes from below and replicate what comes from above."
    )


class SspSpec(Section):
    """A bound on how stale what a worker reads may be."""

    staleness: Annotated[int, Whole(0, MOST_ITERATIONS)] = Field(
        description="Iterations that a worker may be ahead of the slowest; 0 waits for all in each iteration."
    )


class LocalSgdSpec(Section):
    """Workers go on by themselves, and average from time to time."""

    period: Annotated[int, Whole(1, MOST_ITERATIONS)] = Field(
        description="Iterations of each worker from one average to the next; 1 averages after each."
    )


class SyncSpec(Choice):
    """When workers synchronise."""

    bsp: NoOptions | None = Field(None, description="All exchange in each iteration, and wait for each other.")
    asp: NoOptions | None = Field(
        None, description="Each goes on when its own exchange is over. Architectures parameter_server and gossip."
    )
    ssp: SspSpec | None = Field(None, description="As asp, but nobody gets too far ahead.")
    local_sgd: LocalSgdSpec | None = Field(None, description="As bsp, but only in each period-th iteration.")
    one_shot: NoOptions | None = Field(None, description="Only the last iteration of the run averages.")


class _NoCompressionSpec(Section):
    """Gradients travel as they are."""


class _CastSpec(Section):
    """Gradients travel in half precision."""

    compress_rate: Annotated[float, Quantity("bandwidth", positive=True, limit=True)] | None = Field(
        None,
        description="Bytes of fp32 gradients that a worker compresses in a second, computing nothing else; as measured "
        "on a V100 where not given (docs/compression.md).",
    )
    decompress_rate: Annotated[float, Quantity("bandwidth", positive=True, limit=True)] | None = Field(
        None, description="The same of decompressing, before the optimizer."
    )
    error_feedback: Annotated[bool, Flag()] = Field(
        False,
        description="Keep what compression loses and add it to the next gradients: as much memory as the gradients.",
    )


class _QuantizeSpec(_CastSpec):
    """A few bits an element, and a scale a tensor."""

    bits: Annotated[int, Whole(1, 16)] = Field(8, description="Bits an element; 1 is the sign alone.")


class _SparsifySpec(_CastSpec):
    """The largest elements of each tensor, with their places."""

    ratio: Annotated[float, Real(above=0.0, maximum=1.0)] = Field(
        0.01, description="Share of the elements of each tensor that travels, at least one."
    )


class _LowRankSpec(_CastSpec):
    """Two factors of each matrix (PowerSGD)."""

    rank: Annotated[int, Whole(1, 4096)] = Field(4, description="Columns of each factor.")


class CompressionSpec(Choice):
    """How gradients are compressed."""

    none: _NoCompressionSpec | None = Field(None, description="Gradients travel as they are.")
    fp16: _CastSpec | None = Field(None, description="Half precision, 2 bytes an element.")
    bf16: _CastSpec | None = Field(None, description="The same with the range of fp32.")
    quantize: _QuantizeSpec | None = Field(None, description="A few bits an element, and a scale a tensor.")
    sparsify: _SparsifySpec | None = Field(
        None, description="The largest elements of each tensor: gathered by all workers, or pushed to servers."
    )
    low_rank: _LowRankSpec | None = Field(
        None, description="Two factors of each matrix, all-reduced one after the other (PowerSGD)."
    )


DISTRIBUTIONS = {
    "lognormal": "sigma",
    "normal": "sigma",
    "uniform": "half_width",
    "exponential": "scale",
    "pareto": "shape",
}
"""Distribution of jitter and the name of its one parameter."""


class JitterSpec(Section):
    """A random factor on the compute time of each worker in each iteration."""

    distribution: Annotated[str, Word(tuple(DISTRIBUTIONS))] = Field(
        "lognormal",
        description="lognormal: exp(sigma z - sigma²/2); normal: 1 + sigma z, at least 0; uniform: between "
        "1 - half_width and 1 + half_width; exponential: 1 - scale + scale x, x with mean 1; pareto: at least "
        "(shape - 1)/shape. All have mean 1.",
    )
    sigma: Annotated[float, Real(minimum=0, maximum=10)] | None = Field(
        None, description="lognormal: standard deviation of the logarithm; normal: standard deviation. Relative."
    )
    half_width: Annotated[float, Real(minimum=0, maximum=1)] | None = Field(
        None, description="uniform: largest deviation from 1. Relative."
    )
    scale: Annotated[float, Real(minimum=0, maximum=1)] | None = Field(
        None, description="exponential: the part of the time that is random; 1: all of it, as Poisson processes are."
    )
    shape: Annotated[float, Real(above=1, maximum=1e6)] | None = Field(
        None, description="pareto: the smaller, the longer the rarest; finite variance above 2."
    )


class _Rank(Whole):
    """The number of a rank as a key, which JSON can only write as text."""

    def check(self, value: object) -> int:
        """Return the number or refuse it."""
        # As the number is written, so that no rank has two keys.
        is_number = isinstance(value, str) and re.fullmatch(r"0|[1-9][0-9]{0,8}", value)
        return super().check(int(value) if is_number else value)  # type: ignore[call-overload]


_Speed = Annotated[float, Real(above=0.0, maximum=1e6)]
_SPEED_OF_EACH: TypeAdapter[tuple[float, ...]] = TypeAdapter(tuple[_Speed, ...])
_SPEED_BY_RANK: TypeAdapter[dict[int, float]] = TypeAdapter(dict[Annotated[int, _Rank(0, MOST_WORKERS)], _Speed])


def _speed_factors(value: Any) -> dict[int, float] | tuple[float, ...]:
    if isinstance(value, (list, tuple)):
        return _SPEED_OF_EACH.validate_python(value)
    if not isinstance(value, dict):
        refuse(f"is {shown(value)}", "a list with one speed a worker, or a mapping {rank: speed}, is wanted")
    return dict(sorted(_SPEED_BY_RANK.validate_python(value).items()))


_SPEED_FACTORS_SCHEMA = {
    "anyOf": [
        {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}},
        {"type": "object", "patternProperties": {r"^(0|[1-9][0-9]*)$": {"type": "number", "exclusiveMinimum": 0}}},
    ]
}


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
        description="How gradients are exchanged: " + ", ".join(ARCHITECTURES) + ".",
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
        default_factory=lambda: CompressionSpec(none=_NoCompressionSpec()),
        description="What travels instead of fp32 gradients: none, fp16, bf16, quantize, sparsify, low_rank.",
    )
    jitter: JitterSpec | None = Field(None, description="Random variation of the compute time; none where not given.")
    speed_factors: Annotated[
        dict[int, float] | tuple[float, ...], PlainValidator(_speed_factors), WithJsonSchema(_SPEED_FACTORS_SCHEMA)
    ] = Field(
        default_factory=dict,
        description="Relative speed of workers, 1 where not given: a list, or {rank: factor}; 0.5 takes twice as long.",
    )
    stragglers: tuple[StragglerSpec, ...] | None = Field(
        None, description="Workers that are slower than they should be; beside speed_factors and jitter."
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
