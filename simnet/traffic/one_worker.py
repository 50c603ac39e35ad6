"""What one worker exchanges by itself, without waiting for others: rank 0 is that worker.

References
----------
.. [1] J. Dean et al., "Large scale distributed deep networks", NIPS 2012: workers that push to servers and pull from
   them when they are ready.
.. [2] X. Lian et al., "Can decentralized algorithms outperform centralized algorithms?", NIPS 2017 (D-PSGD): each
   worker averages with its neighbours in a graph.
.. [3] X. Lian et al., "Asynchronous decentralized parallel stochastic gradient descent", ICML 2018 (AD-PSGD): with one
   neighbour, drawn at random.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simnet.traffic.parameter_server import with_replicas
from simnet.traffic.schedule import Integers, Partition, Schedule, Turns
from simnet.traffic.schedule_builder import ScheduleBuilder

__all__ = ["average_in_pair", "gossip_round", "neighbours_of", "pull_from_servers", "push_to_servers", "send_to_all"]


def push_to_servers(
    servers: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    only: int | None = None,
    update_s_per_byte: float = 0.0,
    core: int = 0,
    memory_accesses: float = 0.0,
    replicated: Sequence[int] = (),
) -> Schedule:
    """Push a buffer to servers, which update their parameters with it at once [1]_.

    Steps 1; messages M; the worker sends S; time S/B + p + S/M ``update_s_per_byte``, uncontended.

    Parameters
    ----------
    servers : int
        Ranks 1 .. M; the buffer is cut into one contiguous shard for each.
    elements : int
        Elements in the buffer.
    element_bytes : float
        Size of one element [bytes].
    divisible : bool
        Cut elements too, so that shards are exactly equal.
    only : int
        The whole buffer goes to this one of the servers, counted from 0.
    update_s_per_byte : float
        Time of a core for each byte [s/byte].
    core : int
        Of each server, which takes the updates one after the other.
    memory_accesses : float
        How often each byte is read or written in the memory of the server's host.
    replicated : sequence of int
        Servers with a replica each, as of `parameter_server_push_pull`; each push goes on to it.

    Returns
    -------
    Schedule
        Over 1 + M ranks, and those of the replicas; a chunk a shard.

    Raises
    ------
    ValueError
        No server, or `only` is none of them.

    References
    ----------
    .. [1] J. Dean et al., "Large scale distributed deep networks", NIPS 2012.
    """
    build, shard, holder = _shards(
        servers, elements, element_bytes, divisible, only, "push to servers", len(replicated)
    )
    size = build.partition.range_bytes(shard, 1)
    stream = core if update_s_per_byte > 0 else -1
    updated = build.calc(holder, update_s_per_byte * size, stream=stream)
    push = build.send(0, holder, chunk=shard, reduce=1, merged_by=updated)
    build.depend(push, updated)
    if memory_accesses > 0:
        taken = build.memory(holder, memory_accesses * size)
        build.depend(updated, taken)
        updated = taken
    with_replicas(build, updated, only, replicated, 1 + servers, 1)
    return build.schedule(turns=Turns.NODES)


def pull_from_servers(
    servers: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    only: int | None = None,
    replicas: int = 0,
) -> Schedule:
    """Pull what servers hold [1]_.

    Steps 1; messages M; each server sends S/M; time S/B + p, uncontended.

    Parameters
    ----------
    servers, elements, element_bytes, divisible, only
        As of `push_to_servers`.
    replicas : int
        The last so many ranks are replicas, without a part.

    Returns
    -------
    Schedule
        Over 1 + M ranks, and those of the replicas; a chunk a shard.

    Raises
    ------
    ValueError
        No server, or `only` is none of them.

    References
    ----------
    .. [1] J. Dean et al., "Large scale distributed deep networks", NIPS 2012.
    """
    build, shard, holder = _shards(servers, elements, element_bytes, divisible, only, "pull from servers", replicas)
    build.send(holder, 0, chunk=shard)
    return build.schedule(turns=Turns.NODES)


def _shards(
    servers: int, elements: int, element_bytes: float, divisible: bool, only: int | None, name: str, replicas: int
) -> tuple[ScheduleBuilder, Integers, Integers]:
    """Return a builder, the shards, and the rank that holds each."""
    if servers < 1:
        raise ValueError(f"at least one server is wanted: {servers}")
    if only is not None and not 0 <= only < servers:
        raise ValueError(f"the only server is one of 0 .. {servers - 1}: {only}")
    shard = np.arange(servers if only is None else 1)
    build = ScheduleBuilder(name, 1 + servers + replicas, Partition(elements, element_bytes, len(shard), divisible))
    return build, shard, 1 + (only or 0) + shard


def send_to_all(others: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Send a buffer to each of some others, ranks 1 and up, at the same time.

    Steps 1; messages d; the worker sends d S; time d S/B + p, uncontended.

    Parameters
    ----------
    others : int
        d.
    elements : int
        Elements in the buffer.
    element_bytes : float
        Size of one element [bytes].
    divisible : bool
        Of no effect: the buffer is not cut.

    Returns
    -------
    Schedule
        Over 1 + d ranks; the buffer is one chunk.
    """
    build = ScheduleBuilder("send to neighbours", 1 + others, Partition(elements, element_bytes, 1, divisible))
    build.send(0, 1 + np.arange(others), reduce=1)
    return build.schedule()


