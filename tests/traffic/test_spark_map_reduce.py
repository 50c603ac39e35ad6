"""Map-reduce: the rounds of treeAggregate, what reaches whom, and steps, messages and bytes against closed forms."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, log2

import numpy as np
import pytest

from simnet.traffic import (
    all_reduce_goal,
    count,
    goal_faults,
    map_reduce,
    map_reduce_with_switches,
    prove,
    tree_aggregate_rounds,
)

S = 240
EXECUTORS = [1, 2, 3, 5, 6, 9, 16]


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_tree_aggregate_ends_within_its_depth_and_saves_time_in_each_round(depth):
    """Scale max(ceil(N^(1/d)), 2); n/scale, rounded down, are left while that and the scale are fewer than n."""
    for partitions in [*range(1, 40), 64, 100, 243, 1000, 4096]:
        left = tree_aggregate_rounds(partitions, depth)
        scale = next(s for s in range(2, partitions + 2) if s**depth >= partitions)
        assert left[0] == partitions
        assert len(left) <= depth
        assert all(after == before // scale for before, after in pairwise(left))
        assert all(before > scale + ceil(before / scale) for before in left[:-1])
        assert left[-1] <= scale + ceil(left[-1] / scale)


@pytest.mark.parametrize(
    ("partitions", "depth", "left"),
    [(16, 2, (16, 4)), (64, 3, (64, 16, 4)), (100, 2, (100, 10)), (4, 2, (4,)), (6, 2, (6, 2)), (100, 1, (100,))],
)
def test_tree_aggregate_worked_out_by_hand(partitions, depth, left):
    """6 with depth 2: scale 3, 6 > 3 + 2, so 2 are left; 4: scale 2, 4 = 2 + 2, which saves nothing."""
    assert tree_aggregate_rounds(partitions, depth) == left


@pytest.mark.parametrize("blocks", [1, 2, 3, 16])
@pytest.mark.parametrize("broadcast", ["torrent", "tree", "star"])
@pytest.mark.parametrize(("reduce", "depth"), [("star", 2), ("tree", 2), ("tree", 3)])
def test_every_executor_gets_the_sum_of_all(reduce, depth, broadcast, blocks):
    """N S up and N S down; the steps of both."""
    for n in EXECUTORS:
        options = {"reduce": reduce, "depth": depth, "broadcast": broadcast, "blocks": blocks}
        schedule = map_reduce(n, 60, 4, **options)
        assert goal_faults(schedule, all_reduce_goal(schedule, range(n), range(n)), executions=1) == ()
        up = len(tree_aggregate_rounds(n, depth)) if reduce == "tree" else 1
        down = {"torrent": ceil(blocks / n) + (n > 1), "tree": ceil(log2(n + 1)), "star": 1}[broadcast]
        messages = n + (blocks * n if broadcast == "torrent" else n)
        assert count(schedule) == (up + down, messages, 2 * n * S)
        sent = schedule.bytes_sent()
        if broadcast == "torrent":
            assert sent[n] == S
        elif broadcast == "star":
            assert sent[n] == n * S


def test_whole_elements_and_few_of_them():
    for elements in (0, 1, 29):
        schedule = map_reduce(5, elements, 4, blocks=7)
        prove(schedule, all_reduce_goal(schedule, range(5), range(5)))
        assert schedule.bytes_sent().sum() == 2 * 5 * elements * 4


def test_blocks_are_those_of_spark_by_default():
    """100 MB in blocks of 4 MiB: 24."""
    assert map_reduce(4, 25_000_000, 4).partition.chunks == 24
    assert map_reduce(4, 0, 4).partition.chunks == 1


def test_partitions_stay_where_their_number_is():
    """Of 9 partitions 3 are left: 3 to 8 go to i mod 3; then 0, 1 and 2 to the driver, rank 9."""
    ops = map_reduce(9, 60, 4, broadcast="star").operations
    up = ops.reduce_firings > 0
    ends = np.stack([ops.source[up], ops.target[up]], axis=1).tolist()
    assert ends == [[i, i % 3] for i in range(3, 9)] + [[i, 9] for i in range(3)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reduce": "bush"}, "the reduce of a map-reduce is 'tree' or 'star': 'bush'"),
        ({"broadcast": "radio"}, "the broadcast of a map-reduce is 'torrent', 'tree' or 'star': 'radio'"),
        ({"depth": 0}, "at least 1: 0"),
        ({"blocks": 0}, "at least 1: 0"),
    ],
)
def test_impossible_requests_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        map_reduce(4, 60, 4, **options)


@pytest.mark.parametrize("reduce", ["tree", "star", "in_network"])
@pytest.mark.parametrize("chunks", [1, 3])
def test_with_switches_every_executor_gets_the_sum_of_all(reduce, chunks):
    """Executors 0 to 3 below switches 5 and 6, these below switch 7, and that below the driver 4.

    Multicast: S over each of the 7 edges, once; the reduce in switches likewise.
    """
    parents = [5, 5, 6, 6, -1, 7, 7, 4]
    schedule = map_reduce_with_switches(4, parents, 12, 4.0, reduce=reduce, chunks=chunks)
    prove(schedule, all_reduce_goal(schedule, contributors=range(4), holders=range(4)))
    down = 7 * 12 * 4.0
    up = down if reduce == "in_network" else 4 * 12 * 4.0
    assert schedule.bytes_sent().sum() == up + down
