"""Steps are the longest chain of messages; offsets, repeats and calculations count as they wait."""

from __future__ import annotations

import pytest

from simnet.traffic import Partition, ScheduleBuilder, count, message_steps, ring_all_reduce


@pytest.fixture
def build():
    return ScheduleBuilder("made up", 3, Partition(6, 4, chunks=3))


def test_messages_that_do_not_wait_travel_in_one_step(build):
    build.send([0, 0, 1], [1, 2, 2])
    assert count(build.schedule()) == (1, 3, 24)


def test_firings_of_one_operation_follow_each_other(build):
    build.send(0, 1, repeat=5)
    assert message_steps(build.schedule()).step.tolist() == [0, 1, 2, 3, 4]


def test_a_calculation_joins_but_takes_no_step(build):
    first = build.send([0, 1], 2)
    joined = build.calc(2, 3.0)
    last = build.send(2, 0)
    build.depend(first, joined)
    build.depend(joined, last)
    assert count(build.schedule()).steps == 2


def test_chunks_in_a_pipeline_overlap(build):
    """K chunks over a chain of 2 links: K + 1 steps."""
    first, second = build.send(0, 1, repeat=8), build.send(1, 2, repeat=8)
    build.depend(first, second)
    assert count(build.schedule()).steps == 9


def test_a_phase_waits_for_all_firings(build):
    """An offset of 1 - repeat: 8 + 8 steps."""
    first, second = build.send(0, 1, repeat=8), build.send(1, 2, repeat=8)
    build.depend(first, second, offset=1 - 8)
    assert count(build.schedule()).steps == 16


def test_too_many_firings_to_write_out_are_refused():
    with pytest.raises(ValueError, match="firings"):
        count(ring_all_reduce(4096, 4096, 4))
