"""The ways in which workers exchange gradients: by name, from options to schedules and to the nodes that take part.

An architecture is one function, here or, with parameter servers, in `simnet.training.communication.servers`, which
*arranges* it on a cluster; everything else asks `way_of`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simnet.engine.random_streams import random_stream
from simnet.topology import Topology
from simnet.topology.multicast import multicast_tree
from simnet.traffic import (
    ALL_REDUCE,
    Schedule,
    algorithm_names,
    algorithm_of,
    average_in_pair,
    direct_all_gather,
    doubling_all_gather,
    gossip_round,
    map_reduce,
    map_reduce_with_switches,
    neighbours_of,
    ring_all_gather,
    ring_reduce_scatter,
    send_to_all,
    tree_of_parents_all_reduce,
)
from simnet.traffic.collectives import EXTENSIONS
from simnet.training.communication.arrangement import Alone, Arrange, Arrangement, MakeSchedule, each_bucket
from simnet.training.communication.nccl import nccl
from simnet.training.communication.servers import parameter_servers, server_hosts, servers_apart
from simnet.training.communication.settings import Architecture

__all__ = [
    "ARCHITECTURES",
    "EACH_BY_ITSELF",
    "Way",
    "architecture_names",
    "arrange",
    "most_messages_at_once",
    "other_collective",
    "way_of",
]


def _nothing_grows(workers: int, options: Mapping[str, Any]) -> int:  # noqa: ARG001
    return 0


@dataclass(frozen=True)
class Way:
    """An architecture.

    Parameters
    ----------
    arrange : Arrange
    pairs : callable
        ``(workers, options) -> int``: operations of one exchange where these grow faster than the workers.
    servers : callable
        ``(workers, options) -> int``: hosts that it wants besides the workers.
    gather : callable or None
        Makes the schedule by which all workers get what each has, where there is one.
    """

    arrange: Arrange
    pairs: Callable[[int, Mapping[str, Any]], int] = _nothing_grows
    servers: Callable[[int, Mapping[str, Any]], int] = _nothing_grows
    gather: Callable[..., Schedule] | None = None


def architecture_names() -> tuple[str, ...]:
    """Return the names that scenarios may use: `ARCHITECTURES`, and the all-reduces that installed packages add."""
    return tuple(dict.fromkeys((*ARCHITECTURES, *algorithm_names("all_reduce"))))


def way_of(name: str) -> Way:
    """Return an architecture.

    Parameters
    ----------
    name : str
        One of `architecture_names`.

    Raises
    ------
    InputError
        What a package adds under the name cannot be used; names the package.
    """
    if name in ARCHITECTURES:
        EXTENSIONS.require_unclaimed(f"all_reduce.{name}")
        return ARCHITECTURES[name]
    return Way(_all_reduce(algorithm_of("all_reduce", name).make))


def arrange(
    architecture: Architecture, topology: Topology, nodes: NDArray[np.int64], busy: frozenset[int] | None = None
) -> Arrangement:
    """Arrange an architecture on a cluster.

    Parameters
    ----------
    architecture : Architecture
    topology : Topology
    nodes : ndarray of int, shape (workers,)
        Node index of each worker.
    busy : frozenset of int, optional
        Hosts with workers on them; those of these workers where not given.

    Raises
    ------
    InputError
        The cluster lacks hosts for servers, or switches.
    """
    if busy is None:
        busy = frozenset(topology.compiled.host_of_node[nodes].tolist())
    return way_of(architecture.name).arrange(topology, nodes, architecture.options, busy)


def most_messages_at_once(architecture: Architecture, workers: int) -> int:
    """Return the operations of the schedule where every pair talks; 0 where they grow no faster than the workers."""
    return way_of(architecture.name).pairs(workers, architecture.options)


def other_collective(architecture: Architecture, nodes: NDArray[np.int64], collective: str) -> Arrangement:
    """Arrange ``reduce_scatter`` in a ring, or ``all_gather`` as the architecture does it, for some workers."""
    make = ring_reduce_scatter if collective == "reduce_scatter" else way_of(architecture.name).gather
    if make is None:
        raise ValueError(f"there is no {collective} by architecture {architecture.name}")
    return Arrangement(nodes, each_bucket(partial(make, len(nodes))))


# -- all-reduce among the workers --------------------------------------------------------------------------------------


def _all_reduce(make: MakeSchedule) -> Arrange:
    def arrange_it(
        topology: Topology,  # noqa: ARG001
        nodes: NDArray[np.int64],
        options: Mapping[str, Any],
        busy: frozenset[int],  # noqa: ARG001
    ) -> Arrangement:
        return Arrangement(nodes, each_bucket(partial(make, len(nodes), **options)))

    return arrange_it


# -- gossip ------------------------------------------------------------------------------------------------------------


def _gossip(
    topology: Topology,  # noqa: ARG001
    nodes: NDArray[np.int64],
    options: Mapping[str, Any],
    busy: frozenset[int],  # noqa: ARG001
) -> Arrangement:
    """Let workers average with their neighbours in a graph: with all of them, or with one that is drawn."""
    graph = str(options.get("graph", "ring"))
    neighbours = neighbours_of(graph, len(nodes))

    def alone(worker: int, seed: int, job: str) -> Alone:
        mine = neighbours[worker]
        if options.get("partners", "all") == "all" or not mine:
            own = nodes[[worker, *mine]]
            return Alone(each_bucket(partial(send_to_all, len(mine))), None, lambda _: own, lambda _: mine)

        def partner(iteration: int) -> list[int]:
            return [mine[int(random_stream(seed, "partner", job, worker, iteration).integers(len(mine)))]]

        return Alone(each_bucket(average_in_pair), None, lambda it: nodes[[worker, *partner(it)]], partner)

    return Arrangement(
        nodes,
        each_bucket(partial(gossip_round, len(nodes), graph=graph)),
        joins_late=True,
        streams=math.inf,
        alone=alone,
        peers=neighbours,
    )


# -- map-reduce, and switches that reduce and replicate ----------------------------------------------------------------


def _map_reduce(
    topology: Topology, nodes: NDArray[np.int64], options: Mapping[str, Any], busy: frozenset[int]
) -> Arrangement:
    """Let a driver on a host of its own gather what the executors have mapped, and broadcast the new model."""
    [driver] = server_hosts(topology.compiled, nodes, 1, "free_hosts", busy)
    ranks = np.append(nodes, driver)
    if options.get("broadcast") != "multicast":
        return Arrangement(ranks, each_bucket(partial(map_reduce, len(nodes), **options)))
    everybody, parents = _along_a_tree(topology, ranks, driver)
    return Arrangement(everybody, each_bucket(partial(map_reduce_with_switches, len(nodes), parents, **options)))


def _in_network(
    topology: Topology,
    nodes: NDArray[np.int64],
    options: Mapping[str, Any],
    busy: frozenset[int],  # noqa: ARG001
) -> Arrangement:
    """Let switches add up what comes from below and replicate what comes from above: one copy a link each way.

    R. Graham et al., "Scalable hierarchical aggregation protocol (SHArP)", COM-HPC 2016.
    """
    everybody, parents = _along_a_tree(topology, nodes, None)
    make = partial(tree_of_parents_all_reduce, parents, range(len(nodes)), **options)
    return Arrangement(everybody, each_bucket(make))


def _along_a_tree(
    topology: Topology, ranks: NDArray[np.int64], root: int | None
) -> tuple[NDArray[np.int64], list[int]]:
    """Return the nodes of some ranks and of the switches between them, and the parent of each in a multicast tree.

    Of several ranks on one node the last is the parent of the others.
    """
    tree = multicast_tree(topology, root, ranks.tolist())
    rank = {int(node): number for number, node in enumerate(ranks.tolist())}
    inner = [node for node in tree.nodes if node not in rank]
    parents = [rank[int(node)] for node in ranks] + [-1] * len(inner)
    rank |= {node: len(ranks) + number for number, node in enumerate(inner)}
    for node, parent in zip(tree.nodes, tree.parents, strict=True):
        parents[rank[node]] = rank[tree.nodes[parent]] if parent >= 0 else -1
    return np.concatenate([ranks, np.array(inner, dtype=np.int64)]), parents


_GATHERS = {"ring": ring_all_gather, "butterfly": doubling_all_gather, "halving_doubling": doubling_all_gather}

ARCHITECTURES: Mapping[str, Way] = MappingProxyType(
    {
        **{name: Way(_all_reduce(make), gather=_GATHERS.get(name)) for name, make in ALL_REDUCE.items()},
        "mesh": Way(
            _all_reduce(ALL_REDUCE["mesh"]),
            pairs=lambda workers, _: 2 * workers * (workers - 1),
            gather=direct_all_gather,
        ),
        "parameter_server": Way(
            parameter_servers,
            pairs=lambda workers, options: 2 * workers * int(options.get("servers", 1)),
            servers=servers_apart,
        ),
        "mapreduce": Way(
            _map_reduce,
            pairs=lambda workers, options: workers**2 if options.get("broadcast") == "torrent" else 0,
            servers=lambda *_: 1,
        ),
        "in_network": Way(_in_network),
        "nccl": Way(nccl),
        "gossip": Way(_gossip, pairs=lambda workers, options: workers**2 if options.get("graph") == "mesh" else 0),
    }
)
"""The architectures that come with simnet by the names that scenarios use."""

EACH_BY_ITSELF = ("parameter_server", "gossip")
"""Those in which each worker takes part as it is ready itself, and none waits for all."""
