"""Counts what a schedule does without playing it: steps, messages, bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simnet.traffic.graph import adjacency, unfold, waves
from simnet.traffic.schedule import Integers, Kind, Schedule

__all__ = ["MOST_FIRINGS", "Counts", "Steps", "count", "message_steps"]

MOST_FIRINGS = 5_000_000


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


def count(schedule: Schedule, nodes: ArrayLike | None = None) -> Counts:
    """Count the steps, messages and bytes of a schedule; see `Counts`.

    Parameters
    ----------
    schedule : Schedule
    nodes : array_like of int, shape (ranks,)
        The node that each rank is on, by any numbers: what does not leave its node is no message and takes no step. By
        default each rank has a node of its own.

    Returns
    -------
    Counts
        Steps, messages and bytes.

    Raises
    ------
    ValueError
        More than 5 million firings.
    """
    ops = schedule.operations
    steps = int(message_steps(schedule, nodes).step.max(initial=-1)) + 1
    leaves = _leaves_node(schedule, nodes)
    return Counts(steps, int(ops.repeat[leaves].sum()), float(schedule.operation_bytes()[leaves].sum()))


def message_steps(schedule: Schedule, nodes: ArrayLike | None = None) -> Steps:
    """Return the step of every message; see `Steps`. Calculations take no step.

    A schedule in which every message takes the same time, whatever it shares, takes that many times as long.

    Parameters
    ----------
    schedule : Schedule
        One without deadlock.
    nodes : array_like of int
        See `count`.

    Returns
    -------
    Steps
        Arrays of shape (messages,).

    Raises
    ------
    ValueError
        More than 5 million firings.
    """
    firings = unfold(schedule, MOST_FIRINGS)
    # Firings of one operation go one by one.
    later = np.flatnonzero(firings.number > 0)
    before, after = np.concatenate([firings.before, later - 1]), np.concatenate([firings.after, later])
    is_send = _leaves_node(schedule, nodes)[firings.operation]
    total = len(firings.operation)
    out = adjacency(total, before)
    start = np.zeros(total, dtype=np.int64)
    for wave in waves(total, before, after)[0]:
        edges = out.leaving(wave)
        np.maximum.at(start, after[edges], start[before[edges]] + is_send[before[edges]])
    messages = np.flatnonzero(is_send)
    return Steps(firings.operation[messages], firings.number[messages], start[messages])


def _leaves_node(schedule: Schedule, nodes: ArrayLike | None) -> NDArray[np.bool_]:
    """Return which operations are sends from one node to another, shape (operations,)."""
    ops = schedule.operations
    sends: NDArray[np.bool_] = ops.kind == Kind.SEND
    if nodes is None:
        return sends
    node = np.asarray(nodes, dtype=np.int64)
    leaves: NDArray[np.bool_] = sends & (node[ops.source] != node[ops.target])
    return leaves
