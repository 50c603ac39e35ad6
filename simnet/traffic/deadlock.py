"""Finds, before a schedule is played, firings that wait for each other in a circle.

Firing k of `after` waits for firing ``min(k - offset, repeat_before - 1)`` of `before`, unless ``k < offset``; and for
firing k - 1 of its own operation. Along a wait the number of the firing falls by at least the offset. So offsets of 1
and more can never close a circle; with offsets of 0 and more a circle keeps its number all around, which needs a circle
of offsets 0. Only where offsets are negative and lie on a circle of operations has the waiting to be played out.

Theory: F. Commoner, A. Holt, S. Even, A. Pnueli, "Marked directed graphs", J. of Computer and System Sciences 5, 1971.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from simnet.errors import DeadlockError
from simnet.traffic.graph import adjacency, components, core
from simnet.traffic.schedule import Integers, Schedule
from simnet.traffic.validation import describe_operation

__all__ = ["check_deadlock"]

_LINES = 8
"""So many waits of a circle are written out."""
_STARTS = 32
"""The shortest circle is looked for from so many of the operations of the first circle found."""
_LOOKED_AT = 100_000
"""The search for a shorter circle ends after so many waits."""


def check_deadlock(schedule: Schedule) -> None:
    """Refuse a schedule in which firings wait for each other in a circle.

    Exact: it raises if and only if some firing can never start, however long everything takes. The schedule is one that
    `simnet.traffic.validation.validate_schedule` accepts. Takes time proportional to operations and dependencies, not
    to firings, except for operations on a circle that has a negative offset.

    Parameters
    ----------
    schedule : Schedule

    Raises
    ------
    DeadlockError
        Naming the firings of one such circle and what each waits for.

    References
    ----------
    F. Commoner, A. Holt, S. Even, A. Pnueli, "Marked directed graphs", J. of Computer and System Sciences 5, 1971.
    """
    deps, count = schedule.dependencies, len(schedule.operations)
    lowest = int(deps.offset.min(initial=1))
    if lowest >= 1:
        return
    if lowest >= 0:
        _refuse_zero_circle(schedule, np.ones(len(deps), dtype=np.bool_))
        return
    circular = core(count, deps.before, deps.after)
    inside = circular[deps.before] & circular[deps.after]
    if not inside.any():
        return
    label = components(count, deps.before[inside], deps.after[inside])
    inside &= label[deps.before] == label[deps.after]
    to_play = np.zeros(count, dtype=np.bool_)
    to_play[label[deps.before[inside & (deps.offset < 0)]]] = True
    played = inside & to_play[label[deps.before]]
    _refuse_zero_circle(schedule, inside & ~played)
    done = _play(schedule, played)
    if (done < schedule.operations.repeat).any():
        unmet = np.flatnonzero(played)
        k = done[deps.after[unmet]]
        waits = (k >= deps.offset[unmet]) & (done[deps.before[unmet]] <= _waited(schedule, unmet, k))
        waits &= k < schedule.operations.repeat[deps.after[unmet]]
        raise DeadlockError(_describe(schedule, done, unmet[waits]))


def _refuse_zero_circle(schedule: Schedule, among: NDArray[np.bool_]) -> None:
    """Refuse a circle of offsets 0 among some dependencies, none of which is negative."""
    deps = schedule.dependencies
    zero = np.flatnonzero(among & (deps.offset == 0))
    circular = core(len(schedule.operations), deps.before[zero], deps.after[zero])
    if circular.any():
        zero = zero[circular[deps.before[zero]] & circular[deps.after[zero]]]
        raise DeadlockError(_describe(schedule, np.zeros_like(schedule.operations.repeat), zero))


def _play(schedule: Schedule, among: NDArray[np.bool_]) -> Integers:
    """Play out some dependencies with firings that take no time; return how often each operation can fire.

    With d firings of `before` over, `after` can fire d + offset times; with all of them over, without limit.
    """
    deps, repeat = schedule.dependencies, schedule.operations.repeat
    rows = np.flatnonzero(among)
    before, after, offset = deps.before[rows], deps.after[rows], deps.offset[rows]
    outward, inward = adjacency(len(repeat), before), adjacency(len(repeat), after)
    done, able = np.zeros_like(repeat), np.zeros_like(repeat)
    # Only what waits for an operation that has just fired may be able to fire more often than before.
    some = np.arange(len(repeat))
    while some.size:
        edges = inward.leaving(some)
        waited, waiting = before[edges], after[edges]
        allowed = np.where(done[waited] >= repeat[waited], repeat[waiting], done[waited] + offset[edges])
        able[some] = repeat[some]
        np.minimum.at(able, waiting, np.maximum(allowed, 0))
        fired = some[able[some] > done[some]]
        done[fired] = able[fired]
        some = np.unique(after[outward.leaving(fired)])
    return done


def _waited(schedule: Schedule, rows: Integers, k: Integers) -> Integers:
    """Return which firing of `before` the k-th of `after` waits for."""
    deps = schedule.dependencies
    waited: Integers = np.minimum(k - deps.offset[rows], schedule.operations.repeat[deps.before[rows]] - 1)
    return waited


def _describe(schedule: Schedule, done: Integers, unmet: Integers) -> str:
    """Write out one short circle of waits.

    Parameters
    ----------
    schedule : Schedule
    done : array of int, shape (operations,)
        How often each operation has fired when nothing can fire any more.
    unmet : array of int
        The dependencies that the next firings wait for.
    """
    deps = schedule.dependencies
    circle = _short_circle(len(schedule.operations), deps.after[unmet], deps.before[unmet])
    lines = []
    for edge in circle[:_LINES]:
        row = unmet[edge : edge + 1]
        before, after = int(deps.before[row[0]]), int(deps.after[row[0]])
        firing = int(_waited(schedule, row, done[after : after + 1])[0])
        line = f"firing {done[after]} of {describe_operation(schedule, after)} waits for firing {firing} of "
        line += describe_operation(schedule, before)
        if firing > done[before]:
            line += f", whose firing {done[before]} comes first"
        lines.append(line)
    if len(circle) > _LINES:
        lines.append(f"and {len(circle) - _LINES} more, back to the first")
    return "\n  ".join([f"{schedule.name}: these firings wait for each other, so none of them can ever start", *lines])


def _short_circle(nodes: int, waiter: Integers, awaited: Integers) -> list[int]:
    """Return the edges of a short circle of a graph whose nodes with an edge in have one out, too."""
    out = adjacency(nodes, waiter)
    first, edges, ends = out.first.tolist(), out.edge.tolist(), awaited.tolist()
    path: list[int] = []
    seen: dict[int, int] = {}
    node = int(waiter[0])
    while node not in seen:
        seen[node] = len(path)
        edge = edges[first[node]]
        path.append(edge)
        node = ends[edge]
    best = path[seen[node] :]
    left = _LOOKED_AT
    for start in (int(waiter[edge]) for edge in best[:_STARTS]):
        came: dict[int, int] = {}
        queue = deque([start])
        while queue and left > 0 and start not in came:
            node = queue.popleft()
            for edge in edges[first[node] : first[node + 1]]:
                left -= 1
                if ends[edge] not in came:
                    came[ends[edge]] = edge
                    queue.append(ends[edge])
        if start in came:
            circle = [came[start]]
            while int(waiter[circle[-1]]) != start:
                circle.append(came[int(waiter[circle[-1]])])
            best = min(best, circle[::-1], key=len)
    return best
