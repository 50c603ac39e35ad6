"""Which exchange goes next."""

from __future__ import annotations

import numpy as np
import pytest
import simpy

from simnet.engine.recorder import Recorder
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.protocols import FlowProtocol
from simnet.topology import star
from simnet.traffic import ring_all_reduce
from simnet.training.communicator import Communicator, Exchange
from simnet.training.records import CollectiveRow, Sent


@pytest.fixture
def make_communicator():
    """A communicator of two workers whose exchanges of one bucket each take 1 s."""

    def make(priorities):
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
            Communicator(env, fabric, recorder, "job", np.arange(2), exchanges, Sent(2, lambda _: True)),
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
    assert communicator._collectives == {}
    assert env.now == pytest.approx(50.0, rel=1e-12)
