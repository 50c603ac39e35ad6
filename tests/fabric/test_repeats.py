"""Plays that come again: nothing that can be seen of them differs from playing every event each time."""

from __future__ import annotations

import numpy as np
import pytest
import simpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.settings import EngineSettings
from simnet.protocols import FlowProtocol
from simnet.topology import star
from simnet.traffic import mesh_all_reduce

from .building import begin, sends
from .cases import PLAIN

FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
CLOSE = {"rel": 1e-9, "abs": 1e-9}
RANKS = 4
# Each message takes 0.1 s of its sender, so that flows of a rank begin one after the other and share its link.
PROTOCOL = FlowProtocol(send_overhead_s=0.1)


def fabric_of(engine: EngineSettings) -> FluidFabric:
    topology = star(hosts=RANKS + 2, bandwidth_bytes_per_s=1.0, latency_s=0.05)
    return FluidFabric(simpy.Environment(), Network(topology, PROTOCOL), engine=engine)


def again_and_again(engine, gaps, joins=(), disturbed_at=(), capacity_at=None):
    """Play a mesh all-reduce after each of some gaps; tell all that can be seen.

    Parameters
    ----------
    engine : EngineSettings
    gaps : sequence of float
        Before each play [s].
    joins : sequence of (int, float)
        How much later than the others the last rank joins, by the number of the play [s].
    disturbed_at : sequence of float
        When a send comes that shares a link [s].
    capacity_at : float or None
        When a link gets half of its capacity [s].
    """
    fabric = fabric_of(engine)
    env, seen = fabric.env, []
    schedule = mesh_all_reduce(RANKS, 3 * RANKS, 1.0)

    def playing():
        for number, gap in enumerate(gaps):
            yield env.timeout(gap)
            late = dict(joins).get(number, 0.0)
            play = begin(fabric, schedule, gates_open=False)
            play.open(np.arange(RANKS - 1))
            if late:
                yield env.timeout(late)
            play.open([RANKS - 1])
            yield play.complete
            seen.extend([env.now, *play.rank_duration_s.tolist()])
            seen.extend(fabric.transfer_s(node) for node in range(RANKS))

    def disturbing():
        for at in sorted(disturbed_at):
            yield env.timeout(max(at - env.now, 0.0))
            send = begin(fabric, sends((0, 1, 1.0)), [0, RANKS + 1])
            yield send.complete
            seen.append(send.duration_s)

    def changing():
        yield env.timeout(capacity_at)
        fabric.conditions.set_capacity(0, 0.5)

    env.process(playing())
    env.process(disturbing())
    if capacity_at is not None:
        env.process(changing())
    env.run()
    fabric.require_conservation()
    return [*sorted(seen), *fabric.carried_bytes().tolist(), *fabric.busy_s().tolist()], fabric


def test_what_comes_again_is_played_once():
    """Two phases of 4 x 3 messages each: the first of five plays has all that are simulated."""
    seen, fabric = again_and_again(EngineSettings(), [0.0, 0.5, 0.0, 3.0, 0.25])
    plain, other = again_and_again(PLAIN, [0.0, 0.5, 0.0, 3.0, 0.25])
    assert seen == pytest.approx(plain, **CLOSE)
    assert (fabric.counts.messages, other.counts.messages) == (5 * 24, 5 * 24)
    assert (fabric.counts.simulated_messages, other.counts.simulated_messages) == (24, 5 * 24)


@given(
    st.lists(st.floats(0, 2), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.floats(0.01, 2)), max_size=2),
    st.lists(st.floats(0, 60), max_size=3),
    st.none() | st.floats(0, 40),
)
@FEW
def test_whatever_comes_between(gaps, joins, disturbed_at, capacity_at):
    """Late ranks, sends that share a link, a link that gets slower: as of playing every event."""
    seen, _ = again_and_again(EngineSettings(), gaps, joins, disturbed_at, capacity_at)
    plain, _ = again_and_again(PLAIN, gaps, joins, disturbed_at, capacity_at)
    assert seen == pytest.approx(plain, **CLOSE)


def test_what_is_lost_at_random_is_played_each_time():
    """A play whose packets are lost does not take the same time each time."""
    topology = star(hosts=RANKS, bandwidth_bytes_per_s=1e9, latency_s=1e-5, loss_probability=1e-3)
    protocol = FlowProtocol(mtu_bytes=1500.0, payload_bytes=1448.0, header_bytes=90.0)
    fabric = FluidFabric(simpy.Environment(), Network(topology, protocol))
    schedule, found = mesh_all_reduce(RANKS, 1000 * RANKS, 1000.0), []

    def playing():
        for _ in range(4):
            play = begin(fabric, schedule)
            yield play.complete
            found.append(play.duration_s)

    fabric.env.run(fabric.env.process(playing()))
    assert fabric.counts.simulated_messages == fabric.counts.messages
    assert len(set(found)) > 1
