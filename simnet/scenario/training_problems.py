"""What can be wrong with the section ``training`` of a job, in itself and on its cluster."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress

from simnet.errors import Problem
from simnet.scenario.algorithm_options import ParameterServerSpec, misfits
from simnet.scenario.compute import straggler_problems, target_problems
from simnet.scenario.fields import hint_at
from simnet.scenario.job_models import TrainingSpec
from simnet.scenario.room import Room, architecture_of, replicas, worker_count, workers_of_a_replica
from simnet.scenario.scheduling import scheduling_problems
from simnet.scenario.sections import NotKnownError, Section
from simnet.training.communication.architectures import ARCHITECTURES, EACH_BY_ITSELF, most_messages_at_once, way_of
from simnet.training.communication.settings import Sync

__all__ = ["training_problems"]

MOST_PAIRS = 4_000_000
"""Operations of one exchange, some 700 bytes each."""


def training_problems(spec: TrainingSpec, room: Room) -> list[Problem]:
    """Return everything that is wrong; paths are below the section."""
    problems: list[Problem] = []
    for check in _CHECKS:
        # A check that needs what is wrong already has nothing to say.
        with suppress(NotKnownError):
            problems += check(spec, room)
    return problems


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
    servers = way_of(spec.architecture.name).servers(1, architecture_of(spec.architecture).options)
    if servers and servers >= room.ranks():
        message = f"{servers} servers leave none of the {room.ranks()} hosts of {room.topology.name} for workers"
        yield Problem(message, "say how many workers there are, or have fewer servers", ("architecture",))


def _grid_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:
    split = spec.parallelism
    if split is None:
        return
    workers, each = worker_count(spec, room), workers_of_a_replica(spec)
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
    given = {"overlap_slowdown": spec.overlap_slowdown is not None, "step_overhead": spec.step_overhead > 0.0}
    for key in (key for key, is_given in given.items() if is_given and is_split):
        hint = "leave it out: the steps of a split model do not know it"
        yield Problem(f"{key} stands beside a model that is split", hint, (key,))


def _compression_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:  # noqa: ARG001
    scheme, architecture = spec.compression.name, spec.architecture.name
    if scheme == "none":
        return
    beside = f"{scheme} stands beside architecture {architecture}"
    place = ("compression", scheme)
    gathering = [name for name, way in ARCHITECTURES.items() if way.gather is not None]
    match scheme, architecture:
        case "sparsify", "parameter_server":
            for key in _together(spec.architecture.options):
                hint = "leave it out: what is added up on the way depends on what workers choose"
                yield Problem(f"{beside} with {key}", hint, ("architecture", architecture, key))
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
    architecture = architecture_of(spec.architecture)
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
    for key in _together(architecture.options):
        message = f"{key} stands beside sync {sync.name}"
        hint = "leave it out: workers push and pull each by itself then"
        yield Problem(message, hint, ("architecture", "parameter_server", key))
    if split is not None and workers_of_a_replica(spec) > 1:
        yield Problem(f"parallelism stands beside sync {sync.name}", "only data parallelism is possible", ("sync",))


def _together(options: object) -> Iterator[str]:
    """Yield the options by which workers do not push to servers each by itself."""
    if getattr(options, "fan_in", None) is not None:
        yield "fan_in"
    if isinstance(options, ParameterServerSpec) and options.group > 1:
        yield "group"
    if isinstance(options, ParameterServerSpec) and options.pull_requests != "never":
        yield "pull_requests"


def _scheduling_problems(spec: TrainingSpec, room: Room) -> Iterator[Problem]:  # noqa: ARG001
    yield from scheduling_problems(
        spec.scheduling,
        sync=spec.sync.name,
        architecture=spec.architecture.name,
        compression=spec.compression.name,
        zero_stage=spec.zero_stage,
        is_split=workers_of_a_replica(spec) > 1,
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
    if workers_of_a_replica(spec) > 1:
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
