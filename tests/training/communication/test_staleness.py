"""Who may go on: gates and clocks, against counting by hand."""

from __future__ import annotations

import math

import simpy
from hypothesis import given
from hypothesis import strategies as st

from simnet.training.communication.staleness import Clocks, Gate


def test_a_gate_opens_when_the_last_member_has_come() -> None:
    """A group has done an iteration when its slowest member has."""
    env = simpy.Environment()
    gate = Gate(env, [[0, 1]], [[0], [0]])
    waiting = gate.when_done(0, 0)
    assert waiting is not None
    gate.done(0, 0)
    assert not waiting.triggered
    gate.done(1, 0)
    assert waiting.triggered
    assert gate.when_done(0, 0) is None


def test_a_group_without_members_waits_for_nobody() -> None:
    """A worker without neighbours may always go on."""
    assert Gate(simpy.Environment(), [[]], []).when_done(0, 5) is None


@given(st.integers(1, 5), st.integers(0, 4), st.data())
def test_nobody_gets_further_ahead_than_the_bound(workers: int, bound: int, data: st.DataObject) -> None:
    """Whoever may go on is at most `bound` iterations ahead of the slowest, and the slowest always may."""
    env = simpy.Environment()
    clocks = Clocks(env, workers, 1, bound, None)
    done = [0] * workers
    blocked: dict[int, simpy.Event] = {}
    for _ in range(60):
        able = [worker for worker in range(workers) if worker not in blocked or blocked[worker].triggered]
        assert able
        worker = data.draw(st.sampled_from(able))
        blocked.pop(worker, None)
        # Beginning an iteration now, it is ahead of the slowest by what it has done more.
        assert clocks.ahead(worker) == done[worker] - min(done) <= bound
        clocks.iteration_done(worker)
        clocks.part_done(worker, 0, done[worker])
        event = clocks.may_go_on(worker, 0, done[worker])
        done[worker] += 1
        if event is not None:
            blocked[worker] = event
            assert done[worker] - min(done) > bound


def test_without_a_bound_nobody_waits() -> None:
    """Under ASP a worker that does everything alone is never held back."""
    clocks = Clocks(simpy.Environment(), 2, 1, math.inf, None)
    for iteration in range(100):
        clocks.iteration_done(0)
        clocks.part_done(0, 0, iteration)
        assert clocks.may_go_on(0, 0, iteration) is None
    assert clocks.ahead(0) == clocks.updates == 100


def test_neighbours_wait_for_each_other_only() -> None:
    """On a line 0 - 1 - 2 with bound 0, worker 0 goes on when 1 is through, whatever 2 does."""
    env = simpy.Environment()
    clocks = Clocks(env, 3, 1, 0, [[1], [0, 2], [1]])
    clocks.part_done(0, 0, 0)
    waiting = clocks.may_go_on(0, 0, 0)
    assert waiting is not None
    clocks.part_done(1, 0, 0)
    assert waiting.triggered
    middle = clocks.may_go_on(1, 0, 0)
    assert middle is not None
    assert not middle.triggered


def test_nobody_waits_for_who_has_left_and_it_goes_on_from_where_the_others_are() -> None:
    """Two of three are 3 iterations further when the third comes back: it begins there, and is waited for again."""
    env = simpy.Environment()
    clocks = Clocks(env, 3, 1, 0, None)

    def do(worker: int, iteration: int) -> None:
        clocks.part_done(worker, 0, iteration)
        clocks.iteration_done(worker)

    do(0, 0)
    waiting = clocks.may_go_on(0, 0, 0)
    do(2, 0)
    assert waiting is not None
    assert not waiting.triggered
    clocks.leave(1)
    assert waiting.triggered
    for iteration in (1, 2, 3):
        do(0, iteration)
        do(2, iteration)
        assert clocks.may_go_on(0, 0, iteration) is None
    # It had not done its first iteration, number 0 by its own count.
    clocks.join(1, 0)
    assert clocks.ahead(0) == clocks.ahead(1) == 0
    do(0, 4)
    do(2, 4)
    waiting = clocks.may_go_on(0, 0, 4)
    assert waiting is not None
    do(1, 0)
    assert waiting.triggered
    assert clocks.may_go_on(1, 0, 0) is None


@given(st.integers(2, 5), st.integers(0, 3), st.integers(1, 2), st.booleans(), st.data())
def test_whoever_leaves_and_comes_back_nobody_waits_for_ever(
    workers: int, bound: int, parts: int, ring: bool, data: st.DataObject
) -> None:
    """With anybody leaving and coming back at any moment, somebody who is there can always go on."""
    env = simpy.Environment()
    peers = [[(one - 1) % workers, (one + 1) % workers] for one in range(workers)] if ring else None
    clocks = Clocks(env, workers, parts, bound, peers)
    done, pushed = [0] * workers, [0] * workers
    blocked: dict[int, simpy.Event] = {}
    for _ in range(80):
        there = [worker for worker in range(workers) if worker not in clocks.away]
        able = [worker for worker in there if worker not in blocked or blocked[worker].triggered]
        assert able or not there
        worker = data.draw(st.integers(0, workers - 1))
        change = data.draw(st.sampled_from(["go on", "go on", "go on", "leave or come back"]))
        if change == "leave or come back" and worker in clocks.away:
            clocks.join(worker, done[worker])
        elif change == "leave or come back":
            clocks.leave(worker)
            blocked.pop(worker, None)
            pushed[worker] = 0
        elif worker in able:
            blocked.pop(worker, None)
            clocks.part_done(worker, pushed[worker], done[worker])
            behind = clocks.may_go_on(worker, pushed[worker], done[worker])
            pushed[worker] += 1
            if pushed[worker] == parts:
                clocks.iteration_done(worker)
                done[worker], pushed[worker] = done[worker] + 1, 0
            if behind is not None:
                blocked[worker] = behind
