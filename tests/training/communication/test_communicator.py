"""Which exchange goes next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import simpy

from simnet.engine.recorder import Recorder
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.protocols import FlowProtocol
from simnet.topology import star
from simnet.traffic import ring_all_reduce
from simnet.training.communication.communicator import Communicator, Exchange, Fusion
from simnet.training.records import CollectiveRow, Sent


@pytest.fixture
def make_communicator():
    """A communicator of two workers whose exchanges of one bucket each take 1 s."""

    def make(priorities, **options):
        env, recorder = simpy.Environment(), Recorder()
        topology = star(hosts=2, bandwidth_bytes_per_s=1.0, latency_s=0.0)
        fabric = FluidFabric(env, Network(topology, FlowProtocol()))
        # A ring of two: two steps of half the buffer.
        placement = fabric.place(ring_all_reduce(2, 4, 0.25), topology.compiled.rank_nodes)
        exchanges = [
            Exchange("ring", 1.0, lambda _: placement, priority, bucket) for bucket, priority in enumerate(priorities)
        ]
        return (
            env,
            recorder,
            Communicator(env, fabric, recorder, "job", np.arange(2), exchanges, Sent(2, lambda _: True), **options),
        )

    return make


def announce_at(env, communicator, *announcements):
    """(time, iteration, bucket) of one worker."""

    def worker():
        for time, iteration, bucket in announcements:
            yield env.timeout(time - env.now)
            communicator.announce(iteration, bucket, 0)

    env.process(worker())


def order(recorder) -> list[tuple[int, int, float]]:
    return [(row.iteration, row.bucket, row.start_s) for row in recorder.rows(CollectiveRow)]


def test_an_exchange_begins_when_all_have_announced_it(make_communicator):
    """Announced at 1 and at 3 s: from 3 to 4 s."""
    env, recorder, communicator = make_communicator([0])
    announce_at(env, communicator, (1.0, 0, 0))
    announce_at(env, communicator, (3.0, 0, 0))
    env.run()
    (row,) = recorder.rows(CollectiveRow)
    assert (row.announced_s, row.start_s, row.duration_s) == (3.0, 3.0, 1.0)


def test_one_at_a_time_in_the_order_of_announcement(make_communicator):
    """Bucket 1 is announced by all before bucket 0; both, and bucket 2, queue behind the first that started."""
    env, recorder, communicator = make_communicator([0, 0, 0])
    announce_at(env, communicator, (0.0, 0, 2), (0.1, 0, 1), (0.2, 0, 0))
    announce_at(env, communicator, (0.0, 0, 2), (0.3, 0, 1), (0.3, 0, 0))
    env.run()
    assert order(recorder) == [(0, 2, 0.0), (0, 1, 1.0), (0, 0, 2.0)]


def test_the_smaller_priority_goes_first_but_interrupts_nothing(make_communicator):
    env, recorder, communicator = make_communicator([2, 1, 0])
    for _ in range(2):
        announce_at(env, communicator, (0.0, 0, 0), (0.1, 0, 1), (0.2, 0, 2))
    env.run()
    assert order(recorder) == [(0, 0, 0.0), (0, 2, 1.0), (0, 1, 2.0)]


def test_the_stream_is_busy_while_something_is_under_way(make_communicator):
    """From 1 to 2 and from 5 to 7 s."""
    env, _, communicator = make_communicator([0, 0])
    for _ in range(2):
        announce_at(env, communicator, (1.0, 0, 0), (5.0, 0, 1), (5.0, 1, 0))
    busy = {}
    for until in (0.5, 1.5, 3.0, 5.5, 6.5, 9.0):
        env.run(until=until)
        busy[until] = communicator.busy_s()
    assert busy == pytest.approx({0.5: 0.0, 1.5: 0.5, 3.0: 1.0, 5.5: 1.5, 6.5: 2.5, 9.0: 3.0})


@pytest.mark.parametrize("first", [0, 1])
def test_what_ends_as_all_is_abandoned_makes_no_more_room(make_communicator, first):
    """Two at a time take 2 s. All is abandoned as the first of two ends, which the other does at the same instant: of
    six that are announced then, two begin every 2 s."""
    env, recorder, communicator = make_communicator([0] * 6, streams=2, credit_bytes=2.0)
    for _ in range(2):
        announce_at(env, communicator, (0.0, 0, 0), (0.0, 0, 1))

    def begin_anew(_):
        communicator.abandon()
        communicator.resume()
        for bucket in range(6):
            for member in range(2):
                communicator.announce(1, bucket, member)

    env.run(until=0.5)
    list(communicator._playing)[first].complete.callbacks.append(begin_anew)
    env.run()
    anew = [(bucket, start_s) for iteration, bucket, start_s in order(recorder) if iteration == 1]
    assert anew == [(bucket, 2.0 + 2.0 * (bucket // 2)) for bucket in range(6)]


@pytest.mark.parametrize("asked_at", [0.0, 1.0, 1.5, 2.0, 7.0])
def test_waiting_before_during_at_and_after_the_end(make_communicator, asked_at):
    """An exchange from 1 to 2 s; who asks at any time goes on at 2 s at the earliest."""
    env, _, communicator = make_communicator([0])
    for _ in range(2):
        announce_at(env, communicator, (1.0, 0, 0))

    def worker(rank):
        yield env.timeout(asked_at)
        yield from communicator.finish(0, 0, rank)
        return env.now

    workers = [env.process(worker(rank)) for rank in range(2)]
    env.run()
    assert [worker.value for worker in workers] == [max(asked_at, 2.0)] * 2


def test_nothing_is_kept_of_what_everybody_has_seen_through(make_communicator):
    env, recorder, communicator = make_communicator([0])

    def worker(rank):
        for iteration in range(50):
            communicator.announce(iteration, 0, rank)
            yield from communicator.finish(iteration, 0, rank)

    for rank in range(2):
        env.process(worker(rank))
    env.run()
    assert len(recorder.rows(CollectiveRow)) == 50
    assert communicator._parts == {}
    assert env.now == pytest.approx(50.0, rel=1e-12)


def test_negotiation_delays_the_start_but_not_the_announcement(make_communicator):
    """Announced by all at 3 s; all know of it at 3.25 s."""
    env, recorder, communicator = make_communicator([0], negotiation_s=0.25)
    announce_at(env, communicator, (1.0, 0, 0))
    announce_at(env, communicator, (3.0, 0, 0))
    env.run()
    (row,) = recorder.rows(CollectiveRow)
    assert (row.announced_s, row.start_s) == (3.0, 3.25)


def test_negotiation_goes_on_beside_exchanges(make_communicator):
    """Both are announced at 0 s, so that the second begins when the first is over, at 1.25 s."""
    env, recorder, communicator = make_communicator([0, 0], negotiation_s=0.25)
    for _ in range(2):
        announce_at(env, communicator, (0.0, 0, 0), (0.0, 0, 1))
    env.run()
    assert order(recorder) == [(0, 0, 0.25), (0, 1, 1.25)]


@pytest.mark.parametrize(("credit_bytes", "starts"), [(1.0, [0.25, 1.5, 2.75]), (2.0, [0.25, 1.25, 2.25])])
def test_what_sets_out_is_negotiated_when_less_than_the_credit_is_on_its_way(make_communicator, credit_bytes, starts):
    """Three of 1 byte, all ready at 0 s: with a credit of one each is negotiated when the one before is over, so that
    k begins at 0.25 + 1.25 k; with two, beside it."""
    env, recorder, communicator = make_communicator([0] * 3, negotiation_s=0.25, credit_bytes=credit_bytes)
    for _ in range(2):
        announce_at(env, communicator, *((0.0, 0, bucket) for bucket in range(3)))
    env.run()
    assert [start for *_, start in order(recorder)] == starts


def test_what_waits_for_credit_is_passed_by_what_is_needed_sooner(make_communicator):
    """The first is on its way when the others are ready, the more urgent last."""
    env, recorder, communicator = make_communicator([2, 1, 0], credit_bytes=1.0, streams=3)
    for _ in range(2):
        announce_at(env, communicator, (0.0, 0, 0), (0.25, 0, 1), (0.5, 0, 2))
    env.run()
    assert order(recorder) == [(0, 0, 0.0), (0, 2, 1.0), (0, 1, 2.0)]


@pytest.mark.parametrize(("credit_bytes", "buckets"), [(1.0, [0, 2, 1]), (2.0, [0, 1, 2]), (3.0, [0, 2, 1])])
def test_what_has_set_out_is_passed_by_what_has_set_out_too(make_communicator, credit_bytes, buckets):
    """Of three of 1 byte, the more urgent the later, the first is under way; the last passes the second where both
    wait for credit, or where both have it."""
    env, recorder, communicator = make_communicator([2, 1, 0], credit_bytes=credit_bytes)
    for _ in range(2):
        announce_at(env, communicator, (0.0, 0, 0), (0.25, 0, 1), (0.5, 0, 2))
    env.run()
    assert [bucket for _, bucket, _ in order(recorder)] == buckets


@pytest.fixture
def make_cycle(make_communicator):
    """A communicator with a cycle of 1 s, whose buckets of 1 byte travel together up to some size."""

    def make(priorities, buffer_bytes, **options):
        env, recorder, communicator = make_communicator(priorities, **options)

        def together(parts):
            one = communicator.exchanges[parts[0]]
            return Exchange("ring", float(len(parts)), one.placement, one.priority, one.bucket)

        communicator.fusion = Fusion(1.0, buffer_bytes, together)
        return env, recorder, communicator

    return make


def fused(recorder) -> list[tuple[int, float, float]]:
    """(first bucket, size, start)."""
    return [(row.bucket, row.size_bytes, row.start_s) for row in recorder.rows(CollectiveRow)]


def test_what_is_ready_when_a_cycle_ends_travels_together(make_cycle):
    """Ready at 0.1 and 0.4 s: together at 1 s, until 2 s; at 1.2 s and just at 2 s: together at 2 s."""
    env, recorder, communicator = make_cycle([0] * 4, 100.0)
    for _ in range(2):
        announce_at(env, communicator, (0.1, 0, 0), (0.4, 0, 1), (1.2, 0, 2), (2.0, 0, 3))
    env.run()
    assert fused(recorder) == [(0, 2.0, 1.0), (2, 2.0, 2.0)]


@pytest.mark.parametrize(("credit_bytes", "sizes"), [(1.0, [1.0] * 4), (2.0, [2.0] * 2), (3.0, [3.0, 1.0])])
def test_a_cycle_takes_what_has_credit(make_cycle, credit_bytes, sizes):
    """Four ready at 0.5 s: as many as have credit travel together from 1 s on, for 1 s; the next from 2 s on."""
    env, recorder, communicator = make_cycle([0] * 4, 100.0, credit_bytes=credit_bytes)
    for _ in range(2):
        announce_at(env, communicator, *((0.5, 0, bucket) for bucket in range(4)))
    env.run()
    assert [row[1:] for row in fused(recorder)] == [(size, 1.0 + k) for k, size in enumerate(sizes)]


def test_nothing_happens_in_cycles_with_nothing_ready(make_cycle):
    env, recorder, communicator = make_cycle([0, 0], 100.0)
    for _ in range(2):
        announce_at(env, communicator, (0.5, 0, 0), (1000.5, 0, 1))
    env.run()
    assert fused(recorder) == [(0, 1.0, 1.0), (1, 1.0, 1001.0)]
    assert env.now == 1002.0


@pytest.mark.parametrize(
    ("buffer_bytes", "sizes"), [(3.0, [3.0]), (2.0, [2.0, 1.0]), (1.0, [1.0] * 3), (0.5, [1.0] * 3)]
)
def test_the_buffer_holds_so_much_or_one_alone(make_cycle, buffer_bytes, sizes):
    env, recorder, communicator = make_cycle([0] * 3, buffer_bytes)
    for _ in range(2):
        announce_at(env, communicator, (0.5, 0, 0), (0.5, 0, 1), (0.5, 0, 2))
    env.run()
    assert [size for _, size, _ in fused(recorder)] == sizes


def test_who_waits_for_a_part_goes_on_when_all_that_travels_with_it_is_over(make_cycle):
    """Both parts go together from 1 to 2 s."""
    env, _, communicator = make_cycle([0, 0], 100.0)
    for _ in range(2):
        announce_at(env, communicator, (0.1, 0, 0), (0.2, 0, 1))

    def worker(rank):
        yield from communicator.finish(0, rank, rank)
        return env.now

    workers = [env.process(worker(rank)) for rank in range(2)]
    env.run()
    assert [worker.value for worker in workers] == [2.0, 2.0]


def test_parts_of_different_kinds_travel_apart(make_cycle):
    env, recorder, communicator = make_cycle([0] * 3, 100.0)
    first, second, third = communicator.exchanges
    communicator.exchanges = [first, replace(second, what="all_gather"), third]
    for _ in range(2):
        announce_at(env, communicator, (0.5, 0, 0), (0.5, 0, 1), (0.5, 0, 2))
    env.run()
    assert [size for _, size, _ in fused(recorder)] == [1.0, 1.0, 1.0]
