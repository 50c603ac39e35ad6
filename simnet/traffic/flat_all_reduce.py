"""All-reduce in one go: algorithms in which all ranks have the same part, or a part in one star or tree.

Each function returns a `Schedule`. The times quoted have the letters of `simnet.traffic.all_reduce`, which knows these
algorithms by name and has others that are made of them.

References
----------
.. [1] R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH",
   Int. J. of High Performance Computing Applications 19(1), 2005.
.. [2] P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. of Parallel
   and Distributed Computing 69(2), 2009.
.. [3] R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004.
.. [4] P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
   Parallel Computing 35(12), 2009.
.. [5] S. Jeaugey, "Massively scale your deep learning training with NCCL 2.4", NVIDIA developer blog, 2019.
"""

from __future__ import annotations

from math import gcd
from typing import Literal

import numpy as np

from simnet.traffic.halving import double, fold, halve, reversed_bits
from simnet.traffic.patterns import (
    around_ring,
    begin_schedule,
    between_all,
    let_follow,
    require_positive,
    require_rank,
)
from simnet.traffic.schedule import Schedule, Until
from simnet.traffic.trees import binary_tree, down_tree, in_order_tree, up_and_down, up_tree

__all__ = [
    "butterfly_all_reduce",
    "double_tree_all_reduce",
    "halving_doubling_all_reduce",
    "mesh_all_reduce",
    "ring_all_reduce",
    "star_all_reduce",
    "tree_all_reduce",
]


