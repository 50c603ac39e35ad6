"""The collectives and their algorithms by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from numbers import Integral
from types import MappingProxyType
from typing import Any

from simnet.errors import InputError
from simnet.extensions import Extensions
from simnet.traffic.all_reduce import ALL_REDUCE, near_square
from simnet.traffic.counting import MOST_FIRINGS, count
from simnet.traffic.goals import (
    Goal,
    all_gather_goal,
    all_reduce_goal,
    all_to_all_goal,
    broadcast_goal,
    reduce_goal,
    reduce_scatter_goal,
    send_recv_goal,
)
from simnet.traffic.point_to_point import direct_all_to_all, pairwise_all_to_all, ring_send_recv
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
from simnet.traffic.validation import validate_schedule

__all__ = [
    "BUS_FACTOR",
    "COLLECTIVES",
    "EXTENSIONS",
    "Algorithm",
    "Collective",
    "algorithm_names",
    "algorithm_of",
]

EXTENSIONS = Extensions("collective", "simnet.collectives")
"""Algorithms that installed packages add, called ``COLLECTIVE.ALGORITHM``: an `Algorithm`, or its `make`."""


@dataclass(frozen=True)
class Algorithm:
    """One way to do a collective.

    Parameters
    ----------
    make : callable
        ``(ranks, elements, element_bytes, *, divisible=False, ...) -> Schedule``.
    steps : callable
        ``(ranks, ...) -> int``, with the options of `make`: messages in the longest chain of messages that wait for
        each other. `simnet.traffic.count` counts the same, one by one.
    """

    make: Callable[..., Schedule]
    steps: Callable[..., int]


@dataclass(frozen=True)
class Collective:
    """What ranks do together.

    Parameters
    ----------
    size : str
        What its size is the size of.
    goal : callable
        ``(schedule, ...) -> Goal``: who puts what in, and who must end with what.
    algorithms : mapping of str to Algorithm
        By name; the first is the usual one.
    """

    size: str
    goal: Callable[..., Goal]
    algorithms: Mapping[str, Algorithm]


def _at_once(ranks: int) -> int:
    """One step, but none for one rank alone."""
    return min(ranks - 1, 1)


def _around(ranks: int) -> int:
    return ranks - 1


def _ring(ranks: int, channels: int = 1, pipeline: int = 1, order: str = "neighbours") -> int:
    """Return what a rank sends, one after the other, in each of the channels side by side."""
    del channels, order
    return 2 * _around(ranks) * pipeline


def _pipelined(levels: int, chunks: int) -> int:
    """Return the steps in which chunks go through levels, one behind the other; none if there is no level."""
    return levels + chunks - 1 if levels else 0


def _levels(ranks: int, shape: str) -> int:
    """Return ceil(log2 N) for a binomial tree, floor(log2 N) for a binary one."""
    return (ranks - 1).bit_length() if shape == "binomial" else ranks.bit_length() - 1


def _tree(ranks: int, root: int = 0, shape: str = "binomial", chunks: int = 1) -> int:
    """Return the steps of one way, up or down; whichever the root is."""
    del root
    return _pipelined(_levels(ranks, shape), chunks)


def _up_and_down(ranks: int, shape: str = "binomial", chunks: int = 1) -> int:
    return _pipelined(2 * _levels(ranks, shape), chunks)


def _double_tree(ranks: int, chunks: int = 8) -> int:
    return _up_and_down(ranks, "binary", chunks)


def _chain(ranks: int, root: int = 0, chunks: int = 8) -> int:
    del root
    return _pipelined(ranks - 1, chunks)


def _folded(ranks: int, rounds: int = 1) -> int:
    """Return so many times log2 N for powers of two; the fold takes a step before, and one after."""
    levels = ranks.bit_length() - 1
    return rounds * levels + (0 if ranks == 1 << levels else 2)


def _halving_doubling(ranks: int) -> int:
    return _folded(ranks, 2)


def _star(ranks: int, hub: int = 0) -> int:
    del hub
    return 2 * _at_once(ranks)


def _mesh(ranks: int, exchange: str = "scatter") -> int:
    return _at_once(ranks) * (2 if exchange == "scatter" else 1)


def _hierarchical(
    ranks: int,
    group: int | None = None,
    inside: str = "ring",
    across: str = "ring",
    inside_options: Mapping[str, Any] = MappingProxyType({}),
    across_options: Mapping[str, Any] = MappingProxyType({}),
) -> int:
    """Return twice the steps inside a group, and those across the groups."""
    group = near_square(ranks) if group is None else group
    one_way = {"ring": _around, "direct": _at_once, "halving_doubling": _folded, "tree": _tree, "chain": _chain}
    there_and_back: int = 2 * one_way[inside](group, **inside_options)
    return there_and_back + _ALL_REDUCE_STEPS[across](ranks // group, **across_options)


def _torus(ranks: int, rows: int | None = None, columns: int | None = None) -> int:
    if rows is None:
        rows = near_square(ranks) if columns is None else ranks // columns
    return 2 * _around(rows) + 2 * _around(ranks // rows)


_ALL_REDUCE_STEPS: Mapping[str, Callable[..., int]] = {
    "ring": _ring,
    "star": _star,
    "tree": _up_and_down,
    "double_tree": _double_tree,
    "butterfly": _folded,
    "halving_doubling": _halving_doubling,
    "mesh": _mesh,
    "hierarchical": _hierarchical,
    "torus": _torus,
}

COLLECTIVES: Mapping[str, Collective] = MappingProxyType(
    {
        "all_reduce": Collective(
            "the buffer of each rank",
            all_reduce_goal,
            {name: Algorithm(make, _ALL_REDUCE_STEPS[name]) for name, make in ALL_REDUCE.items()},
        ),
        "reduce_scatter": Collective(
            "the whole buffer that each rank starts with; it ends with one chunk of it",
            reduce_scatter_goal,
            {
                "ring": Algorithm(ring_reduce_scatter, _around),
                "direct": Algorithm(direct_reduce_scatter, _at_once),
                "halving": Algorithm(halving_reduce_scatter, _folded),
            },
        ),
        "all_gather": Collective(
            "the whole buffer that each rank ends with; it starts with one chunk of it",
            all_gather_goal,
            {
                "ring": Algorithm(ring_all_gather, _around),
                "direct": Algorithm(direct_all_gather, _at_once),
                "doubling": Algorithm(doubling_all_gather, _folded),
            },
        ),
        "broadcast": Collective(
            "the buffer of the root, which every rank ends with",
            broadcast_goal,
            {"tree": Algorithm(tree_broadcast, _tree), "chain": Algorithm(chain_broadcast, _chain)},
        ),
        "reduce": Collective(
            "the buffer of each rank",
            reduce_goal,
            {"tree": Algorithm(tree_reduce, _tree), "chain": Algorithm(chain_reduce, _chain)},
        ),
        "all_to_all": Collective(
            "what each rank has to give to all, its own share included",
            all_to_all_goal,
            {
                "direct": Algorithm(direct_all_to_all, _at_once),
                "pairwise": Algorithm(pairwise_all_to_all, _around),
            },
        ),
        "send_recv": Collective(
            "what each rank sends to the next one",
            send_recv_goal,
            {"ring": Algorithm(ring_send_recv, _at_once)},
        ),
    }
)
"""Collectives by name, as `simnet collective` knows them."""


def _shared(ranks: int) -> float:
    """Return the part of the whole that each rank has to send to, or get from, others."""
    return (ranks - 1) / ranks


def _whole(ranks: int) -> float:
    del ranks
    return 1.0


BUS_FACTOR: Mapping[str, Callable[[int], float]] = MappingProxyType(
    {
        "all_reduce": lambda ranks: 2.0 * _shared(ranks),
        "reduce_scatter": _shared,
        "all_gather": _shared,
        "broadcast": _whole,
        "reduce": _whole,
        "all_to_all": _shared,
        "send_recv": _whole,
    }
)
"""Bus bandwidth over algorithm bandwidth, by the number of ranks: what makes it comparable to that of a link.

