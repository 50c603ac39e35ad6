"""Schedules made of schedules: hierarchical and torus all-reduce, and phases in general."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.traffic import (
    ALL_REDUCE,
    COLLECTIVES,
    LEADER_PAIRS,
    SLICE_PAIRS,
    Partition,
    Phase,
    ScheduleBuilder,
    add_phases,
    all_reduce_goal,
    butterfly_all_reduce,
    check_deadlock,
    count,
    goal_faults,
    hierarchical_all_reduce,
    prove,
    ring_all_reduce,
    ring_send_recv,
    torus_all_reduce,
    tree_all_reduce,
    tree_broadcast,
    tree_reduce,
    validate_schedule,
)
from simnet.traffic.all_reduce import near_square

from .spoiling import without_dependency

ELEMENTS, ELEMENT_BYTES = 5040, 4
S = ELEMENTS * ELEMENT_BYTES
GRIDS = [(n, g) for n in (1, 2, 4, 6, 8, 9, 12, 15, 16) for g in range(1, n + 1) if n % g == 0]
SMALL = [(n, g) for n, g in GRIDS if n <= 4 or (n, g) in ((6, 2), (6, 3), (8, 2), (9, 3), (12, 4))]
INSIDE = [*SLICE_PAIRS, *LEADER_PAIRS]
PARTS = [ring_all_reduce, butterfly_all_reduce, tree_all_reduce]
STEPS = {name: algorithm.steps for name, algorithm in COLLECTIVES["all_reduce"].algorithms.items()}


@pytest.mark.parametrize(("ranks", "group"), SMALL)
@pytest.mark.parametrize("inside", INSIDE)
def test_any_algorithm_inside_and_across_sums_everything_everywhere(ranks, group, inside):
    for across in ALL_REDUCE:
        options = {"group": group, "inside": inside, "across": across}
        schedule = hierarchical_all_reduce(ranks, 29, 4, **options)
        assert goal_faults(schedule, all_reduce_goal(schedule), executions=1) == ()
        assert STEPS["hierarchical"](ranks, **options) == count(schedule).steps


@pytest.mark.parametrize(("ranks", "group"), GRIDS)
def test_phases_have_options_of_their_own(ranks, group):
    """Chunks inside and across that do not fit each other are cut to fit both: 3 and 2 by 6."""
    options = {
        "group": group,
        "inside": "tree",
        "inside_options": {"shape": "binary", "chunks": 3},
        "across": "tree",
        "across_options": {"chunks": 2},
    }
    schedule = hierarchical_all_reduce(ranks, 29, 4, **options)
    assert schedule.partition.chunks == 6
    prove(schedule, all_reduce_goal(schedule))
    assert STEPS["hierarchical"](ranks, **options) == count(schedule).steps


def test_three_levels():
    """2 GPUs a socket, 2 sockets a host, 4 hosts: reduce-scatters of 2 and 2, all-reduce of 4, all-gathers."""
    inner = {"group": 2, "across": "halving_doubling"}
    schedule = hierarchical_all_reduce(16, ELEMENTS, 4, group=2, across="hierarchical", across_options=inner)
    prove(schedule, all_reduce_goal(schedule))
    assert count(schedule).steps == 1 + (1 + 4 + 1) + 1
    assert schedule.bytes_sent() == pytest.approx([2 * 15 / 16 * S] * 16, rel=1e-12)


@pytest.mark.parametrize(("ranks", "group"), GRIDS)
def test_slices_send_as_little_as_one_ring_and_only_their_part_across(ranks, group):
    """2 (N - 1)/N S from each rank; across groups 2 (n - 1)/n S/g of it."""
    schedule = hierarchical_all_reduce(ranks, ELEMENTS, ELEMENT_BYTES, group=group)
    ops, groups = schedule.operations, ranks // group
    assert schedule.bytes_sent() == pytest.approx([2 * (ranks - 1) / ranks * S] * ranks, rel=1e-12)
    across = np.where(ops.source // group != ops.target // group, schedule.operation_bytes(), 0)
    sent_across = np.bincount(ops.source, weights=across, minlength=ranks)
    assert sent_across == pytest.approx([2 * (groups - 1) / groups * S / group] * ranks, rel=1e-12)
    assert count(schedule)[:2] == (
        2 * (group - 1) + 2 * (groups - 1),
        2 * ranks * (group - 1) + 2 * ranks * (groups - 1),
    )


@pytest.mark.parametrize(("ranks", "group"), GRIDS)
@pytest.mark.parametrize("inside", LEADER_PAIRS)
def test_only_leaders_talk_across(ranks, group, inside):
    """2 (g - 1) S in each of n groups and 2 (n - 1) S between them: 2 (N - 1) S in all, as along any tree."""
    schedule = hierarchical_all_reduce(ranks, ELEMENTS, ELEMENT_BYTES, group=group, inside=inside, across="tree")
    ops = schedule.operations
    across = ops.source // group != ops.target // group
    assert not (ops.source[across] % group).any()
    assert not (ops.target[across] % group).any()
    assert schedule.operation_bytes()[across].sum() == 2 * (ranks // group - 1) * S
    assert schedule.bytes_sent().sum() == 2 * (ranks - 1) * S


def test_one_group_or_groups_of_one_are_the_parts_alone():
    """Up to names of chunks: a ring all-reduce is its two halves."""
    for group in (1, 6):
        schedule = hierarchical_all_reduce(6, ELEMENTS, 4, group=group)
        assert count(schedule) == count(ring_all_reduce(6, ELEMENTS, 4))


@pytest.mark.parametrize(("ranks", "columns"), GRIDS)
def test_torus_needs_few_steps_and_sends_the_least_possible(ranks, columns):
    """2 (C - 1) + 2 (R - 1) steps, N times as many messages, 2 (N - 1)/N S from each rank."""
    rows = ranks // columns
    schedule = torus_all_reduce(ranks, ELEMENTS, ELEMENT_BYTES, rows=rows, columns=columns)
    prove(schedule, all_reduce_goal(schedule))
    steps = 2 * (columns - 1) + 2 * (rows - 1)
    assert count(schedule)[:2] == (steps, ranks * steps)
    assert schedule.bytes_sent() == pytest.approx([2 * (ranks - 1) / ranks * S] * ranks, rel=1e-12)
    for options in ({"rows": rows}, {"columns": columns}, {"rows": rows, "columns": columns}):
        assert count(torus_all_reduce(ranks, ELEMENTS, 4, **options)) == count(schedule)
        assert STEPS["torus"](ranks, **options) == steps


@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (4, 3), (1, 5), (5, 1)])
def test_torus_talks_to_neighbours_on_the_grid_only(rows, columns):
    ops = torus_all_reduce(rows * columns, 100, 4, rows=rows, columns=columns).operations
    down = (ops.target // columns - ops.source // columns) % rows
    right = (ops.target - ops.source) % columns
    assert set(zip(down.tolist(), right.tolist(), strict=True)) <= {(0, 1), (1, 0), (0, 0)}


@pytest.mark.parametrize(("ranks", "rows"), [(1, 1), (2, 1), (7, 1), (12, 3), (16, 4), (18, 3), (1000, 25)])
def test_grids_are_as_square_as_they_can_be(ranks, rows):
    assert near_square(ranks) == rows


def test_what_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="groups of equal size: 6 ranks, groups of 4"):
        hierarchical_all_reduce(6, 10, 4, group=4)
    with pytest.raises(ValueError, match="groups of 0"):
        hierarchical_all_reduce(6, 10, 4, group=0)
    with pytest.raises(ValueError, match="'star', 'ring'"):
        hierarchical_all_reduce(6, 10, 4, inside="star")
    with pytest.raises(ValueError, match="'ring', 'chain'"):
        hierarchical_all_reduce(6, 10, 4, across="chain")
    for options in ({"rows": 4}, {"columns": 4}, {"rows": 2, "columns": 4}, {"rows": 0}, {"columns": -2}):
        with pytest.raises(ValueError, match="rows times its columns: 6 ranks"):
            torus_all_reduce(6, 10, 4, **options)


def test_operations_are_those_of_the_parts_and_one_a_rank_between_phases():
    """64 hosts of 8: three rings in which each of 512 ranks takes part, and two joins."""
    schedule = hierarchical_all_reduce(512, ELEMENTS, 4, group=8)
    assert len(schedule.operations) == 3 * 512 + 2 * 512
    # One in each ring, two ends to be joined, twice, and two to wait for, twice.
    assert len(schedule.dependencies) == 3 * 512 + 2 * 2 * 512 + 2 * 2 * 512
    validate_schedule(schedule)
    check_deadlock(schedule)


def whole(ranks: int, chunks: int) -> ScheduleBuilder:
    return ScheduleBuilder("made of parts", ranks, Partition(60, 4, chunks))


@given(
    ranks=st.integers(2, 6),
    order=st.permutations(range(6)),
    factor=st.integers(1, 3),
    before=st.integers(0, 2),
    name=st.sampled_from(sorted(ALL_REDUCE)),
)
@settings(max_examples=60, deadline=None)
def test_a_part_does_to_its_ranks_and_chunks_what_it_does_alone(ranks, order, factor, before, name):
    """On any ranks in any order and on a range of chunks that are cut finer; others keep what they have."""
    part = ALL_REDUCE[name](ranks, 60, 4)
    chunks = before + factor * part.partition.chunks + 1
    build = whole(6, chunks)
    chosen = order[:ranks]
    add_phases(build, [Phase(part, [chosen], chunk=before, factor=factor)])
    schedule = build.schedule()
    goal = all_reduce_goal(schedule, chosen, chosen)
    inside = (np.arange(chunks) >= before) & (np.arange(chunks) < chunks - 1)
    goal.holds[:, ~inside] = False
    prove(schedule, goal)
    assert count(schedule)[:2] == count(part)[:2]


@pytest.mark.parametrize(("first", "second"), [(a, b) for a in PARTS for b in PARTS])
def test_steps_of_phases_add_up(first, second):
    one, other = first(5, 60, 4), second(5, 60, 4)
    build = whole(5, 5)
    parts = [(one, 5 // one.partition.chunks), (other, 5 // other.partition.chunks)]
    add_phases(build, [Phase(part, [range(5)], factor=factor) for part, factor in parts])
    assert count(build.schedule()).steps == count(one).steps + count(other).steps


def test_ranks_that_have_nothing_to_do_with_each_other_do_not_wait():
    """Ranks 0 and 1 do 8 steps, ranks 2 and 3 one; then all pairs 1 each: 9 steps for some, 2 for the others."""
    long, short = tree_broadcast(2, 60, 4, chunks=8), tree_broadcast(2, 60, 4)
    build = whole(4, 8)
    add_phases(
        build, [Phase(long, [[0, 1]]), Phase(short, [[2, 3]], factor=8), Phase(short, [[0, 1], [2, 3]], factor=8)]
    )
    schedule = build.schedule()
    assert count(schedule).steps == 9
    deps, ops = schedule.dependencies, schedule.operations
    assert not (ops.source[deps.before] // 2 != ops.source[deps.after] // 2).any()


def test_phases_without_operations_are_left_out():
    nothing, something = ring_all_reduce(1, 60, 4), ring_all_reduce(3, 60, 4)
    build = whole(3, 3)
    alone = Phase(nothing, [[0], [1], [2]])
    add_phases(build, [alone, Phase(something, [range(3)]), alone])
    schedule = build.schedule()
    assert (len(schedule.operations), len(schedule.dependencies)) == (3, 3)


def test_a_phase_waits_at_both_ends_for_the_one_before():
    """A reduce to rank 0, then rank 1 sends on: without the wait of rank 1, which was to be read until then, a race."""
    build = whole(3, 1)
    add_phases(build, [Phase(tree_reduce(3, 60, 4), [[0, 1, 2]]), Phase(tree_broadcast(3, 60, 4), [[0, 1, 2]])])
    schedule = build.schedule()
    goal = all_reduce_goal(schedule)
    prove(schedule, goal)
    assert goal_faults(without_dependency(schedule, np.flatnonzero(schedule.dependencies.offset == 0)), goal)


def test_receive_buffers_delays_and_sizes_are_taken_along():
    build = ScheduleBuilder("part", 2, Partition(1, 4))
    calc = build.calc([0, 1], 0.25, stream=3, repeat=2)
    send = build.send([0, 1], [1, 0], width=0, fixed_bytes=[5.0, 7.0], repeat=2, merged_by=calc[::-1])
    build.depend(send, calc, delay_s=0.5, offset=-1)
    part = build.schedule()
    together = whole(4, 4)
    add_phases(together, [Phase(ring_send_recv(4, 1, 4), [range(4)]), Phase(part, [[3, 1], [0, 2]])])
    schedule = together.schedule()
    validate_schedule(schedule)
    ops, deps = schedule.operations, schedule.dependencies
    by = ops.merged_by[-4:]
    assert ops.source[-4:].tolist() == [3, 1, 0, 2]
    assert ops.source[by].tolist() == ops.target[-4:].tolist() == [1, 3, 2, 0]
    assert ops.fixed_bytes[-4:].tolist() == [5, 7, 5, 7]
    assert (ops.seconds[by].tolist(), ops.stream[by].tolist(), ops.repeat[by].tolist()) == (
        [0.25] * 4,
        [3] * 4,
        [2] * 4,
    )
    delayed = deps.delay_s == 0.5
    assert (delayed.sum(), set(deps.offset[delayed].tolist())) == (4, {-1})