def ring_all_reduce(
    ranks: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    channels: int = 1,
    pipeline: int = 1,
    order: Literal["neighbours", "strides"] = "neighbours",
) -> Schedule:
    """Ring: the buffer is cut into N chunks that travel once around to be summed and once more to be spread.

    In step k rank r sends chunk (r - k) mod N to rank r + 1: N - 1 steps that add, then N - 1 that copy [2]_.

    With c channels there are c rings side by side, each with its share of the buffer. With m pieces to a chunk, a piece
    is sent on as soon as it has arrived, while those behind it are still on their way; so the latency p is hidden
    behind the sending where m - 1 pieces take at least as long.

    Steps 2(N - 1)m; messages 2N(N - 1)cm; each rank sends 2(N - 1)/N S, the least that is possible.
    Time 2(N - 1)(S/(NB) + p) for m = 1, whatever c is: on a star the rings share the links. With t = S/(NmB), the time
    of a piece, (2N - 3) max(mt, t + p) + mt + p: a piece leaves when the one before it has left and when it has arrived
    itself, which is at best t + p after it left the rank before.

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
    channels : int
        c.
    pipeline : int
        m.
    order : {"neighbours", "strides"}
        How the rings go. ``neighbours``: forward and backward by turns, which uses both directions of the cables
        between neighbours. ``strides``: forward and backward in steps of 1, then of the next number without a divisor
        in common with N, and so on: rings of which no two use the same pair of ranks in the same direction, as far as
        there are such, for clusters in which each pair has a link.

    Returns
    -------
    Schedule
        Over N ranks; c N m chunks, c N operations and c N dependencies.

    Raises
    ------
    ValueError
        No rank, a number below 1, or an unknown order.

    References
    ----------
    .. [2] P. Patarasuk, X. Yuan, J. of Parallel and Distributed Computing 69(2), 2009.
    """
    require_positive("ring all-reduce", "channels", channels)
    require_positive("ring all-reduce", "pieces of a chunk", pipeline)
    if order not in ("neighbours", "strides"):
        raise ValueError(f"the order of a ring all-reduce is 'neighbours' or 'strides': {order!r}")
    share = ranks * pipeline
    build = begin_schedule(
        "ring all-reduce", ranks, elements, element_bytes, chunks=max(share, 1) * channels, divisible=divisible
    )
    strides = [1, -1]
    if order == "strides":
        strides += [way * stride for stride in range(2, ranks // 2 + 1) if gcd(stride, ranks) == 1 for way in (1, -1)]
    for channel in range(channels):
        around = np.arange(ranks) * strides[channel % len(strides)] % ranks
        around_ring(
            build,
            2 * (ranks - 1),
            first=0,
            reduce=ranks - 1,
            order=around,
            pieces=pipeline,
            offset=channel * share,
        )
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

    Returns
    -------
    Schedule
        Over N ranks; the buffer is one chunk.

    Raises
    ------
    ValueError
        No rank, or the hub is none.

    References
    ----------
    .. [1] R. Thakur, R. Rabenseifner, W. Gropp, Int. J. of High Performance Computing Applications 19(1), 2005.
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


def tree_all_reduce(
    ranks: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    shape: Literal["binomial", "binary"] = "binomial",
    chunks: int = 1,
) -> Schedule:
    """Tree: the sum gathers at rank 0 and is spread again from there, chunk by chunk.

    ``binomial``: halving and doubling the ranks involved. Of the L = ceil(log2 N) rounds up, in round j rank r with
    r mod 2^(j+1) = 2^j sends all it has to r - 2^j; the L rounds down mirror them [1]_.
    Steps 2L + m - 1 for m chunks; messages 2(N - 1)m; rank 0 sends L S, leaves S, 2(N - 1)S in all.
    Time for m = 1 2L(S/B + p) for every N: rank 0 takes part in every round, and no round begins before the one before
    it has ended at both its ranks. With more chunks rounds of different chunks overlap, down to L S/B + (L + 1)p and
    not below: the link into rank 0 carries L S, and then the last chunk has its way down.

    ``binary``: the children of rank r are 2r + 1 and 2r + 2, the depth is d = floor(log2 N). A rank sends on what it
    has got from both its children, and to both at once.
    Steps 2d + m - 1; messages 2(N - 1)m; a rank with k children sends (k + 1)S, rank 0 k S, 2(N - 1)S in all.
    Time for m = 1 and N = 2^(d+1) - 1 4d S/B + 2dp: on each level two messages share one link. With more chunks levels
    overlap: at least 3 S/B from N = 5 on, where a rank with a parent and two children receives as much, and 2 S/B for
    N = 3 and 4; at most 3(2d + m - 1)S/(mB) + 2dp, for a link never carries more than three messages at once, and a
    chain of messages has 2d levels and m - 1 chunks ahead.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_all_reduce`.
    shape : {"binomial", "binary"}
    chunks : int
        m.

    Returns
    -------
    Schedule
        Over N ranks; m chunks.

    Raises
    ------
    ValueError
        No rank, no chunk, or an unknown shape.

    References
    ----------
    .. [1] R. Thakur, R. Rabenseifner, W. Gropp, Int. J. of High Performance Computing Applications 19(1), 2005.
    """
    name = "tree all-reduce"
    require_positive(name, "chunks", chunks)
    if shape not in ("binomial", "binary"):
        raise ValueError(f"the shape of a {name} is 'binomial' or 'binary': {shape!r}")
    build = begin_schedule(name, ranks, elements, element_bytes, chunks=chunks, divisible=divisible)
    if shape == "binomial":
        down_tree(build, up_tree(build))
    else:
        up_and_down(build, binary_tree(ranks), np.arange(ranks), chunks=chunks)
    return build.schedule(joint=True)


def double_tree_all_reduce(
    ranks: int, elements: int, element_bytes: float, *, divisible: bool = False, chunks: int = 8
) -> Schedule:
    """Double tree: two binary trees side by side, each for half of the buffer; the inner ranks of one are leaves.

    In a binary tree half of the ranks are leaves, which send and receive no more than S, and the others three times as
    much. Here each rank is an inner one in at most one of the trees, so that all links are used nearly alike [4]_, as
    in NCCL since 2.4 [5]_. The first tree is numbered from left to right, which makes every other rank a leaf; the
    second is its mirror image where N is even, and is moved on by one rank where N is odd. Depth d = floor(log2 N).

    Steps 2d + m - 1 for m chunks in each tree; messages 4(N - 1)m; a rank with k children in both trees together sends
    k S/2, and S/2 more for each tree of which it is not the root: at most 2 S, and 2(N - 1)S in all.
    Time at least 2(N - 1)/N S/B, as of any all-reduce, and 2d(S/(2mB) + p), the way of one chunk; at most
    2(2d + m - 1)S/(mB) + 2dp: a link never carries more than four messages of S/(2m) at once, and a chain of them has
    2d levels and m - 1 chunks ahead. So with many chunks it comes close to 2 S/B + 2dp.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_all_reduce`.
    chunks : int
        m.

    Returns
    -------
    Schedule
        Over N ranks; m chunks a tree, 2m in all.

    Raises
    ------
    ValueError
        No rank or no chunk.

    References
    ----------
    .. [4] P. Sanders, J. Speck, J. L. Träff, Parallel Computing 35(12), 2009.
    .. [5] S. Jeaugey, NVIDIA developer blog, 2019.
    """
    require_positive("double tree all-reduce", "chunks", chunks)
    build = begin_schedule(
        "double tree all-reduce", ranks, elements, element_bytes, chunks=2 * chunks, divisible=divisible
    )
    parent, number = in_order_tree(ranks), np.arange(1, ranks + 1)
    second = ranks - number if ranks % 2 == 0 else number % ranks
    for tree, rank in enumerate((number - 1, second)):
        up_and_down(build, parent, rank, chunks=chunks, offset=tree * chunks)
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

    Returns
    -------
    Schedule
        Over N ranks; the buffer is one chunk.

    Raises
    ------
    ValueError
        No rank.

    References
    ----------
    .. [1] R. Thakur, R. Rabenseifner, W. Gropp, Int. J. of High Performance Computing Applications 19(1), 2005.
    .. [3] R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004.
    """
    build = begin_schedule("butterfly all-reduce", ranks, elements, element_bytes, chunks=1, divisible=divisible)
    rounds, rank, even = fold(ranks)
    place = np.arange(len(rank))
    last = np.full(len(rank), -1)
    last[: len(even)] = build.send(even, even + 1, reduce=1)
    for level in range(rounds):
        partner = place ^ (1 << level)
        added = build.calc(rank)
        send = build.send(rank, rank[partner], reduce=1, merged_by=added[partner])
        let_follow(build, last, send)
        let_follow(build, last[partner], send)
        build.depend(send, added)
        build.depend(send, added[partner])
        last = added
    let_follow(build, last[: len(even)], build.send(even + 1, even))
    return build.schedule(joint=True)


def halving_doubling_all_reduce(
    ranks: int, elements: int, element_bytes: float, *, divisible: bool = False
) -> Schedule:
    """Recursive halving-doubling: a reduce-scatter that halves what ranks exchange, then an all-gather that doubles it.

    With N = 2^q: in round i = 0 .. q - 1 rank r exchanges with r xor 2^i half of what it still has to sum, and so ends
    with the sum of one chunk in N; q more rounds undo these one after the other, copying [3]_. The largest messages go
    to the nearest ranks. Where N is no power of two, 2^q <= N < 2^(q+1), ranks are folded to 2^q as in
    `butterfly_all_reduce`, before and after.

    Steps 2q, with the fold 2q + 2; messages 2q 2^q + 2(N - 2^q); with T = 2 S (2^q - 1)/2^q a rank in the exchange
    sends T, the least that is possible for N = 2^q, and S more where it stands for two; one that stands back S.
    Round i carries S/2^(i+1), which sums up to S (1 - 2^-q) each way: time T/B + 2qp, with the fold 2(S/B + p) more.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_all_reduce`.

    Returns
    -------
    Schedule
        Over N ranks; 2^q chunks.

    Raises
    ------
    ValueError
        No rank.

    References
    ----------
    .. [3] R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004.
    """
    rounds, rank, even = fold(max(ranks, 1))
    build = begin_schedule(
        "halving-doubling all-reduce", ranks, elements, element_bytes, chunks=len(rank), divisible=divisible
    )
    last = np.full(len(rank), -1)
    last[: len(even)] = build.send(even, even + 1, width=len(rank), reduce=1)
    # Halving pairs places by their topmost bits first. With the bits of each in reverse order, these are neighbours.
    place = reversed_bits(rounds)
    bounds = np.arange(len(rank) + 1)
    done = double(build, rank[place], bounds, halve(build, rank[place], bounds, [last[place]]))
    back = build.send(even + 1, even, width=len(rank))
    for ended in done:
        let_follow(build, ended[place][: len(even)], back)
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

    Returns
    -------
    Schedule
        Over N ranks; N chunks, or one for ``full``.

    Raises
    ------
    ValueError
        No rank, or an unknown exchange.

    References
    ----------
    .. [1] R. Thakur, R. Rabenseifner, W. Gropp, Int. J. of High Performance Computing Applications 19(1), 2005: its
       reduce-scatter by pairwise exchange, all pairs at once.
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
