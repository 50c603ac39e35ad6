"""Closed formulas: what each way to exchange gradients sends in all, in how many steps and how many transfers.

K nodes have n bytes each, and all end with the sum. Where a parameter server or a driver stands beside the nodes, K is
the number of those that have something. The derivations stand where the algorithms are: in the docstrings of the
functions that make the schedules. In short:

- star: all but the hub send n to it and get n back, in 2 rounds: 2n(K - 1).
- tree: each node but the root sends n to its parent, and gets n from it: 2n(K - 1), one round a level and way.
- butterfly: in each of log2 K rounds every node sends n: nK log2 K.
- ring, mesh, halving-doubling and what is made of them: a reduce-scatter, in which each of K chunks of n/K must be
  added K - 1 times, so that it is sent at least as often, and an all-gather, in which it must be copied K - 1 times:
  2K(K - 1)n/K = 2n(K - 1).
- parameter server: each worker pushes n and pulls n: 2nK; where worker i has server i on its node, the shard of n/K
  that it has of itself does not leave it: 2n(K - 1), as in a ring.
- map-reduce: each executor sends n, and gets n: 2nK.

`simnet.traffic.count` counts the same, message by message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from simnet.traffic.all_reduce import ALL_REDUCE, near_square
from simnet.traffic.collectives import COLLECTIVES
from simnet.traffic.counting import count
from simnet.traffic.parameter_server import parameter_server_push_pull
from simnet.traffic.schedule import Schedule
from simnet.traffic.spark_map_reduce import map_reduce, tree_aggregate_rounds

__all__ = ["FORMULAS", "Formula", "VolumeRow", "volume_table"]


@dataclass(frozen=True)
class Formula:
    """What one architecture sends, as functions of K.

    Parameters
    ----------
    make : callable
        ``(K, elements, element_bytes) -> Schedule``.
    volume : callable
        Bytes sent in all, in units of n.
    steps : callable
        Messages in the longest chain of messages that wait for each other.
    transfers : callable
        Messages in all.
    text : tuple of str
        The formulas of volume, steps and transfers, to be read.
    nodes : callable
        The node of each rank; by default each has its own.
    """

    make: Callable[[int, int, float], Schedule]
    volume: Callable[[int], float]
    steps: Callable[[int], int]
    transfers: Callable[[int], int]
    text: tuple[str, str, str]
    nodes: Callable[[int], Sequence[int]] | None = None


class VolumeRow(NamedTuple):
    """One line of the table of volumes: what is counted, beside what the formulas say.

    Attributes
    ----------
    architecture : a name out of `FORMULAS`
    nodes : K
    size_bytes : n [bytes]
    counted_bytes, counted_steps, counted_transfers : of the schedule, message by message; the first [bytes]
    formula_bytes, formula_steps, formula_transfers : of the closed formulas; the first [bytes]
    bytes_text, steps_text, transfers_text : these formulas
    """

    architecture: str
    nodes: int
    size_bytes: float
    counted_bytes: float
    counted_steps: int
    counted_transfers: int
    formula_bytes: float
    formula_steps: int
    formula_transfers: int
    bytes_text: str
    steps_text: str
    transfers_text: str


def volume_table(nodes: Iterable[int], elements: int, element_bytes: float = 4.0) -> list[VolumeRow]:
    """Count what each architecture sends for each number of nodes, and work out what the formulas say.

    Parameters
    ----------
    nodes : iterable of int
        The numbers K, at least 2 each.
    elements : int
        Elements that each node has: n = elements element_bytes.
    element_bytes : float
        Size of one element [bytes].

    Returns
    -------
    list of VolumeRow
        For each architecture out of `FORMULAS` one a number of nodes, in this order.

    Notes
    -----
    Sources of the formulas are with the functions that make the schedules, as `simnet.traffic.ring_all_reduce`.
    """
    size = elements * element_bytes
    rows = []
    for name, formula in FORMULAS.items():
        for k in nodes:
            schedule = formula.make(k, elements, element_bytes)
            counted = count(schedule, formula.nodes(k) if formula.nodes else None)
            expected = formula.volume(k) * size, formula.steps(k), formula.transfers(k)
            rows.append(
                VolumeRow(
                    name,
                    k,
                    size,
                    counted.sent_bytes,
                    counted.steps,
                    counted.messages,
                    *expected,
                    *formula.text,
                )
            )
    return rows


def _least(k: int) -> float:
    return 2.0 * (k - 1)


def _power(k: int) -> int:
    """Return the largest power of two that is not above K."""
    return 1 << (k.bit_length() - 1)


def _butterfly_transfers(k: int) -> int:
    return _power(k) * (k.bit_length() - 1) + 2 * (k - _power(k))


def _halving_doubling_transfers(k: int) -> int:
    return 2 * _power(k) * (k.bit_length() - 1) + 2 * (k - _power(k))


def _grid_transfers(k: int) -> int:
    """Return those of rings along the rows, there and back, and along the columns."""
    rows = near_square(k)
    return 2 * k * (k // rows - 1) + 2 * k * (rows - 1)


def _all_reduce(
    name: str,
    volume: Callable[[int], float],
    transfers: Callable[[int], int],
    text: tuple[str, str, str],
    **options: object,
) -> Formula:
    """Return the formulas of an all-reduce out of `ALL_REDUCE`, with its steps as they are known by its name."""
    steps = COLLECTIVES["all_reduce"].algorithms[name].steps
    return Formula(partial(ALL_REDUCE[name], **options), volume, partial(steps, **options), transfers, text)


def _dedicated(k: int, elements: int, element_bytes: float) -> Schedule:
    return parameter_server_push_pull(k, 1, elements, element_bytes)


def _as_many(k: int, elements: int, element_bytes: float) -> Schedule:
    return parameter_server_push_pull(k, k, elements, element_bytes, divisible=True)


def _map_reduce(k: int, elements: int, element_bytes: float) -> Schedule:
    return map_reduce(k, elements, element_bytes, blocks=k)


_LEAST = "2n(K - 1)"
_DOUBLE_TREE_CHUNKS = 8

FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {
        "star": _all_reduce("star", _least, lambda k: 2 * (k - 1), (_LEAST, "2", "2(K - 1)")),
        "tree, binomial": _all_reduce(
            "tree", _least, lambda k: 2 * (k - 1), (_LEAST, "2 ceil(log2 K)", "2(K - 1)"), shape="binomial"
        ),
        "tree, binary": _all_reduce(
            "tree", _least, lambda k: 2 * (k - 1), (_LEAST, "2 floor(log2 K)", "2(K - 1)"), shape="binary"
        ),
        "double_tree": _all_reduce(
            "double_tree",
            _least,
            lambda k: 4 * (k - 1) * _DOUBLE_TREE_CHUNKS,
            (_LEAST, "2 floor(log2 K) + m - 1, m = 8 chunks", "4(K - 1)m"),
            chunks=_DOUBLE_TREE_CHUNKS,
        ),
        "butterfly": _all_reduce(
            "butterfly",
            _butterfly_transfers,
            _butterfly_transfers,
            (
                "nK log2 K; n(2^q q + 2(K - 2^q)) with q = floor(log2 K)",
                "log2 K; q + 2 if K > 2^q",
                "2^q q + 2(K - 2^q)",
            ),
        ),
        "halving_doubling": _all_reduce(
            "halving_doubling",
            _least,
            _halving_doubling_transfers,
            (_LEAST, "2q, q = floor(log2 K); 2q + 2 if K > 2^q", "2^(q + 1) q + 2(K - 2^q)"),
        ),
        "ring": _all_reduce("ring", _least, lambda k: 2 * k * (k - 1), (_LEAST, "2(K - 1)", "2K(K - 1)")),
        "mesh": _all_reduce("mesh", _least, lambda k: 2 * k * (k - 1), (_LEAST, "2", "2K(K - 1)")),
        "mesh, full": _all_reduce(
            "mesh", lambda k: k * (k - 1), lambda k: k * (k - 1), ("nK(K - 1)", "1", "K(K - 1)"), exchange="full"
        ),
        "hierarchical": _all_reduce(
            "hierarchical",
            _least,
            _grid_transfers,
            (_LEAST, "2(g - 1) + 2(K/g - 1), groups of g", "2K(g - 1) + 2K(K/g - 1)"),
        ),
        "torus": _all_reduce(
            "torus",
            _least,
            _grid_transfers,
            (_LEAST, "2(R - 1) + 2(C - 1), R rows of C", "2K(R - 1) + 2K(C - 1)"),
        ),
        "parameter_server, one dedicated": Formula(
            _dedicated, lambda k: 2 * k, lambda _: 2, lambda k: 2 * k, ("2nK", "2", "2K")
        ),
        "parameter_server, one on each node": Formula(
            _as_many,
            _least,
            lambda _: 2,
            lambda k: 2 * k * (k - 1),
            (_LEAST, "2", "2K(K - 1)"),
            nodes=lambda k: [*range(k), *range(k)],
        ),
        "mapreduce": Formula(
            _map_reduce,
            lambda k: 2 * k,
            lambda k: len(tree_aggregate_rounds(k, 2)) + 2,
            lambda k: k + k * k,
            ("2nK", "stages of treeAggregate (1 or 2) + 2", "K + bK, b = K blocks"),
        ),
    }
)
"""Formulas by architecture, and by shape or placement where it has several."""
