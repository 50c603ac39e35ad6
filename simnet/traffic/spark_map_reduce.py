"""Map-reduce as Spark does it: executors reduce what they have to a driver, which broadcasts what comes of it.

References
----------
.. [1] Apache Spark 3, class ``RDD``, method ``treeAggregate``: of N partitions and depth d the scale is
   max(ceil(N^(1/d)), 2); while there are more than scale + ceil(partitions/scale), partition i is combined with all
   others of the same i mod floor(partitions/scale). What is left goes to the driver. X. Meng, "Scalable decision trees
   in MLlib" and SPARK-2174 say why: the driver's link.
.. [2] Apache Spark 3, class ``TorrentBroadcast``: the driver cuts a variable into blocks of
   ``spark.broadcast.blockSize``, 4 MiB; executors fetch them in random order from the driver or from each other, and
   give out what they have.
.. [3] M. Zaharia et al., "Resilient distributed datasets", NSDI 2012: a stage begins when those before it are over.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Literal

import numpy as np

from simnet.traffic.composing import Phase, add_phases
from simnet.traffic.parent_tree import broadcast_down, reduce_up
from simnet.traffic.patterns import begin_schedule, between_all, require_positive
from simnet.traffic.schedule import Integers, Schedule
from simnet.traffic.schedule_builder import ScheduleBuilder
from simnet.traffic.trees import down_tree
from simnet.units import parse_size

__all__ = ["SPARK_BLOCK_BYTES", "map_reduce", "map_reduce_with_switches", "tree_aggregate_rounds"]

SPARK_BLOCK_BYTES = parse_size("4 MiB")
"""Default of ``spark.broadcast.blockSize`` [bytes]."""


def map_reduce(
    executors: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    reduce: Literal["tree", "star"] = "tree",
    depth: int = 2,
    broadcast: Literal["torrent", "tree", "star"] = "torrent",
    blocks: int | None = None,
) -> Schedule:
    """One round: what N executors have is summed on the way to the driver, which sends the sum to all of them.

    Reduce, in which each executor sends S: NS in all, N messages.

    ``tree``: Spark's treeAggregate [1]_, with n_0 = N > n_1 > ... > n_R partitions left after each round, of which
    partition i stays with executor i. Stages are in lockstep over all executors [3]_; what the driver says to begin
    them is too small to count. R + 1 steps. Time the sum over the rounds of (ceil(n_i/n_(i+1)) - 1)S/B + p, and
    n_R S/B + p.

    ``star``: all send to the driver. 1 step. Time NS/B + p.

    Broadcast, in which each executor gets S: NS in all.

    ``torrent``: b blocks. Spark lets chance say who fetches what from whom [2]_; here what it comes to on average is
    fixed: block j leaves the driver once, to executor j mod N, who sends it to all others. bN messages,
    ceil(b/N) + 1 steps, ceil(b/N) for N = 1. The driver sends S, executors (N - 1)S. Time for b = mN equal blocks
    with p <= S/(mB) (1 + (N - 1)/(mN))S/B + 2p: the link of the driver is always busy, and what the executors exchange
    of the blocks before shares the links into them evenly with what comes from the driver.

    ``tree``: binomial, from the driver on. N messages, ceil(log2(N + 1)) steps. Time ceil(log2(N + 1))(S/B + p).

    ``star``: the driver sends to each. N messages, 1 step. Time NS/B + p.

    Parameters
    ----------
    executors : int
        N: ranks 0 .. N - 1; rank N is the driver, which contributes nothing.
    elements : int
        Elements in the buffer.
    element_bytes : float
        Size of one element [bytes].
    divisible : bool
        Cut elements too, so that blocks are exactly equal.
    reduce : {"tree", "star"}
    depth : int
        d, a wish: see `tree_aggregate_rounds`.
    broadcast : {"torrent", "tree", "star"}
    blocks : int
        b; by default of `SPARK_BLOCK_BYTES` each.

    Returns
    -------
    Schedule
        Over N + 1 ranks; b chunks for ``torrent``, else one.

    Raises
    ------
    ValueError
        No executor, a depth or number of blocks below 1, or an unknown reduce or broadcast.

    References
    ----------
    .. [1] Apache Spark 3, class ``RDD``, method ``treeAggregate``; SPARK-2174.
    .. [2] Apache Spark 3, class ``TorrentBroadcast``.
    .. [3] M. Zaharia et al., "Resilient distributed datasets", NSDI 2012.
    """
    name = "map-reduce"
    if broadcast not in ("torrent", "tree", "star"):
        raise ValueError(f"the broadcast of a {name} is 'torrent', 'tree' or 'star': {broadcast!r}")
    if blocks is None:
        blocks = max(ceil(elements * element_bytes / SPARK_BLOCK_BYTES), 1)
    require_positive(name, "blocks", blocks)
    chunks = blocks if broadcast == "torrent" else 1
    build = _begin(name, executors, elements, element_bytes, chunks=chunks, divisible=divisible)
    summed = _reduce(build, executors, _left(reduce, executors, depth))
    if broadcast == "torrent":
        _torrent(build, executors, summed)
    elif broadcast == "tree":
        down_tree(build, np.concatenate([summed, np.full(executors, -1)]), root=executors)
    else:
        build.depend(summed, build.send(executors, np.arange(executors)))
    return build.schedule(joint=True)


def map_reduce_with_switches(
    executors: int,
    parents: Sequence[int],
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    reduce: Literal["tree", "star", "in_network"] = "tree",
    depth: int = 2,
    broadcast: Literal["multicast"] = "multicast",
    chunks: int = 8,
) -> Schedule:
    """One round with switches that replicate, and may add up: one copy a link of what they do.

    The broadcast is a multicast along a given tree: S over each edge on the way to an executor, once. The reduce is
    that of `map_reduce`, or ``in_network`` along the same tree. The broadcast begins when the driver has the sum.

    Parameters
    ----------
    executors : int
        N: ranks 0 .. N - 1; rank N is the driver, all others are switches.
    parents : sequence of int
        Parent of each rank in a tree with the driver as its root, whose parent is -1.
    elements, element_bytes, divisible, depth
        See `map_reduce`.
    reduce : {"tree", "star", "in_network"}
    broadcast : {"multicast"}
    chunks : int
        Pieces of what goes along the tree, which travel one behind the other.

    Returns
    -------
    Schedule
        As many ranks as `parents` has; `chunks` chunks.

    Raises
    ------
    ValueError
        No executor, a depth or number of chunks below 1, no tree, or an unknown reduce or broadcast.

    References
    ----------
    Along the tree as `simnet.traffic.reduce_up` and `simnet.traffic.broadcast_down` have it, else as `map_reduce`.
    """
    if broadcast != "multicast":
        raise ValueError(f"the broadcast of switches is 'multicast': {broadcast!r}")
    buffer = (elements, element_bytes)
    build = begin_schedule("map-reduce with switches", len(parents), *buffer, chunks=chunks, divisible=divisible)
    everybody, own = range(len(parents)), range(executors)
    if reduce == "in_network":
        first = Phase(reduce_up(parents, own, *buffer, chunks=chunks, divisible=divisible), everybody)
    else:
        part = _begin("aggregate", executors, *buffer, chunks=1, divisible=divisible)
        _reduce(part, executors, _left(reduce, executors, depth))
        first = Phase(part.schedule(), everybody[: executors + 1], factor=chunks)
    down = broadcast_down(parents, own, *buffer, chunks=chunks, divisible=divisible)
    add_phases(build, [first, Phase(down, everybody)])
    return build.schedule(joint=True)


def _begin(
    name: str, executors: int, elements: int, element_bytes: float, *, chunks: int, divisible: bool
) -> ScheduleBuilder:
    require_positive(name, "executors", executors)
    return begin_schedule(name, executors + 1, elements, element_bytes, chunks=chunks, divisible=divisible)


def _left(reduce: str, executors: int, depth: int) -> tuple[int, ...]:
    """Return how many partitions there are at first, and after each round of the reduce."""
    if reduce not in ("tree", "star"):
        raise ValueError(f"the reduce of a map-reduce is 'tree' or 'star': {reduce!r}")
    return tree_aggregate_rounds(executors, depth) if reduce == "tree" else (executors,)


def tree_aggregate_rounds(partitions: int, depth: int) -> tuple[int, ...]:
    """Return how many partitions there are at first, and after each round of Spark's treeAggregate [1]_.

    Parameters
    ----------
    partitions : int
    depth : int
        At least 1. There are at most so many stages, that to the driver included; one that would save no time is left
        out.

    Returns
    -------
    tuple of int

    Raises
    ------
    ValueError
        A depth below 1.

    References
    ----------
    .. [1] Apache Spark 3, class ``RDD``, method ``treeAggregate``; SPARK-2174.

    Examples
    --------
    >>> tree_aggregate_rounds(16, 2), tree_aggregate_rounds(64, 3), tree_aggregate_rounds(4, 2)
    ((16, 4), (64, 16, 4), (4,))
    """
    require_positive("map-reduce", "levels of the reduce", depth)
    scale = 2
    # In whole numbers, as 243 ** (1 / 5) is a little more than 3.
    while scale**depth < partitions:
        scale += 1
    left = [partitions]
    while left[-1] > scale + -(-left[-1] // scale):
        left.append(left[-1] // scale)
    return tuple(left)


def _reduce(build: ScheduleBuilder, driver: int, left: tuple[int, ...]) -> Integers:
    """Add up the buffers of the executors in stages; return the calculation of the driver that ends the last one."""
    whole = build.partition.chunks
    ended: Integers | None = None
    for stage, size in enumerate(left):
        last = stage == len(left) - 1
        source = np.arange(0 if last else left[stage + 1], size)
        target = driver if last else source % left[stage + 1]
        send = build.send(source, target, width=whole, reduce=1)
        if ended is not None:
            build.depend(ended, send)
        ended = build.calc(driver)
        build.depend(send, ended)
    assert ended is not None
    return ended


def _torrent(build: ScheduleBuilder, executors: int, begun: Integers) -> None:
    """Give each block to one executor in turn, who gives it to all others."""
    blocks = build.partition.chunks
    first = np.arange(min(executors, blocks))
    repeat = -(-(blocks - first) // executors)
    out = build.send(executors, first, repeat=repeat, chunk=first, step=executors)
    build.depend(begun, out)
    if executors > 1:
        source, target = between_all(executors)
        source, target = source[source < len(first)], target[source < len(first)]
        onward = build.send(source, target, repeat=repeat[source], chunk=source, step=executors)
        build.depend(out[source], onward)
