"""The symbolic checker proves the algorithms, and catches every schedule that has been spoilt."""

from __future__ import annotations

import numpy as np
import pytest

from simnet.errors import DeadlockError, InputError, InvariantError
from simnet.traffic import (
    ALL_REDUCE,
    Kind,
    Partition,
    Schedule,
    ScheduleBuilder,
    all_reduce_goal,
    butterfly_all_reduce,
    goal_faults,
    mesh_all_reduce,
    parameter_server_push_pull,
    prove,
    ring_all_reduce,
    star_all_reduce,
    tree_all_reduce,
)
from simnet.traffic.check import _execute, _race_faults, _write_out

from .spoiling import sends, with_value, without_dependency

RANKS = [2, 3, 4, 5, 6, 7, 8, 9, 16]


@pytest.mark.parametrize("ranks", [1, *RANKS])
@pytest.mark.parametrize("name", ALL_REDUCE)
@pytest.mark.parametrize("elements", [144 * 35, 29])
def test_every_rank_ends_with_every_contribution_once(name, ranks, elements):
    """With equal chunks, and with uneven ones."""
    schedule = ALL_REDUCE[name](ranks, elements, 4)
    prove(schedule, all_reduce_goal(schedule))


@pytest.mark.parametrize("ranks", [1, *RANKS])
def test_full_mesh_counts_each_contribution_once(ranks):
    schedule = mesh_all_reduce(ranks, 29, 4, exchange="full")
    prove(schedule, all_reduce_goal(schedule))


def faults_of(schedule: Schedule, **who) -> tuple[str, ...]:
    """By analysis and one execution: the random ones have tests of their own."""
    return goal_faults(schedule, all_reduce_goal(schedule, **who), executions=0)


def all_reduce_faults(schedule: Schedule, **who) -> tuple[str, ...]:
    return goal_faults(schedule, all_reduce_goal(schedule, **who))


@pytest.mark.parametrize("ranks", [3, 5, 8])
@pytest.mark.parametrize("algorithm", [ring_all_reduce, star_all_reduce])
def test_any_dependency_dropped_from_ring_or_star_is_caught(algorithm, ranks):
    """None of them is there for time only."""
    schedule = algorithm(ranks, 29, 4)
    for row in range(len(schedule.dependencies)):
        assert faults_of(without_dependency(schedule, row))


@pytest.mark.parametrize("servers", [1, 2])
def test_any_dependency_dropped_from_a_parameter_server_is_caught(servers):
    schedule = parameter_server_push_pull(3, servers, 29, 4)
    for row in range(len(schedule.dependencies)):
        spoilt = without_dependency(schedule, row)
        assert faults_of(spoilt, contributors=range(3), holders=range(3))


@pytest.mark.parametrize("ranks", [3, 4, 6, 8])
@pytest.mark.parametrize("name", ALL_REDUCE)
def test_a_send_that_does_not_wait_for_what_it_passes_on_is_caught(name, ranks):
    """Drop all that the last send waits for."""
    schedule = ALL_REDUCE[name](ranks, 29, 4)
    rows = np.flatnonzero(schedule.dependencies.after == sends(schedule)[-1])
    assert rows.size
    assert faults_of(without_dependency(schedule, rows))


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8])
@pytest.mark.parametrize(
    "algorithm", [butterfly_all_reduce, lambda n, *size: mesh_all_reduce(n, *size, exchange="full")]
)
def test_an_exchange_without_a_receive_buffer_is_caught(algorithm, ranks):
    """What arrives early would be sent back as the own contribution: counted twice."""
    schedule = algorithm(ranks, 29, 4)
    for operation in np.flatnonzero(schedule.operations.merged_by >= 0).tolist():
        assert faults_of(with_value(schedule, "merged_by", operation, -1))


@pytest.mark.parametrize("ranks", [3, 4, 6])
@pytest.mark.parametrize("name", ALL_REDUCE)
def test_adding_and_replacing_swapped_is_caught(name, ranks):
    """In every send of every algorithm; of a ring one firing too many or too few is enough."""
    schedule = ALL_REDUCE[name](ranks, 29, 4)
    for operation in sends(schedule):
        added, repeat = schedule.operations.reduce_firings[operation], schedule.operations.repeat[operation]
        for wrong in {max(added - 1, 0), min(added + 1, repeat)} - {added}:
            assert faults_of(with_value(schedule, "reduce_firings", operation, wrong))


@pytest.mark.parametrize("ranks", [3, 4, 6])
@pytest.mark.parametrize("name", ["ring", "mesh"])
def test_a_wrong_chunk_is_caught(name, ranks):
    schedule = ALL_REDUCE[name](ranks, 29, 4)
    for operation in sends(schedule):
        wrong = (schedule.operations.chunk_first[operation] + 1) % ranks
        assert faults_of(with_value(schedule, "chunk_first", operation, wrong))


@pytest.mark.parametrize("ranks", [3, 4, 6])
@pytest.mark.parametrize("name", ALL_REDUCE)
def test_a_message_that_goes_to_the_wrong_rank_is_caught(name, ranks):
    """The last message of the schedule, whose receiver then lacks it."""
    schedule = ALL_REDUCE[name](ranks, 29, 4)
    operation = sends(schedule)[-1]
    source, target = schedule.operations.source[operation], schedule.operations.target[operation]
    spoilt = with_value(schedule, "target", operation, next(r for r in range(ranks) if r not in (source, target)))
    assert faults_of(with_value(spoilt, "merged_by", operation, -1))


