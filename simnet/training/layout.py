"""On which node each worker of a job is."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from simnet.engine.random_streams import random_stream
from simnet.errors import InputError, Problem
from simnet.topology import CompiledTopology
from simnet.training.settings import JobSettings

__all__ = ["PLACEMENTS", "lay_out_workers", "ranks_of"]

PLACEMENTS = ("in_order", "by_host", "random")
"""Names of ways to place workers; their nodes may also be listed."""


def ranks_of(compiled: CompiledTopology, shared_memory: int) -> NDArray[np.int64]:
    """Return the nodes that workers can be on, in order; one that can hold several is there as often, shape (ranks,).

    Workers that share the memory of a host are on the host itself, whatever GPUs it has.
    """
    if shared_memory == 1:
        return compiled.rank_nodes
    hosts = [node for node, kind in enumerate(compiled.node_kind) if kind == "host"]
    return np.repeat(np.array(hosts, dtype=np.int64), shared_memory)


def lay_out_workers(
    compiled: CompiledTopology, job: JobSettings, seed: int, taken: Collection[int] = ()
) -> NDArray[np.int64]:
    """Return the node of each worker, shape (workers,).

    Parameters
    ----------
    compiled : CompiledTopology
    job : JobSettings
    seed : int
        Of random placement.
    taken : collection of int
        Nodes with workers of other jobs on them.

    Raises
    ------
    InputError
        There are not enough nodes, or a name is no node that workers can be on.
    """
    training = job.training
    taken = frozenset(taken)
    group = training.grid.shared_memory
    ranks = ranks_of(compiled, group)
    free = ranks[[node not in taken for node in ranks.tolist()]] if taken else ranks
    if not isinstance(training.placement, str):
        return _listed(compiled, training.placement, ranks, taken, group)
    if training.workers > len(free):
        others = " that other jobs leave" if taken else ""
        message = f"{training.workers} workers do not fit on {len(free)} ranks{others}"
        raise InputError(Problem(message, f"at most {len(free)} is wanted", path=("workers",)))
    if training.placement == "by_host":
        return _round_robin(compiled, free)[: training.workers]
    nodes = free[: training.workers]
    if training.placement == "random":
        groups = nodes.reshape(-1, group)
        return np.asarray(random_stream(seed, "placement", job.name).permutation(groups).ravel(), dtype=np.int64)
    return nodes


def _round_robin(compiled: CompiledTopology, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Take the first rank of each host, then the second of each, and so on."""
    hosts = compiled.host_of_node[nodes].tolist()
    seen: dict[int, int] = {}
    turn = []
    for host in hosts:
        turn.append(seen.get(host, 0))
        seen[host] = turn[-1] + 1
    return nodes[np.argsort(turn, kind="stable")]


def _listed(
    compiled: CompiledTopology, names: tuple[str, ...], ranks: NDArray[np.int64], taken: frozenset[int], group: int
) -> NDArray[np.int64]:
    index = {compiled.node_names[node]: node for node in ranks.tolist()}
    problems, nodes, seen = [], [], dict[str, int]()
    for place, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        path = ("placement", place)
        if name not in index:
            problems.append(Problem(f"{name!r} is no node that a worker can be on", "", path))
        elif index[name] in taken:
            problems.append(Problem(f"{name!r} has a worker of another job", "", path))
        elif seen[name] > group:
            problems.append(Problem(f"{name!r} is listed more than {group} times", "one worker each is wanted", path))
        else:
            nodes.append(index[name])
    if problems:
        raise InputError(problems)
    return np.array(nodes, dtype=np.int64)
