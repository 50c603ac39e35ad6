"""Buckets: closed as soon as they hold enough, as PyTorch's DistributedDataParallel does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.training.buckets import make_buckets


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
    assert [bucket.elements for bucket in make_buckets(elements, 4.0, bucket_bytes)] == expected


@given(st.lists(st.integers(1, 1000), max_size=30), st.sampled_from([2.0, 4.0]), st.floats(0, 10_000))
def test_every_tensor_is_in_one_bucket_and_only_the_last_may_hold_less(elements, element_bytes, bucket_bytes):
    buckets = make_buckets(elements, element_bytes, bucket_bytes)
    tensors = [t for bucket in buckets for t in range(bucket.first_tensor, bucket.last_tensor + 1)]
    assert tensors == list(range(len(elements)))
    assert [bucket.index for bucket in buckets] == list(range(len(buckets)))
    for bucket in buckets:
        own = elements[bucket.first_tensor : bucket.first_tensor + bucket.tensors]
        assert bucket.elements == sum(own)
        # It was not closed before it held enough, and was at once when it did.
        assert sum(own[:-1]) * element_bytes < bucket_bytes or len(own) == 1
    assert all(bucket.elements * element_bytes >= bucket_bytes for bucket in buckets[:-1])
