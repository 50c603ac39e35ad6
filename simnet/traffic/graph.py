"""Directed graphs as pairs of index arrays: what deadlock check, counting and symbolic checker have in common."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simnet.traffic.schedule import Integers, Schedule

__all__ = ["Adjacency", "Unfolding", "adjacency", "components", "core", "unfold", "waves"]

_WAVES_AS_ARRAYS = 200
"""A wave costs numpy some 20 us however small it is; a graph of more waves is likely a chain, and loops go faster."""


class Adjacency(NamedTuple):
    """The edges of a graph by the node they leave: those of node i are ``first[i] .. first[i + 1] - 1`` of `edge`."""

    first: Integers
    edge: Integers

    def leaving(self, nodes: Integers) -> Integers:
        """Return the indices of all edges that leave any of `nodes`."""
        count = self.first[nodes + 1] - self.first[nodes]
        ends = np.cumsum(count)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - count, count)
        found: Integers = self.edge[np.repeat(self.first[nodes], count) + within]
        return found


def adjacency(nodes: int, leaves: Integers) -> Adjacency:
    """Sort the edges of a graph by the node that each leaves."""
    count = np.bincount(leaves, minlength=nodes)
    return Adjacency(np.concatenate([[0], np.cumsum(count)]), np.argsort(leaves, kind="stable"))


def waves(nodes: int, before: Integers, after: Integers) -> tuple[list[Integers], NDArray[np.bool_]]:
    """Peel a graph from its sources on (A. Kahn, "Topological sorting of large networks", CACM 5(11), 1962).

    Parameters
    ----------
    nodes : int
        Nodes are 0 .. nodes - 1.
    before, after : array of int
        The edges.

    Returns
    -------
    waves : list of array of int
        Wave i holds the nodes whose longest path from a source has i edges.
    left : array of bool, shape (nodes,)
        The nodes that lie on a circle or behind one: each has a predecessor among them.
    """
    out = adjacency(nodes, before)
    waiting = np.bincount(after, minlength=nodes)
    left = np.ones(nodes, dtype=np.bool_)
    found: list[Integers] = []
    wave = np.flatnonzero(waiting == 0)
    while wave.size and len(found) < _WAVES_AS_ARRAYS:
        found.append(wave)
        left[wave] = False
        hit = after[out.leaving(wave)]
        np.subtract.at(waiting, hit, 1)
        hit = np.unique(hit)
        wave = hit[waiting[hit] == 0]
    if wave.size:
        first, ends = out.first.tolist(), after[out.edge].tolist()
        counts, front = waiting.tolist(), wave.tolist()
        while front:
            found.append(np.array(front, dtype=np.int64))
            following = []
            for node in front:
                for end in ends[first[node] : first[node + 1]]:
                    counts[end] -= 1
                    if not counts[end]:
                        following.append(end)
            left[front] = False
            front = sorted(following)
    return found, left


def core(nodes: int, before: Integers, after: Integers) -> NDArray[np.bool_]:
    """Return which nodes lie on a circle or between two circles, shape (nodes,)."""
    behind = waves(nodes, before, after)[1]
    inside = behind[before] & behind[after]
    ahead = waves(nodes, after[inside], before[inside])[1]
    return behind & ahead


def components(nodes: int, before: Integers, after: Integers) -> Integers:
    """Label the strongly connected components (R. Tarjan, SIAM J. Computing 1(2), 1972), without recursion.

    Returns
    -------
    array of int, shape (nodes,)
        Two nodes have the same label where each can be reached from the other.
    """
    out = adjacency(nodes, before)
    first, ends = out.first.tolist(), after[out.edge].tolist()
    cursor = list(first[:-1])
    found, lowest, label = [-1] * nodes, [0] * nodes, [-1] * nodes
    stack: list[int] = []
    time = 0
    for root in range(nodes):
        if found[root] >= 0:
            continue
        path = [root]
        while path:
            node = path[-1]
            if found[node] < 0:
                found[node] = lowest[node] = time
                time += 1
                stack.append(node)
            if cursor[node] < first[node + 1]:
                end = ends[cursor[node]]
                cursor[node] += 1
                if found[end] < 0:
                    path.append(end)
                elif label[end] < 0:
                    lowest[node] = min(lowest[node], found[end])
                continue
            path.pop()
            if path:
                lowest[path[-1]] = min(lowest[path[-1]], lowest[node])
            if lowest[node] == found[node]:
                while label[node] < 0:
                    label[stack.pop()] = node
    return np.array(label, dtype=np.int64)


class Unfolding(NamedTuple):
    """A schedule with every firing a node of its own.

    Attributes
    ----------
    first : firings of operation i are nodes ``first[i] .. first[i + 1] - 1``
    operation, number : which operation and which of its firings a node is
    before, after, until : the dependencies between firings; `until` as in `simnet.traffic.schedule.Dependencies`
    dependency : of which dependency of the schedule each of them is one
    """

    first: Integers
    operation: Integers
    number: Integers
    before: Integers
    after: Integers
    until: NDArray[np.int8]
    dependency: Integers


def unfold(schedule: Schedule, most: int) -> Unfolding:
    """Write a schedule out firing by firing.

    Parameters
    ----------
    schedule : Schedule
    most : int
        The largest number of firings that is accepted.

    Raises
    ------
    ValueError
        The schedule has more firings.
    """
    repeat = schedule.operations.repeat
    first = np.concatenate([[0], np.cumsum(repeat)])
    total = int(first[-1])
    if total > most:
        raise ValueError(f"{schedule.name} has {total} firings; at most {most} can be written out one by one")
    operation = np.repeat(np.arange(len(repeat)), repeat)
    number = np.arange(total) - first[operation]
    deps = schedule.dependencies
    begin = np.maximum(deps.offset, 0)
    count = np.maximum(repeat[deps.after] - begin, 0)
    which = np.repeat(np.arange(len(deps)), count)
    ends = np.cumsum(count)
    firing = begin[which] + np.arange(int(count.sum())) - (ends - count)[which]
    waited = np.minimum(firing - deps.offset[which], repeat[deps.before[which]] - 1)
    return Unfolding(
        first,
        operation,
        number,
        first[deps.before[which]] + waited,
        first[deps.after[which]] + firing,
        deps.until[which],
        which,
    )
