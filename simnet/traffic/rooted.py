"""Broadcast and reduce: one rank, the root, gives its buffer to all, or gets the sum of all.

Times are those on an uncontended star, with the letters of `simnet.traffic.all_reduce`.

References
----------
.. [1] R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH",
   Int. J. of High Performance Computing Applications 19(1), 2005.
.. [2] P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
   Parallel Computing 35(12), 2009.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from simnet.traffic.patterns import begin_schedule, require_positive, require_rank
from simnet.traffic.schedule import Integers, Schedule
from simnet.traffic.schedule_builder import ScheduleBuilder
from simnet.traffic.trees import binary_tree, chain, down_along, down_tree, up_along, up_tree

__all__ = ["chain_broadcast", "chain_reduce", "star_broadcast", "star_reduce", "tree_broadcast", "tree_reduce"]

Shape = Literal["binomial", "binary"]


def tree_broadcast(
    ranks: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    root: int = 0,
    shape: Shape = "binomial",
    chunks: int = 1,
) -> Schedule:
    """Tree: in each round every rank that has the buffer, or a chunk of it, sends it to one that has not.

    The second half of `simnet.traffic.tree_all_reduce`, which says what the shapes are.

    ``binomial``: steps L + m - 1 with L = ceil(log2 N) for m chunks; messages (N - 1)m; the root sends L S. Time
    L(S/B + p) for m = 1 and every N [1]_. More chunks let rounds overlap; the root's link, which carries L S, stays the
    bottleneck.

    ``binary``: steps d + m - 1 with d = floor(log2 N); messages (N - 1)m; a rank sends S for each child it has, of at
    most 2. Time for N = 2^(d+1) - 1 2(d + m - 1)S/(mB) + dp: each level is a chunk of 2 S/(mB) and p behind the one
    above it, and all send all the time [2]_.

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
    root : int
        The rank whose buffer it is.
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
        No rank, no chunk, a root that is no rank, or an unknown shape.

    References
    ----------
    .. [1] R. Thakur, R. Rabenseifner, W. Gropp, Int. J. of High Performance Computing Applications 19(1), 2005.
    .. [2] P. Sanders, J. Speck, J. L. Träff, Parallel Computing 35(12), 2009.
    """
    build = _begin("tree broadcast", ranks, elements, element_bytes, divisible, root, chunks)
    if _is_binomial(build, shape):
        down_tree(build, root=root)
    else:
        down_along(build, binary_tree(ranks), _from_root(ranks, root), chunks=chunks)
    return build.schedule()


def tree_reduce(
    ranks: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    root: int = 0,
    shape: Shape = "binomial",
    chunks: int = 1,
) -> Schedule:
    """Tree: in each round half of the ranks that still take part add what they have to the other half's.

    The first half of `simnet.traffic.tree_all_reduce`, which says what the shapes are. Steps and messages as those of
    `tree_broadcast`; every rank but the root sends S. Times as there: in the binomial tree the root takes part in every
    round [1]_.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible, shape, chunks
        See `tree_broadcast`.
    root : int
        The rank that gets the sum.

    Returns
    -------
    Schedule
        Over N ranks; m chunks.

    Raises
    ------
    ValueError
        As of `tree_broadcast`.

    References
    ----------
    .. [1] R. Thakur, R. Rabenseifner, W. Gropp, Int. J. of High Performance Computing Applications 19(1), 2005.
    """
    build = _begin("tree reduce", ranks, elements, element_bytes, divisible, root, chunks)
    if _is_binomial(build, shape):
        up_tree(build, root)
    else:
        up_along(build, binary_tree(ranks), _from_root(ranks, root), chunks=chunks)
    return build.schedule()


def chain_broadcast(
    ranks: int, elements: int, element_bytes: float, *, divisible: bool = False, root: int = 0, chunks: int = 8
) -> Schedule:
    """Chain: each rank passes each chunk on to the next one as soon as it has it; from the root on, and around.

    Steps N - 2 + m for m chunks, none for N = 1; messages (N - 1)m; every rank but the last sends S, the least that is
    possible. Time (N - 2 + m)S/(mB) + (N - 1)p: the first chunk takes N - 1 times S/(mB) + p, and the others follow
    S/(mB) behind each other. The linear pipeline of [2]_; NCCL's broadcast.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `tree_broadcast`.
    root : int
        The rank whose buffer it is.
    chunks : int
        m.

    Returns
    -------
    Schedule
        Over N ranks; m chunks.

    Raises
    ------
    ValueError
        No rank, no chunk, or a root that is no rank.

    References
    ----------
    .. [2] P. Sanders, J. Speck, J. L. Träff, Parallel Computing 35(12), 2009.
    """
    build = _begin("chain broadcast", ranks, elements, element_bytes, divisible, root, chunks)
    down_along(build, chain(ranks), _from_root(ranks, root), chunks=chunks)
    return build.schedule()


def chain_reduce(
    ranks: int, elements: int, element_bytes: float, *, divisible: bool = False, root: int = 0, chunks: int = 8
) -> Schedule:
    """Chain: each rank adds what it has to each chunk that comes by; towards the root.

    `chain_broadcast` backwards, with its steps, messages and time; every rank but the root sends S.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible, chunks
        See `chain_broadcast`.
    root : int
        The rank that gets the sum.

    Returns
    -------
    Schedule
        Over N ranks; m chunks.

    Raises
    ------
    ValueError
        As of `chain_broadcast`.

    References
    ----------
    .. [2] P. Sanders, J. Speck, J. L. Träff, Parallel Computing 35(12), 2009.
    """
    build = _begin("chain reduce", ranks, elements, element_bytes, divisible, root, chunks)
    up_along(build, chain(ranks), _from_root(ranks, root), chunks=chunks)
    return build.schedule()


def _begin(
    name: str, ranks: int, elements: int, element_bytes: float, divisible: bool, root: int, chunks: int
) -> ScheduleBuilder:
    require_positive(name, "chunks", chunks)
    build = begin_schedule(name, ranks, elements, element_bytes, chunks=chunks, divisible=divisible)
    require_rank(build, root, "root")
    return build


def _from_root(ranks: int, root: int) -> Integers:
    """Return all ranks, counted from the root on."""
    return (np.arange(ranks) + root) % ranks


def _is_binomial(build: ScheduleBuilder, shape: Shape) -> bool:
    if shape not in ("binomial", "binary"):
        raise ValueError(f"the shape of a {build.name} is 'binomial' or 'binary': {shape!r}")
    return shape == "binomial"


def star_broadcast(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Star: rank 0 sends its buffer to all others at once.

    Step 1; messages N - 1; rank 0 sends (N - 1)S. Time (N - 1)S/B + p.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `tree_broadcast`.

    Returns
    -------
    Schedule
        Over N ranks; the buffer is one chunk.

    Raises
    ------
    ValueError
        No rank.
    """
    build = begin_schedule("star broadcast", ranks, elements, element_bytes, chunks=1, divisible=divisible)
    if ranks > 1:
        build.send(0, np.arange(1, ranks))
    return build.schedule()


def star_reduce(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Star: all others send their buffer to rank 0 at once.

    Step 1; messages N - 1; rank 0 gets (N - 1)S. Time (N - 1)S/B + p.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `tree_broadcast`.

    Returns
    -------
    Schedule
        Over N ranks; the buffer is one chunk.

    Raises
    ------
    ValueError
        No rank.
    """
    build = begin_schedule("star reduce", ranks, elements, element_bytes, chunks=1, divisible=divisible)
    if ranks > 1:
        build.send(np.arange(1, ranks), 0, reduce=1)
    return build.schedule()
