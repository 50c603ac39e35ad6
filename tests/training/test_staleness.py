"""Who may go on: gates and clocks, against counting by hand."""

from __future__ import annotations

import math

import simpy
from hypothesis import given
from hypothesis import strategies as st

from simnet.training.staleness import Clocks, Gate


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
