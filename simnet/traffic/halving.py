"""Ways for messages to go that halve what each rank is to have, or double what it has, in rounds between pairs.

Rounds are in lockstep at the receiver; see `simnet.traffic.patterns`. Two ranks that exchange never change what the
other still reads: each sends what the other is to have, and receives what it has not sent.

References
----------
.. [1] R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004.
.. [2] R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH",
   Int. J. of High Performance Computing Applications 19(1), 2005.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simnet.traffic.patterns import let_follow
from simnet.traffic.schedule import Integers
from simnet.traffic.schedule_builder import ScheduleBuilder

__all__ = ["Fold", "double", "fold", "halve", "reversed_bits"]


class Fold(NamedTuple):
    """How N ranks become 2^q places with 2^q <= N < 2^(q+1): of the first 2(N - 2^q), each even one stands back.

    Attributes
    ----------
    rounds : q
    rank : the rank at each place; the first N - 2^q are those whose even neighbour, the rank before, stands back
    even : the ranks that stand back
    """

    rounds: int
    rank: Integers
    even: Integers


def fold(ranks: int) -> Fold:
    """Return how ranks are folded to a power of two; see `Fold`. The standard one of [1]_ and [2]_."""
    rounds = ranks.bit_length() - 1
    folded = ranks - (1 << rounds)
    place = np.arange(1 << rounds)
    return Fold(rounds, np.where(place < folded, 2 * place + 1, place + folded), 2 * np.arange(folded))


def reversed_bits(bits: int) -> Integers:
    """Return the numbers below 2^bits with the order of their bits reversed: 0, 4, 2, 6, 1, 5, 3, 7 for 3 bits."""
    found = np.zeros(1, dtype=np.int64)
    for _ in range(bits):
        found = np.concatenate([2 * found, 2 * found + 1])
    return found


def halve(build: ScheduleBuilder, rank: Integers, bounds: Integers, last: Sequence[Integers]) -> list[Integers]:
    """Sum and scatter: 2^q places start with all chunks, and each ends with the sum of its own.

    In round i = 1 .. q a place exchanges with the one whose number differs in the i-th bit from the top: each sends the
    chunks of all the places that the other stands for from now on, which is half of what both stood for [1]_.

    Parameters
    ----------
    build : ScheduleBuilder
    rank : array of int, shape (places,)
        The rank at each place.
    bounds : array of int, shape (places + 1,)
        Chunks ``bounds[i] .. bounds[i + 1] - 1`` are those of place i.
    last : sequence of array of int, shape (places,)
        Operations that each place ends first; -1 where there is none.

    Returns
    -------
    list of array of int, shape (places,)
        The operations with which each place ends.
    """
    place = np.arange(len(rank))
    for level in reversed(range(len(rank).bit_length() - 1)):
        partner = place ^ (1 << level)
        last = _exchange(build, rank, partner, bounds, partner >> level, level, last, reduce=1)
    return list(last)


def double(build: ScheduleBuilder, rank: Integers, bounds: Integers, last: Sequence[Integers]) -> list[Integers]:
    """Gather: 2^q places start with their own chunks and all end with all: `halve` backwards, copying.

    In round i = 1 .. q a place exchanges all it has with the one whose number differs in the i-th bit from below [2]_.

    Parameters
    ----------
    build, rank, bounds, last
        See `halve`.

    Returns
    -------
    list of array of int, shape (places,)
        The operations with which each place ends.
    """
    place = np.arange(len(rank))
    for level in range(len(rank).bit_length() - 1):
        last = _exchange(build, rank, place ^ (1 << level), bounds, place >> level, level, last, reduce=0)
    return list(last)


def _exchange(
    build: ScheduleBuilder,
    rank: Integers,
    partner: Integers,
    bounds: Integers,
    block: Integers,
    level: int,
    last: Sequence[Integers],
    reduce: int,
) -> list[Integers]:
    """Let every place send the chunks of a block of 2^level places to its partner, in a round of its own."""
    first = bounds[block << level]
    width = bounds[(block + 1) << level] - first
    send = build.send(rank, rank[partner], chunk=first, width=width, reduce=reduce)
    waited: list[Integers] = []
    for before in (*last, *(operation[partner] for operation in last)):
        # Partners that were partners in the round before have the same to wait for.
        if not any(np.array_equal(before, other) for other in waited):
            waited.append(before)
            let_follow(build, before, send)
    return [send, send[partner]]
