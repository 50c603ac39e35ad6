"""A training step that several ranks do together, as a schedule, and what tells how far it has come."""

from __future__ import annotations

from dataclasses import dataclass

from simnet.traffic.schedule import Integers, Schedule

__all__ = ["Step"]


@dataclass(frozen=True, eq=False)
class Step:
    """The calculations and messages of one training step.

    Besides the workers the schedule has *milestones*: ranks that do nothing but wait, with one calculation of 0 s each,
    until some part of the work of one worker is over for the last time. As a rank is complete when all it does is done,
    whoever plays the schedule learns from them when gradients are ready.

    Parameters
    ----------
    schedule : Schedule
        Ranks 0 .. workers - 1 are the workers, the others are the milestones.
    workers : int
    ready : array of int, shape (workers, parts)
        The rank that is the milestone of each part of the work of each worker; -1 where there is none.
    milestone_owner : array of int, shape (milestones,)
        The worker that milestone ``workers + i`` belongs to, on whose node it is to be put.
    """

    schedule: Schedule
    workers: int
    ready: Integers
    milestone_owner: Integers
