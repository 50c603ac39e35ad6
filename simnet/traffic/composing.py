"""Schedules made of schedules: several copies of one, each on some of the ranks and on some of the chunks, in phases.

A rank takes part in its next phase, sending or receiving, when all that it sent, received and calculated in its
phases before is over: lockstep at the receiver, as with the rounds of `simnet.traffic.patterns`. So what each phase is
proven to do may be taken for granted in the next, and phases of ranks that have nothing to do with each other do not
wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from simnet.traffic.patterns import let_follow
from simnet.traffic.schedule import Integers, Kind, Schedule, ScheduleBuilder

__all__ = ["Phase", "add_phases"]


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


class _Placed(NamedTuple):
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
    placed: _Placed | None = None
    for phase in phases:
        if not len(phase.part.operations):
            continue
        if placed is not None:
            ended = _join(build, placed, ended)
        placed = _place(build, phase)
        let_follow(build, ended[placed.source], placed.operation)
        apart = placed.target != placed.source
        let_follow(build, ended[placed.target[apart]], placed.operation[apart])


def _place(build: ScheduleBuilder, phase: Phase) -> _Placed:
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
    index[:, memory] = build.memory(
        source[:, memory], ops.fixed_bytes[memory], repeat=ops.repeat[memory]
    ).reshape(copies, -1)
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
    return _Placed(index.ravel(), source.ravel(), target.ravel(), np.tile(ops.repeat, copies))


def _join(build: ScheduleBuilder, placed: _Placed, ended: Integers) -> Integers:
    """Add a calculation for each rank that takes part, at whose end it is through; return those of all ranks.

    Parameters
    ----------
    build : ScheduleBuilder
    placed : _Placed
    ended : array of int, shape (ranks,)
        The same of earlier phases, for ranks that have no part in this one; -1 where there is none.
    """
    ended = ended.copy()
    rank = np.unique(np.concatenate([placed.source, placed.target]))
    ended[rank] = build.calc(rank)
    apart = placed.target != placed.source
    index = np.concatenate([placed.operation, placed.operation[apart]])
    after = ended[np.concatenate([placed.source, placed.target[apart]])]
    build.depend(index, after, offset=1 - np.concatenate([placed.repeat, placed.repeat[apart]]))
    return ended
