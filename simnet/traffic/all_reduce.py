"""All-reduce: every rank starts with a buffer of its own and ends with the sum of all of them.

Each function returns a `Schedule`; nothing here knows of links or clocks. The times quoted are those on a star of N
hosts around one switch, with nothing else on it and no overheads: S is the size of the buffer [bytes], B the bandwidth
of a link [bytes/s], p the latency of the two links of a path [s]. They hold exactly where all chunks are equal
(``divisible=True``, or a buffer whose number of elements is a multiple of the chunks).

Rounds are in lockstep at the receiver; see `simnet.traffic.patterns`.

References
----------
.. [1] R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH",
   Int. J. of High Performance Computing Applications 19(1), 2005.
.. [2] P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. of Parallel
   and Distributed Computing 69(2), 2009.
.. [3] R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np

from simnet.traffic.patterns import (
    around_ring,
    begin_schedule,
    between_all,
    down_tree,
    let_follow,
    require_rank,
    up_tree,
)
from simnet.traffic.schedule import Schedule, Until

__all__ = [
    "ALL_REDUCE",
    "AllReduce",
    "butterfly_all_reduce",
    "mesh_all_reduce",
    "ring_all_reduce",
    "star_all_reduce",
    "tree_all_reduce",
]

AllReduce = Callable[..., Schedule]
"""``(ranks, elements, element_bytes, *, divisible=False, ...) -> Schedule``."""


def ring_all_reduce(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Ring: the buffer is cut into N chunks that travel once around to be summed and once more to be spread.

    In step k rank r sends chunk (r - k) mod N to rank r + 1: N - 1 steps that add, then N - 1 that copy [2]_.

    Steps 2(N - 1); messages 2N(N - 1); each rank sends 2(N - 1)/N S, the least that is possible.
    Time 2(N - 1)(S/(NB) + p).

    Parameters
    ----------
    ranks : int
        N.
    elements : int
        Elements in the buffer.
    element_bytes : float
        Size of one element [bytes].
    divisible : bool
        Cut elements too, so that chunks are exactly equal.

    Returns
    -------
    Schedule
        N operations and N dependencies.
    """
    build = begin_schedule("ring all-reduce", ranks, elements, element_bytes, chunks=ranks, divisible=divisible)
    around_ring(build, 2 * (ranks - 1), first=0, reduce=ranks - 1)
    return build.schedule(joint=True)


def star_all_reduce(
    ranks: int, elements: int, element_bytes: float, *, divisible: bool = False, hub: int = 0
) -> Schedule:
    """Star: all send their buffer to one of them, which sends the sum back.

    Steps 2; messages 2(N - 1); the hub sends (N - 1)S, the others S each. The hub's link is the bottleneck.
    Time 2((N - 1)S/B + p). The flat tree of [1]_.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_all_reduce`.
    hub : int
        The rank in the middle; it is one of the N.
    """
    build = begin_schedule("star all-reduce", ranks, elements, element_bytes, chunks=1, divisible=divisible)
    require_rank(build, hub, "hub")
    if ranks > 1:
        others = np.delete(np.arange(ranks), hub)
        inward = build.send(others, hub, reduce=1)
        summed = build.calc(hub)
        outward = build.send(hub, others)
        build.depend(inward, summed)
        build.depend(summed, outward)
    return build.schedule(joint=True)