def average_in_pair(elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Average with rank 1, which answers with what it had [3]_.

    Steps 2; messages 2; each sends S; time 2(S/B + p), uncontended.

    Parameters
    ----------
    elements, element_bytes, divisible
        As of `send_to_all`.

    Returns
    -------
    Schedule
        Over 2 ranks; the buffer is one chunk.

    References
    ----------
    .. [3] X. Lian et al. (AD-PSGD), ICML 2018.
    """
    build = ScheduleBuilder("average in a pair", 2, Partition(elements, element_bytes, 1, divisible))
    there = build.send(0, 1, reduce=1)
    build.depend(there, build.send(1, 0))
    return build.schedule()


def neighbours_of(graph: str, workers: int) -> list[list[int]]:
    """Return whom each worker averages with.

    Parameters
    ----------
    graph : str
        ``ring``: the one before and the one behind; ``mesh``: all others.
    workers : int

    Returns
    -------
    list of list of int
        One list a worker, from low to high.

    Raises
    ------
    ValueError
        Another graph.

    Examples
    --------
    >>> neighbours_of("ring", 4)
    [[1, 3], [0, 2], [1, 3], [0, 2]]
    >>> neighbours_of("mesh", 3)
    [[1, 2], [0, 2], [0, 1]]
    """
    if graph == "mesh":
        return [[other for other in range(workers) if other != worker] for worker in range(workers)]
    if graph == "ring":
        return [sorted({(worker - 1) % workers, (worker + 1) % workers} - {worker}) for worker in range(workers)]
    raise ValueError(f"neither ring nor mesh: {graph!r}")


def gossip_round(
    workers: int, elements: int, element_bytes: float, *, divisible: bool = False, graph: str = "ring"
) -> Schedule:
    """One round in which each worker sends what it has to its neighbours [2]_.

    A worker is through when it has what its neighbours had; it does not wait for anybody else.
    Steps 1; messages N d for d neighbours; each sends d S; time d S/B + p on an uncontended star.

    Parameters
    ----------
    workers : int
        N.
    elements, element_bytes, divisible
        As of `send_to_all`.
    graph : str
        ``ring`` or ``mesh``, as of `neighbours_of`.

    Returns
    -------
    Schedule
        Over N ranks; the buffer is one chunk.

    Raises
    ------
    ValueError
        Another graph.

    References
    ----------
    .. [2] X. Lian et al. (D-PSGD), NIPS 2017.
    """
    pairs = [(worker, other) for worker, others in enumerate(neighbours_of(graph, workers)) for other in others]
    build = ScheduleBuilder("gossip", workers, Partition(elements, element_bytes, 1, divisible))
    if pairs:
        source, target = np.array(pairs).T
        build.send(source, target, reduce=1)
    return build.schedule()
