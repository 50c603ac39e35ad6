"""Ways for messages to go along a tree: from the leaves to the root, adding, and from the root to the leaves.

The buffer, or the range of chunks that a tree is for, travels chunk by chunk: firing k of every send carries chunk k of
it. So the chunks follow each other, and while one is on the third level another is on the second.

In the binomial tree rounds are in lockstep at the receiver, as in `simnet.traffic.patterns`, for each chunk. In the
other trees a rank passes on a chunk as soon as it has it, to all its children at once; they share its link.
"""

from __future__ import annotations

import numpy as np

from simnet.traffic.patterns import let_follow
from simnet.traffic.schedule import Integers
from simnet.traffic.schedule_builder import ScheduleBuilder

__all__ = [
    "binary_tree",
    "chain",
    "down_along",
    "down_tree",
    "in_order_tree",
    "up_along",
    "up_and_down",
    "up_tree",
]


def up_tree(build: ScheduleBuilder, root: int = 0) -> Integers:
    """Add up the whole buffer along a binomial tree, from the leaves to the root.

    With ranks counted from the root: in round j = 0, 1, ... rank r with r mod 2^(j+1) = 2^j sends all it has to
    r - 2^j.

    Returns
    -------
    array of int, shape (ranks,)
        The operation with which each rank, counted from the root, ended its last round; -1 where there is none. In a
        tree that is one: it has sent or received.
    """
    ranks, chunks = build.ranks, build.partition.chunks
    last = np.full(ranks, -1)
    for level in range((ranks - 1).bit_length()):
        child = np.arange(1 << level, ranks, 2 << level)
        parent = child - (1 << level)
        send = build.send((child + root) % ranks, (parent + root) % ranks, repeat=chunks, step=1, reduce=chunks)
        let_follow(build, last[child], send)
        let_follow(build, last[parent], send)
        last[parent] = send
    return last


def down_tree(build: ScheduleBuilder, last: Integers | None = None, root: int = 0) -> None:
    """Spread the whole buffer along a binomial tree, from the root to the leaves: `up_tree` backwards.

    Parameters
    ----------
    build : ScheduleBuilder
    last : array of int, shape (ranks,)
        The operation that each rank, counted from the root, ends first; -1 where there is none, as by default.
    root : int
    """
    ranks, chunks = build.ranks, build.partition.chunks
    last = np.full(ranks, -1) if last is None else last.copy()
    for level in reversed(range((ranks - 1).bit_length())):
        parent = np.arange(0, ranks - (1 << level), 2 << level)
        child = parent + (1 << level)
        send = build.send((parent + root) % ranks, (child + root) % ranks, repeat=chunks, step=1)
        # What the child sent upwards is part of what the parent passes on, so it need not be waited for again.
        let_follow(build, last[parent], send)
        last[parent] = last[child] = send


def binary_tree(nodes: int) -> Integers:
    """Return the parent of each node of a complete binary tree: the children of r are 2r + 1 and 2r + 2.

    Returns
    -------
    array of int, shape (nodes,)
        -1 for the root, node 0. The deepest node lies floor(log2 nodes) below it.
    """
    return (np.arange(nodes) - 1) // 2


def chain(nodes: int) -> Integers:
    """Return the parent of each node of a chain: that of r is r - 1, and -1 for the root, node 0."""
    return np.arange(nodes) - 1


def in_order_tree(nodes: int) -> Integers:
    """Return the parent of each node of a binary tree that is numbered from left to right.

    With numbers from 1 on, a number that is an odd multiple of b = 2^j stands on level j, between its children
    (number - b/2) and (number + b/2). Where the latter is more than there are, the largest subtree to the right that
    exists takes its place. So all odd numbers, which are every other node, are leaves.

    Returns
    -------
    array of int, shape (nodes,)
        Node i has the number i + 1; -1 for the root, the largest power of two. The deepest node lies floor(log2 nodes)
        below it.
    """
    number = np.arange(1, nodes + 1)
    root = 1 << (nodes.bit_length() - 1)
    parent = _number_above(number)
    while (missing := (parent > nodes) & (number != root)).any():
        parent[missing] = _number_above(parent[missing])
    parent[root - 1] = 0
    return parent - 1


def _number_above(number: Integers) -> Integers:
    """Return the parents in a tree in order without end: of the two odd multiples of b beside, that of 2b."""
    lowest = number & -number
    return np.where(number & (lowest << 1), number - lowest, number + lowest)


def up_along(build: ScheduleBuilder, parent: Integers, rank: Integers, *, chunks: int, offset: int = 0) -> Integers:
    """Add up a range of chunks along a tree, from the leaves to the root.

    Parameters
    ----------
    build : ScheduleBuilder
    parent : array of int, shape (nodes,)
        The parent of each node of the tree; -1 for its root.
    rank : array of int, shape (nodes,)
        The rank that is each node.
    chunks, offset : int
        How many chunks it is for, and the first of them.

    Returns
    -------
    array of int, shape (nodes,)
        The send of each node; -1 for the root.
    """
    child = np.flatnonzero(parent >= 0)
    send = np.full(len(parent), -1)
    send[child] = build.send(
        rank[child], rank[parent[child]], repeat=chunks, step=1, modulus=chunks, offset=offset, reduce=chunks
    )
    below = child[parent[parent[child]] >= 0]
    build.depend(send[below], send[parent[below]])
    return send


def down_along(
    build: ScheduleBuilder,
    parent: Integers,
    rank: Integers,
    *,
    chunks: int,
    offset: int = 0,
    after: Integers | None = None,
) -> None:
    """Spread a range of chunks along a tree, from the root to the leaves.

    Parameters
    ----------
    build, parent, rank, chunks, offset
        See `up_along`.
    after : array of int, shape (nodes,)
        The sends of `up_along` along the same tree, of which the root waits for those to it; none by default.
    """
    child = np.flatnonzero(parent >= 0)
    send = np.full(len(parent), -1)
    send[child] = build.send(rank[parent[child]], rank[child], repeat=chunks, step=1, modulus=chunks, offset=offset)
    at_root = parent[parent[child]] < 0
    below, top = child[~at_root], child[at_root]
    build.depend(send[parent[below]], send[below])
    if after is None or not len(top):
        return
    if len(top) <= 2:
        build.depend(np.repeat(after[top], len(top)), np.tile(send[top], len(top)))
    else:
        # One calculation of 0 s, as all waiting for all would take as many dependencies as children squared.
        summed = build.calc(rank[parent[top[0]]], repeat=chunks)
        build.depend(after[top], summed)
        build.depend(summed, send[top])


def up_and_down(build: ScheduleBuilder, parent: Integers, rank: Integers, *, chunks: int, offset: int = 0) -> None:
    """Sum a range of chunks at the root of a tree and spread the sum; parameters as those of `up_along`."""
    up = up_along(build, parent, rank, chunks=chunks, offset=offset)
    down_along(build, parent, rank, chunks=chunks, offset=offset, after=up)
