"""Pipelines: the order of passes on each stage, liveness, bytes, milestones; times are in the tests of the fabric."""

from __future__ import annotations

import time
from itertools import accumulate, pairwise

import numpy as np
import pytest

from simnet.traffic import (
    ALL_REDUCE,
    Kind,
    Segment,
    Stage,
    Step,
    check_deadlock,
    count,
    pipeline_step,
    ring_all_reduce,
    validate_schedule,
)
from simnet.traffic.graph import unfold

ONE = Stage((Segment(1.0),), (Segment(2.0),), 100.0, 200.0)
SPLIT = Stage(
    (Segment(1.0, 48.0), Segment(1.0)), (Segment(2.0, 48.0, 8.0), Segment(1.0, 96.0), Segment(1.0)), 10.0, 20.0
)


def passes(place: int, stages: int, micro_batches: int, order: str) -> list[tuple[str, int]]:
    """The order of passes on a stage, written out: forward F and backward B with the number of the micro-batch."""
    forward = [("F", k) for k in range(micro_batches)]
    backward = [("B", k) for k in range(micro_batches)]
    ahead = min(stages - place, micro_batches) if order == "1f1b" else micro_batches
    turns = [each for pair in zip(backward, forward[ahead:], strict=False) for each in pair]
    return forward[:ahead] + turns + backward[micro_batches - ahead :]


