"""Every collective by every algorithm: what it achieves, what it sends, in how many steps; what is spoilt is caught."""

from __future__ import annotations

from math import ceil, log2

import numpy as np
import pytest

from simnet.errors import InputError
from simnet.traffic import (
    ALL_REDUCE,
    COLLECTIVES,
    Kind,
    Partition,
    Schedule,
    check_deadlock,
    count,
    direct_all_gather,
    direct_all_to_all,
    direct_reduce_scatter,
    goal_faults,
    mesh_all_reduce,
    message_steps,
    pairwise_all_to_all,
    prove,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    ring_send_recv,
    tree_all_reduce,
    tree_broadcast,
    tree_reduce,
    validate_schedule,
)

from .spoiling import sends, with_value, without_dependency

RANKS = [2, 3, 4, 5, 6, 7, 8, 9, 16]
ELEMENTS, ELEMENT_BYTES = 5040, 4  # a multiple of every number of ranks above
S = ELEMENTS * ELEMENT_BYTES
EVERY = [(name, algorithm) for name, collective in COLLECTIVES.items() for algorithm in collective.algorithms]
NEW = [(name, algorithm) for name, algorithm in EVERY if name != "all_reduce"]
ROOTED = [(name, algorithm) for name, algorithm in EVERY if name in ("broadcast", "reduce")]


def build(name: str, algorithm: str, ranks: int, elements: int = 29, **options) -> Schedule:
    return COLLECTIVES[name].algorithms[algorithm].make(ranks, elements, ELEMENT_BYTES, **options)


def faults_of(name: str, schedule: Schedule) -> tuple[str, ...]:
    try:
        return goal_faults(schedule, COLLECTIVES[name].goal(schedule), executions=0)
    except InputError as error:
        return tuple(map(str, error.problems))


@pytest.mark.parametrize("ranks", [1, *RANKS])
@pytest.mark.parametrize(("name", "algorithm"), NEW)
def test_everybody_ends_with_what_the_collective_is_for(name, algorithm, ranks):
    """Proved chunk by chunk, so for buffers of any size."""
    schedule = build(name, algorithm, ranks)
    prove(schedule, COLLECTIVES[name].goal(schedule))


@pytest.mark.parametrize("ranks", [2, 3, 6])
@pytest.mark.parametrize(("name", "algorithm"), ROOTED)
def test_any_rank_may_be_the_root(name, algorithm, ranks):
    for root in range(ranks):
        schedule = build(name, algorithm, ranks, root=root)
        prove(schedule, COLLECTIVES[name].goal(schedule, root=root))
        assert goal_faults(schedule, COLLECTIVES[name].goal(schedule, root=(root + 1) % ranks))


@pytest.mark.parametrize("ranks", [1, *RANKS, 33])
@pytest.mark.parametrize(("name", "algorithm"), EVERY)
def test_steps_by_formula_are_those_that_are_counted(name, algorithm, ranks):
    """Messages in the longest chain: formula of N against one by one."""
    schedule = build(name, algorithm, ranks)
    assert COLLECTIVES[name].algorithms[algorithm].steps(ranks) == count(schedule).steps


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_steps_depend_on_the_options_that_change_them(ranks):
    algorithms = COLLECTIVES["all_reduce"].algorithms
    for exchange in ("scatter", "full"):
        schedule = mesh_all_reduce(ranks, 29, 4, exchange=exchange)
        assert algorithms["mesh"].steps(ranks, exchange=exchange) == count(schedule).steps
    assert algorithms["star"].steps(ranks, hub=ranks - 1) == algorithms["star"].steps(ranks)


def test_every_all_reduce_has_its_place_in_the_registry():
    assert {n: a.make for n, a in COLLECTIVES["all_reduce"].algorithms.items()} == dict(ALL_REDUCE)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    "make",
    [
        ring_reduce_scatter,
        direct_reduce_scatter,
        ring_all_gather,
        direct_all_gather,
        direct_all_to_all,
        pairwise_all_to_all,
    ],
)
def test_what_is_shared_out_sends_the_least_possible(make, ranks):
    """(N - 1)/N S from every rank, in N (N - 1) messages: each has a chunk for, or from, every other."""
    schedule = make(ranks, ELEMENTS, ELEMENT_BYTES)
    assert schedule.bytes_sent() == pytest.approx([(ranks - 1) / ranks * S] * ranks, rel=1e-12)
    assert schedule.messages() == ranks * (ranks - 1)


