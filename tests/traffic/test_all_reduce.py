"""Bytes, messages, steps and symmetry of the all-reduce schedules, against closed forms."""

from __future__ import annotations

import time
from math import ceil, floor, log2

import numpy as np
import pytest

from simnet.traffic import (
    ALL_REDUCE,
    Kind,
    Schedule,
    butterfly_all_reduce,
    check_deadlock,
    count,
    mesh_all_reduce,
    message_steps,
    ring_all_reduce,
    star_all_reduce,
    tree_all_reduce,
    validate_schedule,
)

RANKS = [2, 3, 4, 5, 6, 7, 8, 9, 16]
ELEMENTS, ELEMENT_BYTES = 5040, 4  # divisible by every number of ranks above, and by 16 and 9
BUFFER_BYTES = ELEMENTS * ELEMENT_BYTES


def build(algorithm, ranks, **options):
    return algorithm(ranks, ELEMENTS, ELEMENT_BYTES, **options)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("algorithm", [ring_all_reduce, mesh_all_reduce])
def test_ring_and_mesh_send_the_least_possible(algorithm, ranks):
    """2 (N - 1)/N S from every rank (Patarasuk and Yuan 2009, theorem 1), in 2 N (N - 1) messages."""
    schedule = build(algorithm, ranks)
    assert schedule.bytes_sent() == pytest.approx([2 * (ranks - 1) / ranks * BUFFER_BYTES] * ranks, rel=1e-12)
    assert schedule.messages() == 2 * ranks * (ranks - 1)


@pytest.mark.parametrize("ranks", RANKS)
def test_ring_is_one_operation_and_one_dependency_a_rank(ranks):
    schedule = build(ring_all_reduce, ranks)
    assert len(schedule.operations) == len(schedule.dependencies) == ranks
    assert count(schedule).steps == 2 * (ranks - 1)


@pytest.mark.parametrize("ranks", RANKS)
def test_full_mesh_sends_everything_to_everybody(ranks):
    """(N - 1) S from every rank, in one step."""
    schedule = build(mesh_all_reduce, ranks, exchange="full")
    assert schedule.bytes_sent().tolist() == [(ranks - 1) * BUFFER_BYTES] * ranks
    assert count(schedule)[:2] == (1, ranks * (ranks - 1))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("hub", [0, 1])
def test_star_sends_to_its_hub_and_back(ranks, hub):
    """S from each of the others, (N - 1) S from the hub, in two steps."""
    schedule = build(star_all_reduce, ranks, hub=hub)
    sent = schedule.bytes_sent()
    assert sent[hub] == (ranks - 1) * BUFFER_BYTES
    assert np.delete(sent, hub).tolist() == [BUFFER_BYTES] * (ranks - 1)
    assert count(schedule)[:2] == (2, 2 * (ranks - 1))


@pytest.mark.parametrize("ranks", RANKS)
def test_tree_takes_two_logarithms_of_steps(ranks):
    """2 ceil(log2 N) steps for every N; N - 1 messages up and as many down; rank 0 sends once a round down."""
    schedule = build(tree_all_reduce, ranks)
    assert count(schedule)[:2] == (2 * ceil(log2(ranks)), 2 * (ranks - 1))
    assert schedule.bytes_sent()[0] == ceil(log2(ranks)) * BUFFER_BYTES


@pytest.mark.parametrize("ranks", RANKS)
def test_butterfly_takes_a_logarithm_of_steps_and_two_for_the_fold(ranks):
    """log2 N for powers of two, otherwise floor(log2 N) + 2; 2^L L messages, and two for each rank folded away."""
    rounds = floor(log2(ranks))
    folded = ranks - 2**rounds
    schedule = build(butterfly_all_reduce, ranks)
    assert count(schedule)[:2] == (rounds + 2 * (folded > 0), 2**rounds * rounds + 2 * folded)
    assert schedule.bytes_sent().max() == (rounds + (folded > 0)) * BUFFER_BYTES
    assert schedule.bytes_sent().min() == (1 if folded else rounds) * BUFFER_BYTES


@pytest.mark.parametrize("ranks", [*RANKS, 11, 13, 27, 100])
@pytest.mark.parametrize("algorithm", [ring_all_reduce, tree_all_reduce, butterfly_all_reduce])
def test_rounds_in_lockstep_share_no_link(algorithm, ranks):
    """In every step a rank sends at most one message and receives at most one, so each has its links to itself."""
    schedule = build(algorithm, ranks)
    steps = message_steps(schedule)
    for end in (schedule.operations.source, schedule.operations.target):
        used = np.stack([end[steps.operation], steps.step])
        assert len(np.unique(used, axis=1).T) == schedule.messages()


