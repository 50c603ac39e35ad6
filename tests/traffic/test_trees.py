"""Trees and chains, chunk by chunk: their shapes, what they do, and steps, messages and bytes against closed forms."""

from __future__ import annotations

from math import ceil, floor, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.traffic import (
    COLLECTIVES,
    all_reduce_goal,
    chain_broadcast,
    chain_reduce,
    count,
    double_tree_all_reduce,
    goal_faults,
    prove,
    tree_all_reduce,
    tree_broadcast,
    tree_reduce,
)
from simnet.traffic.trees import binary_tree, chain, in_order_tree

from .spoiling import without_dependency

RANKS = [2, 3, 4, 5, 6, 7, 8, 9, 16]
CHUNKS = [1, 2, 3, 8]
ELEMENTS, ELEMENT_BYTES = 5040, 4
S = ELEMENTS * ELEMENT_BYTES


def depths(parent: np.ndarray) -> list[int]:
    """The depth of each node, by walking up; fails where that does not end at the root."""
    found = []
    for node in range(len(parent)):
        depth = 0
        while parent[node] >= 0:
            node, depth = parent[node], depth + 1
            assert depth < len(parent)
        found.append(depth)
    return found


@pytest.mark.parametrize("nodes", [*range(1, 40), 63, 64, 65, 1000])
@pytest.mark.parametrize("shape", [binary_tree, in_order_tree])
def test_binary_trees_have_one_root_two_children_at_most_and_the_least_depth(shape, nodes):
    parent = shape(nodes)
    assert (parent < 0).sum() == 1
    assert np.bincount(parent[parent >= 0], minlength=1).max() <= 2
    assert max(depths(parent)) == floor(log2(nodes))


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_a_chain_is_as_deep_as_it_is_long(nodes):
    assert depths(chain(nodes)) == list(range(nodes))


@pytest.mark.parametrize("nodes", [*range(1, 40), 1000])
def test_in_order_every_other_node_is_a_leaf_and_subtrees_do_not_interleave(nodes):
    parent = in_order_tree(nodes)
    assert not set(parent.tolist()) & set(range(0, nodes, 2))
    for node in range(nodes):
        above = parent[node]
        if above >= 0:
            between = range(min(node, above) + 1, max(node, above))
            assert all(parent[other] in (node, *between) for other in between)


def children(ranks: int, tree: int) -> np.ndarray:
    """How many messages of one tree of the double tree go up to each rank, for one chunk."""
    ops = double_tree_all_reduce(ranks, 1, 1, chunks=1).operations
    up = (ops.reduce_firings > 0) & (ops.chunk_offset == tree)
    return np.bincount(ops.target[up], minlength=ranks)


@pytest.mark.parametrize("ranks", [*range(2, 40), 100, 1001])
def test_no_rank_is_an_inner_one_of_both_trees(ranks):
    """Sanders, Speck and Träff 2009; and each tree reaches all."""
    first, second = children(ranks, 0), children(ranks, 1)
    assert not ((first > 0) & (second > 0)).any()
    assert first.sum() == second.sum() == ranks - 1


