"""The collectives and their algorithms by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from simnet.traffic.all_reduce import ALL_REDUCE
from simnet.traffic.exchanges import direct_all_to_all, pairwise_all_to_all, ring_send_recv
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
from simnet.traffic.rooted import tree_broadcast, tree_reduce
from simnet.traffic.scatter_gather import (
    direct_all_gather,
    direct_reduce_scatter,
    ring_all_gather,
    ring_reduce_scatter,
)
from simnet.traffic.schedule import Schedule

__all__ = ["COLLECTIVES", "Algorithm", "Collective"]


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


def _tree(ranks: int, root: int = 0) -> int:
    """Return ceil(log2 N); whichever the root is."""
    del root
    return (ranks - 1).bit_length()


def _butterfly(ranks: int) -> int:
    """Return log2 N for powers of two; the fold takes a step before, and one after."""
    rounds = ranks.bit_length() - 1
    return rounds if ranks == 1 << rounds else rounds + 2


def _star(ranks: int, hub: int = 0) -> int:
    del hub
    return 2 * _at_once(ranks)


def _mesh(ranks: int, exchange: str = "scatter") -> int:
    return _at_once(ranks) * (2 if exchange == "scatter" else 1)


_ALL_REDUCE_STEPS: Mapping[str, Callable[..., int]] = {
    "ring": lambda ranks: 2 * _around(ranks),
    "star": _star,
    "tree": lambda ranks: 2 * _tree(ranks),
    "butterfly": _butterfly,
    "mesh": _mesh,
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
            {"ring": Algorithm(ring_reduce_scatter, _around), "direct": Algorithm(direct_reduce_scatter, _at_once)},
        ),
        "all_gather": Collective(
            "the whole buffer that each rank ends with; it starts with one chunk of it",
            all_gather_goal,
            {"ring": Algorithm(ring_all_gather, _around), "direct": Algorithm(direct_all_gather, _at_once)},
        ),
        "broadcast": Collective(
            "the buffer of the root, which every rank ends with",
            broadcast_goal,
            {"tree": Algorithm(tree_broadcast, _tree)},
        ),
        "reduce": Collective(
            "the buffer of each rank",
            reduce_goal,
            {"tree": Algorithm(tree_reduce, _tree)},
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