def firings(schedule: Schedule, renamed: np.ndarray) -> list[tuple]:
    """Each message as (source, target, step, bytes), with the ranks renamed."""
    ops, steps = schedule.operations, message_steps(schedule)
    return sorted(
        (renamed[ops.source[op]], renamed[ops.target[op]], step, schedule.firing_bytes(op, k))
        for op, k, step in zip(*(column.tolist() for column in steps), strict=True)
    )


@pytest.mark.parametrize("ranks", RANKS)
def test_ring_looks_the_same_from_every_rank(ranks):
    """Turning the ring by any number of ranks changes no message (with chunks of equal size)."""
    schedule = build(ring_all_reduce, ranks, divisible=True)
    turned = [firings(schedule, (np.arange(ranks) + turn) % ranks) for turn in range(ranks)]
    assert all(messages == turned[0] for messages in turned)


@pytest.mark.parametrize("exchange", ["scatter", "full"])
@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_mesh_looks_the_same_under_any_permutation(exchange, ranks):
    schedule = build(mesh_all_reduce, ranks, exchange=exchange, divisible=True)
    permuted = np.random.Generator(np.random.PCG64(1)).permutation(ranks)
    assert firings(schedule, permuted) == firings(schedule, np.arange(ranks))


@pytest.mark.parametrize("ranks", [4, 8, 16])
def test_butterfly_looks_the_same_with_any_bit_flipped(ranks):
    schedule = build(butterfly_all_reduce, ranks)
    for flipped in range(ranks):
        assert firings(schedule, np.arange(ranks) ^ flipped) == firings(schedule, np.arange(ranks))


@pytest.mark.parametrize("name", ALL_REDUCE)
def test_one_rank_has_nothing_to_do(name):
    schedule = build(ALL_REDUCE[name], 1)
    assert schedule.messages() == 0
    validate_schedule(schedule)
    check_deadlock(schedule)


@pytest.mark.parametrize("name", ALL_REDUCE)
@pytest.mark.parametrize("elements", [0, 1, 3])
def test_buffers_smaller_than_the_ranks_leave_chunks_empty(name, elements):
    schedule = ALL_REDUCE[name](5, elements, ELEMENT_BYTES)
    validate_schedule(schedule)
    assert schedule.bytes_sent().sum() == pytest.approx(
        {"butterfly": 10}.get(name, 8) * elements * ELEMENT_BYTES, rel=1e-12
    )


def test_impossible_requests_are_refused():
    with pytest.raises(ValueError, match="at least one rank"):
        build(ring_all_reduce, 0)
    with pytest.raises(ValueError, match="hub"):
        build(star_all_reduce, 4, hub=4)
    with pytest.raises(ValueError, match="'scatter' or 'full'"):
        build(mesh_all_reduce, 4, exchange="half")


@pytest.mark.parametrize("name", ALL_REDUCE)
@pytest.mark.parametrize("ranks", [2, 7, 64, 100])
def test_schedules_are_well_formed_and_live(name, ranks):
    schedule = build(ALL_REDUCE[name], ranks)
    validate_schedule(schedule)
    check_deadlock(schedule)
    assert set(np.unique(schedule.operations.kind)) <= {Kind.SEND, Kind.CALC}


@pytest.mark.parametrize(
    ("algorithm", "ranks", "operations", "limit_s"),
    [(ring_all_reduce, 65_536, 65_536, 0.3), (mesh_all_reduce, 256, 130_816, 0.5)],
)
def test_large_schedules_are_built_and_checked_at_once(algorithm, ranks, operations, limit_s):
    """Every number is there in a fraction of a second: operations, bytes and liveness."""
    started = time.perf_counter()
    schedule = algorithm(ranks, 25_000_001, 4)
    built_s = time.perf_counter() - started
    total = schedule.bytes_sent().sum()
    check_deadlock(schedule)
    assert len(schedule.operations) == operations
    assert total == pytest.approx(2 * (ranks - 1) * 25_000_001 * 4, rel=1e-12)
    assert built_s < limit_s
    assert time.perf_counter() - started < 2 * limit_s
