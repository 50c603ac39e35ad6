"""Trees that are given by the parent of each rank: what they do, and steps, messages and bytes against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.traffic import (
    all_reduce_goal,
    broadcast_down,
    broadcast_goal,
    count,
    goal_faults,
    prove,
    reduce_goal,
    reduce_up,
    tree_all_reduce,
    tree_of_parents_all_reduce,
)
from simnet.traffic.trees import binary_tree, chain

from .spoiling import without_dependency

S = 240
MAKERS = [tree_of_parents_all_reduce, reduce_up, broadcast_down]
# A switch, rank 6, above two switches, 4 and 5, with two hosts each.
SWITCHES = [4, 4, 5, 5, 6, 6, -1]


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """The parents of up to 9 ranks in any numbering, and some of the ranks."""
    size = draw(st.integers(1, 9))
    above = [-1, *(draw(st.integers(0, rank - 1)) for rank in range(1, size))]
    number = draw(st.permutations(range(size)))
    parents = [0] * size
    for rank, parent in enumerate(above):
        parents[number[rank]] = -1 if parent < 0 else number[parent]
    some = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True))
    return parents, some


def edges_and_depth(parents: list[int], some: list[int]) -> tuple[int, int]:
    """The edges on the ways from the root to some ranks, and those on the longest of them, by walking up."""
    edges, depth = set(), 0
    for rank in some:
        length = 0
        while parents[rank] >= 0:
            edges.add(rank)
            rank, length = parents[rank], length + 1
        depth = max(depth, length)
    return len(edges), depth


@given(tree=trees(), chunks=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_any_tree_does_what_it_is_for_and_sends_once_over_each_edge(tree, chunks):
    """E S bytes each way in E m messages and d + m - 1 steps; both ways 2 d + m - 1."""
    parents, some = tree
    root = parents.index(-1)
    edges, depth = edges_and_depth(parents, some)
    whole, up, down = (make(parents, some, 60, 4, chunks=chunks) for make in MAKERS)
    prove(whole, all_reduce_goal(whole, contributors=some, holders=some))
    prove(up, reduce_goal(up, root=root, contributors=some))
    prove(down, broadcast_goal(down, root=root, holders=some))
    steps = depth + chunks - 1 if depth else 0
    assert count(up) == count(down) == (steps, edges * chunks, edges * S)
    assert count(whole) == (steps + depth, 2 * edges * chunks, 2 * edges * S)


def test_switches_send_one_copy_over_each_link():
    """Two levels, hosts contribute: S up and S down over each of 6 links; a switch sends to all below it."""
    schedule = tree_of_parents_all_reduce(SWITCHES, range(4), 60, 4)
    assert schedule.bytes_sent().tolist() == [S] * 4 + [3 * S] * 2 + [2 * S]
    assert broadcast_down(SWITCHES, range(4), 60, 4).bytes_sent().tolist() == [0] * 4 + [2 * S] * 3
    assert reduce_up(SWITCHES, range(4), 60, 4).bytes_sent().tolist() == [S] * 6 + [0]


def test_where_nobody_contributes_nothing_goes():
    """Only hosts 0 and 1: switch 5 and its hosts have no part."""
    schedule = tree_of_parents_all_reduce(SWITCHES, [0, 1], 60, 4)
    assert schedule.bytes_sent().tolist() == [S, S, 0, 0, 3 * S, 0, S]
    assert not schedule.joint
    assert tree_of_parents_all_reduce(SWITCHES, range(4), 60, 4).joint


@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
def test_a_binary_tree_that_is_given_is_the_binary_tree(ranks):
    given_tree = tree_of_parents_all_reduce(binary_tree(ranks).tolist(), range(ranks), 29, 4, chunks=3)
    named = tree_all_reduce(ranks, 29, 4, shape="binary", chunks=3)
    for column, values in vars(named.operations).items():
        assert np.array_equal(values, getattr(given_tree.operations, column))


@pytest.mark.parametrize("parents", [SWITCHES, [-1, 0, 0, 0, 0], chain(4).tolist()])
@pytest.mark.parametrize("make", MAKERS)
def test_any_dependency_dropped_is_caught(make, parents):
    some = range(len(parents))
    root = parents.index(-1)
    schedule = make(parents, some, 29, 4, chunks=2)
    goal = {
        tree_of_parents_all_reduce: all_reduce_goal(schedule),
        reduce_up: reduce_goal(schedule, root=root),
        broadcast_down: broadcast_goal(schedule, root=root),
    }[make]
    for row in range(len(schedule.dependencies)):
        assert goal_faults(without_dependency(schedule, row), goal, executions=0)


def test_a_wide_root_takes_dependencies_in_proportion_to_its_children():
    schedule = tree_of_parents_all_reduce([-1, *[0] * 1000], range(1, 1001), 29, 4)
    assert len(schedule.operations) == 2001
    assert len(schedule.dependencies) == 2000


@pytest.mark.parametrize(
    ("parents", "some", "message"),
    [
        ([-1, -1], [0], "one root"),
        ([1, 0], [0], "one root"),
        ([-1, 2, 1], [0], "form a circle"),
        ([-1, 7], [0], "all other parents are ranks"),
        ([-1, 0], [], "at least one rank"),
        ([-1, 0], [2], r"one of its ranks 0 \.\. 1: 2"),
    ],
)
@pytest.mark.parametrize("make", MAKERS)
def test_what_is_no_tree_is_refused(make, parents, some, message):
    with pytest.raises(ValueError, match=message):
        make(parents, some, 29, 4)
