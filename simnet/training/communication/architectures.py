"""The ways in which workers exchange gradients: by name, from options to schedules and to the nodes that take part.

An architecture is one function here, which *arranges* it on a cluster; everything else asks `ARCHITECTURES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simnet.engine.random_streams import random_stream
from simnet.errors import InputError, Problem
from simnet.topology import CompiledTopology, Topology
from simnet.topology.multicast import multicast_tree
from simnet.traffic import (
    ALL_REDUCE,
    Schedule,
    aggregator_count,
    average_in_pair,
    direct_all_gather,
    doubling_all_gather,
    gossip_round,
    map_reduce,
    map_reduce_with_switches,
    neighbours_of,
    parameter_server_push_pull,
    pull_from_servers,
    push_to_servers,
    ring_all_gather,
    ring_reduce_scatter,
    send_to_all,
    tree_of_parents_all_reduce,
)
from simnet.training.communication.settings import Architecture

__all__ = [
    "ARCHITECTURES",
    "EACH_BY_ITSELF",
    "Alone",
    "Arrangement",
    "Way",
    "arrange",
    "most_messages_at_once",
    "other_collective",
    "server_of_each",
]

MakeSchedule = Callable[..., Schedule]
"""``(elements, element_bytes, *, divisible) -> Schedule``: that of one bucket."""

MakeSchedules = Callable[[Sequence[int], float, bool], list[Schedule]]
"""``(elements, element_bytes, divisible) -> [Schedule]``: those of all buckets."""


@dataclass(frozen=True, eq=False)
class Alone:
    """What one worker of an architecture exchanges by itself, when it need not wait for others.

    Parameters
    ----------
    push : callable
        As `Arrangement.schedules`: what it sends for each bucket; rank 0 is the worker.
    pull : callable or None
        Likewise, what it then gets.
    nodes : callable
        ``iteration -> ndarray of int``: node index of each rank.
    others : callable
        ``iteration -> sequence of int``: which workers are ranks 1 and up; empty where servers are.
    """

    push: MakeSchedules
    pull: MakeSchedules | None
    nodes: Callable[[int], NDArray[np.int64]]
    others: Callable[[int], Sequence[int]] = lambda _: ()


@dataclass(frozen=True, eq=False)
class Arrangement:
    """An architecture on a cluster.

    Parameters
    ----------
    nodes : ndarray of int, shape (ranks,)
        Node index of each rank: the workers first, then servers or switches.
    schedules : callable
        ``(elements, element_bytes, divisible) -> [Schedule]``, one for each bucket, given their elements.
    joins_late : bool
        Each worker takes part as soon as it is ready itself, not only when all are.
    streams : float
        Exchanges that may be under way at once.
    alone : callable or None
        ``(worker, seed, job) -> Alone``; None where nobody can exchange by itself.
    peers : sequence of sequence of int, or None
        Whom each worker exchanges with, and so waits for; None: all of them.
    """

    nodes: NDArray[np.int64]
    schedules: MakeSchedules
    joins_late: bool = False
    streams: float = 1
    alone: Callable[[int, int, str], Alone] | None = None
    peers: Sequence[Sequence[int]] | None = None


class Arrange(Protocol):
    """Arranges an architecture for some workers."""

    def __call__(
        self, topology: Topology, nodes: NDArray[np.int64], options: Mapping[str, Any], busy: frozenset[int]
    ) -> Arrangement:
        """Arrange it.

        Parameters
        ----------
        topology : Topology
        nodes : ndarray of int, shape (workers,)
            Node index of each worker.
        options : mapping
        busy : frozenset of int
            Hosts with workers on them, of all jobs.
        """


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
    return ARCHITECTURES[architecture.name].arrange(topology, nodes, architecture.options, busy)


def most_messages_at_once(architecture: Architecture, workers: int) -> int:
    """Return the operations of the schedule where every pair talks; 0 where they grow no faster than the workers."""
    return ARCHITECTURES[architecture.name].pairs(workers, architecture.options)


def other_collective(architecture: Architecture, nodes: NDArray[np.int64], collective: str) -> Arrangement:
    """Arrange ``reduce_scatter`` in a ring, or ``all_gather`` as the architecture does it, for some workers."""
    make = ring_reduce_scatter if collective == "reduce_scatter" else ARCHITECTURES[architecture.name].gather
    if make is None:
        raise ValueError(f"there is no {collective} by architecture {architecture.name}")
    return Arrangement(nodes, _each_bucket(partial(make, len(nodes))))


# -- all-reduce among the workers --------------------------------------------------------------------------------------


def _all_reduce(make: MakeSchedule) -> Arrange:
    def arrange_it(
        topology: Topology,  # noqa: ARG001
        nodes: NDArray[np.int64],
        options: Mapping[str, Any],
        busy: frozenset[int],  # noqa: ARG001
    ) -> Arrangement:
        return Arrangement(nodes, _each_bucket(partial(make, len(nodes), **options)))

    return arrange_it


def _each_bucket(make: MakeSchedule) -> MakeSchedules:
    """Make the schedule of each bucket by itself; buckets of one size share theirs."""

    def schedules(elements: Sequence[int], element_bytes: float, divisible: bool) -> list[Schedule]:
        made: dict[int, Schedule] = {}
        for size in elements:
            if size not in made:
                made[size] = make(size, element_bytes, divisible=divisible)
        return [made[size] for size in elements]

    return schedules


# -- parameter servers -------------------------------------------------------------------------------------------------


def _parameter_server(
    topology: Topology, nodes: NDArray[np.int64], options: Mapping[str, Any], busy: frozenset[int]
) -> Arrangement:
    """Put servers on hosts of their own, or beside the workers; each sums up what it is sent.

    What a server is sent it adds up with the processor and the memory of its host. With ``replicas``, the node of the
    replica of each server that has one, by its number, what it holds is replicated.
    """
    workers = len(nodes)
    servers, fan_in = int(options.get("servers", 1)), options.get("fan_in")
    count = servers + (aggregator_count(workers, fan_in) if fan_in else 0)
    hosts = _server_hosts(topology.compiled, nodes, count, str(options.get("placement", "free_hosts")), busy)
    replicas: Mapping[int, int] = options.get("replicas", {})
    hosts, replicated = np.concatenate([hosts, np.array(list(replicas.values()), dtype=np.int64)]), tuple(replicas)
    costs = {key: options[key] for key in ("aggregate_s_per_byte", "update_s_per_byte", "cores") if key in options}
    costs["replicated"] = replicated
    has_memory = bool(np.isfinite(topology.compiled.node_memory_bandwidth[hosts]).any())
    costs["memory_accesses"] = float(options.get("memory_accesses", 3.0)) if has_memory else 0.0

    def schedules(elements: Sequence[int], element_bytes: float, divisible: bool) -> list[Schedule]:
        made: dict[tuple[int, int | None], Schedule] = {}
        only = server_of_each(elements, servers, str(options.get("shards", "even")))
        for key in zip(elements, only, strict=True):
            if key not in made:
                made[key] = parameter_server_push_pull(
                    workers, servers, key[0], element_bytes, divisible=divisible, only=key[1], fan_in=fan_in, **costs
                )
        return [made[key] for key in zip(elements, only, strict=True)]

    def alone(worker: int, seed: int, job: str) -> Alone:  # noqa: ARG001
        own = np.concatenate([nodes[[worker]], hosts])
        update = {key: costs[key] for key in ("update_s_per_byte", "memory_accesses", "replicated") if key in costs}
        pull = partial(pull_from_servers, replicas=len(replicated))
        core = worker % int(options.get("cores", 1))

        def shards(make: MakeSchedule) -> MakeSchedules:
            def each(elements: Sequence[int], element_bytes: float, divisible: bool) -> list[Schedule]:
                only = server_of_each(elements, servers, str(options.get("shards", "even")))
                return [
                    make(servers, size, element_bytes, divisible=divisible, only=which)
                    for size, which in zip(elements, only, strict=True)
                ]

            return each

        return Alone(shards(partial(push_to_servers, core=core, **update)), shards(pull), lambda _: own)

    return Arrangement(
        np.concatenate([nodes, hosts]),
        schedules,
        joins_late=True,
        streams=math.inf,
        alone=alone if not fan_in else None,
    )


def server_of_each(elements: Sequence[int], servers: int, shards: str) -> list[int | None]:
    """Return which server each bucket is for.

    Parameters
    ----------
    elements : sequence of int
        Of each bucket.
    servers : int
    shards : str
        ``even``: each bucket is cut among all of them, which gives None; ``round_robin``: bucket b is for server b
        modulo their number, as TensorFlow's replica device setter places variables; ``by_size``: for the server that
        has least so far.
    """
    if shards == "even" or servers == 1:
        return [None] * len(elements)
    if shards == "round_robin":
        return [bucket % servers for bucket in range(len(elements))]
    loads = [0] * servers
    chosen: list[int | None] = []
    for size in elements:
        server = loads.index(min(loads))
        loads[server] += size
        chosen.append(server)
    return chosen


def _server_hosts(
    compiled: CompiledTopology, nodes: NDArray[np.int64], count: int, placement: str, busy: frozenset[int]
) -> NDArray[np.int64]:
    """Return the nodes of servers.

    ``free_hosts``: hosts that no worker is on, in order; where there are not enough of those, the rest shares the
    workers' hosts in turn. ``dedicated``: only such hosts. ``colocated``: the workers' hosts in turn.
    """
    hosts = [node for node, kind in enumerate(compiled.node_kind) if kind == "host"]
    own = list(dict.fromkeys(compiled.host_of_node[nodes].tolist()))
    free = [host for host in hosts if host not in busy]
    if placement == "dedicated" and len(free) < count:
        message = f"{count} servers do not fit on the {len(free)} hosts without workers"
        hint = "fewer servers or workers, or placement: colocated"
        raise InputError(Problem(message, hint, ("servers",)))
    if placement == "colocated":
        chosen = _in_turn(own, count)
    elif len(free) >= count:
        chosen = free[:count]
    else:
        chosen = free + _in_turn(own, count - len(free))
    return np.array(chosen, dtype=np.int64)


def _in_turn(nodes: Sequence[int], count: int) -> list[int]:
    return [nodes[number % len(nodes)] for number in range(count)]


def _server_count(workers: int, options: Mapping[str, Any]) -> int:
    fan_in = options.get("fan_in")
    return int(options.get("servers", 1)) + (aggregator_count(workers, fan_in) if fan_in else 0)


def _servers_apart(workers: int, options: Mapping[str, Any]) -> int:
    return 0 if options.get("placement") == "colocated" else _server_count(workers, options)


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
            return Alone(_each_bucket(partial(send_to_all, len(mine))), None, lambda _: own, lambda _: mine)

        def partner(iteration: int) -> list[int]:
            return [mine[int(random_stream(seed, "partner", job, worker, iteration).integers(len(mine)))]]

        return Alone(_each_bucket(average_in_pair), None, lambda it: nodes[[worker, *partner(it)]], partner)

    return Arrangement(
        nodes,
        _each_bucket(partial(gossip_round, len(nodes), graph=graph)),
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
    [driver] = _server_hosts(topology.compiled, nodes, 1, "free_hosts", busy)
    ranks = np.append(nodes, driver)
    if options.get("broadcast") != "multicast":
        return Arrangement(ranks, _each_bucket(partial(map_reduce, len(nodes), **options)))
    everybody, parents = _along_a_tree(topology, ranks, driver)
    return Arrangement(everybody, _each_bucket(partial(map_reduce_with_switches, len(nodes), parents, **options)))


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
    return Arrangement(everybody, _each_bucket(make))


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
            _parameter_server,
            pairs=lambda workers, options: 2 * workers * int(options.get("servers", 1)),
            servers=_servers_apart,
        ),
        "mapreduce": Way(
            _map_reduce,
            pairs=lambda workers, options: workers**2 if options.get("broadcast") == "torrent" else 0,
            servers=lambda *_: 1,
        ),
        "in_network": Way(_in_network),
        "gossip": Way(_gossip, pairs=lambda workers, options: workers**2 if options.get("graph") == "mesh" else 0),
    }
)
"""The architectures by the names that scenarios use."""

EACH_BY_ITSELF = ("parameter_server", "gossip")
"""Those in which each worker takes part as it is ready itself, and none waits for all."""
