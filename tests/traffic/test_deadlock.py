"""Firings that wait for each other in a circle are found, and nothing else is refused."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.errors import DeadlockError
from simnet.traffic import Partition, Schedule, ScheduleBuilder, check_deadlock, ring_all_reduce
from simnet.traffic.graph import components, waves


def schedule_of(repeats, dependencies) -> Schedule:
    """Operation i sends from rank i to the next, `repeats[i]` times; dependencies are (before, after, offset)."""
    ranks = len(repeats)
    build = ScheduleBuilder("made up", ranks, Partition(1, 4))
    build.send(np.arange(ranks), (np.arange(ranks) + 1) % ranks, repeat=repeats)
    for before, after, offset in dependencies:
        build.depend(before, after, offset=offset)
    return build.schedule()


def firings_in_the_end(repeats, dependencies) -> list[int]:
    """Fire whatever may fire, one by one and in no time, straight from the definition."""
    done = [0] * len(repeats)
    moved = True
    while moved:
        moved = False
        for op, k in enumerate(done):
            if k < repeats[op] and all(
                k - m < 0 or done[a] > min(k - m, repeats[a] - 1) for a, b, m in dependencies if b == op
            ):
                done[op] += 1
                moved = True
    return done


def is_refused(repeats, dependencies) -> bool:
    try:
        check_deadlock(schedule_of(repeats, dependencies))
    except DeadlockError:
        return True
    return False


@given(st.data())
@settings(max_examples=250)
def test_refused_if_and_only_if_some_firing_can_never_start(data):
    """On random schedules with offsets of any sign, repeats of any size and operations that wait for themselves."""
    repeats = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    index = st.integers(0, len(repeats) - 1)
    dependencies = data.draw(st.lists(st.tuples(index, index, st.integers(-4, 4)), max_size=8))
    live = firings_in_the_end(repeats, dependencies) == repeats
    assert is_refused(repeats, dependencies) == (not live)


@given(st.data())
def test_refused_the_same_with_offsets_that_are_not_negative(data):
    repeats = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    index = st.integers(0, len(repeats) - 1)
    dependencies = data.draw(st.lists(st.tuples(index, index, st.integers(0, 1)), max_size=10))
    live = firings_in_the_end(repeats, dependencies) == repeats
    assert is_refused(repeats, dependencies) == (not live)


def test_a_circle_of_offsets_zero_is_named():
    with pytest.raises(DeadlockError) as refused:
        check_deadlock(schedule_of([1, 1, 1], [(1, 0, 0), (2, 1, 0), (0, 2, 0)]))
    assert str(refused.value) == (
        "made up: these firings wait for each other, so none of them can ever start\n"
        "  firing 0 of send 0 -> 1 (operation 0) waits for firing 0 of send 1 -> 2 (operation 1)\n"
        "  firing 0 of send 1 -> 2 (operation 1) waits for firing 0 of send 2 -> 0 (operation 2)\n"
        "  firing 0 of send 2 -> 0 (operation 2) waits for firing 0 of send 0 -> 1 (operation 0)"
    )


def test_a_wait_for_a_later_firing_is_named():
    """Operation 1 waits for firing k + 2 of 0, which waits for firing k - 1 of 1: stuck from firing 1 of 0 on."""
    with pytest.raises(DeadlockError) as refused:
        check_deadlock(schedule_of([4, 4], [(0, 1, -2), (1, 0, 1)]))
    assert str(refused.value) == (
        "made up: these firings wait for each other, so none of them can ever start\n"
        "  firing 0 of send 1 -> 0 (operation 1) waits for firing 2 of send 0 -> 1 (operation 0), "
        "whose firing 1 comes first\n"
        "  firing 1 of send 0 -> 1 (operation 0) waits for firing 0 of send 1 -> 0 (operation 1)"
    )


def test_an_operation_that_waits_for_itself_is_named():
    with pytest.raises(
        DeadlockError, match=r"firing 0 of send 0 -> 0 \(operation 0\) waits for firing 0 of send 0 -> 0"
    ):
        check_deadlock(schedule_of([3], [(0, 0, 0)]))


def test_the_shortest_of_nearby_circles_is_shown():
    """A circle of 30 with a short cut to a circle of 2."""
    around = [((i + 1) % 30, i, 0) for i in range(30)]
    with pytest.raises(DeadlockError) as refused:
        check_deadlock(schedule_of([1] * 30, [*around, (7, 8, 0)]))
    assert str(refused.value).count("waits for") == 2


def test_a_long_circle_is_cut_short():
    with pytest.raises(DeadlockError, match="and 992 more, back to the first"):
        check_deadlock(schedule_of([1] * 1000, [((i + 1) % 1000, i, 0) for i in range(1000)]))


def test_phases_that_wait_for_all_firings_are_live():
    """Two rings, the second after the whole of the first: offsets of 1 - repeat between them, on no circle."""
    ranks = 4096
    ring = ring_all_reduce(ranks, ranks, 4)
    build = ScheduleBuilder("two rings", ranks, ring.partition)
    rank, repeat = np.arange(ranks), 2 * (ranks - 1)
    first, second = (build.send(rank, (rank + 1) % ranks, repeat=repeat, chunk=rank, step=-1) for _ in range(2))
    for ring_sends in (first, second):
        build.depend(np.roll(ring_sends, 1), ring_sends, offset=1)
    build.depend(np.roll(first, 1), second, offset=1 - repeat)
    started = time.perf_counter()
    check_deadlock(build.schedule())
    assert time.perf_counter() - started < 1.0


def test_a_ring_of_65536_ranks_is_checked_at_once():
    schedule = ring_all_reduce(65_536, 65_536, 4)
    started = time.perf_counter()
    check_deadlock(schedule)
    assert time.perf_counter() - started < 0.2


def test_a_long_chain_is_checked_at_once():
    """100,000 operations, each after the one before: as many waves as operations."""
    count = 100_000
    build = ScheduleBuilder("chain", 2, Partition(1, 4))
    send = build.send(np.zeros(count, dtype=int), 1)
    build.depend(send[:-1], send[1:])
    started = time.perf_counter()
    check_deadlock(build.schedule())
    assert time.perf_counter() - started < 2.0


def test_waves_are_longest_paths():
    """0 -> 1 -> 2 and 0 -> 2; node 3 waits for itself and 4 for it."""
    found, left = waves(5, np.array([0, 1, 0, 3, 3]), np.array([1, 2, 2, 3, 4]))
    assert [wave.tolist() for wave in found] == [[0], [1], [2]]
    assert left.tolist() == [False, False, False, True, True]


def test_components_are_what_can_reach_each_other():
    """0 <-> 1 -> 2 <-> 3, 4 alone."""
    label = components(5, np.array([0, 1, 1, 2, 3]), np.array([1, 0, 2, 3, 2]))
    assert label[0] == label[1] != label[2] == label[3]
    assert label[4] not in label[:4]
