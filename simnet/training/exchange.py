"""From the name of an architecture to the schedule that exchanges one bucket, and to the nodes that take part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simnet.errors import InputError, Problem
from simnet.topology import CompiledTopology
from simnet.traffic import ALL_REDUCE, Schedule, parameter_server_push_pull
from simnet.training.settings import Architecture

__all__ = ["exchange_schedule", "most_messages_at_once", "participants", "server_count"]


def exchange_schedule(
    architecture: Architecture, workers: int, elements: int, element_bytes: float, *, divisible: bool = False
) -> Schedule:
    """Return the schedule by which workers exchange one bucket.

    Parameters
    ----------
    architecture : Architecture
    workers : int
        Ranks 0 .. workers - 1; servers follow.
    elements : int
    element_bytes : float
        [bytes]
    divisible : bool
        Chunks may hold fractions of an element.
    """
    if architecture.name == "parameter_server":
        return parameter_server_push_pull(
            workers, server_count(architecture), elements, element_bytes, divisible=divisible
        )
    make = ALL_REDUCE[architecture.name]
    return make(workers, elements, element_bytes, divisible=divisible, **architecture.options)


def server_count(architecture: Architecture) -> int:
    """Return how many ranks an architecture needs besides the workers."""
    return int(architecture.options.get("servers", 1)) if architecture.name == "parameter_server" else 0


def most_messages_at_once(architecture: Architecture, workers: int) -> int:
    """Return the operations of the schedule where every pair talks; 0 where they grow no faster than the workers."""
    if architecture.name == "parameter_server":
        return 2 * workers * server_count(architecture)
    return 2 * workers * (workers - 1) if architecture.name == "mesh" else 0


def participants(topology: CompiledTopology, workers: int, architecture: Architecture) -> NDArray[np.int64]:
    """Return the nodes of all ranks: the workers, then the servers.

    Workers take the first ranks of the topology. Servers take the hosts that no worker is on, in order; where there are
    not enough of those, they share the workers' hosts in turn.

    Raises
    ------
    InputError
        There are fewer ranks than workers.
    """
    if workers > len(topology.ranks):
        raise InputError(
            Problem(
                f"{workers} workers do not fit on {len(topology.ranks)} ranks",
                f"at most {len(topology.ranks)} is wanted",
                path=("training", "workers"),
            )
        )
    nodes = topology.rank_nodes[:workers]
    servers = server_count(architecture)
    if servers == 0:
        return nodes
    hosts = [node for node, kind in enumerate(topology.node_kind) if kind == "host"]
    busy = {int(topology.host_of_node[node]) for node in nodes}
    free = [host for host in hosts if host not in busy]
    chosen = _in_turn(free, servers) if len(free) >= servers else free + _in_turn(sorted(busy), servers - len(free))
    return np.concatenate([nodes, np.array(chosen, dtype=np.int64)])


def _in_turn(nodes: Sequence[int], count: int) -> list[int]:
    return [nodes[number % len(nodes)] for number in range(count)]
