"""Buckets: closed as soon as they hold enough, merged so that all is exchanged soonest, and cut into pieces."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.training.communication.buckets import cut_buckets, make_buckets, merge_buckets
from simnet.workload import GradientTensor


def tensors_of(elements):
    """One of each size, of one layer each, from the last layer on."""
    return [GradientTensor(f"t{i}", size, len(elements) - 1 - i) for i, size in enumerate(elements)]


@pytest.mark.parametrize(
    ("elements", "bucket_bytes", "expected"),
    [
        ([10, 10, 10], 40.0, [10, 10, 10]),  # each is exactly enough
        ([10, 10, 10], 41.0, [20, 10]),  # one is not, two are; the rest is a bucket too
        ([5, 100, 5], 40.0, [105, 5]),  # tensors are not cut
        ([100], 1.0, [100]),
        ([1, 2, 3], 1e9, [6]),
        ([1, 2, 3], 0.0, [1, 2, 3]),
        ([], 40.0, []),
    ],
)
def test_rule_by_hand(elements, bucket_bytes, expected):
    """4 bytes an element."""
    assert [bucket.elements for bucket in make_buckets(tensors_of(elements), 4.0, bucket_bytes)] == expected


@given(st.lists(st.integers(1, 1000), max_size=30), st.sampled_from([2.0, 4.0]), st.floats(0, 10_000))
def test_every_tensor_is_in_one_bucket_and_only_the_last_may_hold_less(elements, element_bytes, bucket_bytes):
    buckets = make_buckets(tensors_of(elements), element_bytes, bucket_bytes)
    tensors = [t for bucket in buckets for t in range(bucket.first_tensor, bucket.last_tensor + 1)]
    assert tensors == list(range(len(elements)))
    assert [bucket.index for bucket in buckets] == list(range(len(buckets)))
    for bucket in buckets:
        own = elements[bucket.first_tensor : bucket.first_tensor + bucket.tensors]
        assert bucket.elements == sum(own)
        # It was not closed before it held enough, and was at once when it did.
        assert sum(own[:-1]) * element_bytes < bucket_bytes or len(own) == 1
    assert all(bucket.elements * element_bytes >= bucket_bytes for bucket in buckets[:-1])


def over_s(sizes, ready_s, startup_s, element_s):
    """When the last of some exchanges is over, one after the other, each when its last tensor is ready."""
    end_s, last = 0.0, 0
    for size in sizes:
        last += size[1]
        end_s = max(end_s, ready_s[last - 1]) + startup_s + size[0] * element_s
    return end_s


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=8),
    st.data(),
    st.integers(0, 40).map(lambda n: n / 4),
    st.sampled_from([0.125, 0.5, 1.0]),
)
def test_merged_buckets_are_over_as_soon_as_the_best_of_all_cuts(elements, data, startup_s, element_s):
    """All 2^(n - 1) ways to cut n tensors, each with exchanges of startup + size x time an element."""
    steps = data.draw(st.lists(st.integers(0, 20), min_size=len(elements), max_size=len(elements)))
    ready_s = np.cumsum(steps).astype(float)
    merged = merge_buckets(tensors_of(elements), ready_s, lambda n: startup_s + n * element_s)
    found_s = over_s([(bucket.elements, bucket.tensors) for bucket in merged], ready_s, startup_s, element_s)
    best_s = math.inf
    for cuts in itertools.product([False, True], repeat=len(elements) - 1):
        ends = [i + 1 for i, cut in enumerate(cuts) if cut] + [len(elements)]
        sizes = [(sum(elements[a:b]), b - a) for a, b in itertools.pairwise([0, *ends])]
        best_s = min(best_s, over_s(sizes, ready_s, startup_s, element_s))
    assert found_s == best_s
    assert [tensor for bucket in merged for tensor in range(bucket.first_tensor, bucket.last_tensor + 1)] == list(
        range(len(elements))
    )


@pytest.mark.parametrize(
    ("startup_s", "expected"),
    [
        (0.0, [1, 1, 1, 1]),  # nothing is saved by waiting
        (1.5, [1, 3]),  # until 3.5 s, and from 4 to 8.5 s; in halves until 5.5 and 9 s, together from 4 to 9.5 s
        (100.0, [4]),
    ],
)
def test_what_is_saved_against_what_is_waited_for(startup_s, expected):
    """Four tensors, one a second, of 1 s each; merging two saves a start-up and waits for the second."""
    merged = merge_buckets(tensors_of([10] * 4), [1.0, 2.0, 3.0, 4.0], lambda n: startup_s + 0.1 * n)
    assert [bucket.tensors for bucket in merged] == expected


def test_nothing_to_merge():
    assert merge_buckets([], [], lambda n: n) == ()


@given(st.lists(st.integers(1, 1000), max_size=20), st.floats(1, 2000), st.sampled_from([2.0, 4.0]))
def test_pieces_are_as_large_as_allowed_but_for_the_last(elements, piece_bytes, element_bytes):
    """Piece: floor(limit / element), at least one element; the last has the rest; nothing is lost."""
    buckets = make_buckets(tensors_of(elements), element_bytes, 0.0)
    pieces = cut_buckets(buckets, element_bytes, piece_bytes)
    most = max(int(piece_bytes // element_bytes), 1)
    for bucket in buckets:
        own = [piece.elements for piece in pieces if piece.index == bucket.index]
        assert sum(own) == bucket.elements
        assert own[:-1] == [most] * (len(own) - 1)
        assert 1 <= own[-1] <= most


def test_whole_buckets_are_not_cut():
    buckets = make_buckets(tensors_of([5, 7]), 4.0, 0.0)
    assert cut_buckets(buckets, 4.0, math.inf) == buckets


def test_the_first_layer_of_a_bucket():
    """Tensors come from the last layer on: of three, with the last two together, layer 0 is in the second bucket."""
    buckets = make_buckets(tensors_of([40, 10, 30]), 1.0, 40.0)
    assert [(bucket.tensors, bucket.first_layer) for bucket in buckets] == [(1, 2), (2, 0)]