def tree_all_reduce(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Binomial tree: the sum gathers at rank 0 and is spread again, halving and doubling the ranks involved.

    Of the L = ceil(log2 N) rounds up, in round j rank r with r mod 2^(j+1) = 2^j sends all it has to r - 2^j; the L
    rounds down mirror them [1]_.

    Steps 2L; messages 2(N - 1), each of the whole buffer; rank 0 sends L S, leaves S.
    Time 2L(S/B + p) for every N: rank 0 takes part in every round, and no round begins before the one before it has
    ended at both its ranks.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_all_reduce`.
    """
    build = begin_schedule("tree all-reduce", ranks, elements, element_bytes, chunks=1, divisible=divisible)
    down_tree(build, up_tree(build))
    return build.schedule(joint=True)


def butterfly_all_reduce(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Butterfly, or recursive doubling: in round i rank r exchanges its whole buffer with rank r xor 2^i [1]_.

    Where N is no power of two the standard fold makes it one [3]_: with 2^L <= N < 2^(L+1), of the first 2(N - 2^L)
    ranks each even one first adds its buffer to that of its odd neighbour, and gets the result from it at the end.

    Steps L, with the fold L + 2; messages 2^L L + 2(N - 2^L); a rank in the exchange sends L S.
    Time log2(N)(S/B + p) for powers of two, otherwise (floor(log2 N) + 2)(S/B + p).

    Each round of a rank ends with a calculation of 0 s that waits for what it sent and received, and adds the latter
    to its buffer: a partner's message may arrive while the own one still reads the buffer.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_all_reduce`.
    """
    build = begin_schedule("butterfly all-reduce", ranks, elements, element_bytes, chunks=1, divisible=divisible)
    rounds = ranks.bit_length() - 1
    power = 1 << rounds
    folded = ranks - power
    place = np.arange(power)
    rank = np.where(place < folded, 2 * place + 1, place + folded)
    last = np.full(power, -1)
    even = 2 * np.arange(folded)
    last[:folded] = build.send(even, even + 1, reduce=1)
    for level in range(rounds):
        partner = place ^ (1 << level)
        added = build.calc(rank)
        send = build.send(rank, rank[partner], reduce=1, merged_by=added[partner])
        let_follow(build, last, send)
        let_follow(build, last[partner], send)
        build.depend(send, added)
        build.depend(send, added[partner])
        last = added
    let_follow(build, last[:folded], build.send(even + 1, even))
    return build.schedule(joint=True)


def mesh_all_reduce(
    ranks: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    exchange: Literal["scatter", "full"] = "scatter",
) -> Schedule:
    """Mesh: every rank talks to every other at once, without steps in between.

    ``scatter``: direct reduce-scatter, then direct all-gather. Rank c sums chunk c of all N chunks and sends it to
    all. Steps 2; messages 2N(N - 1); each rank sends 2(N - 1)/N S. Time 2((N - 1)S/(NB) + p).

    ``full``: every rank sends its whole buffer to all others and sums what it gets. Steps 1; messages N(N - 1); each
    rank sends (N - 1)S. Time (N - 1)S/B + p. What arrives is kept apart and added by a calculation of 0 s once the
    own buffer has been read for the last time.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_all_reduce`.
    exchange : {"scatter", "full"}

    References
    ----------
    The direct algorithms of [1]_ (its section on reduce-scatter by pairwise exchange), all pairs at once.
    """
    if exchange not in ("scatter", "full"):
        raise ValueError(f"the exchange of a mesh all-reduce is 'scatter' or 'full': {exchange!r}")
    chunks = ranks if exchange == "scatter" else 1
    build = begin_schedule(
        f"mesh all-reduce, {exchange}", ranks, elements, element_bytes, chunks=chunks, divisible=divisible
    )
    if ranks == 1:
        return build.schedule(joint=True)
    source, target = between_all(ranks)
    summed = build.calc(np.arange(ranks))
    if exchange == "full":
        send = build.send(source, target, reduce=1, merged_by=summed[target])
        build.depend(send, summed[source], until=Until.DRAINED)
        build.depend(send, summed[target])
        return build.schedule(joint=True)
    scatter = build.send(source, target, chunk=target, reduce=1)
    gather = build.send(source, target, chunk=source)
    for end in (source, target):
        build.depend(scatter, summed[end])
        build.depend(summed[end], gather)
    return build.schedule(joint=True)


ALL_REDUCE: Mapping[str, AllReduce] = MappingProxyType(
    {
        "ring": ring_all_reduce,
        "star": star_all_reduce,
        "tree": tree_all_reduce,
        "butterfly": butterfly_all_reduce,
        "mesh": mesh_all_reduce,
    }
)
"""The all-reduce algorithms by the names that scenarios use."""