@pytest.mark.parametrize("ranks", RANKS)
def test_ring_halves_are_one_operation_and_one_dependency_a_rank(ranks):
    for make in (ring_reduce_scatter, ring_all_gather):
        schedule = make(ranks, ELEMENTS, ELEMENT_BYTES)
        assert len(schedule.operations) == len(schedule.dependencies) == ranks


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("root", [0, 1])
def test_trees_send_the_whole_buffer_once_to_or_from_each_rank_but_the_root(ranks, root):
    """N - 1 messages of S; broadcast: ceil(log2 N) S from the root; reduce: S from each of the others."""
    broadcast = tree_broadcast(ranks, ELEMENTS, ELEMENT_BYTES, root=root)
    reduce = tree_reduce(ranks, ELEMENTS, ELEMENT_BYTES, root=root)
    assert broadcast.messages() == reduce.messages() == ranks - 1
    assert broadcast.bytes_sent()[root] == ceil(log2(ranks)) * S
    assert reduce.bytes_sent().tolist() == [0 if rank == root else S for rank in range(ranks)]
    assert sorted(broadcast.operations.target.tolist()) == [rank for rank in range(ranks) if rank != root]


@pytest.mark.parametrize("ranks", RANKS)
def test_neighbours_send_their_buffer(ranks):
    schedule = ring_send_recv(ranks, ELEMENTS, ELEMENT_BYTES)
    assert schedule.bytes_sent().tolist() == [S] * ranks
    assert count(schedule)[:2] == (1, ranks)


@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
@pytest.mark.parametrize("elements", [0, 1, 3, 10, 29])
@pytest.mark.parametrize("make", [direct_all_to_all, pairwise_all_to_all])
def test_every_rank_cuts_its_shares_alike(make, elements, ranks):
    """The share for rank d is chunk d of E elements cut into N: whole elements, the longer ones first."""
    schedule = make(ranks, elements, ELEMENT_BYTES)
    ops, shares = schedule.operations, Partition(elements, ELEMENT_BYTES, ranks)
    for operation in sends(schedule):
        assert schedule.firing_bytes(operation, 0) == shares.range_bytes(ops.target[operation], 1)


def messages(schedule: Schedule, *, later: int = 0) -> set[tuple]:
    """Each message as (source, target, step, chunk, bytes, whether it adds), `later` steps on."""
    ops, steps = schedule.operations, message_steps(schedule)
    return {
        (
            int(ops.source[op]),
            int(ops.target[op]),
            step + later,
            schedule.chunk(op, k),
            schedule.firing_bytes(op, k),
            k < int(ops.reduce_firings[op]),
        )
        for op, k, step in zip(*(column.tolist() for column in steps), strict=True)
    }


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    ("whole", "first", "second"),
    [
        (mesh_all_reduce, direct_reduce_scatter, direct_all_gather),
        (tree_all_reduce, tree_reduce, tree_broadcast),
    ],
)
def test_an_all_reduce_is_its_two_halves_one_after_the_other(whole, first, second, ranks):
    one, other = first(ranks, 29, 4), second(ranks, 29, 4)
    assert messages(whole(ranks, 29, 4)) == messages(one) | messages(other, later=count(one).steps)


@pytest.mark.parametrize("ranks", RANKS)
def test_a_ring_all_reduce_is_its_two_halves_with_chunks_renamed(ranks):
    """What a reduce-scatter leaves on rank r is chunk r there, and chunk r + 1 in the all-reduce."""
    one, other = ring_reduce_scatter(ranks, ELEMENTS, 4), ring_all_gather(ranks, ELEMENTS, 4)
    halves = messages(one) | messages(other, later=ranks - 1)
    renamed = {(source, target, step, (chunk + 1) % ranks, *rest) for source, target, step, chunk, *rest in halves}
    assert messages(ring_all_reduce(ranks, ELEMENTS, 4)) == renamed


@pytest.mark.parametrize("ranks", [*RANKS, 11, 27])
@pytest.mark.parametrize(
    "make", [ring_reduce_scatter, ring_all_gather, tree_broadcast, tree_reduce, pairwise_all_to_all, ring_send_recv]
)
def test_rounds_in_lockstep_share_no_link(make, ranks):
    """In every step a rank sends at most one message and receives at most one, so each has its links to itself."""
    schedule = make(ranks, ELEMENTS, ELEMENT_BYTES)
    steps = message_steps(schedule)
    for end in (schedule.operations.source, schedule.operations.target):
        used = np.stack([end[steps.operation], steps.step])
        assert len(np.unique(used, axis=1).T) == schedule.messages()


@pytest.mark.parametrize(("name", "algorithm"), EVERY)
def test_one_rank_has_nothing_to_do_and_none_is_refused(name, algorithm):
    schedule = build(name, algorithm, 1)
    assert schedule.messages() == 0
    validate_schedule(schedule)
    check_deadlock(schedule)
    with pytest.raises(ValueError, match="at least one rank"):
        build(name, algorithm, 0)


@pytest.mark.parametrize("make", [tree_broadcast, tree_reduce])
@pytest.mark.parametrize("root", [-1, 4])
def test_a_root_that_does_not_exist_is_refused(make, root):
    with pytest.raises(ValueError, match=r"the root of a tree .* is one of its ranks 0 \.\. 3"):
        make(4, 29, 4, root=root)


