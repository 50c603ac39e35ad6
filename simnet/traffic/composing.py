"""Schedules made of schedules: several copies of one, each on some of the ranks and on some of the chunks, in phases.

A rank takes part in its next phase, sending or receiving, when all that it sent, received and calculated in its
phases before is over: lockstep at the receiver, as with the rounds of `simnet.traffic.patterns`. So what each phase is
proven to do may be taken for granted in the next, and phases of ranks that have nothing to do with each other do not
wait for each other.

A schedule that happens over and over, as the all-reduce of activations does with each micro-batch, is written out once,
firing by firing, and then repeated as a whole: `repeated`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from simnet.traffic.graph import unfold
from simnet.traffic.patterns import let_follow
from simnet.traffic.schedule import Integers, Kind, Schedule, Until
from simnet.traffic.schedule_builder import ScheduleBuilder

__all__ = ["Phase", "PlacedPart", "add_phases", "follow_ranks", "join_ranks", "place_part", "repeated"]

_MOST_FIRINGS = 1_000_000


# Compared by identity, as schedules are.
@dataclass(frozen=True, eq=False)
class Phase:
    """Copies of a schedule that run side by side.

    Parameters
    ----------
    part : Schedule
        Only its operations and dependencies count; what its chunks are is said by the other parameters.
    ranks : array_like of int, shape (copies, ranks of the part)
        Who is each of the part's ranks in each copy.
    chunk : array_like of int, shape () or (copies,)
        The chunk of the whole with which chunk 0 of the part begins.
    factor : int
        So many adjacent chunks of the whole are one of the part.
    """

    part: Schedule
    ranks: ArrayLike
    chunk: ArrayLike = 0
    factor: int = 1


class PlacedPart(NamedTuple):
    """Operations of the whole: their indices, ranks, and how often each fires."""

    operation: Integers
    source: Integers
    target: Integers
    repeat: Integers


def add_phases(build: ScheduleBuilder, phases: Sequence[Phase]) -> None:
    """Add phases one after the other; phases without operations are left out.

    Adds the operations and dependencies of all copies, two dependencies more for each operation but those of the first
    phase, and between phases a calculation of 0 s for each rank that took part.

    Parameters
    ----------
    build : ScheduleBuilder
        With chunks that are those of the parts, or cut them.
    phases : sequence of Phase
    """
    ended = np.full(build.ranks, -1)
    placed: PlacedPart | None = None
    for phase in phases:
        if not len(phase.part.operations):
            continue
        if placed is not None:
            ended = join_ranks(build, placed, ended)
        placed = place_part(build, phase)
        follow_ranks(build, placed, ended)


def repeated(schedule: Schedule, times: int) -> Schedule:
    """Return a small schedule in which every operation fires once for each time that all of the given one happens.

    Each firing of the given schedule becomes an operation that fires `times` times: firing j is part of the j-th
    repetition. Within a repetition all is as given. Of its neighbours it knows only that an operation fires one by one:
    whoever puts it into a larger schedule lets ranks wait between repetitions; see `follow_ranks` and `join_ranks`.
    Sends have the sizes of the given ones but carry no chunks, so that nothing can be proven of what they do to data;
    it is proven of the given schedule.

    Parameters
    ----------
    schedule : Schedule
        One of at most 1 million firings.
    times : int

    Returns
    -------
    Schedule
        As many operations as the given one has firings.
    """
    ops = schedule.operations
    firings = unfold(schedule, _MOST_FIRINGS)
    operation, number = firings.operation, firings.number
    build = ScheduleBuilder(schedule.name, schedule.ranks, schedule.partition)
    index = np.full(len(operation), -1)
    kind = ops.kind[operation]
    calc, memory, send = (np.flatnonzero(kind == which) for which in (Kind.CALC, Kind.MEMORY, Kind.SEND))
    of = operation[calc]
    index[calc] = build.calc(ops.source[of], ops.seconds[of], stream=ops.stream[of], repeat=times)
    of = operation[memory]
    index[memory] = build.memory(ops.source[of], ops.fixed_bytes[of], repeat=times)
    of = operation[send]
    sizes = [schedule.firing_bytes(*pair) for pair in zip(of.tolist(), number[send].tolist(), strict=True)]
    index[send] = build.send(
        ops.source[of],
        ops.target[of],
        repeat=times,
        width=0,
        fixed_bytes=np.array(sizes, dtype=np.float64),
        reduce=np.where(number[send] < ops.reduce_firings[of], times, 0),
    )
    later = np.flatnonzero(number > 0)
    build.depend(index[later - 1], index[later], until=Until.DRAINED)
    build.depend(
        index[firings.before],
        index[firings.after],
        until=firings.until,
        delay_s=schedule.dependencies.delay_s[firings.dependency],
    )
    return build.schedule(joint=schedule.joint)


def follow_ranks(build: ScheduleBuilder, placed: PlacedPart, ended: Integers) -> None:
    """Let operations wait for one of each rank at either end.

    Parameters
    ----------
    build : ScheduleBuilder
    placed : PlacedPart
    ended : array of int, shape (ranks,)
        The operation of each rank that is waited for, by its firing of the same number; -1 where there is none.
    """
    let_follow(build, ended[placed.source], placed.operation)
    apart = placed.target != placed.source
    let_follow(build, ended[placed.target[apart]], placed.operation[apart])


def place_part(build: ScheduleBuilder, phase: Phase) -> PlacedPart:
    """Add all copies of a schedule."""
    ops, deps, factor = phase.part.operations, phase.part.dependencies, phase.factor
    ranks = np.atleast_2d(np.asarray(phase.ranks))
    copies, count = len(ranks), len(ops)
    source, target = ranks[:, ops.source], ranks[:, ops.target]
    index = np.empty((copies, count), dtype=np.int64)
    calc, send, memory = (np.flatnonzero(ops.kind == kind) for kind in (Kind.CALC, Kind.SEND, Kind.MEMORY))
    index[:, calc] = build.calc(
        source[:, calc], ops.seconds[calc], stream=ops.stream[calc], repeat=ops.repeat[calc]
    ).reshape(copies, -1)
    index[:, memory] = build.memory(source[:, memory], ops.fixed_bytes[memory], repeat=ops.repeat[memory]).reshape(
        copies, -1
    )
    merged_by = ops.merged_by[send]
    index[:, send] = build.send(
        source[:, send],
        target[:, send],
        repeat=ops.repeat[send],
        chunk=ops.chunk_first[send] * factor,
        step=ops.chunk_step[send] * factor,
        modulus=ops.chunk_modulus[send] * factor,
        offset=ops.chunk_offset[send] * factor + np.asarray(phase.chunk).reshape(-1, 1),
        width=ops.chunk_width[send] * factor,
        reduce=ops.reduce_firings[send],
        fixed_bytes=ops.fixed_bytes[send],
        merged_by=np.where(merged_by < 0, -1, index[:, merged_by]),
    ).reshape(copies, -1)
    build.depend(
        index[:, deps.before], index[:, deps.after], offset=deps.offset, until=deps.until, delay_s=deps.delay_s
    )
    return PlacedPart(index.ravel(), source.ravel(), target.ravel(), np.tile(ops.repeat, copies))


def join_ranks(build: ScheduleBuilder, placed: PlacedPart, ended: Integers, *, times: int = 1) -> Integers:
    """Add a calculation for each rank that takes part, at whose end it is through; return those of all ranks.

    Parameters
    ----------
    build : ScheduleBuilder
    placed : PlacedPart
    ended : array of int, shape (ranks,)
        The same of earlier phases, for ranks that have no part in this one; -1 where there is none.
    times : int
        How often the calculation fires: once, after all firings, or after each firing of `repeated` ones.
    """
    ended = ended.copy()
    rank = np.unique(np.concatenate([placed.source, placed.target]))
    ended[rank] = build.calc(rank, repeat=times)
    apart = placed.target != placed.source
    index = np.concatenate([placed.operation, placed.operation[apart]])
    after = ended[np.concatenate([placed.source, placed.target[apart]])]
    build.depend(index, after, offset=times - np.concatenate([placed.repeat, placed.repeat[apart]]))
    return ended
