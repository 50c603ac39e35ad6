"""From the section ``training`` of a validated job to settings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from simnet.errors import InputError, Problem
from simnet.scenario.algorithm_options import fitted, misfits
from simnet.scenario.compute import build_stragglers, straggler_problems, target_problems, target_samples
from simnet.scenario.compute_models import DISTRIBUTIONS
from simnet.scenario.exchange_models import CompressionSpec
from simnet.scenario.fields import hint_at
from simnet.scenario.job_models import CheckpointSpec, PipelineSpec, TensorSpec, TrainingSpec
from simnet.scenario.scheduling import build_scheduling, idle_scheduling, scheduling_problems
from simnet.scenario.sections import NotKnownError, Section
from simnet.topology import Topology
from simnet.training.communication.architectures import ARCHITECTURES, EACH_BY_ITSELF, most_messages_at_once
from simnet.training.communication.compression import SCHEMES, standard_costs_s_per_byte
from simnet.training.communication.settings import Architecture, Compression, Sync
from simnet.training.layout import ranks_of
from simnet.training.recovery.settings import DISK_BYTES_PER_S, Checkpoint
from simnet.training.settings import Jitter, Parallelism, TrainingSettings
from simnet.workload import DTYPE_BYTES

__all__ = ["Room", "build_training", "idle_notes", "replicas", "worker_count"]

MOST_PAIRS = 4_000_000
"""Operations of one exchange, some 700 bytes each."""


@dataclass(frozen=True)
class Room:
    """Where the workers of a job can be.

    Parameters
    ----------
    topology : Topology
    taken : frozenset of int
        Nodes with workers of other jobs.
    """

    topology: Topology
    taken: frozenset[int] = frozenset()

    def ranks(self, shared_memory: int = 1) -> int:
        """Return how many workers have room."""
        nodes = ranks_of(self.topology.compiled, shared_memory)
        return len(nodes) if not self.taken else sum(node not in self.taken for node in nodes.tolist())


def worker_count(spec: TrainingSpec, room: Room) -> int:
    """Return the number of workers: as given, or as work is split, or all that have room.

    Of all where these are hosts those are left out that servers want.
    """
    if spec.workers is not None:
        return spec.workers
    if not isinstance(spec.placement, str):
        return max(1, len(spec.placement))
    split = _workers_of_a_replica(spec)
    if spec.parallelism is not None and spec.parallelism.data is not None:
        return split * spec.parallelism.data
    compiled = room.topology.compiled
    there = room.ranks(spec.parallelism.shared_memory if spec.parallelism is not None else 1)
    if "gpu" in compiled.node_kind:
        return max(1, there // split) * split
    # The most that leave as many hosts as they want for servers.
    servers, options = ARCHITECTURES[spec.architecture.name].servers, _architecture(spec.architecture).options
    for workers in range(there // split * split, 0, -split):
        if workers + servers(workers // split, options) <= there:
            return workers
    return split


def replicas(spec: TrainingSpec, room: Room) -> int:
    """Return how many workers, or groups of workers that a model is split over, have samples of their own."""
    found, rest = divmod(worker_count(spec, room), _workers_of_a_replica(spec))
    if rest:
        raise NotKnownError("parallelism")
    return found


def _workers_of_a_replica(spec: TrainingSpec) -> int:
    split = spec.parallelism
    return split.pipeline * split.tensor * split.shared_memory if split is not None else 1


def build_training(spec: TrainingSpec, gradient_dtype: str, room: Room) -> TrainingSettings:
    """Return the training settings in SI units.

    Raises
    ------
    InputError
        More workers than ranks, options or speeds of workers that do not exist; all at once.
    """
    problems: list[Problem] = []
    for check in _CHECKS:
        # A check that needs what is wrong already has nothing to say.
        with suppress(NotKnownError):
            problems += check(spec, room)
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
    architecture = _architecture(spec.architecture)
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
    if spec.pipeline != PipelineSpec.model_validate({}) and _workers_of_a_replica(spec) == 1:
        notes.append("pipeline has no effect where no model is split")
    if spec.tensor != TensorSpec.model_validate({}) and (split is None or split.tensor == 1):
        notes.append("tensor has no effect where no layers are shared")
    return (*notes, *idle_scheduling(spec.scheduling, forward_overlap=spec.forward_overlap))


def _architecture(spec: Any) -> Architecture:
    """Return an architecture with its options in SI units, as the functions that arrange it want them."""
    options = dict(spec.options)
    for rate, cost in (("aggregation_rate", "aggregate_s_per_byte"), ("update_rate", "update_s_per_byte")):
        if rate in options:
            bytes_per_s = options.pop(rate)
            options[cost] = 0.0 if bytes_per_s == math.inf else 1.0 / bytes_per_s
    return Architecture(spec.name, options)


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
        data=workers // _workers_of_a_replica(spec),
        pipeline=split.pipeline,
        tensor=split.tensor,
        shared_memory=split.shared_memory,
        micro_batches=spec.pipeline.micro_batches,
        order=spec.pipeline.order,
        all_reduces_per_layer=spec.tensor.all_reduces_per_layer,
    )


# -- what can be wrong -------------------------------------------------------------------------------------------------


def _worker_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:
    shared = spec.parallelism.shared_memory if spec.parallelism is not None else 1
    ranks, workers = room.ranks(shared), worker_count(spec, room)
    if workers > ranks:
        left = " that other jobs leave, which say how many they want" if room.taken and not ranks else ""
        left = left or " that other jobs leave" if room.taken else f" of topology {room.topology.name}"
        key = "workers" if spec.workers is not None or spec.parallelism is None else "parallelism"
        yield Problem(
            f"{workers} workers do not fit on the {ranks} ranks{left}", f"at most {ranks} workers are possible", (key,)
        )


def _server_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:
    given = spec.workers is not None or not isinstance(spec.placement, str)
    if given or "gpu" in room.topology.compiled.node_kind or spec.parallelism is not None:
        return
    servers = ARCHITECTURES[spec.architecture.name].servers(1, _architecture(spec.architecture).options)
    if servers and servers >= room.ranks():
        message = f"{servers} servers leave none of the {room.ranks()} hosts of {room.topology.name} for workers"
        yield Problem(message, "say how many workers there are, or have fewer servers", ("architecture",))


def _grid_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:
    split = spec.parallelism
    if split is None:
        return
    workers, each = worker_count(spec, room), _workers_of_a_replica(spec)
    product = each * (split.data if split.data is not None else max(1, workers // each))
    if product != workers:
        hint = f"leave workers or data out, or make them fit: a replica has {each} workers"
        yield Problem(
            f"parallelism has a product of {product}, but there are {workers} workers", hint, ("parallelism",)
        )
    if split.tensor > 1 and split.shared_memory > 1:
        hint = "one of them is possible: GPUs share layers, cores of a host share its memory"
        yield Problem("tensor stands beside shared_memory", hint, ("parallelism", "shared_memory"))
    if split.shared_memory > 1 and math.isinf(room.topology.compiled.node_memory_bandwidth.min()):
        hosts = [kind == "host" for kind in room.topology.compiled.node_kind]
        if math.isinf(room.topology.compiled.node_memory_bandwidth[hosts].min(initial=math.inf)):
            message = f"topology {room.topology.name} does not say what the memory of its hosts can do"
            yield Problem(message, "give hosts a memory_bandwidth", ("parallelism", "shared_memory"))


def _sharding_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:  # noqa: ARG001
    split = spec.parallelism
    is_split = split is not None and (split.pipeline > 1 or split.tensor > 1 or split.shared_memory > 1)
    if spec.zero_stage and spec.architecture.name != "ring":
        message = f"zero_stage stands beside architecture {spec.architecture.name}"
        yield Problem(
            message, "sharded training goes by reduce-scatter and all-gather: architecture: ring", ("zero_stage",)
        )
    if spec.zero_stage == 3 and is_split:
        yield Problem(
            "zero_stage 3 stands beside a model that is split", "at most 2 is possible there", ("zero_stage",)
        )
    if spec.zero_stage == 3 and spec.forward_overlap:
        hint = "leave it out: parameters are gathered when the forward pass needs them anyway"
        yield Problem("forward_overlap stands beside zero_stage 3", hint, ("forward_overlap",))
    if spec.forward_overlap and is_split:
        hint = "leave it out: a pipeline begins when all workers of a replica have their parameters"
        yield Problem("forward_overlap stands beside a model that is split", hint, ("forward_overlap",))


def _compression_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:  # noqa: ARG001
    scheme, architecture = spec.compression.name, spec.architecture.name
    if scheme == "none":
        return
    beside = f"{scheme} stands beside architecture {architecture}"
    place = ("compression", scheme)
    gathering = [name for name, way in ARCHITECTURES.items() if way.gather is not None]
    match scheme, architecture:
        case "sparsify", "parameter_server":
            if spec.architecture.options.fan_in is not None:
                hint = "leave it out: what aggregators would send on depends on what workers choose"
                yield Problem(f"{beside} with fan_in", hint, ("architecture", architecture, "fan_in"))
        case "sparsify", _ if architecture not in gathering:
            hint = f"workers choose different elements, which are gathered: {', '.join(gathering)}; or parameter_server"
            yield Problem(beside, hint, place)
        case "low_rank", ("parameter_server" | "gossip"):
            hint = "the second factor is made of the sum of the first: architecture: ring, or another all-reduce"
            yield Problem(beside, hint, place)
        case (("low_rank" | "quantize"), "in_network"):
            hint = "switches add up numbers as they are: architecture: ring, or compression: fp16"
            yield Problem(beside, hint, place)
    if spec.zero_stage:
        hint = "compression is of gradients that are all-reduced: leave one of them out"
        yield Problem(f"{scheme} stands beside zero_stage {spec.zero_stage}", hint, place)


def _pair_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:
    architecture = _architecture(spec.architecture)
    workers = min(replicas(spec, room), len(room.topology.compiled.ranks))
    pairs = most_messages_at_once(architecture, workers)
    if pairs > MOST_PAIRS:
        message = f"{architecture.name} lets {pairs:,} pairs talk at once, which takes too much memory"
        hint = f"at most {MOST_PAIRS:,} are possible: fewer workers or servers"
        yield Problem(message, hint, ("architecture",))


def _sync_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:  # noqa: ARG001
    sync, architecture = Sync(spec.sync.name, **dict(spec.sync.options)), spec.architecture
    split = spec.parallelism
    if sync.name == "bsp":
        if getattr(architecture.options, "partners", "all") == "one":
            message = "partners: one stands beside sync bsp"
            yield Problem(message, "say sync: asp or ssp, or partners: all", ("architecture", "gossip", "partners"))
        return
    if spec.zero_stage:
        yield Problem(f"zero_stage stands beside sync {sync.name}", "sharded training goes by bsp", ("zero_stage",))
    if spec.compression.name != "none" and not sync.waits_alone:
        message = f"compression {spec.compression.name} stands beside sync {sync.name}"
        hint = "leave it out: what is averaged from time to time are parameters, not gradients"
        yield Problem(message, hint, ("compression", spec.compression.name))
    if spec.forward_overlap:
        message = f"forward_overlap stands beside sync {sync.name}"
        yield Problem(message, "it goes with bsp", ("forward_overlap",))
    if not sync.waits_alone:
        return
    if architecture.name not in EACH_BY_ITSELF:
        hint = "architecture: parameter_server or gossip is wanted, in which nobody waits for all"
        yield Problem(f"sync {sync.name} stands beside architecture {architecture.name}", hint, ("sync",))
    if getattr(architecture.options, "fan_in", None) is not None:
        message = f"fan_in stands beside sync {sync.name}"
        hint = "leave it out: a tree of servers adds up what all workers have"
        yield Problem(message, hint, ("architecture", "parameter_server", "fan_in"))
    if split is not None and _workers_of_a_replica(spec) > 1:
        yield Problem(f"parallelism stands beside sync {sync.name}", "only data parallelism is possible", ("sync",))


def _scheduling_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:  # noqa: ARG001
    yield from scheduling_problems(
        spec.scheduling,
        sync=spec.sync.name,
        architecture=spec.architecture.name,
        compression=spec.compression.name,
        zero_stage=spec.zero_stage,
        is_split=_workers_of_a_replica(spec) > 1,
    )


def _option_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:
    options: Section = spec.architecture.options
    for key, message, hint in misfits(options, replicas(spec, room)):
        yield Problem(message, hint, ("architecture", spec.architecture.name, key))


def _speed_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:
    speeds, workers = spec.speed_factors, worker_count(spec, room)
    if isinstance(speeds, tuple):
        if len(speeds) not in (0, workers):
            message = f"speed_factors has {len(speeds)} elements for {workers} workers"
            yield Problem(message, "one each is wanted, or a mapping {rank: factor}", ("speed_factors",))
        return
    for rank in speeds:
        if rank >= workers:
            message = f"speed_factors names rank {rank}, of {workers} workers"
            yield Problem(message, f"ranks from 0 to {workers - 1} are there", ("speed_factors", rank))


def _straggler_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:
    yield from straggler_problems(spec.stragglers or (), worker_count(spec, room))


def _target_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:  # noqa: ARG001
    yield from target_problems(spec.target)


def _accumulation_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:  # noqa: ARG001
    if spec.accumulation == 1:
        return
    if _workers_of_a_replica(spec) > 1:
        message = "accumulation stands beside a model that is split"
        yield Problem(message, "pipeline: {micro_batches: …} is what goes through its stages", ("accumulation",))
    if spec.zero_stage > 1:
        message = f"accumulation stands beside zero_stage {spec.zero_stage}"
        hint = "at most 1 is possible: what gradients are added up in is not shared"
        yield Problem(message, hint, ("accumulation",))


def _placement_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:
    listed, workers = spec.placement, worker_count(spec, room)
    if not isinstance(listed, str) and not listed:
        yield Problem("placement lists no nodes", "leave it out, or list one each", ("placement",))
    elif not isinstance(listed, str) and len(listed) != workers:
        message = f"placement lists {len(listed)} nodes for {workers} workers"
        yield Problem(message, "one each is wanted", ("placement",))


def _checkpoint_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:
    checkpoint, compiled = spec.checkpoint, room.topology.compiled
    if checkpoint is None:
        return
    if spec.forward_overlap:
        message = "checkpoint stands beside forward_overlap"
        hint = "leave one of them out: there is no moment at which all parameters are those of one iteration"
        yield Problem(message, hint, ("checkpoint",))
    if checkpoint.storage is None:
        return
    if checkpoint.rate is not None:
        hint = "leave it out: the network says how long writing to storage takes"
        yield Problem("rate stands beside storage", hint, ("checkpoint", "rate"))
    known = [
        name for name, kind in zip(compiled.node_names, compiled.node_kind, strict=True) if kind in ("storage", "host")
    ]
    if checkpoint.storage not in known:
        index = compiled.node_index.get(checkpoint.storage)
        kind = f"{checkpoint.storage!r} is a {compiled.node_kind[index]}" if index is not None else ""
        message = kind or f"topology {room.topology.name} has no node {checkpoint.storage!r}"
        hint = f"a node of kind storage or host is wanted, {hint_at(checkpoint.storage, known)}"
        yield Problem(message, hint, ("checkpoint", "storage"))


_CHECKS = (
    _worker_problems,
    _server_problems,
    _grid_problems,
    _sharding_problems,
    _sync_problems,
    _scheduling_problems,
    _compression_problems,
    _pair_problems,
    _option_problems,
    _speed_problems,
    _straggler_problems,
    _target_problems,
    _accumulation_problems,
    _placement_problems,
    _checkpoint_problems,
)
