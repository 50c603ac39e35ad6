"""The scenario: every key, its type, its default and what it means.

This is the single source for validation, for ``simnet schema`` and for the documentation. Key names are the contract.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, PlainValidator, TypeAdapter, WithJsonSchema

from simnet.scenario.algorithm_options import (
    MOST_WORKERS,
    DoubleTreeSpec,
    HierarchicalSpec,
    MeshSpec,
    NoOptions,
    RingSpec,
    StarSpec,
    TorusSpec,
    TreeSpec,
)
from simnet.scenario.fields import Flag, Name, Quantity, Real, Text, Whole, Word, refuse, shown
from simnet.scenario.protocol_models import ProtocolSpec
from simnet.scenario.sections import Choice, Section
from simnet.scenario.topology_models import TopologySpec
from simnet.traffic.all_reduce import ALL_REDUCE
from simnet.units import MEBIBYTE
from simnet.workload import GRADIENT_DTYPES, PRECISIONS

__all__ = [
    "ArchitectureSpec",
    "BaselineSpec",
    "EngineSpec",
    "JitterSpec",
    "RunSpec",
    "ScenarioSpec",
    "TrainingSpec",
    "WorkloadSpec",
]

MOST_ITERATIONS = 1_000_000
LARGEST_BATCH = 1_000_000_000


class WorkloadSpec(Section):
    """What is trained, and how long it computes."""

    model: Annotated[str, Text("the name of a model")] | None = Field(
        None,
        description="A shipped model: resnet50, inception_v3, bert_base, … One of model, file and trace is given.",
    )
    file: Annotated[str, Text("a file name")] | None = Field(
        None, description="An own workload, CSV or YAML: one row a layer. A path relative to the scenario's folder."
    )
    trace: Annotated[str, Text("a file name")] | None = Field(
        None,
        description="A recorded trace, CSV, replayed as recorded; model beside it says which gradients there are.",
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


class ParameterServerSpec(Section):
    """Workers push gradients to servers and pull parameters back."""

    servers: Annotated[int, Whole(1, MOST_WORKERS)] = Field(
        1,
        description="Number of servers, among which parameters are cut evenly. They run on hosts that no worker is on; "
        "where there are not enough of those, the rest shares the workers' hosts in turn.",
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


DISTRIBUTIONS = {"lognormal": "sigma", "normal": "sigma", "uniform": "half_width", "exponential": "scale"}
"""Distribution of jitter and the name of its one parameter."""


class JitterSpec(Section):
    """A random factor on the compute time of each worker in each iteration."""

    distribution: Annotated[str, Word(tuple(DISTRIBUTIONS))] = Field(
        "lognormal",
        description="lognormal: exp(sigma z - sigma²/2); normal: 1 + sigma z, at least 0; uniform: between "
        "1 - half_width and 1 + half_width; exponential: 1 + scale x, x with mean 1. All but the last have mean 1.",
    )
    sigma: Annotated[float, Real(minimum=0, maximum=10)] | None = Field(
        None, description="lognormal: standard deviation of the logarithm; normal: standard deviation. Relative."
    )
    half_width: Annotated[float, Real(minimum=0, maximum=1)] | None = Field(
        None, description="uniform: largest deviation from 1. Relative."
    )
    scale: Annotated[float, Real(minimum=0, maximum=1e6)] | None = Field(
        None, description="exponential: mean of what is added. Relative."
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


class TrainingSpec(Section):
    """Who trains, and how they keep in step."""

    workers: Annotated[int, Whole(1, MOST_WORKERS)] | None = Field(
        None,
        description="Number of workers; the first ranks of the topology. Where not given, all ranks; on clusters "
        "without GPUs, all but one for each parameter server.",
    )
    architecture: ArchitectureSpec = Field(
        default_factory=lambda: ArchitectureSpec(ring=RingSpec()),
        description="How gradients are exchanged: " + ", ".join([*ALL_REDUCE, "parameter_server"]) + ".",
    )
    sync: Annotated[str, Word(("bsp",))] = Field(
        "bsp", description="bsp: all workers finish an iteration before one begins the next."
    )
    bucket_size: Annotated[float, Quantity("size", positive=True)] = Field(
        25.0 * MEBIBYTE,
        description="Gradients are sent in buckets of at least this size; '1 B' sends every tensor alone.",
    )
    overlap: Annotated[bool, Flag()] = Field(
        True, description="Send a bucket as soon as it is ready, during the backward pass, or all after it."
    )
    jitter: JitterSpec | None = Field(None, description="Random variation of the compute time; none where not given.")
    speed_factors: Annotated[
        dict[int, float] | tuple[float, ...], PlainValidator(_speed_factors), WithJsonSchema(_SPEED_FACTORS_SCHEMA)
    ] = Field(
        default_factory=dict,
        description="Relative speed of workers, 1 where not given: a list, or {rank: factor}; 0.5 takes twice as long.",
    )
    placement: Annotated[str, Word(("in_order", "random"))] = Field(
        "in_order",
        description="Which rank is where: in the order of the topology, or the same nodes in random order, as of a "
        "scheduler that does not know the network.",
    )


class RunSpec(Section):
    """How long is simulated and measured."""

    iterations: Annotated[int, Whole(1, MOST_ITERATIONS)] = Field(10, description="Measured iterations.")
    warmup: Annotated[int, Whole(0, MOST_ITERATIONS)] = Field(1, description="Iterations before those, not measured.")
    seed: Annotated[int, Whole(0, 2**53)] = Field(0, description="Seed of all random streams.")
    record: Annotated[str, Word(("tables", "messages"))] = Field(
        "tables", description="What is kept: the tables, or also every single message, which is then played."
    )


class EngineSpec(Section):
    """Ways of the engine to be fast; with and without them times agree within 1e-9."""

    recurrence: Annotated[bool, Flag()] = Field(
        True, description="Play exchanges that share nothing as a recurrence, without events."
    )
    skip_periods: Annotated[bool, Flag()] = Field(True, description="Skip whole periods of a recurrence.")
    local_repair: Annotated[bool, Flag()] = Field(
        True, description="Solve rates again only around what changed, not for whole connected components."
    )


class BaselineSpec(Section):
    """What speedup refers to."""

    samples_per_s: Annotated[float, Real(minimum=1e-6, maximum=1e15)] = Field(
        description="Throughput that counts as speedup 1 [samples/s]."
    )


class ScenarioSpec(Section):
    """A training run on a cluster."""

    name: Annotated[str, Name()] = Field(
        "scenario", description="Name in tables and of the result's folder; the file's name where not given."
    )
    topology: TopologySpec = Field(
        description="The cluster: a shipped name, a file, {file: FILE, defaults: {…}}, or a generator with options."
    )
    protocol: ProtocolSpec = Field(description="The transport: a name, or {name: {what differs from its defaults}}.")
    fidelity: Annotated[str, Word(("flow",))] = Field("flow", description="flow: messages share links max-min fairly.")
    workload: WorkloadSpec = Field(description="What is trained, and how long it computes.")
    training: TrainingSpec = Field(default_factory=TrainingSpec, description="Who trains, and how they keep in step.")
    run: RunSpec = Field(default_factory=RunSpec, description="How long is simulated and measured.")
    engine: EngineSpec = Field(default_factory=EngineSpec, description="How the engine works; changes no result.")
    baseline: BaselineSpec | None = Field(
        None,
        description="What speedup refers to; one worker of the fastest group without communication where not given.",
    )
