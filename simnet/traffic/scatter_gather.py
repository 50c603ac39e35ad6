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

from simnet.traffic.patterns import around_ring, begin_schedule, between_all
from simnet.traffic.schedule import Schedule

__all__ = ["direct_all_gather", "direct_reduce_scatter", "ring_all_gather", "ring_reduce_scatter"]


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
    """
    build = begin_schedule("direct reduce-scatter", ranks, elements, element_bytes, chunks=ranks, divisible=divisible)
    if ranks > 1:
        source, target = between_all(ranks)
        build.send(source, target, chunk=target, reduce=1)
    return build.schedule(joint=True)


def ring_all_gather(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Ring: each chunk travels once around, and every rank on its way keeps it.

    In step k rank r sends chunk (r - k) mod N to rank r + 1 [1]_.

    Steps N - 1; messages N(N - 1); each rank sends (N - 1)/N S, the least that is possible.
    Time (N - 1)(S/(NB) + p).

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `ring_reduce_scatter`.
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
    """
    build = begin_schedule("direct all-gather", ranks, elements, element_bytes, chunks=ranks, divisible=divisible)
    if ranks > 1:
        source, target = between_all(ranks)
        build.send(source, target, chunk=source)
    return build.schedule(joint=True)
