"""Broadcast and reduce: one rank, the root, gives its buffer to all, or gets the sum of all.

Times are those on an uncontended star, with the letters of `simnet.traffic.all_reduce`.

References
----------
.. [1] R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH",
   Int. J. of High Performance Computing Applications 19(1), 2005.
"""

from __future__ import annotations

from simnet.traffic.patterns import begin_schedule, down_tree, require_rank, up_tree
from simnet.traffic.schedule import Schedule

__all__ = ["tree_broadcast", "tree_reduce"]


def tree_broadcast(
    ranks: int, elements: int, element_bytes: float, *, divisible: bool = False, root: int = 0
) -> Schedule:
    """Binomial tree: in each round every rank that has the buffer sends it to one that has not [1]_.

    The second half of `simnet.traffic.tree_all_reduce`.

    Steps L = ceil(log2 N); messages N - 1, each of the whole buffer; the root sends L S.
    Time L(S/B + p) for every N.

    Parameters
    ----------
    ranks : int
        N.
    elements : int
        Elements in the buffer.
    element_bytes : float
        Size of one element [bytes].
    divisible : bool
        Of no effect: the buffer is not cut.
    root : int
        The rank whose buffer it is.
    """
    build = begin_schedule("tree broadcast", ranks, elements, element_bytes, chunks=1, divisible=divisible)
    require_rank(build, root, "root")
    down_tree(build, root=root)
    return build.schedule()


def tree_reduce(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False, root: int = 0) -> Schedule:
    """Binomial tree: in each round half of the ranks that still take part add what they have to the other half's [1]_.

    The first half of `simnet.traffic.tree_all_reduce`.

    Steps L = ceil(log2 N); messages N - 1, each of the whole buffer; every rank but the root sends S.
    Time L(S/B + p) for every N: the root takes part in every round.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `tree_broadcast`.
    root : int
        The rank that gets the sum.
    """
    build = begin_schedule("tree reduce", ranks, elements, element_bytes, chunks=1, divisible=divisible)
    require_rank(build, root, "root")
    up_tree(build, root)
    return build.schedule()
