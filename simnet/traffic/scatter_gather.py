"""Reduce-scatter and all-gather: the two halves of an all-reduce that sends as little as possible.

Reduce-scatter: every rank starts with a buffer of its own, cut into N chunks, and rank r ends with the sum of all
chunks r. All-gather: rank r starts with chunk r, and every rank ends with all chunks. The size S is that of the whole
buffer: what each rank has before a reduce-scatter, and after an all-gather.

Times are those on an uncontended star, with the letters of `simnet.traffic.all_reduce`.

References
----------
.. [1] R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH",
   Int. J. of High Performance Computing Applications 19(1), 2005.
.. [2] P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. of Parallel
   and Distributed Computing 69(2), 2009.
"""

from __future__ import annotations

import numpy as np

from simnet.traffic.halving import Fold, double, fold, halve
from simnet.traffic.patterns import around_ring, begin_schedule, between_all, let_follow
from simnet.traffic.schedule import Integers, Schedule

__all__ = [
    "direct_all_gather",
    "direct_reduce_scatter",
    "doubling_all_gather",
    "halving_reduce_scatter",
    "ring_all_gather",
    "ring_reduce_scatter",
]


def ring_reduce_scatter(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Ring: each chunk travels once around, is added to at every rank and ends, complete, where it belongs.

    In step k rank r sends chunk (r - 1 - k) mod N to rank r + 1 [2]_.

    Steps N - 1; messages N(N - 1); each rank sends (N - 1)/N S, the least that is possible.
    Time (N - 1)(S/(NB) + p).

    Parameters
    ----------
    ranks : int
        N.
    elements : int
        Elements in the whole buffer.
    element_bytes : float
        Size of one element [bytes].
    divisible : bool
        Cut elements too, so that chunks are exactly equal.

    Returns
    -------
    Schedule
        Over N ranks; N chunks.

    Raises
    ------
    ValueError
        No rank.

    References
    ----------
    .. [2] P. Patarasuk, X. Yuan, J. of Parallel and Distributed Computing 69(2), 2009.
    """
    build = begin_schedule("ring reduce-scatter", ranks, elements, element_bytes, chunks=ranks, divisible=divisible)
    around_ring(build, ranks - 1, first=-1, reduce=ranks - 1)
    return build.schedule(joint=True)


def direct_reduce_scatter(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Direct: every rank sends chunk c to rank c, all at once; the first half of a mesh all-reduce.

    Steps 1; messages N(N - 1); each rank sends (N - 1)/N S.
    Time (N - 1)S/(NB) + p. The pairwise exchange of [1]_ without its rounds.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_reduce_scatter`.

    Returns
    -------
    Schedule
        Over N ranks; N chunks.

    Raises
    ------
    ValueError
        No rank.

    References
    ----------
    .. [1] R. Thakur, R. Rabenseifner, W. Gropp, Int. J. of High Performance Computing Applications 19(1), 2005.
    """
    build = begin_schedule("direct reduce-scatter", ranks, elements, element_bytes, chunks=ranks, divisible=divisible)
    if ranks > 1:
        source, target = between_all(ranks)
        build.send(source, target, chunk=target, reduce=1)
    return build.schedule(joint=True)


def halving_reduce_scatter(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Recursive halving: in each round a rank gives half of what it still has to sum to another, and gets its half.

    With N = 2^q: in round i = q - 1 .. 0 rank r exchanges with r xor 2^i, as far away as there are ranks at first, so
    that the chunks that a rank is left with are adjacent, and in the end its own [1]_. Where N is no power of two,
    2^q <= N < 2^(q+1), f = N - 2^q pairs of neighbours are folded: the even one first adds its buffer to that of the
    odd one, which stands for the chunks of both, and gets its own chunk at the end.

    Steps q, with the fold q + 2; messages q 2^q + 2f. For N = 2^q each rank sends (N - 1)/N S, the least that is
    possible, in time (N - 1)/N S/B + qp. With the fold the places of the pairs have two chunks each. The first of them
    takes part in every round, and receives most in each: 2^i + min(2^i, f) chunks. Time
    (sum over i of (2^i + min(2^i, f)) + N + 1)S/(NB) + (q + 2)p, of which the sum is 2^q - 1 + 2^b - 1 +
    (q - b) f with b = ceil(log2 f).

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_reduce_scatter`.

    Returns
    -------
    Schedule
        Over N ranks; N chunks.

    Raises
    ------
    ValueError
        No rank.

    References
    ----------
    .. [1] R. Thakur, R. Rabenseifner, W. Gropp, Int. J. of High Performance Computing Applications 19(1), 2005.
    """
    build = begin_schedule("halving reduce-scatter", ranks, elements, element_bytes, chunks=ranks, divisible=divisible)
    folded = fold(ranks)
    even, last = folded.even, np.full(len(folded.rank), -1)
    last[: len(even)] = build.send(even, even + 1, width=ranks, reduce=1)
    done = halve(build, folded.rank, _bounds(folded), [last])
    back = build.send(even + 1, even, chunk=even)
    for ended in done:
        let_follow(build, ended[: len(even)], back)
    return build.schedule(joint=True)


def _bounds(folded: Fold) -> Integers:
    """Return where the chunks of each place begin, and where those of the last end; a pair's are two."""
    place = np.arange(len(folded.rank) + 1)
    bounds: Integers = np.minimum(2 * place, place + len(folded.even))
    return bounds


def ring_all_gather(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Ring: each chunk travels once around, and every rank on its way keeps it.

    In step k rank r sends chunk (r - k) mod N to rank r + 1 [1]_.

    Steps N - 1; messages N(N - 1); each rank sends (N - 1)/N S, the least that is possible.
    Time (N - 1)(S/(NB) + p).

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_reduce_scatter`.

    Returns
    -------
    Schedule
        Over N ranks; N chunks.

    Raises
    ------
    ValueError
        No rank.

    References
    ----------
    .. [1] R. Thakur, R. Rabenseifner, W. Gropp, Int. J. of High Performance Computing Applications 19(1), 2005.
    """
    build = begin_schedule("ring all-gather", ranks, elements, element_bytes, chunks=ranks, divisible=divisible)
    around_ring(build, ranks - 1, first=0)
    return build.schedule(joint=True)


def direct_all_gather(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Direct: every rank sends its chunk to every other, all at once; the second half of a mesh all-reduce.

    Steps 1; messages N(N - 1); each rank sends (N - 1)/N S.
    Time (N - 1)S/(NB) + p.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_reduce_scatter`.

    Returns
    -------
    Schedule
        Over N ranks; N chunks.

    Raises
    ------
    ValueError
        No rank.
    """
    build = begin_schedule("direct all-gather", ranks, elements, element_bytes, chunks=ranks, divisible=divisible)
    if ranks > 1:
        source, target = between_all(ranks)
        build.send(source, target, chunk=source)
    return build.schedule(joint=True)


def doubling_all_gather(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Recursive doubling: in each round a rank exchanges all that it has with another that has as much.

    `halving_reduce_scatter` backwards: with N = 2^q in round i = 0 .. q - 1 rank r exchanges with r xor 2^i [1]_. Where
    N is no power of two each folded even rank first gives its chunk to its odd neighbour, and gets all from it at the
    end.

    Steps q, with the fold q + 2; messages q 2^q + 2f. For N = 2^q each rank sends (N - 1)/N S, the least that is
    possible. Time as that of `halving_reduce_scatter`.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_reduce_scatter`.

    Returns
    -------
    Schedule
        Over N ranks; N chunks.

    Raises
    ------
    ValueError
        No rank.

    References
    ----------
    .. [1] R. Thakur, R. Rabenseifner, W. Gropp, Int. J. of High Performance Computing Applications 19(1), 2005.
    """
    build = begin_schedule("doubling all-gather", ranks, elements, element_bytes, chunks=ranks, divisible=divisible)
    folded = fold(ranks)
    even, last = folded.even, np.full(len(folded.rank), -1)
    last[: len(even)] = build.send(even, even + 1, chunk=even)
    done = double(build, folded.rank, _bounds(folded), [last])
    back = build.send(even + 1, even, width=ranks)
    for ended in done:
        let_follow(build, ended[: len(even)], back)
    return build.schedule(joint=True)
