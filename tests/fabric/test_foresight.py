"""Plays that are foreseen by a recurrence: nothing that can be seen of them differs from playing every event."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.settings import EngineSettings
from simnet.traffic import Partition, ScheduleBuilder, ring_all_reduce

from .building import begin, sends
from .cases import PLAIN, Case, play_compiled
from .random_cases import cases

FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
CLOSE = {"rel": 1e-9, "abs": 1e-9}
ENGINES = [EngineSettings(), EngineSettings(skip_periods=False), EngineSettings(local_repair=False), PLAIN]


def seen(case: Case, engine: EngineSettings) -> list[list[float]]:
    """Transfers of all nodes at the times of the noise, which is also when messages are counted."""
    found = []

    def look(fabric: FluidFabric) -> None:
        found.append([fabric.transfer_s(node) for node in range(case.topology.graph.number_of_nodes())])

    play_compiled(case, engine=engine, look=look)
    return found


@given(cases(servers=True, changes=True), st.integers(0, 1000))
@FEW
def test_transfers_looked_at_on_the_way(case, offset):
    """At 20 times that fall on nothing else."""
    case = replace(case, noise=[0.61 * i + offset / 1700 for i in range(20)])
    for foreseen, played in zip(seen(case, EngineSettings()), seen(case, PLAIN), strict=True):
        assert foreseen == pytest.approx(played, **CLOSE)


@st.composite
def rings_that_are_disturbed(draw):
    """A ring of 4 hosts whose ranks join at random times, and a send that shares a link of it from some time on."""
    joins = draw(st.lists(st.floats(0, 3), min_size=4, max_size=4))
    return joins, draw(st.floats(0, 12)), draw(st.integers(1, 20)), draw(st.floats(0, 0.5))


@given(rings_that_are_disturbed())
@FEW
def test_a_ring_that_something_comes_into(make_fabric_once, case):
    """Completion of every rank, told when it happens, and of the send; with every setting of the engine."""
    joins, disturbed_at, elements, latency_s = case
    outcomes = []
    for engine in ENGINES:
        fabric = make_fabric_once(6, latency_s=latency_s, engine=engine)
        env, told = fabric.env, {}

        def run(fabric=fabric, env=env, told=told):
            play = begin(fabric, ring_all_reduce(4, elements, 1.0), gates_open=False)
            for rank in range(4):
                play.rank_complete(rank).callbacks.append(lambda _, rank=rank: told.setdefault(rank, env.now))
            for rank in range(4):
                env.process(join(env, play, rank))
            yield env.timeout(disturbed_at)
            send = begin(fabric, sends((0, 1, 2.0)), [0, 5])
            yield send.complete & play.complete
            told["ring"], told["send"] = play.duration_s, send.duration_s

        def join(env, play, rank):
            yield env.timeout(joins[rank])
            play.open([rank])

        env.run(env.process(run()))
        # Ranks are complete when the clock shows the time since the submission at 0 s.
        fabric.require_conservation()
        outcomes.append([told[key] for key in (0, 1, 2, 3, "ring", "send")] + fabric.carried_bytes().tolist())
    for outcome in outcomes[:-1]:
        assert outcome == pytest.approx(outcomes[-1], **CLOSE)


@pytest.fixture(scope="module")
def make_fabric_once():
    """As `make_fabric`, usable under hypothesis."""
    import simpy

    from simnet.fabric.network import Network
    from simnet.protocols import FlowProtocol
    from simnet.topology import star

    def make(hosts: int, *, latency_s: float, engine: EngineSettings) -> FluidFabric:
        topology = star(hosts=hosts, bandwidth_bytes_per_s=1.0, latency_s=latency_s / 2)
        return FluidFabric(simpy.Environment(), Network(topology, FlowProtocol()), engine=engine)

    return make


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("reduce_s_per_byte", [0.0, 0.3])
@pytest.mark.parametrize(("ranks", "elements"), [(2, 1), (5, 3), (16, 64), (64, 6400), (33, 100)])
def test_long_rings_of_whole_elements(make_fabric, engine, reduce_s_per_byte, ranks, elements):
    """Whatever is skipped, also where only the first half of the firings is reduced: durations, bytes, busy times and
    transfers as of playing every event."""
    measures = []
    for settings_ in (engine, PLAIN):
        fabric = make_fabric(ranks, latency_s=0.01, engine=settings_, reduce_s_per_byte=reduce_s_per_byte)
        play = begin(fabric, ring_all_reduce(ranks, elements, 1.0))
        fabric.env.run()
        nodes = fabric.network.compiled.rank_nodes.tolist()
        transfers = [fabric.transfer_s(node) for node in nodes]
        measured = [play.rank_duration_s, fabric.carried_bytes(), fabric.busy_s(), transfers, [fabric.counts.messages]]
        measures.append(np.concatenate(measured))
    assert measures[0] == pytest.approx(measures[1], **CLOSE)


def test_a_uniform_ring_is_not_worked_out_message_by_message(make_fabric_once):
    """1,000 ranks, 2 million messages: after a few firings they repeat."""
    fabric = make_fabric_once(1000, latency_s=0.01, engine=EngineSettings())
    play = begin(fabric, ring_all_reduce(1000, 1_000_000, 1.0))
    fabric.env.run()
    assert play.duration_s == pytest.approx(1998 * (1000 + 0.01), rel=1e-9)
    assert fabric.counts.messages == 2 * 999 * 1000
    assert fabric.counts.simulated_messages <= 20 * 1000


def test_a_ring_comes_again_and_again(make_fabric_once):
    """Each time the same, with another play before, beside and after it."""
    fabric = make_fabric_once(6, latency_s=0.1, engine=EngineSettings())
    env, ring = fabric.env, ring_all_reduce(4, 8, 1.0)
    for _ in range(3):
        play = begin(fabric, ring)
        aside = begin(fabric, sends((0, 1, 3.0)), [4, 5])
        env.run()
        assert play.duration_s == pytest.approx(6 * 2.1, **CLOSE)
        assert aside.duration_s == pytest.approx(3.1, **CLOSE)
        begin(fabric, ring)
        env.run(until=env.now + 5.0)
        # Shares the link out of host 0 from now on, in the third of the six steps.
        begin(fabric, sends((0, 1, 0.5)), [0, 5])
        env.run()


def test_two_steps_with_delays_and_a_late_rank(make_fabric_once):
    """0 -> 1 -> 2, three firings each of 1 s, latency 0.5 s, a credit of 0.25 s from 1 -> 2 back to 0 -> 1.

    Firing k of the first begins when it is over before, at 0, 1 + ... : firing k of the second at its delivery; firing
    k + 1 of the first waits for firing k - 1 of the second to be drained, and 0.25 s: at 0, 1, 2.75 s. The second at
    1.5, 2.5 and, by the first's third delivery 2.75 + 1.5, at 4.25 s. Rank 2 is complete at 4.25 + 1.5 = 5.75 s.
    """
    build = ScheduleBuilder("credits", 3, Partition(1, 1.0))
    first, second = build.send([0, 1], [1, 2], repeat=3)
    build.depend(first, second)
    build.depend(second, first, offset=2, delay_s=0.25, until=0)
    for engine in ENGINES:
        fabric = make_fabric_once(3, latency_s=0.5, engine=engine)
        play = begin(fabric, build.schedule())
        fabric.env.run()
        assert play.rank_duration_s == pytest.approx([3.75, 5.25, 5.75], rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sender_that_still_works_on_what_was_cancelled(make_fabric, engine):
    """A message whose overhead lasts until 4 s is cancelled at 1 s, and another begun: it queues until 4 s, has its own
    overhead of 4 s, and 1 byte to send: at 9 s, 8 s after its submission."""
    fabric = make_fabric(2, send_overhead_s=4.0, engine=engine)
    env = fabric.env
    gone = begin(fabric, sends((0, 1, 1.0)))
    env.run(until=1.0)
    fabric.cancel(gone)
    play = begin(fabric, sends((0, 1, 1.0)))
    env.run()
    assert play.duration_s == pytest.approx(8.0, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_first_message_opens_the_connection_also_where_it_is_foreseen(make_fabric, engine):
    """Set-up 2 s, 3 messages of 1 s; the second play over the same connection pays nothing, also where the first was
    disturbed on the way by another that shares its link from 3 s to 5 s, which costs 1 s."""
    fabric = make_fabric(3, connection_setup_s=2.0, engine=engine)
    durations = []
    for disturbed in (True, False):
        play = begin(fabric, sends((0, 1, 1.0), repeat=3))
        if disturbed:
            fabric.env.run(until=3.0)
            begin(fabric, sends((0, 2, 1.0)))
        fabric.env.run()
        durations.append(play.duration_s)
    # The disturbing one opens its own connection until 5 s, when the first is over: 2 + 3.
    assert durations == pytest.approx([5.0, 3.0], rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_play_with_late_ranks_and_other_capacities(make_fabric, engine):
    """A ring of 4 with 1 s a step takes 6 s. With rank 0 joining at 2 s it is over at 8 s: all wait for its chunk. On a
    link of half the capacity each step waits for it, 12 s; back at the old one, 6 s again."""
    fabric = make_fabric(4, engine=engine)
    env, ring = fabric.env, ring_all_reduce(4, 4, 1.0)
    link = fabric.network.resource_names.index("host1->switch")

    def duration_s(late: float = 0.0) -> float:
        play = begin(fabric, ring, gates_open=False)
        play.open([1, 2, 3])
        if late:
            env.run(until=env.now + late)
        play.open([0])
        env.run()
        return play.duration_s

    assert duration_s() == pytest.approx(6.0, **CLOSE)
    assert duration_s(late=2.0) == pytest.approx(8.0, **CLOSE)
    assert duration_s() == pytest.approx(6.0, **CLOSE)
    fabric.conditions.set_capacity(link, 0.5)
    assert duration_s() == pytest.approx(12.0, **CLOSE)
    fabric.conditions.set_capacity(link, 1.0)
    assert duration_s() == pytest.approx(6.0, **CLOSE)
