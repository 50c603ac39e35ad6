"""All-reduce: every rank starts with a buffer of its own and ends with the sum of all of them.

Each function returns a `Schedule`; nothing here knows of links or clocks. The times quoted are those on a star of N
hosts around one switch, with nothing else on it and no overheads: S is the size of the buffer [bytes], B the bandwidth
of a link [bytes/s], p the latency of the two links of a path [s]. They hold exactly where all chunks are equal
(``divisible=True``, or a buffer whose number of elements is a multiple of the chunks).

Rounds are in lockstep at the receiver; see `simnet.traffic.patterns`.

Here are the algorithms that are made of others, for clusters with levels or dimensions; those that do it in one go are
in `simnet.traffic.flat_all_reduce`.

References
----------
.. [1] M. Cho, U. Finkler, M. Serrano, D. Kung, H. Hunter, "BlueConnect: decomposing all-reduce for deep learning on
   heterogeneous network hierarchy", IBM J. of Research and Development 63(6), 2019.
.. [2] X. Jia et al., "Highly scalable deep learning training system with mixed-precision: training ImageNet in four
   minutes", arXiv:1807.11205, 2018.
.. [3] H. Mikami et al., "Massively distributed SGD: ImageNet/ResNet-50 training in a flash", arXiv:1811.05233, 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isqrt, lcm
from types import MappingProxyType

import numpy as np

from simnet.traffic.composing import Phase, add_phases
from simnet.traffic.flat_all_reduce import (
    butterfly_all_reduce,
    double_tree_all_reduce,
    halving_doubling_all_reduce,
    mesh_all_reduce,
    ring_all_reduce,
    star_all_reduce,
    tree_all_reduce,
)
from simnet.traffic.patterns import begin_schedule
from simnet.traffic.rooted import chain_broadcast, chain_reduce, tree_broadcast, tree_reduce
from simnet.traffic.scatter_gather import (
    direct_all_gather,
    direct_reduce_scatter,
    doubling_all_gather,
    halving_reduce_scatter,
    ring_all_gather,
    ring_reduce_scatter,
)
from simnet.traffic.schedule import Schedule

__all__ = [
    "ALL_REDUCE",
    "LEADER_PAIRS",
    "SLICE_PAIRS",
    "AllReduce",
    "hierarchical_all_reduce",
    "near_square",
    "torus_all_reduce",
]

AllReduce = Callable[..., Schedule]
"""``(ranks, elements, element_bytes, *, divisible=False, ...) -> Schedule``."""

SLICE_PAIRS: Mapping[str, tuple[AllReduce, AllReduce]] = MappingProxyType(
    {
        "ring": (ring_reduce_scatter, ring_all_gather),
        "direct": (direct_reduce_scatter, direct_all_gather),
        "halving_doubling": (halving_reduce_scatter, doubling_all_gather),
    }
)
"""Reduce-scatter and all-gather, by the name of an all-reduce that is made of the two."""

LEADER_PAIRS: Mapping[str, tuple[AllReduce, AllReduce]] = MappingProxyType(
    {"tree": (tree_reduce, tree_broadcast), "chain": (chain_reduce, chain_broadcast)}
)
"""Reduce and broadcast, by the name of an all-reduce that is made of the two."""


def hierarchical_all_reduce(
    ranks: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    group: int | None = None,
    inside: str = "ring",
    across: str = "ring",
    inside_options: Mapping[str, object] = MappingProxyType({}),
    across_options: Mapping[str, object] = MappingProxyType({}),
) -> Schedule:
    """Hierarchical: within groups, as the GPUs of a host, then across the n = N/g groups, then within groups again.

    Ranks with the same r // g are a group. By what is done inside:

    *Slices* (``ring``, ``direct``, ``halving_doubling``): a reduce-scatter inside each group; then rank i of a group
    and rank i of all others all-reduce slice i, the g slices side by side; then an all-gather inside. Each rank
    sends 2(g - 1)/g S inside; all together as much as without groups, of which across only 1/g [1]_.
    With rings inside and across time 2(g - 1)(S/(gB) + p) + 2(n - 1)(S/(NB) + p), and each rank sends 2(N - 1)/N S.

    *Leaders* (``tree``, ``chain``): a reduce to the first rank of each group; then these leaders all-reduce the whole
    buffer; then a broadcast inside [2]_. With trees inside 2 ceil(log2 g)(S/B + p), and the all-reduce of n ranks
    between.

    Steps, messages and bytes are those of the phases, summed; so is the time on a star wherever all ranks that take
    part in a phase begin it together.

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `simnet.traffic.ring_all_reduce`.
    group : int
        g, a divisor of N; by default the largest that is not above the root of N.
    inside : str
        A name out of `SLICE_PAIRS` or `LEADER_PAIRS`.
    across : str
        A name out of `ALL_REDUCE`; also this one again, for another level.
    inside_options, across_options : mapping
        Options of the schedules inside and across; those inside hold for both.

    Returns
    -------
    Schedule
        Over N ranks; as few chunks as the three phases allow, N with rings inside and across.

    Raises
    ------
    ValueError
        No rank, groups that are not equal, or an unknown name.

    References
    ----------
    .. [1] M. Cho et al., "BlueConnect", IBM J. of Research and Development 63(6), 2019.
    .. [2] X. Jia et al., arXiv:1807.11205, 2018.
    """
    name = "hierarchical all-reduce"
    _require_ranks(name, ranks)
    group = near_square(ranks) if group is None else group
    if group < 1 or ranks % group:
        raise ValueError(f"the ranks of a {name} are groups of equal size: {ranks} ranks, groups of {group}")
    pair = {**SLICE_PAIRS, **LEADER_PAIRS}.get(inside)
    if pair is None or across not in ALL_REDUCE:
        raise ValueError(
            f"inside a {name} is one of {', '.join([*SLICE_PAIRS, *LEADER_PAIRS])}, across one of "
            f"{', '.join(ALL_REDUCE)}: {inside!r}, {across!r}"
        )
    buffer = (elements, element_bytes)
    first, third = (half(group, *buffer, divisible=divisible, **inside_options) for half in pair)
    second = ALL_REDUCE[across](ranks // group, *buffer, divisible=divisible, **across_options)
    slices = group if inside in SLICE_PAIRS else 1
    return _in_three_phases(name, elements, element_bytes, divisible, first, second, third, slices)


def torus_all_reduce(
    ranks: int,
    elements: int,
    element_bytes: float,
    *,
    divisible: bool = False,
    rows: int | None = None,
    columns: int | None = None,
) -> Schedule:
    """2D torus: rings along the rows scatter the sums, rings along the columns all-reduce, rings along rows gather.

    With R rows and C columns rank r is in row r // C and column r mod C. Reduce-scatter along each row, after which
    the rank in column i has the row's sum of slice i; ring all-reduce of slice i along column i; all-gather along each
    row [3]_.

    Steps 2(C - 1) + 2(R - 1) instead of the 2(RC - 1) of one ring; messages 2N(C - 1) + 2N(R - 1); each rank sends
    2(C - 1)/C S + 2(R - 1)/R S/C = 2(N - 1)/N S, the least that is possible.
    Time 2(C - 1)(S/(CB) + p) + 2(R - 1)(S/(NB) + p).

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `simnet.traffic.ring_all_reduce`.
    rows, columns : int
        R and C, with R C = N. One of them follows from the other; by default as near to each other as N allows, with
        no more rows than columns.

    Returns
    -------
    Schedule
        Over N ranks; N chunks.

    Raises
    ------
    ValueError
        No rank, or rows and columns that do not make up N.

    References
    ----------
    .. [3] H. Mikami et al., arXiv:1811.05233, 2018.
    """
    name = "torus all-reduce"
    _require_ranks(name, ranks)
    if rows is None:
        rows = near_square(ranks) if columns is None else ranks // max(columns, 1)
    columns = ranks // max(rows, 1) if columns is None else columns
    if rows < 1 or columns < 1 or rows * columns != ranks:
        raise ValueError(f"the ranks of a {name} are its rows times its columns: {ranks} ranks, {rows} x {columns}")
    buffer = (elements, element_bytes)
    first, third = (half(columns, *buffer, divisible=divisible) for half in SLICE_PAIRS["ring"])
    second = ring_all_reduce(rows, *buffer, divisible=divisible)
    return _in_three_phases(name, elements, element_bytes, divisible, first, second, third, columns)


def near_square(ranks: int) -> int:
    """Return the largest divisor of a number of ranks that is not above its root.

    Examples
    --------
    >>> near_square(12), near_square(16), near_square(7)
    (3, 4, 1)
    """
    return next(divisor for divisor in range(isqrt(ranks), 0, -1) if ranks % divisor == 0)


def _in_three_phases(
    name: str,
    elements: int,
    element_bytes: float,
    divisible: bool,
    first: Schedule,
    second: Schedule,
    third: Schedule,
    slices: int,
) -> Schedule:
    """Return one schedule inside each group, one across groups and one inside each group again.

    Parameters
    ----------
    name, elements, element_bytes, divisible
        Of the whole.
    first, third : Schedule
        For the ranks of one group. With slices, chunk i of them is slice i.
    second : Schedule
        For one rank of each group.
    slices : int
        Ranks 0 .. slices - 1 of all groups do the second, each with its slice of the buffer.
    """
    group, groups = first.ranks, second.ranks
    chunks = lcm(first.partition.chunks, slices * second.partition.chunks)
    build = begin_schedule(name, group * groups, elements, element_bytes, chunks=chunks, divisible=divisible)
    member = np.arange(group * groups).reshape(groups, group)
    inside = chunks // first.partition.chunks
    across = chunks // (slices * second.partition.chunks)
    slice_begins = np.arange(slices) * (chunks // slices)
    add_phases(
        build,
        [
            Phase(first, member, factor=inside),
            Phase(second, member.T[:slices], chunk=slice_begins, factor=across),
            Phase(third, member, factor=inside),
        ],
    )
    return build.schedule(joint=True)


def _require_ranks(name: str, ranks: int) -> None:
    """Refuse what `begin_schedule` refuses, before anything is divided by it."""
    begin_schedule(name, ranks, 0, 1.0, chunks=1, divisible=False)


ALL_REDUCE: Mapping[str, AllReduce] = MappingProxyType(
    {
        "ring": ring_all_reduce,
        "star": star_all_reduce,
        "tree": tree_all_reduce,
        "double_tree": double_tree_all_reduce,
        "butterfly": butterfly_all_reduce,
        "halving_doubling": halving_doubling_all_reduce,
        "mesh": mesh_all_reduce,
        "hierarchical": hierarchical_all_reduce,
        "torus": torus_all_reduce,
    }
)
"""The all-reduce algorithms by the names that scenarios use."""
