"""Parameter servers: on which hosts they are, which of them each bucket is for, and what they do with it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simnet.errors import InputError, Problem
from simnet.topology import CompiledTopology, Topology
from simnet.traffic import (
    Schedule,
    aggregator_count,
    grouped_push_pull,
    pull_from_servers,
    push_to_servers,
)
from simnet.training.communication.arrangement import Alone, Arrangement, MakeSchedule, MakeSchedules

__all__ = ["parameter_servers", "server_hosts", "server_of_each", "servers_apart"]


def parameter_servers(
    topology: Topology, nodes: NDArray[np.int64], options: Mapping[str, Any], busy: frozenset[int]
) -> Arrangement:
    """Put servers on hosts of their own, or beside the workers; each sums up what it is sent.

    What a server is sent it adds up with the processor and the memory of its host. With ``replicas``, the node of the
    replica of each server that has one, by its number, what it holds is replicated.
    """
    workers = len(nodes)
    servers = int(options.get("servers", 1))
    count = _server_count(workers, options)
    hosts = server_hosts(topology.compiled, nodes, count, str(options.get("placement", "free_hosts")), busy)
    replicas: Mapping[int, int] = options.get("replicas", {})
    hosts, replicated = np.concatenate([hosts, np.array(list(replicas.values()), dtype=np.int64)]), tuple(replicas)
    costs = {key: options[key] for key in ("aggregate_s_per_byte", "update_s_per_byte", "cores") if key in options}
    costs["replicated"] = replicated
    is_grouped = int(options.get("group", 1)) > 1
    costs |= {key: options[key] for key in ("fan_in", "group", "inside", "pull_requests") if key in options}
    has_memory = bool(np.isfinite(topology.compiled.node_memory_bandwidth[hosts]).any())
    costs["memory_accesses"] = float(options.get("memory_accesses", 3.0)) if has_memory else 0.0

    def schedules(elements: Sequence[int], element_bytes: float, divisible: bool) -> list[Schedule]:
        made: dict[tuple[int, int | None], Schedule] = {}
        only = server_of_each(elements, servers, str(options.get("shards", "even")))
        for key in zip(elements, only, strict=True):
            if key not in made:
                made[key] = grouped_push_pull(
                    workers, servers, key[0], element_bytes, divisible=divisible, only=key[1], **costs
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
        # Those of a group need each other, so that all have to go on in one order.
        joins_late=not is_grouped,
        streams=math.inf,
        alone=alone if not options.get("fan_in") and not is_grouped else None,
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


def server_hosts(
    compiled: CompiledTopology, nodes: NDArray[np.int64], count: int, placement: str, busy: frozenset[int]
) -> NDArray[np.int64]:
    """Return the nodes of servers, or of others that want hosts as these do.

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
    """Return the servers and, where they stand in a tree, aggregators."""
    fan_in = options.get("fan_in")
    return int(options.get("servers", 1)) + (
        aggregator_count(workers // int(options.get("group", 1)), fan_in) if fan_in else 0
    )


def servers_apart(workers: int, options: Mapping[str, Any]) -> int:
    """Return how many servers, aggregators included, want hosts that no worker is on."""
    return 0 if options.get("placement") == "colocated" else _server_count(workers, options)
