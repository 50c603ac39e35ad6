"""A partition cuts a buffer into whole elements; a schedule counts what its operations carry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.traffic.lattice import firings_below, floor_sum
from simnet.traffic.schedule import Partition, Schedule
from simnet.traffic.schedule_builder import ScheduleBuilder


def test_chunks_are_whole_elements_that_differ_by_at_most_one():
    """10 elements in 4 chunks: 3, 3, 2, 2."""
    partition = Partition(elements=10, element_bytes=4, chunks=4)
    assert partition.range_bytes(np.arange(4), 1).tolist() == [12, 12, 8, 8]
    assert partition.range_bytes(1, 3) == 28
    assert partition.range_bytes(0, 4) == partition.total_bytes == 40


def test_divisible_chunks_are_equal():
    partition = Partition(elements=10, element_bytes=4, chunks=4, divisible=True)
    assert partition.range_bytes(np.arange(4), 1).tolist() == [10] * 4


@pytest.mark.parametrize("wrong", [{"elements": -1}, {"element_bytes": 0}, {"chunks": 0}])
def test_impossible_partitions_are_refused(wrong):
    with pytest.raises(ValueError, match="partition"):
        Partition(**{"elements": 10, "element_bytes": 4, **wrong})


def test_bytes_of_an_empty_schedule_are_zero():
    schedule = ScheduleBuilder("nothing", 3, Partition(10, 4)).schedule()
    assert schedule.bytes_sent().tolist() == [0, 0, 0]
    assert schedule.messages() == 0


def test_a_calculation_sends_nothing():
    build = ScheduleBuilder("calculation", 2, Partition(10, 4))
    build.calc(1, 0.5)
    assert build.schedule().bytes_sent().tolist() == [0, 0]


def test_a_send_without_chunks_has_a_size_of_its_own():
    build = ScheduleBuilder("plain", 2, Partition(10, 4))
    build.send(0, 1, width=0, fixed_bytes=7.5, repeat=3)
    schedule = build.schedule()
    assert schedule.firing_bytes(0, 2) == 7.5
    assert schedule.bytes_sent().tolist() == [22.5, 0]


def summed_by_firing(schedule: Schedule) -> list[float]:
    """The sum of `firing_bytes` over all firings of each operation, one by one."""
    ops = schedule.operations
    return [sum(schedule.firing_bytes(i, k) for k in range(ops.repeat[i])) for i in range(len(ops))]


@given(
    elements=st.integers(0, 60),
    chunks=st.integers(1, 12),
    sends=st.lists(
        st.tuples(st.integers(1, 40), st.integers(0, 11), st.integers(-15, 15), st.integers(1, 4), st.integers(0, 3)),
        min_size=1,
        max_size=6,
    ),
)
def test_bytes_of_an_operation_are_the_sum_over_its_firings(elements, chunks, sends):
    """Whatever first chunk, step, width and offset: the closed form equals the sum one by one."""
    build = ScheduleBuilder("random", 2, Partition(elements, 4, chunks))
    for repeat, first, step, width, offset in sends:
        build.send(0, 1, repeat=repeat, chunk=first, step=step, width=width, offset=offset)
    schedule = build.schedule()
    assert schedule.operation_bytes().tolist() == summed_by_firing(schedule)


@given(
    elements=st.integers(0, 60),
    width=st.integers(1, 5),
    blocks=st.integers(1, 6),
    rest=st.integers(0, 3),
    sends=st.lists(
        st.tuples(st.integers(1, 40), st.integers(0, 8), st.integers(-8, 8), st.integers(0, 3)), min_size=1, max_size=6
    ),
)
def test_bytes_of_whole_blocks_are_the_sum_over_their_firings(elements, width, blocks, rest, sends):
    """Where chunks are cut finer than the firings need them, as in schedules that are parts of others."""
    build = ScheduleBuilder("blocks", 2, Partition(elements, 4, 3 + blocks * width + rest))
    for repeat, first, step, offset in sends:
        steps = {"chunk": first * width, "step": step * width, "modulus": blocks * width}
        build.send(0, 1, repeat=repeat, width=width, offset=offset, **steps)
    schedule = build.schedule()
    assert schedule.operation_bytes().tolist() == summed_by_firing(schedule)


@given(st.integers(0, 50), st.integers(1, 30), st.integers(0, 60), st.integers(0, 60))
def test_floor_sum_counts_lattice_points(count, divisor, slope, start):
    arrays = [np.array([value]) for value in (count, divisor, slope, start)]
    assert floor_sum(*arrays).tolist() == [sum((slope * k + start) // divisor for k in range(count))]


def test_counting_firings_takes_no_longer_for_a_million_of_them():
    """Step 3 in modulus 10 visits every place equally often: 300,000 of a million firings below 3."""
    columns = [np.array([value]) for value in (10**6, 4, 3, 10, 3)]
    assert firings_below(*columns).tolist() == [300_000]


def test_schedules_compare_by_identity():
    """So that they can be looked up; arrays have no single answer to `==`."""
    schedule = ScheduleBuilder("nothing", 1, Partition(1, 4)).schedule()
    assert schedule != ScheduleBuilder("nothing", 1, Partition(1, 4)).schedule()
    assert hash(schedule)