@pytest.mark.parametrize("order", ["gpipe", "1f1b"])
@pytest.mark.parametrize("micro_batches", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_each_stage_goes_through_its_passes_in_one_order(stages, micro_batches, order):
    """Each pass waits for the one before it: w - 1 forward, then by turns, then backward. With one segment each, a
    pass is a firing of one calculation."""
    schedule = pipeline_step([ONE] * stages, micro_batches, order=order).schedule
    firings, ops = unfold(schedule, 10_000), schedule.operations
    waits = set(zip(firings.before.tolist(), firings.after.tolist(), strict=True))
    for place in range(stages):
        forward, backward = np.flatnonzero((ops.kind == Kind.CALC) & (ops.source == place))
        assert (ops.seconds[forward], ops.seconds[backward]) == (1.0, 2.0)
        first = {"F": int(firings.first[forward]), "B": int(firings.first[backward])}
        for (way, k), (next_way, next_k) in pairwise(passes(place, stages, micro_batches, order)):
            assert (first[way] + k, first[next_way] + next_k) in waits


@pytest.mark.parametrize("micro_batches", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_1f1b_holds_at_most_as_many_micro_batches_as_stages_follow(stages, micro_batches):
    """Forward passes that no backward pass has undone: min(p - s, m) on stage s, so at most p; with GPipe m."""

    def in_flight(place: int, order: str) -> int:
        order_of_passes = passes(place, stages, micro_batches, order)
        return max(accumulate(1 if way == "F" else -1 for way, _ in order_of_passes))

    for place in range(stages):
        assert in_flight(place, "1f1b") == min(stages - place, micro_batches)
        assert in_flight(place, "gpipe") == micro_batches


@pytest.mark.parametrize("tensor", [1, 2, 3])
@pytest.mark.parametrize("order", ["gpipe", "1f1b"])
@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_no_pipeline_waits_for_itself(stages, order, tensor):
    for micro_batches in (1, 3, 4, 9):
        step = pipeline_step([SPLIT, ONE, SPLIT, SPLIT, ONE][:stages], micro_batches, order=order, tensor=tensor)
        validate_schedule(step.schedule)
        check_deadlock(step.schedule)


@pytest.mark.parametrize("name", ALL_REDUCE)
def test_any_all_reduce_may_be_used_within_layers(name):
    step = pipeline_step([SPLIT] * 2, 3, order="1f1b", tensor=4, all_reduce=ALL_REDUCE[name])
    validate_schedule(step.schedule)
    check_deadlock(step.schedule)


def within_layers(step: Step) -> np.ndarray:
    """What each worker sends to others of its stage."""
    ops = step.schedule.operations
    beside = ops.source // 4 == ops.target // 4
    sent = np.where(beside, step.schedule.operation_bytes(), 0.0)
    return np.bincount(ops.source, weights=sent, minlength=step.workers)[: step.workers]


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_a_ring_within_layers_sends_twice_its_share_of_all_activations(micro_batches):
    """2 (t - 1)/t of 48 + 48 + 96 bytes a micro-batch from each rank, with t = 4."""
    step = pipeline_step([SPLIT] * 2, micro_batches, tensor=4)
    assert within_layers(step).tolist() == [2 * 3 / 4 * (48 + 48 + 96) * micro_batches] * 8


def test_activations_that_are_no_whole_elements_keep_their_size():
    """10 bytes in elements of about 4: 3 of 10/3 bytes; the sum over the ranks is 2 (t - 1) 10."""
    stage = Stage((Segment(1.0, 10.0),), (Segment(1.0),))
    assert within_layers(pipeline_step([stage], 2, tensor=4)).sum() == pytest.approx(2 * 2 * 3 * 10, rel=1e-12)
    cut = pipeline_step([stage], 2, tensor=4, divisible=True)
    assert within_layers(cut) == pytest.approx([2 * 2 * 3 / 4 * 10] * 4, rel=1e-12)


@pytest.mark.parametrize("tensor", [1, 2])
@pytest.mark.parametrize("order", ["gpipe", "1f1b"])
def test_activations_go_forward_and_their_gradients_back(order, tensor):
    """100 bytes a micro-batch to the next stage, 200 to the one before, between ranks of the same number."""
    schedule = pipeline_step([ONE] * 3, 5, order=order, tensor=tensor).schedule
    ops, sent = schedule.operations, schedule.operation_bytes()
    found = {(int(ops.source[i]), int(ops.target[i])): sent[i] for i in np.flatnonzero(ops.kind == Kind.SEND).tolist()}
    workers = range(2 * tensor)
    assert found == {(rank, rank + tensor): 500.0 for rank in workers} | {
        (rank + tensor, rank): 1000.0 for rank in workers
    }


def test_messages_wait_for_each_other_there_and_back():
    """One micro-batch: p - 1 messages there and as many back. GPipe with 2 stages: m there, then m back."""
    for order in ("gpipe", "1f1b"):
        assert count(pipeline_step([ONE] * 3, 1, order=order).schedule).steps == 4
    assert count(pipeline_step([ONE] * 2, 4, order="gpipe").schedule)[:2] == (8, 8)


def test_operations_do_not_grow_with_micro_batches():
    few, many = (pipeline_step([SPLIT] * 4, m, order="1f1b", tensor=2).schedule for m in (8, 1000))
    assert len(few.operations) == len(many.operations)
    assert len(few.dependencies) == len(many.dependencies)


def test_a_large_pipeline_is_built_and_checked_at_once():
    """4 stages of 4 ranks and 12 segments each way: 13,712 dependencies, of which circles of waits go through most."""
    started = time.perf_counter()
    layers = Stage((Segment(1.0, 48.0),) * 12, (Segment(2.0, 48.0),) * 12)
    step = pipeline_step([layers] * 4, 16, order="1f1b", tensor=4)
    check_deadlock(step.schedule)
    assert time.perf_counter() - started < 3


def test_there_is_a_milestone_for_each_backward_segment_of_each_worker():
    """3, 3, 1 and 1 segments: 8 milestones, ranks 4 to 11; each has one calculation of 0 s that fires once."""
    step = pipeline_step([SPLIT, ONE], 3, tensor=2)
    assert step.workers == 4
    assert step.schedule.ranks == 12
    assert step.ready.tolist() == [[4, 5, 6], [7, 8, 9], [10, -1, -1], [11, -1, -1]]
    assert step.milestone_owner.tolist() == [0, 0, 0, 1, 1, 1, 2, 3]
    ops = step.schedule.operations
    milestones = np.flatnonzero(ops.source >= 4)
    assert sorted(ops.source[milestones].tolist()) == list(range(4, 12))
    assert set(ops.seconds[milestones]) == {0.0}
    assert set(ops.repeat[milestones]) == {1}
    assert set(ops.kind[milestones]) == {Kind.CALC}


def test_one_stage_and_one_micro_batch_is_a_step_forward_and_back():
    """Two calculations that follow each other, and one milestone."""
    step = pipeline_step([ONE], 1)
    ops, deps = step.schedule.operations, step.schedule.dependencies
    assert ops.seconds.tolist() == [1.0, 2.0, 0.0]
    assert {(0, 1), (1, 2)} <= set(zip(deps.before.tolist(), deps.after.tolist(), strict=True))
    assert step.schedule.messages() == 0


def test_all_calculations_of_a_stage_share_a_stream_and_memory_is_taken_beside():
    ops = pipeline_step([SPLIT], 2, tensor=2, all_reduce=ring_all_reduce).schedule.operations
    computing = (ops.kind == Kind.CALC) & (ops.seconds > 0)
    assert set(ops.stream[computing].tolist()) == {0}
    assert ops.fixed_bytes[ops.kind == Kind.MEMORY].tolist() == [8.0, 8.0]


@pytest.mark.parametrize(
    ("stages", "micro_batches", "options", "message"),
    [
        ([], 1, {}, "the stages of a pipeline step are at least 1: 0"),
        ([ONE], 0, {}, "the micro-batches of a pipeline step are at least 1: 0"),
        ([ONE], 1, {"tensor": 0}, "the ranks of a stage of a pipeline step are at least 1: 0"),
        ([ONE], 1, {"order": "2f2b"}, "'gpipe' or '1f1b': '2f2b'"),
        ([Stage((Segment(1.0),), ())], 1, {}, "at least one segment forward and one backward"),
    ],
)
def test_impossible_pipelines_are_refused(stages, micro_batches, options, message):
    with pytest.raises(ValueError, match=message):
        pipeline_step(stages, micro_batches, **options)
