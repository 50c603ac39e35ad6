"""Milestones that tell when what a rank sends has arrived, for whoever plays a schedule."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from simnet.traffic.schedule import Dependencies, Kind, Operations, Partition, Schedule
from simnet.traffic.schedule_builder import ScheduleBuilder

__all__ = ["with_sent_milestones"]

_Records = TypeVar("_Records", Operations, Dependencies)


def with_sent_milestones(schedule: Schedule, senders: int) -> Schedule:
    """Return a schedule with a milestone for each of its first ranks: when all that it sends has arrived.

    Parameters
    ----------
    schedule : Schedule
    senders : int
        Ranks 0 .. senders - 1.

    Returns
    -------
    Schedule
        Its last `senders` ranks do nothing but wait; the rank itself may have more to do, such as to receive.
    """
    ops, own = schedule.operations, schedule.dependencies
    build = ScheduleBuilder(schedule.name, schedule.ranks + senders, Partition(0, 1.0))
    milestone = build.calc(schedule.ranks + np.arange(senders))
    # What carries nothing, such as a request, is not what a rank has to send.
    carries = (ops.chunk_width > 0) | (ops.fixed_bytes > 0.0)
    sends = np.flatnonzero((ops.kind == Kind.SEND) & carries & (ops.source < senders))
    build.depend(sends, len(ops) + milestone[ops.source[sends]], offset=1 - ops.repeat[sends])
    added = build.schedule()
    return replace(
        schedule,
        ranks=added.ranks,
        operations=_joined(ops, added.operations),
        dependencies=_joined(own, added.dependencies),
    )


def _joined(some: _Records, others: _Records) -> _Records:
    """Return the records of both, one after the other."""
    columns = {
        column.name: np.concatenate([getattr(some, column.name), getattr(others, column.name)])
        for column in fields(some)
    }
    return type(some)(**columns)