As nccl-tests defines it (NVIDIA/nccl-tests, ``doc/PERFORMANCE.md``): the part of the size that each rank sends.
"""


def algorithm_names(collective: str) -> tuple[str, ...]:
    """Return the algorithms of a collective, the usual one first, those that installed packages add last.

    Parameters
    ----------
    collective : str
        One of `COLLECTIVES`.

    Returns
    -------
    tuple of str
    """
    own = tuple(COLLECTIVES[collective].algorithms)
    added = (name.partition(".") for name in EXTENSIONS.names())
    return own + tuple(name for of, _, name in added if of == collective and name not in own)


def algorithm_of(collective: str, name: str) -> Algorithm:
    """Return an algorithm.

    Parameters
    ----------
    collective : str
        One of `COLLECTIVES`.
    name : str
        One of `algorithm_names`.

    Returns
    -------
    Algorithm

    Raises
    ------
    InputError
        What a package adds under the name cannot be loaded, or is no algorithm; names the package.
    """
    own, full_name = COLLECTIVES[collective].algorithms, f"{collective}.{name}"
    if name in own:
        EXTENSIONS.require_unclaimed(full_name)
        return own[name]
    loaded = EXTENSIONS.load(full_name)
    function = loaded.make if isinstance(loaded, Algorithm) else loaded
    with EXTENSIONS.blaming(full_name, "is no algorithm"):
        if list(inspect.signature(function).parameters)[:3] != ["ranks", "elements", "element_bytes"]:
            raise TypeError("a function (ranks, elements, element_bytes, *, divisible=False, ...) is wanted")

    @wraps(function)
    def make(ranks: int, *arguments: Any, **options: Any) -> Schedule:
        with EXTENSIONS.blaming(full_name, "failed"):
            schedule = function(ranks, *arguments, **options)
            if not isinstance(schedule, Schedule) or schedule.ranks != ranks:
                what = f"one of {schedule.ranks}" if isinstance(schedule, Schedule) else f"a {type(schedule).__name__}"
                raise TypeError(f"it returned {what}, and no simnet.traffic.Schedule of {ranks} ranks")
            try:
                validate_schedule(schedule)
            except InputError as error:
                raise EXTENSIONS.refusal(full_name, f"made a wrong schedule: {error.problems[0].message}") from None
        return schedule

    def steps(ranks: int, **options: Any) -> int:
        count_steps = loaded.steps if isinstance(loaded, Algorithm) else partial(_counted, make)
        with EXTENSIONS.blaming(full_name, "failed"):
            counted = count_steps(ranks, **options)
            if isinstance(counted, bool) or not isinstance(counted, Integral):
                raise TypeError(f"its steps are {counted!r}, and no whole number")
        return int(counted)

    return Algorithm(make, steps)


def _counted(make: Callable[..., Schedule], ranks: int, **options: Any) -> int:
    """Return the steps of a schedule whose chunks are all equal; -1 where it has too many messages to be counted."""
    schedule = make(ranks, ranks, 1.0, divisible=True, **options)
    return count(schedule).steps if int(schedule.operations.repeat.sum()) <= MOST_FIRINGS else -1
