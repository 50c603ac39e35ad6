"""Halving and doubling, with the fold: steps, messages and bytes against closed forms."""

from __future__ import annotations

from math import floor, log2

import numpy as np
import pytest

from simnet.traffic import (
    all_reduce_goal,
    count,
    doubling_all_gather,
    goal_faults,
    halving_doubling_all_reduce,
    halving_reduce_scatter,
    message_steps,
    prove,
)
from simnet.traffic.halving import fold, reversed_bits

from .spoiling import sends, with_value

RANKS = [2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16]
ELEMENTS, ELEMENT_BYTES = 5040, 4  # a multiple of all of them, and of the powers of two below
S = ELEMENTS * ELEMENT_BYTES


@pytest.mark.parametrize("ranks", [1, *RANKS, 17, 31, 32])
def test_each_chunk_is_summed_once_and_ends_everywhere(ranks):
    schedule = halving_doubling_all_reduce(ranks, 29, 4)
    prove(schedule, all_reduce_goal(schedule))


@pytest.mark.parametrize("ranks", RANKS)
def test_all_reduce_takes_two_logarithms_of_steps_and_sends_the_least_possible(ranks):
    """With q = floor(log2 N), f = N - 2^q: 2 q steps, and 2 for the fold; 2 q 2^q + 2 f messages.

    From each of 2^q ranks 2 S (2^q - 1)/2^q, and S more from f of them; from f others S. In all that is 2 (N - 1) S.
    """
    q = floor(log2(ranks))
    f = ranks - 2**q
    schedule = halving_doubling_all_reduce(ranks, ELEMENTS, ELEMENT_BYTES)
    assert count(schedule)[:2] == (2 * q + 2 * (f > 0), 2 * q * 2**q + 2 * f)
    exchanged = 2 * S * (2**q - 1) / 2**q
    expected = [S if r % 2 == 0 else exchanged + S for r in range(2 * f)] + [exchanged] * (ranks - 2 * f)
    assert schedule.bytes_sent() == pytest.approx(expected, rel=1e-12)
    assert schedule.bytes_sent().sum() == pytest.approx(2 * (ranks - 1) * S, rel=1e-12)


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_the_largest_messages_go_to_the_nearest_ranks(ranks):
    """In step i of the first half, S/2^(i+1) to rank r xor 2^i (Rabenseifner 2004); then backwards."""
    schedule = halving_doubling_all_reduce(ranks, ELEMENTS, ELEMENT_BYTES)
    ops, last = schedule.operations, count(schedule).steps - 1
    for operation, firing, step in zip(*(column.tolist() for column in message_steps(schedule)), strict=True):
        i = min(step, last - step)
        assert ops.target[operation] == ops.source[operation] ^ (1 << i)
        assert schedule.firing_bytes(operation, firing) == pytest.approx(S / 2 ** (i + 1), rel=1e-12)


def half_bytes(ranks: int) -> tuple[list[float], list[float]]:
    """What each rank sends in reduce-scatter and all-gather, in chunks of S/N, round by round from the definition.

    Place j stands for the chunks of its ranks. In the round of distance 2^i it sends those of its partner's block of
    2^i places, or, gathering, those of its own. Of the first f pairs the even rank gives all and gets its chunk, or the
    other way round.
    """
    q = floor(log2(ranks))
    f = ranks - 2**q
    chunks = [2 if place < f else 1 for place in range(2**q)]
    scatter, gather = [0.0] * ranks, [0.0] * ranks
    for place in range(2**q):
        rank = 2 * place + 1 if place < f else place + f
        for i in range(q):
            own = place >> i
            gather[rank] += sum(chunks[own << i : (own + 1) << i])
            scatter[rank] += sum(chunks[(own ^ 1) << i : ((own ^ 1) + 1) << i])
        if place < f:
            scatter[rank - 1], gather[rank - 1] = ranks, 1
            scatter[rank] += 1
            gather[rank] += ranks
    return scatter, gather


@pytest.mark.parametrize("ranks", RANKS)
def test_halves_take_a_logarithm_of_steps(ranks):
    """q steps and 2 for the fold, q 2^q + 2 f messages; (N - 1)/N S from each rank for powers of two."""
    q = floor(log2(ranks))
    f = ranks - 2**q
    for make, expected in zip((halving_reduce_scatter, doubling_all_gather), half_bytes(ranks), strict=True):
        schedule = make(ranks, ELEMENTS, ELEMENT_BYTES)
        assert count(schedule)[:2] == (q + 2 * (f > 0), q * 2**q + 2 * f)
        assert schedule.bytes_sent() == pytest.approx(np.array(expected) * S / ranks, rel=1e-12)
        if not f:
            assert schedule.bytes_sent() == pytest.approx([(ranks - 1) / ranks * S] * ranks, rel=1e-12)


@pytest.mark.parametrize("ranks", [*RANKS, 27, 100])
@pytest.mark.parametrize("make", [halving_doubling_all_reduce, halving_reduce_scatter, doubling_all_gather])
def test_rounds_in_lockstep_share_no_link(make, ranks):
    """In every step a rank sends at most one message and receives at most one."""
    schedule = make(ranks, ELEMENTS, ELEMENT_BYTES)
    steps = message_steps(schedule)
    for end in (schedule.operations.source, schedule.operations.target):
        assert len(np.unique(np.stack([end[steps.operation], steps.step]), axis=1).T) == schedule.messages()


@pytest.mark.parametrize("make", [halving_doubling_all_reduce, halving_reduce_scatter, doubling_all_gather])
def test_nothing_is_waited_for_twice(make):
    for ranks in RANKS:
        deps = make(ranks, 29, 4).dependencies
        assert len(np.unique(np.stack([deps.before, deps.after]), axis=1).T) == len(deps)


@pytest.mark.parametrize("ranks", [3, 4, 6])
def test_a_half_of_the_wrong_width_is_caught(ranks):
    schedule = halving_doubling_all_reduce(ranks, 29, 4)
    for operation in sends(schedule):
        width = schedule.operations.chunk_width[operation]
        narrower = with_value(schedule, "chunk_width", operation, width - 1)
        assert goal_faults(narrower, all_reduce_goal(schedule), executions=0)


def test_bits_in_reverse_order():
    assert reversed_bits(0).tolist() == [0]
    assert reversed_bits(3).tolist() == [0, 4, 2, 6, 1, 5, 3, 7]


def test_seven_ranks_fold_to_four_places():
    """Ranks 0, 2 and 4 stand back."""
    rounds, rank, even = fold(7)
    assert (rounds, rank.tolist(), even.tolist()) == (2, [1, 3, 5, 6], [0, 2, 4])
