"""Random numbers by name."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simnet.engine.random_streams import random_stream

NAMES = st.lists(st.text("abc", min_size=1) | st.integers(0, 5), min_size=1, max_size=3)


@given(st.integers(0, 2**63), NAMES)
def test_the_same_name_gives_the_same_numbers(seed, name):
    assert random_stream(seed, *name).random(4).tolist() == random_stream(seed, *name).random(4).tolist()


def test_the_numbers_never_change():
    """A result is to be had again with a later version: these numbers are part of what a seed means."""
    assert random_stream(7, "jitter", "job", 3).integers(0, 2**32, 3).tolist() == [1082315453, 1141688425, 812943919]


@given(st.integers(0, 100), st.integers(0, 100), NAMES, NAMES)
def test_another_name_or_seed_gives_other_numbers(seed, other_seed, name, other_name):
    """Names are told apart as text; a number and its digits are the same."""
    same = seed == other_seed and [str(part) for part in name] == [str(part) for part in other_name]
    one, other = random_stream(seed, *name).random(4), random_stream(other_seed, *other_name).random(4)
    assert (one.tolist() == other.tolist()) == same


def test_streams_are_independent():
    """How much one is used does not touch another; two of them are not correlated: |r| < 5 / sqrt(n)."""
    first, second = random_stream(1, "a"), random_stream(1, "b")
    first.random(1000)
    assert second.random() == random_stream(1, "b").random()
    count = 10_000
    names = [random_stream(1, "jitter", "job", iteration).standard_normal(count) for iteration in range(4)]
    correlation = np.corrcoef(names) - np.eye(4)
    assert np.abs(correlation).max() < 5 / np.sqrt(count)