@pytest.mark.parametrize("ranks", [2, 7, 33])
@pytest.mark.parametrize(("name", "algorithm"), EVERY)
def test_schedules_are_well_formed_and_live(name, algorithm, ranks):
    schedule = build(name, algorithm, ranks, ELEMENTS)
    validate_schedule(schedule)
    check_deadlock(schedule)


# -- what is spoilt is caught ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [3, 5])
@pytest.mark.parametrize(("name", "algorithm"), NEW)
def test_adding_and_replacing_swapped_is_caught(name, algorithm, ranks):
    """In every send. Where nothing is to be added, something is added to what the memory held before."""
    schedule = build(name, algorithm, ranks)
    for operation in sends(schedule):
        added, repeat = schedule.operations.reduce_firings[operation], schedule.operations.repeat[operation]
        for wrong in {max(added - 1, 0), min(added + 1, repeat)} - {added}:
            assert faults_of(name, with_value(schedule, "reduce_firings", operation, wrong))


@pytest.mark.parametrize("ranks", [3, 5])
@pytest.mark.parametrize(("name", "algorithm"), [case for case in NEW if case not in ROOTED])
def test_a_wrong_chunk_is_caught(name, algorithm, ranks):
    schedule = build(name, algorithm, ranks)
    for operation in sends(schedule):
        wrong = (schedule.operations.chunk_first[operation] + 1) % schedule.partition.chunks
        assert faults_of(name, with_value(schedule, "chunk_first", operation, wrong))


@pytest.mark.parametrize("ranks", [3, 5])
@pytest.mark.parametrize(("name", "algorithm"), NEW)
def test_a_message_that_goes_to_the_wrong_rank_is_caught(name, algorithm, ranks):
    """Where there are other ways to the goal, those whose receiver then lacks it, whichever way the others go."""
    schedule = build(name, algorithm, ranks)
    among = {"tree": slice(-1, None)}.get(algorithm, slice(None))
    if name == "reduce" and algorithm == "chain":
        among = slice(1)
    elif algorithm == "halving":
        among = slice(-ranks, None)
    for operation in sends(schedule)[among]:
        source, target = schedule.operations.source[operation], schedule.operations.target[operation]
        for wrong in set(range(ranks)) - {source, target}:
            assert faults_of(name, with_value(schedule, "target", operation, wrong))


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize(("name", "algorithm"), NEW)
def test_a_message_that_carries_nothing_is_caught(name, algorithm, ranks):
    schedule = build(name, algorithm, ranks)
    for operation in sends(schedule):
        assert faults_of(name, with_value(schedule, "chunk_width", operation, 0))


@pytest.mark.parametrize("ranks", [3, 5, 8])
@pytest.mark.parametrize("name", ["reduce_scatter", "all_gather"])
def test_a_firing_too_few_is_caught(name, ranks):
    schedule = build(name, "ring", ranks)
    for operation in sends(schedule):
        spoilt = with_value(schedule, "repeat", operation, ranks - 2)
        assert faults_of(name, with_value(spoilt, "reduce_firings", operation, (ranks - 2) * (name != "all_gather")))


@pytest.mark.parametrize("ranks", [3, 5, 8])
@pytest.mark.parametrize("name", ["reduce_scatter", "all_gather"])
def test_any_dependency_dropped_from_a_ring_is_caught(name, ranks):
    """None of them is there for time only: what a rank sends on must have arrived."""
    schedule = build(name, "ring", ranks)
    for row in range(len(schedule.dependencies)):
        assert faults_of(name, without_dependency(schedule, row))


@pytest.mark.parametrize("ranks", [3, 4, 5, 8, 9])
@pytest.mark.parametrize(("name", "algorithm"), ROOTED)
def test_any_dependency_dropped_from_a_tree_is_caught_unless_it_is_for_lockstep_only(name, algorithm, ranks):
    """What the root itself sends or receives in one round and the next needs no order; all else is passed on."""
    schedule = build(name, algorithm, ranks)
    deps, ops = schedule.dependencies, schedule.operations
    of_root = ops.source == 0 if name == "broadcast" else ops.target == 0
    for row in range(len(deps)):
        for_time = of_root[deps.before[row]] and of_root[deps.after[row]]
        assert bool(faults_of(name, without_dependency(schedule, row))) == (not for_time)


def test_rounds_of_a_pairwise_all_to_all_are_for_time_only():
    schedule = pairwise_all_to_all(6, 29, 4)
    assert faults_of("all_to_all", without_dependency(schedule, slice(None))) == ()


def test_what_the_memory_held_before_is_named():
    schedule = with_value(ring_send_recv(3, 29, 4), "reduce_firings", 0, 1)
    assert faults_of("send_recv", schedule) == ("rank 1 ends with chunk 0 that counts what its memory held before",)


def test_operations_are_sends_only():
    """None of these needs a receive buffer or a join."""
    for name, algorithm in NEW:
        assert set(build(name, algorithm, 6).operations.kind.tolist()) == {Kind.SEND}
