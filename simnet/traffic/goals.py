"""What collectives are for: which rank puts what in, and which must end with what.

A `Goal` says it for the chunks of one schedule; `simnet.traffic.check` proves that the schedule achieves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.traffic.schedule import Schedule

__all__ = [
    "Goal",
    "all_gather_goal",
    "all_reduce_goal",
    "all_to_all_goal",
    "broadcast_goal",
    "reduce_goal",
    "reduce_scatter_goal",
    "send_recv_goal",
]

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Goal:
    """Who puts what in, and who must end with what.

    A rank that must hold a chunk holds each contribution to that chunk, exactly once: their sum, or the only one.

    Parameters
    ----------
    contributes : array of bool, shape (ranks, chunks)
        Whether a rank puts something of its own into a chunk.
    holds : array of bool, shape (ranks, chunks)
        Whether a rank must end with a chunk.
    zeros : bool
        Chunks that a rank puts nothing into start as zeros, so that others can be added to them. Otherwise they start
        with whatever the memory held, which must be replaced.
    """

    contributes: Flags
    holds: Flags
    zeros: bool = False


def all_reduce_goal(
    schedule: Schedule, contributors: Sequence[int] | None = None, holders: Sequence[int] | None = None
) -> Goal:
    """Return the goal that all ranks get the sum of all buffers.

    Parameters
    ----------
    schedule : Schedule
    contributors, holders : sequence of int
        The ranks whose buffers are summed, and those that must end with the sum; all where not given. The others start
        with zeros, and may end with anything.

    Returns
    -------
    Goal
    """
    return Goal(_whole(schedule, contributors), _whole(schedule, holders), zeros=True)


def reduce_scatter_goal(schedule: Schedule) -> Goal:
    """Return the goal that rank r gets the sum of all chunks r.

    Parameters
    ----------
    schedule : Schedule
        Of N chunks.

    Returns
    -------
    Goal
    """
    return Goal(_whole(schedule), _own(schedule))


def all_gather_goal(schedule: Schedule) -> Goal:
    """Return the goal that all ranks get all chunks, of which rank r has chunk r.

    Parameters
    ----------
    schedule : Schedule
        Of N chunks.

    Returns
    -------
    Goal
    """
    return Goal(_own(schedule), _whole(schedule))


def broadcast_goal(schedule: Schedule, root: int = 0, holders: Sequence[int] | None = None) -> Goal:
    """Return the goal that all ranks get the buffer of the root, or all `holders` where these are given.

    Parameters
    ----------
    schedule : Schedule
    root : int
        The rank whose buffer it is.
    holders : sequence of int
        The ranks that must end with it; all where not given.

    Returns
    -------
    Goal
    """
    return Goal(_whole(schedule, [root]), _whole(schedule, holders))


def reduce_goal(schedule: Schedule, root: int = 0, contributors: Sequence[int] | None = None) -> Goal:
    """Return the goal that the root gets the sum of all buffers.

    Parameters
    ----------
    schedule : Schedule
    root : int
        The rank that must end with the sum.
    contributors : sequence of int
        The ranks whose buffers are summed; all where not given. The others start with zeros.

    Returns
    -------
    Goal
    """
    return Goal(_whole(schedule, contributors), _whole(schedule, [root]), zeros=contributors is not None)


def all_to_all_goal(schedule: Schedule) -> Goal:
    """Return the goal that rank d gets from each rank s the share for it: chunk ``d N + s`` of all buffers together.

    Parameters
    ----------
    schedule : Schedule
        Of N^2 chunks.

    Returns
    -------
    Goal
    """
    owner, source = np.divmod(np.arange(schedule.partition.chunks), schedule.ranks)
    rank = np.arange(schedule.ranks)[:, np.newaxis]
    return Goal(rank == source, rank == owner)


def send_recv_goal(schedule: Schedule) -> Goal:
    """Return the goal that rank r gets the buffer of rank r - 1: chunk r - 1 of all buffers together.

    Parameters
    ----------
    schedule : Schedule
        Of N chunks.

    Returns
    -------
    Goal
    """
    own = _own(schedule)
    return Goal(own, np.roll(own, 1, axis=0))


def _whole(schedule: Schedule, ranks: Sequence[int] | None = None) -> Flags:
    """Return all chunks of some ranks, of all by default."""
    flags = np.zeros((schedule.ranks, schedule.partition.chunks), dtype=np.bool_)
    flags[slice(None) if ranks is None else list(ranks)] = True
    return flags


def _own(schedule: Schedule) -> Flags:
    """Return, for each rank, the chunk of its number."""
    return np.eye(schedule.ranks, schedule.partition.chunks, dtype=np.bool_)
