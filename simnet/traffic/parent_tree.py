"""Trees that are given: by the parent of each rank, as switches form them that add up and replicate.

The inner ranks need not have anything of their own. They may be switches that add up what comes from below and pass it
on, and that send what comes from above to all below: reduction in the network [1]_, and multicast with one copy of each
byte on each link [2]_. Whoever plays such a schedule puts these ranks on the nodes of the switches.

Ranks that no contributor, or receiver, is at or below have no part. The letters: S the size of the buffer [bytes], B
the bandwidth of a link [bytes/s], E the edges of the tree that have a part, d how many of them the longest way from the
root down has, m the chunks that travel one behind another. Two times are quoted:

- *on its own links*: each edge is a cable of its own with latency l [s], as where the inner ranks are the switches;
- *on a star*: the ranks are N = (c^(d+1) - 1)/(c - 1) hosts around one switch, a path has latency p, and all inner
  ranks have c children.

References
----------
.. [1] R. Graham et al., "Scalable hierarchical aggregation protocol (SHArP): a hardware architecture for efficient data
   reduction", COM-HPC 2016.
.. [2] S. Deering, D. Cheriton, "Multicast routing in datagram internetworks and extended LANs", ACM Transactions on
   Computer Systems 8(2), 1990.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simnet.traffic.patterns import begin_schedule, require_positive, require_rank
from simnet.traffic.schedule import Integers, Schedule
from simnet.traffic.schedule_builder import ScheduleBuilder
from simnet.traffic.trees import down_along, up_along, up_and_down

__all__ = ["broadcast_down", "reduce_up", "tree_of_parents_all_reduce"]


def tree_of_parents_all_reduce(
    parents: Sequence[int],
    contributors: Sequence[int],
    elements: int,
    element_bytes: float,
    *,
    chunks: int = 1,
    divisible: bool = False,
) -> Schedule:
    """All-reduce along a tree: what the contributors have is added up on the way to the root, and the sum comes down.

    Steps 2d + m - 1; messages 2Em; a rank sends S for its parent and S for each child: 2ES in all, S each way over each
    edge.
    Time on its own links (2d + m - 1)S/(mB) + 2dl: a chunk takes S/(mB) + l an edge, all follow it without a pause.
    With every host under one switch (d = 1) and m chunks that is (1 + 1/m)S/B + 2l, where the ring takes close to
    2S/B + 2(N - 1)2l. On a star for m = 1 2d(c S/B + p): c messages share the link of each inner rank.

    Parameters
    ----------
    parents : sequence of int, shape (ranks,)
        The rank above each; -1 for the root.
    contributors : sequence of int
        The ranks that put something in; they, and all on their way to the root, end with the sum.
    elements : int
        Elements in the buffer.
    element_bytes : float
        Size of one element [bytes].
    chunks : int
        m.
    divisible : bool
        Cut elements too, so that chunks are exactly equal.

    Returns
    -------
    Schedule
        As many ranks as `parents` has; m chunks.

    Raises
    ------
    ValueError
        The parents are no tree, or there is no contributor.

    References
    ----------
    .. [1] R. Graham et al. (SHArP), COM-HPC 2016.
    """
    build, rank, parent = _begin(
        "all-reduce along a given tree", parents, contributors, elements, element_bytes, chunks, divisible
    )
    up_and_down(build, parent, rank, chunks=chunks)
    return build.schedule(joint=len(rank) == build.ranks)


def reduce_up(
    parents: Sequence[int],
    contributors: Sequence[int],
    elements: int,
    element_bytes: float,
    *,
    chunks: int = 1,
    divisible: bool = False,
) -> Schedule:
    """Reduce along a tree: what the contributors have is added up on the way to the root, which ends with the sum.

    Steps d + m - 1; messages Em; a rank sends S to its parent: ES in all, S over each edge.
    Time on its own links (d + m - 1)S/(mB) + dl; on a star c(d + m - 1)S/(mB) + dp.

    Parameters
    ----------
    parents, contributors, elements, element_bytes, chunks, divisible
        See `tree_of_parents_all_reduce`.

    Returns
    -------
    Schedule
        As many ranks as `parents` has; m chunks.

    Raises
    ------
    ValueError
        As of `tree_of_parents_all_reduce`.

    References
    ----------
    .. [1] R. Graham et al. (SHArP), COM-HPC 2016.
    """
    build, rank, parent = _begin(
        "reduce along a given tree", parents, contributors, elements, element_bytes, chunks, divisible
    )
    up_along(build, parent, rank, chunks=chunks)
    return build.schedule()


def broadcast_down(
    parents: Sequence[int],
    receivers: Sequence[int],
    elements: int,
    element_bytes: float,
    *,
    chunks: int = 1,
    divisible: bool = False,
) -> Schedule:
    """Multicast along a tree: the root's buffer goes once over each edge on the way to a receiver.

    Steps d + m - 1; messages Em; a rank sends S to each child: ES in all, S over each edge.
    Time on its own links (d + m - 1)S/(mB) + dl; on a star c(d + m - 1)S/(mB) + dp.

    Parameters
    ----------
    parents, elements, element_bytes, chunks, divisible
        See `tree_of_parents_all_reduce`.
    receivers : sequence of int
        The ranks that must get the buffer; all on the way to them get it too.

    Returns
    -------
    Schedule
        As many ranks as `parents` has; m chunks.

    Raises
    ------
    ValueError
        The parents are no tree, or there is no receiver.

    References
    ----------
    .. [2] S. Deering, D. Cheriton, ACM Transactions on Computer Systems 8(2), 1990.
    """
    build, rank, parent = _begin(
        "broadcast along a given tree", parents, receivers, elements, element_bytes, chunks, divisible
    )
    down_along(build, parent, rank, chunks=chunks)
    return build.schedule()


def _begin(
    name: str,
    parents: Sequence[int],
    needed: Sequence[int],
    elements: int,
    element_bytes: float,
    chunks: int,
    divisible: bool,
) -> tuple[ScheduleBuilder, Integers, Integers]:
    """Begin a schedule; return it, the ranks that have a part, and the parent of each, counted among these."""
    require_positive(name, "chunks", chunks)
    parent = np.asarray(parents, dtype=np.int64)
    build = begin_schedule(name, len(parent), elements, element_bytes, chunks=chunks, divisible=divisible)
    for rank in needed:
        require_rank(build, int(rank), "contributor or receiver")
    if not len(needed):
        raise ValueError(f"a {name} is for at least one rank")
    if (parent < 0).sum() != 1 or parent.max() >= len(parent):
        raise ValueError(f"a {name} has one root, whose parent is -1, and all other parents are ranks: {parents}")
    if not _on_the_way(parent, np.arange(len(parent)))[1]:
        raise ValueError(f"a {name} has one root above all; some parents form a circle: {parents}")
    ranks = np.flatnonzero(_on_the_way(parent, np.asarray(needed, dtype=np.int64))[0])
    number = np.full(len(parent), -1)
    number[ranks] = np.arange(len(ranks))
    above = parent[ranks]
    return build, ranks, np.where(above < 0, -1, number[above])


def _on_the_way(parent: Integers, start: Integers) -> tuple[NDArray[np.bool_], bool]:
    """Return which ranks are on the way up from some, these included, and whether all ways end at the root."""
    passed = np.zeros(len(parent), dtype=np.bool_)
    # In a tree every way up is shorter than there are ranks.
    for _ in range(len(parent)):
        passed[start] = True
        start = np.unique(parent[start])
        start = start[start >= 0]
        if not start.size:
            return passed, True
    return passed, False