def test_another_way_to_the_sum_is_accepted():
    """A tree of 3 whose rank 1 sends to rank 2 instead of rank 0: unusual, and right."""
    schedule = with_value(tree_all_reduce(3, 29, 4), "target", 0, 2)
    assert all_reduce_faults(schedule) == ()


@pytest.mark.parametrize("ranks", [3, 8])
def test_a_firing_too_few_is_caught(ranks):
    schedule = ring_all_reduce(ranks, 29, 4)
    assert all_reduce_faults(with_value(schedule, "repeat", 0, 2 * (ranks - 1) - 1))


def test_a_dependency_for_lockstep_alone_may_go_without_harm_to_the_data():
    """In a mesh a rank also waits for what it sent before it goes on; the sum does not need that."""
    schedule = mesh_all_reduce(4, 29, 4)
    deps, ops = schedule.dependencies, schedule.operations
    row = int(np.flatnonzero(ops.source[deps.before] == ops.source[deps.after])[0])
    assert ops.kind[deps.after[row]] == Kind.CALC
    assert all_reduce_faults(without_dependency(schedule, row)) == ()


def test_the_random_executions_find_a_race_by_themselves():
    """A star whose hub answers at once: with everything equally long the others get its own contribution only; with
    random delays also something in between.
    """
    schedule = without_dependency(star_all_reduce(4, 29, 4), slice(None))
    events = _write_out(schedule)
    random = np.random.Generator(np.random.PCG64(0))
    goal = all_reduce_goal(schedule)
    results = {
        _execute(schedule, events, goal, lambda: float(10 ** random.uniform(-3, 3))).tobytes() for _ in range(20)
    }
    assert len(results) > 3


@pytest.mark.parametrize("name", ALL_REDUCE)
def test_without_races_all_executions_give_the_same(name):
    schedule = ALL_REDUCE[name](6, 29, 4)
    events = _write_out(schedule)
    random = np.random.Generator(np.random.PCG64(0))
    for _ in range(20):
        counts = _execute(schedule, events, all_reduce_goal(schedule), lambda: float(10 ** random.uniform(-3, 3)))
        assert (counts[..., :-1] == 1).all()


@pytest.mark.parametrize("seed", range(60))
def test_no_execution_goes_wrong_without_a_race_being_named(seed):
    """Drop a random dependency: wherever random delays spoil the sum, the analysis says so as well."""
    random = np.random.Generator(np.random.PCG64(seed))
    ranks = int(random.integers(2, 7))
    schedule = list(ALL_REDUCE.values())[seed % len(ALL_REDUCE)](ranks, 29, 4)
    spoilt = without_dependency(schedule, int(random.integers(len(schedule.dependencies))))
    events = _write_out(spoilt)
    goal = all_reduce_goal(spoilt)
    if any(_race_faults(spoilt, events, goal)):
        return
    for _ in range(10):
        counts = _execute(spoilt, events, goal, lambda: float(10 ** random.uniform(-3, 3)))
        assert (counts[..., :-1] == 1).all()


def test_a_fault_says_who_lacks_what():
    """Rank 0 sends to rank 1, and nobody sends to rank 0."""
    build = ScheduleBuilder("one way", 2, Partition(2, 4))
    build.send(0, 1, reduce=1)
    assert all_reduce_faults(build.schedule()) == ("rank 0 ends with chunk 0 that counts nothing of rank 1",)


def test_a_fault_says_what_is_counted_twice():
    build = ScheduleBuilder("twice", 2, Partition(2, 4))
    build.send(0, 1, reduce=2, repeat=2)
    (fault,) = all_reduce_faults(build.schedule(), holders=[1])
    assert fault == "rank 1 ends with chunk 0 that counts that of rank 0 2 times"


def test_a_race_names_both_messages():
    build = ScheduleBuilder("crossing", 2, Partition(2, 4))
    build.send([0, 1], [1, 0], reduce=1)
    race = all_reduce_faults(build.schedule())[0]
    assert race == (
        "on rank 0 firing 0 of send 0 -> 1 (operation 0) reads chunk 0 while firing 0 of send 1 -> 0 (operation 1) "
        "adds to it: nothing puts them into an order"
    )


def test_a_message_merged_before_it_arrives_is_caught():
    build = ScheduleBuilder("early", 2, Partition(2, 4))
    early = build.calc(1)
    build.send(0, 1, reduce=1, merged_by=early)
    assert "may be merged before it is delivered" in all_reduce_faults(build.schedule(), holders=[1])[0]


def test_the_first_ten_faults_are_listed():
    schedule = without_dependency(ring_all_reduce(8, 29, 4), slice(None))
    faults = all_reduce_faults(schedule)
    assert len(faults) == 10
    assert faults[-1].startswith("and ")


def test_a_proof_that_fails_raises():
    build = ScheduleBuilder("nothing done", 2, Partition(2, 4))
    schedule = build.schedule()
    with pytest.raises(InvariantError, match="nothing done does not do what it is for\n  rank 0 ends"):
        prove(schedule, all_reduce_goal(schedule))


def test_malformed_circular_and_large_schedules_are_refused():
    build = ScheduleBuilder("malformed", 2, Partition(2, 4))
    build.send(0, 2)
    with pytest.raises(InputError):
        all_reduce_faults(build.schedule())
    build = ScheduleBuilder("circular", 2, Partition(2, 4))
    send = build.send([0, 1], [1, 0])
    build.depend(send, send[::-1])
    with pytest.raises(DeadlockError):
        all_reduce_faults(build.schedule())
    with pytest.raises(ValueError, match="at most 10000"):
        all_reduce_faults(ring_all_reduce(100, 100, 4))