@pytest.mark.parametrize("chunks", [1, 2, 5])
@pytest.mark.parametrize("ranks", [1, *RANKS])
def test_chunks_of_every_tree_end_summed_everywhere(ranks, chunks):
    for schedule in (
        tree_all_reduce(ranks, 29, 4, chunks=chunks),
        tree_all_reduce(ranks, 29, 4, shape="binary", chunks=chunks),
        double_tree_all_reduce(ranks, 29, 4, chunks=chunks),
    ):
        prove(schedule, all_reduce_goal(schedule))


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("ranks", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("name", ["broadcast", "reduce"])
def test_every_root_of_every_shape_gives_or_gets_all(name, ranks, chunks):
    algorithms = COLLECTIVES[name].algorithms
    for root in range(ranks):
        for algorithm, options in (("chain", {}), ("tree", {}), ("tree", {"shape": "binary"})):
            schedule = algorithms[algorithm].make(ranks, 29, 4, root=root, chunks=chunks, **options)
            prove(schedule, COLLECTIVES[name].goal(schedule, root=root))
            assert algorithms[algorithm].steps(ranks, root=root, chunks=chunks, **options) == count(schedule).steps


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(("shape", "levels"), [("binomial", ceil), ("binary", floor)])
def test_tree_takes_its_levels_twice_and_a_step_for_each_further_chunk(shape, levels, ranks, chunks):
    """2 log2 N + m - 1 steps, rounded up or down; 2 (N - 1) m messages, 2 (N - 1) S bytes."""
    schedule = tree_all_reduce(ranks, ELEMENTS, ELEMENT_BYTES, shape=shape, chunks=chunks)
    assert count(schedule) == (2 * levels(log2(ranks)) + chunks - 1, 2 * (ranks - 1) * chunks, 2 * (ranks - 1) * S)
    assert (
        COLLECTIVES["all_reduce"].algorithms["tree"].steps(ranks, shape=shape, chunks=chunks) == count(schedule).steps
    )


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("ranks", RANKS)
def test_a_rank_of_a_binary_tree_sends_to_its_parent_and_its_children(ranks, chunks):
    """S each: the root k S for its k children, the others (k + 1) S; the children of r are 2r + 1 and 2r + 2."""
    schedule = tree_all_reduce(ranks, ELEMENTS, ELEMENT_BYTES, shape="binary", chunks=chunks)
    below = [sum(child < ranks for child in (2 * r + 1, 2 * r + 2)) for r in range(ranks)]
    assert schedule.bytes_sent().tolist() == [(below[r] + (r > 0)) * S for r in range(ranks)]


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("ranks", RANKS)
def test_double_tree_shares_what_a_tree_sends_among_all(ranks, chunks):
    """2 floor(log2 N) + m - 1 steps, 4 (N - 1) m messages, 2 (N - 1) S bytes.

    Each rank sends S/2 for each child and each parent, at most 2 S, and receives as much.
    """
    schedule = double_tree_all_reduce(ranks, ELEMENTS, ELEMENT_BYTES, chunks=chunks)
    assert count(schedule)[:2] == (2 * floor(log2(ranks)) + chunks - 1, 4 * (ranks - 1) * chunks)
    ops = schedule.operations
    neighbours = np.bincount(ops.source, minlength=ranks)  # a send for each
    assert schedule.bytes_sent() == pytest.approx(neighbours * S / 2, rel=1e-12)
    assert schedule.bytes_sent().max() <= 2 * S * (1 + 1e-12)
    assert schedule.bytes_sent().sum() == pytest.approx(2 * (ranks - 1) * S, rel=1e-12)
    received = np.bincount(ops.target, weights=schedule.operation_bytes(), minlength=ranks)
    assert received == pytest.approx(schedule.bytes_sent(), rel=1e-12)


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("root", [0, 1])
def test_a_chain_sends_the_buffer_once_over_each_link(ranks, chunks, root):
    """N - 2 + m steps, (N - 1) m messages, S from each but the last, or but the root."""
    broadcast = chain_broadcast(ranks, ELEMENTS, ELEMENT_BYTES, root=root, chunks=chunks)
    reduce = chain_reduce(ranks, ELEMENTS, ELEMENT_BYTES, root=root, chunks=chunks)
    for schedule, idle in ((broadcast, (root - 1) % ranks), (reduce, root)):
        assert count(schedule)[:2] == (ranks - 2 + chunks, (ranks - 1) * chunks)
        assert schedule.bytes_sent().tolist() == [0 if rank == idle else S for rank in range(ranks)]


@given(ranks=st.integers(1, 12), chunks=st.integers(1, 6), elements=st.integers(0, 40), binary=st.booleans())
@settings(max_examples=40, deadline=None)
def test_an_all_reduce_along_a_tree_is_a_reduce_and_a_broadcast(ranks, chunks, elements, binary):
    """The same sends, with whole elements in each chunk."""
    options = {"shape": "binary" if binary else "binomial", "chunks": chunks}
    whole, up, down = (make(ranks, elements, 4, **options) for make in (tree_all_reduce, tree_reduce, tree_broadcast))

    def sends(*schedules):
        return sorted(
            (int(s.operations.source[i]), int(s.operations.target[i]), int(s.operations.reduce_firings[i]), sent)
            for s in schedules
            for i, sent in enumerate(s.operation_bytes().tolist())
        )

    assert sends(whole) == sends(up, down)


@pytest.mark.parametrize("ranks", [3, 5, 8])
def test_any_dependency_dropped_from_a_pipelined_tree_is_caught(ranks):
    """None of them is there for time only: a chunk that is passed on must have come."""
    for schedule in (
        tree_all_reduce(ranks, 29, 4, shape="binary", chunks=3),
        double_tree_all_reduce(ranks, 29, 4, chunks=2),
    ):
        for row in range(len(schedule.dependencies)):
            assert goal_faults(without_dependency(schedule, row), all_reduce_goal(schedule), executions=0)


def test_operations_do_not_grow_with_chunks():
    for make in (tree_all_reduce, double_tree_all_reduce, chain_broadcast, chain_reduce):
        few, many = (make(16, ELEMENTS, 4, chunks=chunks) for chunks in (2, 1000))
        assert len(few.operations) == len(many.operations)
        assert len(few.dependencies) == len(many.dependencies)


@pytest.mark.parametrize(
    "make", [tree_all_reduce, double_tree_all_reduce, tree_broadcast, tree_reduce, chain_broadcast, chain_reduce]
)
def test_no_chunks_at_all_are_refused(make):
    with pytest.raises(ValueError, match=r"the chunks of a .* are at least 1: 0"):
        make(4, 29, 4, chunks=0)


@pytest.mark.parametrize("make", [tree_all_reduce, tree_broadcast, tree_reduce])
def test_unknown_shapes_are_refused(make):
    with pytest.raises(ValueError, match=r"the shape of a tree .* is 'binomial' or 'binary': 'oak'"):
        make(4, 29, 4, shape="oak")
