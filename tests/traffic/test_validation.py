"""Malformed schedules are refused with everything that is wrong, named."""

from __future__ import annotations

import numpy as np
import pytest

from simnet.errors import InputError
from simnet.traffic import Partition, ScheduleBuilder, describe_operation, validate_schedule


def problems_of(build: ScheduleBuilder) -> list[str]:
    with pytest.raises(InputError) as refused:
        validate_schedule(build.schedule())
    return [problem.message for problem in refused.value.problems]


@pytest.fixture
def build():
    return ScheduleBuilder("made up", 4, Partition(8, 4, chunks=4))


@pytest.mark.parametrize(
    ("send", "message"),
    [
        ({"target": 4}, "operation 0: target 4"),
        ({"source": -1}, "operation 0: source -1"),
        ({"repeat": 0}, "operation 0: repeat 0"),
        ({"width": -1}, "operation 0: chunk_width -1"),
        ({"width": 0, "fixed_bytes": np.nan}, "operation 0: fixed_bytes nan"),
        ({"width": 0, "fixed_bytes": -1.0}, "operation 0: fixed_bytes -1.0"),
        ({"modulus": -1}, "operation 0: chunk_modulus -1"),
        ({"chunk": 3, "width": 2}, "operation 0: chunk_offset 0"),
        ({"offset": 1, "step": 1, "repeat": 4}, "operation 0: chunk_offset 1"),
        ({"reduce": 2}, "operation 0: reduce_firings 2"),
        ({"merged_by": 0}, "operation 0: merged_by 0"),
        ({"merged_by": 9}, "operation 0: merged_by 9"),
    ],
)
def test_a_send_that_makes_no_sense_is_named(build, send, message):
    build.send(**{"source": 0, "target": 1, **send})
    assert problems_of(build) == [message]


@pytest.mark.parametrize(
    "send",
    [
        {"chunk": 2, "step": 2, "width": 2, "repeat": 5},
        {"offset": 1, "step": 1, "repeat": 3},
        {"offset": 3, "modulus": 1},
        {"width": 4, "modulus": 1},
        {"target": 0},
    ],
)
def test_a_send_at_the_edge_of_the_buffer_is_accepted(build, send):
    build.send(**{"source": 0, "target": 1, **send})
    validate_schedule(build.schedule())


def test_a_calculation_that_makes_no_sense_is_named(build):
    build.calc([0, 7], [np.inf, 1.0])
    assert problems_of(build) == ["operation 1: source 7", "operation 1: target 7", "operation 0: seconds inf"]


def test_a_receive_buffer_is_emptied_by_a_calculation_of_the_receiver(build):
    mine = build.calc(1)
    build.send(0, [1, 2], merged_by=mine)
    assert problems_of(build) == ["operation 2: merged_by 0"]


def test_dependencies_that_make_no_sense_are_named(build):
    send = build.send(0, 1)
    build.depend(send, 1)
    build.depend(-1, send)
    build.depend(send, send, until=2, offset=1)
    build.depend(send, send, delay_s=-1.0, offset=1)
    assert problems_of(build) == [
        "dependency 1: before -1",
        "dependency 0: after 1",
        "dependency 2: until 2",
        "dependency 3: delay_s -1.0",
    ]


def test_many_mistakes_of_one_kind_are_summed_up(build):
    build.send(0, np.full(100, 9))
    assert problems_of(build)[4:] == ["operation 4: target 9", "target is wrong in 95 more"]


def test_a_problem_says_where_it_is(build):
    build.send(0, 9)
    with pytest.raises(InputError, match=r"made up: operations\.0\.target: operation 0: target 9, ranks are 0 \.\. 3"):
        validate_schedule(build.schedule())


def test_operations_have_names(build):
    build.send(0, 1)
    build.calc(2)
    schedule = build.schedule()
    assert describe_operation(schedule, 0) == "send 0 -> 1 (operation 0)"
    assert describe_operation(schedule, 1) == "calculation on rank 2 (operation 1)"
