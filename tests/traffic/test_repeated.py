"""A schedule that happens over and over: as many bytes and messages each time, in the same order."""

from __future__ import annotations

import numpy as np
import pytest

from simnet.traffic import (
    ALL_REDUCE,
    Partition,
    ScheduleBuilder,
    check_deadlock,
    count,
    message_steps,
    repeated,
    ring_all_reduce,
    validate_schedule,
)


@pytest.mark.parametrize("name", ALL_REDUCE)
@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
def test_each_time_is_as_the_whole_of_the_given_one(name, ranks):
    """T times the messages and bytes of each rank; once: in the same steps."""
    schedule = ALL_REDUCE[name](ranks, 29, 4)
    for times in (1, 4):
        again = repeated(schedule, times)
        validate_schedule(again)
        check_deadlock(again)
        assert len(again.operations) == schedule.operations.repeat.sum()
        assert again.messages() == times * schedule.messages()
        assert again.bytes_sent() == pytest.approx(times * schedule.bytes_sent(), rel=1e-12)
    assert count(repeated(schedule, 1)).steps == count(schedule).steps


def test_firings_of_one_operation_still_go_one_by_one():
    """A ring of 3, T = 2: in each repetition the 4 messages of a rank travel in steps that follow each other."""
    again = repeated(ring_all_reduce(3, 12, 4), 2)
    steps = message_steps(again)
    first = steps.firing == 0
    source = again.operations.source[steps.operation[first]]
    for rank in range(3):
        assert sorted(steps.step[first][source == rank].tolist()) == [0, 1, 2, 3]


def test_everything_else_is_kept():
    """Calculations with stream and length, memory, what adds, delays."""
    build = ScheduleBuilder("made up", 2, Partition(6, 4, chunks=3))
    computed = build.calc(0, 2.0, stream=1, repeat=2)
    taken = build.memory(0, 7.0)
    send = build.send(0, 1, repeat=3, step=1, reduce=1)
    build.depend(computed, taken, offset=-1)
    build.depend(taken, send, delay_s=0.5)
    again = repeated(build.schedule(), 5)
    ops, deps = again.operations, again.dependencies
    assert set(ops.repeat.tolist()) == {5}
    assert ops.seconds.tolist() == [2.0, 2.0, 0.0, 0.0, 0.0, 0.0]
    assert ops.stream.tolist()[:2] == [1, 1]
    assert ops.fixed_bytes.tolist() == [0.0, 0.0, 7.0, 8.0, 8.0, 8.0]
    assert ops.reduce_firings.tolist() == [0, 0, 0, 5, 0, 0]
    found = set(zip(deps.before.tolist(), deps.after.tolist(), deps.delay_s.tolist(), strict=True))
    assert found == {(0, 1, 0.0), (1, 2, 0.0), (2, 3, 0.5), (2, 4, 0.5), (2, 5, 0.5), (3, 4, 0.0), (4, 5, 0.0)}
    assert np.all(deps.offset == 0)
