"""How many workers a job has, and how many the cluster has room for beside its servers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from simnet.scenario.algorithm_options import option_arguments
from simnet.scenario.job_models import TrainingSpec
from simnet.scenario.sections import NotKnownError
from simnet.topology import Topology
from simnet.training.communication.architectures import ARCHITECTURES, way_of
from simnet.training.communication.settings import Architecture
from simnet.training.layout import ranks_of

__all__ = ["Room", "architecture_of", "replicas", "worker_count", "workers_of_a_replica"]


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
    split = workers_of_a_replica(spec)
    if spec.parallelism is not None and spec.parallelism.data is not None:
        return split * spec.parallelism.data
    compiled = room.topology.compiled
    there = room.ranks(spec.parallelism.shared_memory if spec.parallelism is not None else 1)
    if "gpu" in compiled.node_kind:
        return max(1, there // split) * split
    # The most that leave as many hosts as they want for servers.
    servers, options = way_of(spec.architecture.name).servers, architecture_of(spec.architecture).options
    for workers in range(there // split * split, 0, -split):
        if workers + servers(workers // split, options) <= there:
            return workers
    return split


def replicas(spec: TrainingSpec, room: Room) -> int:
    """Return how many workers, or groups of workers that a model is split over, have samples of their own."""
    found, rest = divmod(worker_count(spec, room), workers_of_a_replica(spec))
    if rest:
        raise NotKnownError("parallelism")
    return found


def workers_of_a_replica(spec: TrainingSpec) -> int:
    """Return how many workers a model is split over."""
    split = spec.parallelism
    return split.pipeline * split.tensor * split.shared_memory if split is not None else 1


def architecture_of(spec: Any) -> Architecture:
    """Return an architecture with its options in SI units, as the functions that arrange it want them."""
    if spec.name not in ARCHITECTURES:
        return Architecture(spec.name, option_arguments("all_reduce", spec.name, spec.options))
    options = dict(spec.options)
    for rate, cost in (("aggregation_rate", "aggregate_s_per_byte"), ("update_rate", "update_s_per_byte")):
        if rate in options:
            bytes_per_s = options.pop(rate)
            options[cost] = 0.0 if bytes_per_s == math.inf else 1.0 / bytes_per_s
    return Architecture(spec.name, options)
