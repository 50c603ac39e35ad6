"""Streams: the smallest priority first, among equals the first that came, and never more than the limit at once."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.training.communication.streams import Streams


@given(st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=40), st.integers(1, 4))
def test_what_begins_is_always_the_first_by_priority_and_arrival(events, limit):
    """A number: something with that priority comes; None: something is over. Against a plain list."""
    streams, begun, waiting, under_way = Streams(limit), [], [], 0
    expected = []
    for number, event in enumerate(events):
        if event is not None:
            waiting.append((event, number))
            streams.enter(event, lambda number=number: begun.append(number))
        elif under_way:
            under_way -= 1
            streams.leave()
        while under_way < limit and waiting:
            first = min(waiting)
            waiting.remove(first)
            expected.append(first[1])
            under_way += 1
        assert begun == expected


@pytest.mark.parametrize("limit", [1, 2, math.inf])
def test_without_a_limit_everything_begins_at_once(limit):
    streams, begun = Streams(limit), []
    for number in range(5):
        streams.enter(0, lambda number=number: begun.append(number))
    assert len(begun) == min(limit, 5)


def test_what_is_larger_than_what_is_left_begins_as_long_as_anything_is():
    """Of 5, two of 4 begin, at 0 and at 4 under way; at 8 none does, and at 4 again the third."""
    streams, begun = Streams(5), []
    for number in range(4):
        streams.enter(0, lambda number=number: begun.append(number), 4)
    assert begun == [0, 1]
    streams.leave(4)
    assert begun == [0, 1, 2]


def test_what_begins_may_let_others_come():
    """Something that is over at once makes room within the call that began it."""
    streams, begun = Streams(1), []

    def at_once(number):
        begun.append(number)
        if number < 3:
            streams.enter(0, lambda: at_once(number + 1))
        streams.leave()

    streams.enter(0, lambda: at_once(0))
    assert begun == [0, 1, 2, 3]
