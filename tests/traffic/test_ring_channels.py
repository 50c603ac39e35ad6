"""Rings side by side, and chunks in pieces: which way they go, and steps, messages and bytes against closed forms."""

from __future__ import annotations

from math import gcd

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.traffic import COLLECTIVES, all_reduce_goal, count, goal_faults, prove, ring_all_reduce

from .spoiling import without_dependency

RANKS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16]


@pytest.mark.parametrize("order", ["neighbours", "strides"])
@pytest.mark.parametrize(("channels", "pipeline"), [(1, 2), (1, 3), (2, 1), (3, 2), (5, 1)])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 6, 8, 9])
def test_every_piece_of_every_channel_ends_summed_everywhere(ranks, channels, pipeline, order):
    schedule = ring_all_reduce(ranks, 1000, 4, channels=channels, pipeline=pipeline, order=order)
    if schedule.messages() <= 1500:
        prove(schedule, all_reduce_goal(schedule))


@given(
    ranks=st.integers(2, 12),
    channels=st.integers(1, 6),
    pipeline=st.integers(1, 6),
    elements=st.integers(0, 500),
    order=st.sampled_from(["neighbours", "strides"]),
)
@settings(max_examples=60, deadline=None)
def test_pieces_are_more_messages_of_the_same_bytes(ranks, channels, pipeline, elements, order):
    """2 (N - 1) m steps, 2 N (N - 1) c m messages by c N operations, 2 (N - 1) S bytes in all."""
    options = {"channels": channels, "pipeline": pipeline, "order": order}
    schedule = ring_all_reduce(ranks, elements, 4, **options)
    steps = 2 * (ranks - 1) * pipeline
    assert count(schedule) == (steps, ranks * channels * steps, pytest.approx(2 * (ranks - 1) * elements * 4))
    assert len(schedule.operations) == len(schedule.dependencies) == channels * ranks
    assert COLLECTIVES["all_reduce"].algorithms["ring"].steps(ranks, **options) == steps


@pytest.mark.parametrize("ranks", RANKS[1:])
def test_every_rank_sends_the_least_possible(ranks):
    """2 (N - 1)/N S with equal pieces."""
    schedule = ring_all_reduce(ranks, 1000, 4, divisible=True, channels=3, pipeline=2)
    assert schedule.bytes_sent() == pytest.approx([2 * (ranks - 1) / ranks * 4000] * ranks, rel=1e-12)


@pytest.mark.parametrize("ranks", RANKS[1:])
def test_channels_go_forward_and_backward_by_turns(ranks):
    ops = ring_all_reduce(ranks, 1000, 4, channels=4).operations
    stride = ((ops.target - ops.source) % ranks).reshape(4, ranks)
    assert stride.tolist() == [[1] * ranks, [ranks - 1] * ranks] * 2
    assert ops.source.reshape(4, ranks)[:, 0].tolist() == [0] * 4


@pytest.mark.parametrize("ranks", [3, 4, 5, 6, 7, 8, 9, 16])
def test_strides_use_each_pair_of_ranks_at_most_once_as_long_as_there_are_others(ranks):
    """There are as many rings of one stride as numbers below N without a divisor in common with it; N - 1 for primes,
    which then use all links of a full mesh."""
    rings = sum(gcd(stride, ranks) == 1 for stride in range(1, ranks))
    ops = ring_all_reduce(ranks, 10_000, 4, channels=rings, order="strides").operations
    pairs = np.stack([ops.source, ops.target])
    assert len(np.unique(pairs, axis=1).T) == rings * ranks


@pytest.mark.parametrize("ranks", [3, 5])
def test_any_dependency_dropped_is_caught(ranks):
    schedule = ring_all_reduce(ranks, 1000, 4, channels=2, pipeline=3)
    for row in range(len(schedule.dependencies)):
        assert goal_faults(without_dependency(schedule, row), all_reduce_goal(schedule), executions=0)


def test_impossible_options_are_refused():
    with pytest.raises(ValueError, match="the channels of a ring all-reduce are at least 1: 0"):
        ring_all_reduce(4, 10, 4, channels=0)
    with pytest.raises(ValueError, match="the pieces of a chunk of a ring all-reduce are at least 1: -1"):
        ring_all_reduce(4, 10, 4, pipeline=-1)
    with pytest.raises(ValueError, match="'neighbours' or 'strides': 'zigzag'"):
        ring_all_reduce(4, 10, 4, order="zigzag")
