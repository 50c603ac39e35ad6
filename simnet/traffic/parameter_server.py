"""The parameter server: workers push gradients to servers and pull what has become of them.

References
----------
.. [1] M. Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014.
.. [2] Y. Jiang et al., "A unified architecture for accelerating distributed DNN training in heterogeneous GPU/CPU
   clusters", OSDI 2020 (BytePS): what summing and updating on the CPUs of servers costs.
.. [3] L. Mai, C. Hong, P. Costa, "Optimizing network performance in distributed machine learning", HotCloud 2015:
   trees of servers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from simnet.traffic.schedule import Integers, Kind, Partition, Schedule, Turns
from simnet.traffic.schedule_builder import ScheduleBuilder

__all__ = ["PULL_REQUESTS", "aggregator_count", "parameter_server_push_pull", "with_pulls", "with_replicas"]


PULL_REQUESTS = ("never", "after_push", "after_update")
"""When a worker asks for what it pulls: a server answers unasked; when the server has what it pushed; when that has
updated the parameters."""


class _Costs(NamedTuple):
    """What the side of the servers takes; see `parameter_server_push_pull`."""

    aggregate_s_per_byte: float
    update_s_per_byte: float
    cores: int
    memory_accesses: float


class _Way(NamedTuple):
    """Between whom the shards go on one level of a tree of servers, an array element each.

    Attributes
    ----------
    below_rank, above_rank : ranks
    below, above : their numbers on their levels; 0 for the roots, of which each shard has one
    shard : which shard
    """

    below_rank: Integers
    above_rank: Integers
    below: Integers
    above: Integers
    shard: Integers


def parameter_server_push_pull(
    workers: int,
    servers: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    only: int | None = None,
    fan_in: int | None = None,
    aggregate_s_per_byte: float = 0.0,
    update_s_per_byte: float = 0.0,
    cores: int = 1,
    memory_accesses: float = 0.0,
    replicated: Sequence[int] = (),
    pull_requests: Literal["never", "after_push", "after_update"] = "never",
) -> Schedule:
    """One synchronous round: every worker pushes its buffer, the servers sum, every worker pulls the sum.

    The buffer is cut into one contiguous shard a server. A server answers when all workers have pushed its shard; the
    shards do not wait for each other. Servers contribute nothing themselves.

    Steps 2; messages 2WM for W workers and M servers; a worker sends S, a server WS/M; 2WS in all.
    Time on an uncontended star with equal shards 2(max(W/M, 1) S/B + p): with one server 2(WS/B + p), from M = W on
    the links of the workers are the bottleneck [1]_. If each of as many servers as workers is on the node of a worker,
    the shard that this worker has of it does not leave the node: 2(W - 1)S travel, as in a ring.

    *Tree of servers* [3]_: workers in groups of F push to an aggregator each, these in groups of F to one each, and so
    on until at most F are left, which push to the servers, the roots; what is pulled comes down the same way. With L
    levels of A aggregators in all:
    Steps 2(L + 1); messages 2(W + A)M; a worker sends S, an aggregator with c below it (c + 1)S, a root k S/M for the k
    on top; 2(W + A)S in all. Time for W = k F^L with one server 2((L F + k)S/B + (L + 1)p): each level shares the links
    into its aggregators among F, at the top there are k to share that of the root, which carries k S instead of WS.
    With M equal shards at most 2((L F + max(k/M, 1))S/B + (L + 1)p), as one shard goes through a level while the next
    one goes through the level before.

    *Servers that compute* [2]_: each push of b bytes takes ``b aggregate_s_per_byte`` of one of the cores, and then the
    memory; when all have been added, the update takes ``b update_s_per_byte`` of a core, and the memory. With one
    server of c cores, to which all pushes come at once, and no limit to its memory, the time becomes
    2(WS/B + p) + ceil(W/c)S ``aggregate_s_per_byte`` + S ``update_s_per_byte``.

    *Workers that ask*: a server acknowledges a push, with ``after_push`` when it has it (BytePS), with ``after_update``
    when it has made use of it (MXNet's KVStore), and then the worker asks for what it pulls. Both are messages without
    payload, and go behind what is on its way between the two already; 4WM messages, time 2(WS/B + 2p).

    Parameters
    ----------
    workers, servers : int
        Ranks 0 .. W - 1 are the workers, W .. W + M - 1 the servers, then come the aggregators, level by level from
        those next to the workers on.
    elements : int
        Elements in the buffer.
    element_bytes : float
        Size of one element [bytes].
    divisible : bool
        Cut elements too, so that shards are exactly equal.
    only : int
        The whole buffer goes to this one of the servers, counted from 0, and the others have no part: all formulas with
        M = 1. By default it is cut.
    fan_in : int
        F, at least 2; by default all workers push to the servers themselves, as they do where W <= F.
    aggregate_s_per_byte, update_s_per_byte : float
        Time of one core for each byte that is added, and for each byte of the shard that is updated [s].
    cores : int
        Of each server and aggregator. Those that add to one shard take turns; so do updates of different shards.
    memory_accesses : float
        How often each byte that is added or updated is read or written in the memory of the host.
    replicated : sequence of int
        Servers, counted from 0, each of which has a replica, the last ranks in this order: what a server has made of
        all pushes it sends there, and answers when it has arrived ([1]_, section 4.3: chains of two, replication after
        aggregation). A byte more for each of its shard, whatever the number of workers.
    pull_requests : str
        Out of `PULL_REQUESTS`.

    Returns
    -------
    Schedule
        Over workers, servers, aggregators and replicas, in this order of ranks; a chunk a shard.

    Raises
    ------
    ValueError
        Numbers that are too small, or a server that does not exist.

    References
    ----------
    .. [1] M. Li et al., OSDI 2014.
    .. [2] Y. Jiang et al. (BytePS), OSDI 2020.
    .. [3] L. Mai, C. Hong, P. Costa, HotCloud 2015.
    """
    if workers < 1 or servers < 1:
        raise ValueError(f"a parameter server needs at least one worker and one server: {workers}, {servers}")
    if only is not None and not 0 <= only < servers:
        raise ValueError(f"the only server is one of 0 .. {servers - 1}: {only}")
    costs = _Costs(aggregate_s_per_byte, update_s_per_byte, cores, memory_accesses)
    if min(costs) < 0 or cores < 1:
        raise ValueError(f"a server has at least one core and costs of 0 or more: {costs}")
    shards = servers if only is None else 1
    first_root = workers + (only or 0)
    levels = _aggregators(workers, fan_in)
    build = ScheduleBuilder(
        "parameter server push and pull",
        workers + servers + sum(levels) + len(replicated),
        Partition(elements, element_bytes, shards, divisible),
    )
    # Who pushes on each level, from the workers on; last, by shard, the roots.
    first, pushing = workers + servers, [np.arange(workers)]
    for size in levels:
        pushing.append(first + np.arange(size))
        first += size
    begun, updated = _updates(build, costs, first_root + np.arange(shards))
    updated = with_replicas(build, updated, only, replicated, workers + servers + sum(levels), workers)
    ways: list[tuple[_Way, Integers]] = []
    ready: Integers | None = None
    for level, below in enumerate(pushing):
        # Each begins with another shard, so that no server is everybody's first.
        place = np.repeat(np.arange(len(below)), shards)
        shard = (place + np.tile(np.arange(shards), len(below))) % shards
        if level == len(levels) or fan_in is None:
            above, target, summed, following = 0 * place, first_root + shard, None, begun[shard]
        else:
            above = place // fan_in
            target = pushing[level + 1][above]
            summed = build.calc(np.repeat(pushing[level + 1], shards)).reshape(-1, shards)
            following = summed[above, shard]
        push = _push(build, costs, below[place], target, shard, (place + shard) % cores, following)
        if ready is not None:
            build.depend(ready[place, shard], push)
        ready = summed
        ways.append((_Way(below[place], target, place, above, shard), push))
    arrived = updated[np.newaxis]
    for way, push in reversed(ways):
        pull = build.send(way.above_rank, way.below_rank, chunk=way.shard)
        there = arrived[way.above, way.shard]
        build.depend(there, pull)
        if pull_requests != "never":
            build.depend(_ask(build, way, push if pull_requests == "after_push" else there), pull)
        arrived = np.empty((way.below.max() + 1, shards), dtype=np.int64)
        arrived[way.below, way.shard] = pull
    return build.schedule(turns=Turns.NODES)


def with_replicas(
    build: ScheduleBuilder,
    updated: Integers,
    only: int | None,
    replicated: Sequence[int],
    first_replica: int,
    first_server: int,
) -> Integers:
    """Have some servers send what they have updated to their replicas; return what tells that all of it is there.

    Parameters
    ----------
    build : ScheduleBuilder
    updated : ndarray of int, shape (shards,)
        Operations after which each shard is updated.
    only : int or None
        The server of the one shard; None: shard s is that of server s.
    replicated : sequence of int
        Servers that have a replica.
    first_replica, first_server : int
        Ranks of the first of each.
    """
    last = updated.copy()
    for place, server in enumerate(replicated):
        if only is not None and only != server:
            continue
        shard = 0 if only is not None else server
        copy = build.send(
            first_server + server, first_replica + place, width=0, fixed_bytes=build.partition.range_bytes(shard, 1)
        )
        build.depend(last[shard], copy)
        last[shard] = int(np.asarray(copy).item())
    return last


def with_pulls(schedule: Schedule, workers: int, pulled: int) -> Schedule:
    """Return a round without aggregators in which workers pull something else than they push: more, or less.

    As where each pushes a few elements of its own choice, and pulls those that anybody has pushed. What they pull is
    cut among the servers as what they push; it carries no chunks, so that nothing can be proven of it.

    Parameters
    ----------
    schedule : Schedule
        Of `parameter_server_push_pull`.
    workers : int
        How many of its ranks are workers.
    pulled : int
        Elements that each worker pulls of all servers together.

    Returns
    -------
    Schedule
    """
    ops = schedule.operations
    carries = (ops.kind == Kind.SEND) & (ops.chunk_width > 0)
    pull = carries & (ops.source >= workers) & (ops.target < workers)
    size = replace(schedule.partition, elements=pulled).range_bytes(ops.chunk_first, 1)
    sends = replace(
        ops, chunk_width=np.where(pull, 0, ops.chunk_width), fixed_bytes=np.where(pull, size, ops.fixed_bytes)
    )
    return replace(schedule, operations=sends)


def aggregator_count(workers: int, fan_in: int | None) -> int:
    """Return how many aggregators a tree of servers has for so many workers.

    Parameters
    ----------
    workers : int
        W.
    fan_in : int or None
        F, at least 2; None: no tree.

    Returns
    -------
    int
        A, of all levels together.

    Raises
    ------
    ValueError
        A fan-in below 2.

    Examples
    --------
    >>> aggregator_count(64, 4), aggregator_count(4, 4), aggregator_count(64, None)
    (20, 0, 0)
    """
    return sum(_aggregators(workers, fan_in))


def _aggregators(workers: int, fan_in: int | None) -> list[int]:
    """Return the number of aggregators on each level, from that next to the workers on."""
    if fan_in is not None and fan_in < 2:
        raise ValueError(f"the fan-in of a tree of servers is at least 2: {fan_in}")
    sizes: list[int] = []
    below = workers
    while fan_in is not None and below > fan_in:
        below = -(-below // fan_in)
        sizes.append(below)
    return sizes


def _ask(build: ScheduleBuilder, way: _Way, after: Integers) -> Integers:
    """Have those above acknowledge what they were pushed, after something, and those below then ask for the result."""
    acknowledgement = build.send(way.above_rank, way.below_rank, width=0)
    build.depend(after, acknowledgement)
    request = build.send(way.below_rank, way.above_rank, width=0)
    build.depend(acknowledgement, request)
    return request


def _updates(build: ScheduleBuilder, costs: _Costs, root: Integers) -> tuple[Integers, Integers]:
    """Add the update of each shard; return what all pushes of it are awaited by, and at what it is over."""
    shard = np.arange(len(root))
    size = build.partition.range_bytes(shard, 1)
    stream = shard % costs.cores if costs.update_s_per_byte > 0 else -1
    begun = over = build.calc(root, costs.update_s_per_byte * size, stream=stream)
    if costs.memory_accesses > 0:
        over = build.memory(root, costs.memory_accesses * size)
        build.depend(begun, over)
    return begun, over


def _push(
    build: ScheduleBuilder,
    costs: _Costs,
    source: Integers,
    target: Integers,
    shard: Integers,
    core: Integers,
    following: Integers,
) -> Integers:
    """Add pushes, and what adding them takes, before the calculations that follow; return the sends."""
    size = build.partition.range_bytes(shard, 1)
    adds = costs.aggregate_s_per_byte > 0
    added = build.calc(target, costs.aggregate_s_per_byte * size, stream=core) if adds else -1
    push = over = build.send(source, target, chunk=shard, reduce=1, merged_by=added)
    if not isinstance(added, int):
        build.depend(push, added)
        over = added
    if costs.memory_accesses > 0:
        taken = build.memory(target, costs.memory_accesses * size)
        build.depend(over, taken)
        over = taken
    build.depend(over, following)
    return push
