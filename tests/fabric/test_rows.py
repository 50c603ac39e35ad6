"""Rows of the kernel's tables: lent, given back, and more of them when they run out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.fabric.rows import Slots
from simnet.traffic import Partition, ScheduleBuilder, Until, ring_all_reduce

from .building import begin, builder, sends


@given(st.lists(st.integers(0, 4) | st.none(), max_size=40))
def test_rows_are_lent_to_one_at_a_time(steps):
    """A number takes as many rows, None gives the oldest back."""
    slots, lent = Slots(), []
    for length in steps:
        if length is not None:
            lent.append((slots.take(length), length))
        elif lent:
            slots.give_back(*lent.pop(0))
        rows = [row for start, length in lent for row in range(start, start + length)]
        assert len(rows) == len(set(rows))
        assert all(0 <= row < slots.used for row in rows)


def test_rows_of_the_same_length_are_used_again():
    slots = Slots()
    first = slots.take(3)
    slots.give_back(first, 3)
    assert slots.take(3) == first
    slots.reset()
    assert (slots.take(5), slots.used) == (0, 5)


def test_memory_does_not_grow_with_the_number_of_plays(make_fabric):
    """5 plays at a time beside one that never ends, 100 times: as many rows as after the first time."""
    fabric = make_fabric(8, latency_s=0.5)
    env = fabric.env
    begin(fabric, sends((0, 1, 1e6)), [6, 7])
    schedules = [ring_all_reduce(4, 4 * size, 1.0) for size in (1, 2, 3)]
    lengths = set()

    def actor(number):
        for _ in range(100):
            yield begin(fabric, schedules[number % 3], [0, 1, 2, 3]).complete

    for number in range(5):
        env.process(actor(number))
    for stop in range(100, 8000, 500):
        env.run(until=stop)
        lengths.add(tuple(fabric._tables.directory[:, 1].tolist()))
    assert len(lengths) == 1
    assert fabric.counts.messages > 5 * 50 * 24


def test_more_rows_than_there_are_at_first(make_fabric):
    """A play of 300 operations comes while another drains: both as if alone, as they share nothing.

    2 bytes at 1 byte/s; 300 sends of 1 byte out of one host at once.
    """
    fabric = make_fabric(302)
    env = fabric.env
    first = begin(fabric, sends((0, 1, 200.0)))
    env.run(until=50.0)
    many = begin(fabric, sends(*[(0, rank, 1.0) for rank in range(1, 300)]), range(2, 302))
    env.run()
    assert first.duration_s == pytest.approx(200.0, rel=1e-12)
    assert many.duration_s == pytest.approx(299.0, rel=1e-12)


@pytest.mark.parametrize("waits_for_delivery", [False, True])
def test_many_deliveries_under_way_at_once(make_fabric, waits_for_delivery):
    """5,000 messages of 0 bytes over a latency of 1 s: all are sent at 0 s and arrive at 1 s; beside them messages that
    wait for those, one by one: they are sent at 1 s and arrive at 2 s."""
    fabric = make_fabric(3, latency_s=1.0)
    build = ScheduleBuilder("empty", 3, Partition(0, 4.0))
    sent = build.send(0, 1, repeat=5000)
    if waits_for_delivery:
        build.depend(sent, build.send(1, 2, repeat=5000))
    play = begin(fabric, build.schedule())
    fabric.env.run()
    assert play.duration_s == (2.0 if waits_for_delivery else 1.0)
    assert fabric.counts.messages == (10_000 if waits_for_delivery else 5000)


def test_one_operation_that_lets_many_start(make_fabric):
    """A calculation of 1 s that 2,000 others on 4 ranks wait for, and one that waits for all of them: 3 s."""
    fabric = make_fabric(4)
    build = builder(4)
    first = build.calc(0, 1.0)
    middle = build.calc([rank % 4 for rank in range(2000)], 1.0)
    build.depend(first, middle)
    build.depend(middle, build.calc(1, 1.0))
    play = begin(fabric, build.schedule())
    fabric.env.run()
    assert play.duration_s == 3.0


def test_streams_of_a_rank_exclude_each_other_and_nothing_else(make_fabric):
    """1 s and 2 s on stream 0, 4 s on stream 1, 5 s on none, of rank 0; 6 s on stream 0 of rank 1; a send of 1 s.

    Rank 0: stream 0 is over at 3 s, stream 1 at 4 s, no stream at 5 s. Another play of 1 s on stream 0 of the same
    node waits until 3 s.
    """
    fabric = make_fabric(2)
    build = builder(2)
    build.calc([0, 0, 0, 0, 1], [1.0, 2.0, 4.0, 5.0, 6.0], stream=[0, 0, 1, -1, 0])
    build.send(0, 1, width=0, fixed_bytes=1.0)
    play = begin(fabric, build.schedule())
    build = builder(1)
    build.calc(0, 1.0, stream=0)
    after = begin(fabric, build.schedule())
    fabric.env.run()
    assert play.rank_duration_s.tolist() == [5.0, 6.0]
    assert after.duration_s == 4.0


def test_a_stream_that_is_new_while_tables_are_full(make_fabric):
    """20 plays, each with a stream of its own: 1 s each."""
    fabric = make_fabric(2)
    plays = []
    for stream in range(20):
        build = builder(2)
        calc = build.calc(0, 1.0, stream=stream)
        build.depend(calc, build.send(0, 1, width=0, fixed_bytes=0.0), until=Until.DRAINED)
        plays.append(begin(fabric, build.schedule()))
    fabric.env.run()
    assert [play.duration_s for play in plays] == [1.0] * 20


def test_rerouting_again_and_again_needs_no_more_rows(make_fabric):
    """One send of 1,000 s that takes another path every second, beside one that stays; then it is over, and whatever it
    used can be foreseen again."""
    fabric = make_fabric(6)
    env = fabric.env
    begin(fabric, sends((0, 1, 1e6)), [4, 5])
    play = begin(fabric, sends((0, 1, 1000.0)))
    lengths = set()
    for second in range(1, 900):
        env.run(until=float(second))
        fabric.reroute(play, 0, [second % 6, (second + 1) % 6], 0.0)
        lengths.add(len(fabric._tables.hops))
    env.run(until=2000.0)
    assert play.is_complete_on(1)
    assert len(lengths) == 1
    before = fabric.counts.simulated_messages
    for _ in range(2):
        again = begin(fabric, sends((0, 1, 1.0), repeat=100))
        env.run(again.complete)
    assert fabric.counts.simulated_messages - before < 100
