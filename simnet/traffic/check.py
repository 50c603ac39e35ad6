"""Proves of a schedule that it achieves its goal, whatever the timing.

Instead of numbers the buffers hold contributions: how often what each rank put in counts in each chunk, and how often
what the memory held before. Three steps:

1. *Order.* The firings are written out one by one, with three events each (it starts, has drained, is delivered), and
   one more for each rank (it joins and adds what it contributes). The dependencies say which events come before which.
2. *Races.* A send reads its chunks from its start until it has drained; what it brought is added or replaces. Two uses
   of the same chunk of the same rank, of which one replaces, or one reads and one changes, must come one before the
   other. If all do, every admissible timing gives the same result (the argument by which programs without data races
   do not depend on scheduling: S. Adve, M. Hill, "Weak ordering: a new definition", ISCA 1990).
3. *Result.* One execution then speaks for all. A few more, with delays spread over six orders of magnitude and ranks
   that join as late, are run all the same; they share no code with the second step.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from simnet.errors import InvariantError
from simnet.traffic.deadlock import check_deadlock
from simnet.traffic.goals import Goal
from simnet.traffic.graph import Unfolding, unfold, waves
from simnet.traffic.schedule import Integers, Kind, Schedule, Until
from simnet.traffic.validation import describe_operation, validate_schedule

__all__ = ["goal_faults", "prove"]

_MOST_FIRINGS = 10_000
_SHOWN = 10


def prove(schedule: Schedule, goal: Goal) -> None:
    """Raise unless a schedule achieves its goal; see `goal_faults`.

    Parameters
    ----------
    schedule : Schedule
        For a small number of ranks: at most 10,000 firings.
    goal : Goal
        Who puts what in, and who must end with what.

    Raises
    ------
    InvariantError
        Listing what is wrong.
    InputError, DeadlockError, ValueError
        As of `goal_faults`.

    References
    ----------
    See `goal_faults`.
    """
    faults = goal_faults(schedule, goal)
    if faults:
        raise InvariantError("\n  ".join([f"{schedule.name} does not do what it is for", *faults]))


def goal_faults(schedule: Schedule, goal: Goal, *, executions: int = 4, seed: int = 0) -> tuple[str, ...]:
    """Execute a schedule symbolically and return what is wrong with it: nothing, or at most ten sentences.

    Parameters
    ----------
    schedule : Schedule
        For a small number of ranks: at most 10,000 firings.
    goal : Goal
        Who puts what in, and who must end with what.
    executions : int
        Executions with random delays, besides the one in which everything takes equally long.
    seed : int
        For these.

    Returns
    -------
    tuple of str

    Raises
    ------
    InputError, DeadlockError
        The schedule is malformed or waits for itself.
    ValueError
        It has too many firings.

    References
    ----------
    Free of races, every timing gives the same result: S. Adve, M. Hill, "Weak ordering: a new definition", ISCA 1990.
    """
    validate_schedule(schedule)
    check_deadlock(schedule)
    events = _write_out(schedule)
    faults = list(_race_faults(schedule, events, goal))
    random = np.random.Generator(np.random.PCG64(seed))
    for execution in range(executions + 1):
        # A delay for each rank to join, and for each firing to start, drain and be delivered.
        needed = schedule.ranks + 3 * len(events.operation)
        drawn = 10 ** random.uniform(-3, 3, needed) if execution else np.ones(needed)
        delay = iter(drawn.tolist()).__next__
        counts = _execute(schedule, events, goal, delay)
        faults += [fault for fault in _result_faults(counts, goal) if fault not in faults]
    if len(faults) > _SHOWN:
        faults[_SHOWN - 1 :] = [f"and {len(faults) - _SHOWN + 1} more"]
    return tuple(faults)


def _result_faults(counts: Integers, goal: Goal) -> Iterator[str]:
    """Compare what each holder has with one of each contribution; `counts` as from `_execute`."""
    ranks = len(counts)
    wanted = np.zeros(counts.shape[1:], dtype=np.int64)
    wanted[:, :ranks] = goal.contributes.T
    wrong = (counts != wanted).any(axis=2) & goal.holds
    for rank, chunk in np.argwhere(wrong).tolist():
        has, should = counts[rank, chunk], wanted[chunk]
        off = [
            f"that of rank {other} {has[other]} times" if other < ranks else "what its memory held before"
            for other in np.flatnonzero((has != should) & (has > 0)).tolist()
        ]
        missing = np.flatnonzero((has == 0) & (should > 0)).tolist()
        if missing:
            off.append(f"nothing of rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}")
        yield f"rank {rank} ends with chunk {chunk} that counts {' and '.join(off)}"


class _Events(NamedTuple):
    """A schedule written out firing by firing, in plain lists with an entry for each firing.

    Attributes
    ----------
    firings : the same as arrays
    operation, source, target : of which operation each firing is one, and from whom to whom
    is_send, adds : whether it sends, and whether what it brings is added
    first_chunk, end_chunk : the chunks that it carries, from the one to before the other
    merged_by : the firing of the calculation that merges what it brought; -1 where there is none
    followed : whether another firing of the same operation comes next
    drained, delivered : the firings that wait for it to have drained, and to be over
    missing : for how many things each waits: its dependencies, its rank to join, the firing before it to drain
    """

    firings: Unfolding
    operation: list[int]
    source: list[int]
    target: list[int]
    is_send: list[bool]
    adds: list[bool]
    first_chunk: list[int]
    end_chunk: list[int]
    merged_by: list[int]
    followed: list[bool]
    drained: list[list[int]]
    delivered: list[list[int]]
    missing: list[int]


def _write_out(schedule: Schedule) -> _Events:
    """Write a schedule out; see `_Events`."""
    ops = schedule.operations
    firings = unfold(schedule, _MOST_FIRINGS)
    operation, number = firings.operation, firings.number
    total = len(operation)
    is_send = ops.kind[operation] == Kind.SEND
    turned = ops.chunk_first[operation] + number * ops.chunk_step[operation]
    first = ops.chunk_offset[operation] + turned % np.maximum(ops.chunk_modulus[operation], 1)
    width = np.where(is_send, ops.chunk_width[operation], 0)
    by = np.where(is_send, ops.merged_by[operation], -1)
    merged_by = np.where(by < 0, -1, firings.first[by] + np.minimum(number, ops.repeat[by] - 1))
    waiting: dict[int, list[list[int]]] = {until: [[] for _ in range(total)] for until in Until}
    for a, b, until in zip(firings.before.tolist(), firings.after.tolist(), firings.until.tolist(), strict=True):
        waiting[until][a].append(b)
    return _Events(
        firings,
        operation.tolist(),
        ops.source[operation].tolist(),
        ops.target[operation].tolist(),
        is_send.tolist(),
        (number < ops.reduce_firings[operation]).tolist(),
        first.tolist(),
        (first + width).tolist(),
        merged_by.tolist(),
        (number + 1 < ops.repeat[operation]).tolist(),
        waiting[Until.DRAINED],
        waiting[Until.DELIVERED],
        (np.bincount(firings.after, minlength=total) + 1 + (number > 0)).tolist(),
    )


def _execute(schedule: Schedule, events: _Events, goal: Goal, delay: Callable[[], float]) -> Integers:
    """Run the schedule with a delay drawn for each event; return what all buffers hold at the end.

    Returns
    -------
    array of int, shape (ranks, chunks, ranks + 1)
        How often what each rank put in counts in each chunk of each rank; last, how often what the memory held before.
    """
    counts = np.zeros((schedule.ranks, schedule.partition.chunks, schedule.ranks + 1), dtype=np.int64)
    if not goal.zeros:
        counts[..., -1] = ~goal.contributes
    missing = events.missing.copy()
    carried: dict[int, Integers] = {}
    kept: dict[int, list[int]] = defaultdict(list)
    last_delivery = [0.0] * len(schedule.operations)
    of_rank: list[list[int]] = [[] for _ in range(schedule.ranks)]
    for node, rank in enumerate(events.source):
        of_rank[rank].append(node)
    queue: list[tuple[float, int, int, int]] = []
    order = itertools.count()
    join, start, drain, deliver = range(4)

    def met(now: float, nodes: Iterable[int]) -> None:
        for node in nodes:
            missing[node] -= 1
            if not missing[node]:
                heapq.heappush(queue, (now + delay(), next(order), start, node))

    def merge(node: int) -> None:
        held = counts[events.target[node], events.first_chunk[node] : events.end_chunk[node]]
        if events.adds[node]:
            held += carried[node]
        else:
            held[:] = carried[node]

    for rank in range(schedule.ranks):
        heapq.heappush(queue, (delay(), next(order), join, rank))
    while queue:
        now, _, what, node = heapq.heappop(queue)
        if what == join:
            counts[node, :, node] += goal.contributes[node]
            met(now, of_rank[node])
            continue
        sends = events.is_send[node]
        if what == start and sends:
            read = counts[events.source[node], events.first_chunk[node] : events.end_chunk[node]]
            carried[node] = read.copy()
            heapq.heappush(queue, (now + delay(), next(order), drain, node))
        elif what != deliver:
            op = events.operation[node]
            met(now, events.drained[node])
            if events.followed[node]:
                met(now, (node + 1,))
            # Deliveries of one operation do not overtake each other.
            last_delivery[op] = max(last_delivery[op], now + delay() if sends else now)
            heapq.heappush(queue, (last_delivery[op], next(order), deliver, node))
        else:
            by = events.merged_by[node]
            if by >= 0:
                kept[by].append(node)
            elif sends:
                merge(node)
            for waiting in kept.pop(node, ()):
                merge(waiting)
            met(now, events.delivered[node])
    return counts


class _Use(NamedTuple):
    """One use of a chunk of a rank: events `begin` to `end`, what for, and by which firing (-1: the rank joins)."""

    begin: int
    end: int
    kind: str
    node: int


def _race_faults(schedule: Schedule, events: _Events, goal: Goal) -> Iterator[str]:
    """Return the uses of a chunk that no dependency puts into an order, and messages merged before they are there."""
    firings = events.firings
    total = len(firings.operation)
    earlier = _earlier_events(schedule, firings)
    uses: dict[tuple[int, int], list[_Use]] = defaultdict(list)
    for rank, chunk in np.argwhere(goal.contributes).tolist():
        uses[rank, chunk].append(_Use(3 * total + rank, 3 * total + rank, "adds to", -1))
    for node in np.flatnonzero(events.is_send).tolist():
        by = events.merged_by[node]
        merged = 3 * node + 2 if by < 0 else 3 * by + 2
        if by >= 0 and not earlier[merged] >> (3 * node + 2) & 1:
            yield f"{_message(schedule, firings, node)} may be merged before it is delivered"
        read = _Use(3 * node, 3 * node + 1, "reads", node)
        changed = _Use(merged, merged, "adds to" if events.adds[node] else "replaces", node)
        for chunk in range(events.first_chunk[node], events.end_chunk[node]):
            uses[events.source[node], chunk].append(read)
            uses[events.target[node], chunk].append(changed)
    for (rank, chunk), of_chunk in sorted(uses.items()):
        for place, one in enumerate(of_chunk):
            for other in of_chunk[:place]:
                if one.kind == other.kind != "replaces":
                    continue
                if earlier[one.begin] >> other.end & 1 or earlier[other.begin] >> one.end & 1:
                    continue
                first, second = _message(schedule, firings, other.node), _message(schedule, firings, one.node)
                yield (
                    f"on rank {rank} {first} {other.kind} chunk {chunk} while {second} {one.kind} it: "
                    "nothing puts them into an order"
                )


def _message(schedule: Schedule, firings: Unfolding, node: int) -> str:
    if node < 0:
        return "the rank itself, joining,"
    return f"firing {firings.number[node]} of {describe_operation(schedule, int(firings.operation[node]))}"


def _earlier_events(schedule: Schedule, firings: Unfolding) -> list[int]:
    """Return, for each event, the set of events that come before it whatever the timing, as the bits of a number.

    Events 3f, 3f + 1 and 3f + 2 are the start, drain and delivery of firing f; 3F + r is that rank r joins.
    """
    total = len(firings.operation)
    node = np.arange(total)
    is_calc = schedule.operations.kind[firings.operation] != Kind.SEND
    later = np.flatnonzero(firings.number > 0)
    # What is no send has only one end.
    until = np.where(is_calc[firings.before], Until.DELIVERED, firings.until)
    pairs = [
        (3 * node, 3 * node + 1),
        (3 * node + 1, 3 * node + 2),
        (3 * total + schedule.operations.source[firings.operation], 3 * node),
        (3 * later - 2, 3 * later),
        (3 * later - 1, 3 * later + 2),
        (3 * firings.before + 1 + until, 3 * firings.after),
    ]
    before = np.concatenate([pair[0] for pair in pairs])
    after = np.concatenate([pair[1] for pair in pairs])
    count = 3 * total + schedule.ranks
    incoming: list[list[int]] = [[] for _ in range(count)]
    for a, b in zip(before.tolist(), after.tolist(), strict=True):
        incoming[b].append(a)
    earlier = [0] * count
    for wave in waves(count, before, after)[0]:
        for event in wave.tolist():
            found = 0
            for cause in incoming[event]:
                found |= earlier[cause] | 1 << cause
            earlier[event] = found
    return earlier
