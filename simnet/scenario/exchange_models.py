"""The sections of a job about how gradients are exchanged: see `simnet.scenario.job_models`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, create_model

from simnet.scenario.algorithm_options import (
    DoubleTreeSpec,
    GossipSpec,
    HierarchicalSpec,
    InNetworkSpec,
    MapReduceSpec,
    MeshSpec,
    NcclSpec,
    NoOptions,
    ParameterServerSpec,
    RingSpec,
    StarSpec,
    TorusSpec,
    TreeSpec,
    added_options,
)
from simnet.scenario.fields import Flag, Quantity, Real, Whole
from simnet.scenario.sections import Choice, Section
from simnet.training.communication.architectures import architecture_names

__all__ = ["MOST_ITERATIONS", "ArchitectureSpec", "CompressionSpec", "SyncSpec"]

MOST_ITERATIONS = 1_000_000


class _ShippedArchitectures(Choice):
    """The architectures that come with simnet."""

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
    nccl: NcclSpec | None = Field(
        None, description="For each bucket what NCCL would take for its size: a ring, or chains and a double tree."
    )


_ADDED: dict[str, Any] = {
    name: (added_options("all_reduce", name) | None, Field(None, description="All-reduce of an installed package."))
    for name in architecture_names()
    if name not in _ShippedArchitectures.model_fields
}
_WithAdded: Any = create_model("_WithAdded", __base__=_ShippedArchitectures, __module__=__name__, **_ADDED)


class ArchitectureSpec(_WithAdded):
    """How gradients are exchanged."""


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
