"""The kernel inside SimPy: who acts when, who is told when, and what does not matter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from simnet.fabric.settings import EngineSettings
from simnet.traffic import ring_all_reduce

from .building import begin, builder, sends
from .cases import PLAIN, play_compiled
from .random_cases import cases

FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@given(cases(servers=True, changes=True))
@FEW
def test_unrelated_simpy_events_change_nothing(case):
    """With noise at any time or none: all that is measured within 1e-9."""
    quiet, _ = play_compiled(replace(case, noise=[]))
    loud, _ = play_compiled(replace(case, noise=[*case.noise, *[0.37 * i for i in range(60)]]))
    for measure in ("durations", "carried", "busy", "transfer"):
        one, other = getattr(quiet, measure), getattr(loud, measure)
        for a, b in zip(one, other, strict=True):
            assert a == pytest.approx(b, rel=1e-9, abs=1e-9), measure


@given(cases(servers=True, changes=False))
@FEW
def test_the_time_of_the_beginning_changes_nothing(case):
    """At 0 s and at 1024 s, whose sums with times round: within 1e-9 of the times from the first submission on."""
    first = min(play.at for play in case.plays)
    early, late = (play_compiled(case, start)[0] for start in (0.0, 1024.0))
    for one, other in zip(early.durations, late.durations, strict=True):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-9 * (1 + first))


def test_submitting_again_and_again_at_one_instant(make_fabric):
    """10 actors that each begin a send of 1 byte out of host 0 at 1 s, in one piece or one after the other at that
    very instant, even after the kernel has gone on: all share the link of 1 byte/s and are over at 11 s."""
    fabric = make_fabric(11)
    env = fabric.env
    ends = []

    def actor(number):
        yield env.timeout(1.0)
        for _ in range(number):
            yield env.timeout(0.0)
        play = begin(fabric, sends((0, 1, 1.0)), [0, number])
        yield play.complete
        ends.append(env.now)

    for number in range(1, 11):
        env.process(actor(number))
    env.run()
    assert ends == pytest.approx([11.0] * 10, rel=1e-12)


def test_an_actor_that_is_told_of_a_completion_can_begin_the_next_at_that_instant(make_fabric):
    """Ten sends of 0.1 s after each other: each begins when the one before is complete, so 1 s in all."""
    fabric = make_fabric(2)
    env = fabric.env
    begun = []

    def actor():
        for _ in range(10):
            begun.append(env.now)
            yield begin(fabric, sends((0, 1, 0.1))).complete

    env.run(env.process(actor()))
    assert begun == pytest.approx([0.1 * i for i in range(10)], rel=1e-12)
    assert env.now == pytest.approx(1.0, rel=1e-12)


def test_what_rounding_makes_of_the_clock_never_stops_time(make_fabric):
    """An actor wakes at 0.5 s and a bit, a play is complete at 1.75 s and a bit: their difference cannot be told
    exactly, so the clock shows 1.75 s at the completion, a unit in the last place before it. Another play goes on."""
    fabric = make_fabric(4)
    env = fabric.env
    begin(fabric, sends((0, 1, 100.0)), [2, 3])
    ended = []

    def actor():
        yield begin(fabric, sends((0, 1, 1.75 + 2.0**-52))).complete
        ended.append(env.now)
        yield begin(fabric, sends((0, 1, 1.0))).complete
        ended.append(env.now)

    env.timeout(0.5 + 2.0**-53)
    env.process(actor())
    steps = 0
    while env.peek() < float("inf"):
        env.step()
        steps += 1
        assert steps < 100
    assert ended == pytest.approx([1.75, 2.75], rel=1e-12)


def test_completions_at_one_instant_come_by_play_and_rank(make_fabric):
    """Three equal plays side by side, so that all is complete at one instant; asked about in any order. Rows of the
    tables are reused in another order the second time, which is not to matter."""
    fabric = make_fabric(8)
    env = fabric.env
    told = []

    def watch(event, name):
        event.callbacks.append(lambda _: told.append((env.now, name)))

    begin(fabric, sends((0, 1, 1000.0)), [6, 7])
    for turn in range(3):
        told.clear()
        plays = [begin(fabric, sends((0, 1, 1.0)), hosts) for hosts in ([0, 1], [2, 3], [4, 5])]
        for number, play in reversed(list(enumerate(plays))):
            watch(play.complete, f"play {number}")
            for rank in (1, 0):
                watch(play.rank_complete(rank), (number, rank))
        env.run(until=10.0 * (turn + 1))
        ranks = [name for _, name in told if isinstance(name, tuple)]
        assert ranks == sorted(ranks)
        assert [name for _, name in told if isinstance(name, str)] == ["play 0", "play 1", "play 2"]
        assert len({time for time, _ in told}) == 1


@pytest.mark.parametrize("engine", [EngineSettings(), PLAIN])
def test_the_order_at_one_instant_is_that_of_submission_however_plays_are_simulated(make_fabric, engine):
    """Five plays that end at 1 s: single sends, which can be foreseen, and pairs that share a link, which cannot."""
    fabric = make_fabric(14, engine=engine)
    told = []
    single, pair = sends((0, 1, 1.0)), sends((0, 1, 0.5), (0, 2, 0.5))
    plays = [(pair, [0, 1, 2]), (single, [3, 4]), (pair, [5, 6, 7]), (single, [8, 9]), (pair, [10, 11, 12])]
    for number, (schedule, hosts) in enumerate(plays):
        play = begin(fabric, schedule, hosts)
        play.complete.callbacks.append(lambda _, number=number: told.append(number))
        play.rank_complete(0).callbacks.append(lambda _, number=number: told.append(f"rank 0 of {number}"))
    fabric.env.run()
    assert fabric.env.now == 1.0
    assert told == [f"rank 0 of {number}" for number in range(5)] + list(range(5))


@pytest.mark.parametrize("engine", [EngineSettings(), PLAIN])
def test_ranks_are_told_in_order_whatever_the_order_of_operations(make_fabric, engine):
    """Three equal sends, that of the last ranks first: ranks 0 to 5 are all complete at 1 s."""
    fabric = make_fabric(6, engine=engine)
    told = []
    play = begin(fabric, sends((5, 4, 1.0), (3, 2, 1.0), (1, 0, 1.0)))
    for rank in (3, 0, 4, 1, 5, 2):
        play.rank_complete(rank).callbacks.append(lambda _, rank=rank: told.append(rank))
    fabric.env.run()
    assert told == list(range(6))


def test_a_rank_may_be_asked_about_before_at_and_after_its_completion(make_fabric):
    """Rank 0 is complete at 1 s when its send has drained, rank 1 at 3 s when it is delivered."""
    fabric = make_fabric(2, latency_s=2.0)
    env = fabric.env
    play = begin(fabric, sends((0, 1, 1.0)))
    told = {}

    def ask(name, at, rank):
        yield env.timeout(at)
        value = yield play.rank_complete(rank)
        told[name] = env.now
        assert value is play

    asked = {"before": (0.0, 1), "at": (1.0, 0), "after": (1.5, 0), "late": (2.9, 1), "when all is over": (9.0, 1)}
    for name, (at, rank) in asked.items():
        env.process(ask(name, at, rank))
    env.run()
    assert told == {"before": 3.0, "at": 1.0, "after": 1.5, "late": 3.0, "when all is over": 9.0}
    assert play.rank_complete(0) is play.rank_complete(0)


def test_durations_are_known_when_ranks_are_told(make_fabric):
    fabric = make_fabric(2, latency_s=2.0)
    play = begin(fabric, sends((0, 1, 1.0)))
    assert not play.is_complete_on(0)
    fabric.env.run(play.rank_complete(0))
    assert play.is_complete_on(0)
    assert not play.is_complete_on(1)
    assert play.duration_s != play.duration_s
    fabric.env.run(play.complete)
    assert play.rank_duration_s.tolist() == [1.0, 3.0]
    assert play.duration_s == 3.0


def test_ranks_that_join_later(make_fabric):
    """Rank 0 joins at 5 s: its send of 1 s is delivered at 6 s; rank 2 joins at 8 s and is complete with that."""
    fabric = make_fabric(3)
    env = fabric.env
    play = begin(fabric, sends((0, 1, 1.0), ranks=3), gates_open=False)

    def joining():
        play.open([1])
        yield env.timeout(5.0)
        play.open([0])
        yield env.timeout(3.0)
        play.open([2])

    env.process(joining())
    env.run()
    assert play.rank_duration_s.tolist() == [6.0, 6.0, 8.0]


def test_a_ring_waits_for_the_last_to_join(make_fabric):
    """A ring of N cannot end before the last rank's chunk has been around: 10 s, and all 2(N - 1) steps of 1 s but
    those N - 2 that the others could do without it... at least N of them follow."""
    ranks = 4
    fabric = make_fabric(ranks)
    play = begin(fabric, ring_all_reduce(ranks, ranks, 1.0), gates_open=False)
    play.open([0, 1, 2])
    fabric.env.run(until=10.0)
    play.open([3])
    fabric.env.run()
    assert 10.0 + ranks <= play.duration_s <= 10.0 + 2 * (ranks - 1)


@pytest.mark.parametrize("wrong", [[0], [1, 1], [-1], [2]])
def test_a_rank_joins_once_and_has_to_exist(make_fabric, wrong):
    fabric = make_fabric(2)
    play = begin(fabric, sends((0, 1, 1.0)), gates_open=False)
    begin(fabric, sends((0, 1, 1.0)), gates_open=False)
    play.open([0])
    with pytest.raises(ValueError, match=r"sends has ranks 0 .. 1|a rank has joined sends already"):
        play.open(wrong)


def test_a_play_of_one_rank_is_complete_at_once(make_fabric):
    """A collective of one rank has nothing to do: 0 s, at the very instant."""
    fabric = make_fabric(1, start_s=7.0)
    play = begin(fabric, ring_all_reduce(1, 100, 4.0))
    fabric.env.run()
    assert fabric.env.now == 7.0
    assert play.duration_s == 0.0
    assert fabric.counts.messages == 0


def test_an_instant_of_the_network_and_one_of_the_actors_that_rounding_keeps_apart_are_one(make_fabric):
    """0.1 + 0.2 s for the actor, 0.3 s for the flow: a second flow that starts then finds the link free: 1.3 s."""
    fabric = make_fabric(2)
    env = fabric.env
    play = begin(fabric, sends((0, 1, 0.3)))

    def actor():
        yield env.timeout(0.1)
        yield env.timeout(0.2)
        second = begin(fabric, sends((0, 1, 1.0)))
        yield second.complete
        assert second.duration_s == pytest.approx(1.0, rel=1e-12)

    env.run(env.process(actor()))
    assert play.duration_s == pytest.approx(0.3, rel=1e-12)


def test_running_in_pieces_is_running_at_once(make_fabric):
    """Stopping SimPy at any time, looking, and going on."""
    fabric = make_fabric(4, latency_s=0.01)
    play = begin(fabric, ring_all_reduce(4, 4, 1.0))
    for stop in (0.5, 1.0, 1.01, 3.33, 3.34, 5.0):
        fabric.env.run(until=stop)
        assert not play.is_complete_on(0)
        assert fabric.busy_s().max() <= stop
    fabric.env.run()
    assert play.duration_s == pytest.approx(6 * 1.01, rel=1e-12)


def test_what_is_over_cannot_be_changed(make_fabric):
    fabric = make_fabric(2)
    over, cancelled = begin(fabric, sends((0, 1, 1.0))), begin(fabric, sends((0, 1, 1.0)))
    fabric.cancel(cancelled)
    fabric.env.run()
    begin(fabric, sends((0, 1, 1.0)))
    for play in (over, cancelled):
        for change in (
            lambda play: fabric.cancel(play),
            lambda play: play.open([0]),
            lambda play: fabric.set_flow_cap(play, 0, 1.0),
            lambda play: fabric.reroute(play, 0, [0], 0.0),
        ):
            with pytest.raises(ValueError, match="sends is over"):
                change(play)
    waiting = cancelled.rank_complete(0)
    fabric.env.run()
    assert not waiting.triggered


def test_amounts_that_make_no_sense_are_refused(make_fabric):
    fabric = make_fabric(2)
    play = begin(fabric, sends((0, 1, 1.0)))
    for amount in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="capacity"):
            fabric.conditions.set_capacity(0, amount)
    for amount in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="cap"):
            fabric.set_flow_cap(play, 0, amount)


def test_a_cancelled_play_leaves_the_network_to_others(make_fabric):
    """Two sends of 2 bytes share 1 byte/s; at 1 s, when half a byte of each is through, one is cancelled: the other
    has 1.5 s to go. Lost: the 2 bytes of the message that did not arrive."""
    fabric = make_fabric(3)
    env = fabric.env
    stays, goes = begin(fabric, sends((0, 1, 2.0)), [0, 1]), begin(fabric, sends((0, 1, 2.0)), [0, 2])

    def actor():
        yield env.timeout(1.0)
        fabric.cancel(goes)

    env.process(actor())
    env.run()
    assert stays.duration_s == pytest.approx(2.5, rel=1e-12)
    assert not goes.is_complete_on(0)
    assert float(fabric._tables.clock["lost_bytes"][0]) == 2.0
    fabric.require_conservation()


def test_a_play_cancelled_at_the_instant_it_began(make_fabric):
    """Also where a rank with nothing to do was complete already, and where another play takes over its rows."""
    fabric = make_fabric(3)
    keep = begin(fabric, sends((0, 1, 5.0), ranks=3))
    idle = begin(fabric, sends((0, 1, 5.0), ranks=3))
    told = idle.rank_complete(2)
    fabric.cancel(idle)
    after = begin(fabric, sends((1, 2, 3.0), ranks=3))
    fabric.env.run()
    assert told.processed
    assert (keep.duration_s, after.duration_s) == (5.0, 3.0)
    assert after.rank_duration_s.tolist() == [0.0, 3.0, 3.0]


def test_what_a_play_leaves_behind_does_not_reach_the_next_in_its_rows(make_fabric):
    """A credit that returns 1.5 s after its message, when its play is long over, and that nobody waits for.

    The play that follows in the same rows has two sends of 1 s after each other: 2 s, though the credit comes back
    when the first of them is half through.
    """
    fabric = make_fabric(4)
    env = fabric.env
    begin(fabric, sends((0, 1, 100.0)), [2, 3])
    build = builder(2)
    first, last = build.send(0, 1, width=0, fixed_bytes=1.0), build.send(1, 0, width=0, fixed_bytes=0.0)
    build.depend(first, last, offset=1, delay_s=1.5)
    leaves = build.schedule()
    build = builder(2)
    build.depend(build.send(0, 1, width=0, fixed_bytes=1.0), build.send(1, 0, width=0, fixed_bytes=1.0))
    follows = build.schedule()

    def actor():
        play = begin(fabric, leaves)
        yield play.complete
        assert play.duration_s == 1.0
        play = begin(fabric, follows)
        yield play.complete
        assert play.duration_s == 2.0

    env.run(env.process(actor()))
