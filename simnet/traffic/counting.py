"""Counts what a schedule does without playing it: steps, messages, bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simnet.traffic.graph import adjacency, unfold, waves
from simnet.traffic.schedule import Integers, Kind, Schedule

__all__ = ["Counts", "Steps", "count", "message_steps"]

_MOST_FIRINGS = 5_000_000


class Counts(NamedTuple):
    """What a schedule does in all.

    Attributes
    ----------
    steps : messages in the longest chain of messages that wait for each other
    messages : number of messages
    sent_bytes : bytes that all ranks send, without headers [bytes]
    """

    steps: int
    messages: int
    sent_bytes: float


class Steps(NamedTuple):
    """The step in which each message travels if every message takes one step and starts as early as it may.

    Attributes
    ----------
    operation, firing : which message
    step : counted from 0
    """

    operation: Integers
    firing: Integers
    step: Integers


def count(schedule: Schedule) -> Counts:
    """Count the steps, messages and bytes of a schedule; see `Counts`.

    Raises
    ------
    ValueError
        More than 5 million firings.
    """
    steps = int(message_steps(schedule).step.max(initial=-1)) + 1
    return Counts(steps, schedule.messages(), float(schedule.bytes_sent().sum()))


def message_steps(schedule: Schedule) -> Steps:
    """Return the step of every message; see `Steps`. Calculations take no step.

    A schedule in which every message takes the same time, whatever it shares, takes that many times as long.

    Parameters
    ----------
    schedule : Schedule
        One without deadlock.

    Raises
    ------
    ValueError
        More than 5 million firings.
    """
    firings = unfold(schedule, _MOST_FIRINGS)
    # Firings of one operation go one by one.
    later = np.flatnonzero(firings.number > 0)
    before, after = np.concatenate([firings.before, later - 1]), np.concatenate([firings.after, later])
    is_send = schedule.operations.kind[firings.operation] == Kind.SEND
    total = len(firings.operation)
    out = adjacency(total, before)
    start = np.zeros(total, dtype=np.int64)
    for wave in waves(total, before, after)[0]:
        edges = out.leaving(wave)
        np.maximum.at(start, after[edges], start[before[edges]] + is_send[before[edges]])
    messages = np.flatnonzero(is_send)
    return Steps(firings.operation[messages], firings.number[messages], start[messages])
