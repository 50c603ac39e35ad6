"""Ways for messages to go that more than one collective is made of: around a ring, between all pairs.

Those along trees are in `simnet.traffic.trees`, those that halve and double in `simnet.traffic.halving`, and whole
schedules one after the other in `simnet.traffic.composing`.

Each function adds sends to a schedule that is being built. Rounds are in lockstep at the receiver: a rank takes part in
its next round, sending or receiving, when what it sent and received in its previous round is delivered. Senders that
run ahead would share the links of slower rounds.
"""

from __future__ import annotations

import numpy as np

from simnet.traffic.schedule import Integers, Partition
from simnet.traffic.schedule_builder import ScheduleBuilder

__all__ = ["around_ring", "begin_schedule", "between_all", "let_follow", "require_positive", "require_rank"]


def begin_schedule(
    name: str, ranks: int, elements: int, element_bytes: float, *, chunks: int, divisible: bool
) -> ScheduleBuilder:
    """Return a schedule without operations; refuse one without ranks. See `Partition` for what its buffer is."""
    if ranks < 1:
        raise ValueError(f"{name} needs at least one rank: {ranks}")
    return ScheduleBuilder(name, ranks, Partition(elements, element_bytes, chunks, divisible))


def require_positive(name: str, what: str, value: int) -> None:
    """Refuse a number that is to be 1 or more.

    Parameters
    ----------
    name : str
        The schedule that it is for.
    what : str
        What there is so many of.
    value : int
    """
    if value < 1:
        raise ValueError(f"the {what} of a {name} are at least 1: {value}")


def require_rank(build: ScheduleBuilder, rank: int, role: str) -> None:
    """Refuse a rank that does not exist.

    Parameters
    ----------
    build : ScheduleBuilder
    rank : int
    role : str
        What it was to be, for the message.
    """
    if not 0 <= rank < build.ranks:
        raise ValueError(f"the {role} of a {build.name} is one of its ranks 0 .. {build.ranks - 1}: {rank}")


def let_follow(build: ScheduleBuilder, before: Integers, after: Integers) -> None:
    """Let `after` wait for `before` where there is one; -1 stands for none."""
    some = before >= 0
    build.depend(before[some], after[some])


def around_ring(
    build: ScheduleBuilder,
    steps: int,
    *,
    first: int,
    reduce: int = 0,
    order: Integers | None = None,
    pieces: int = 1,
    offset: int = 0,
) -> None:
    """Let chunks travel around a ring of ranks: each rank sends to the next one.

    In step k the rank at place r sends chunk (r + first - k) mod N, which arrived in step k - 1. One rank has nobody to
    send to. A chunk that is cut into m pieces travels as m messages, the last piece first, each of which follows the
    one before it as soon as that has left, and goes on as soon as it has arrived: firing k of a rank waits for firing
    k - m of the rank before it.

    Parameters
    ----------
    build : ScheduleBuilder
        With a chunk for each piece; chunk c of the ring is ``offset + c m`` and the m - 1 that follow.
    steps : int
    first : int
        Which chunk a rank sends first, counted from its own place.
    reduce : int
        So many steps, from the first, add; the others copy.
    order : array of int
        The ranks in the order in which the ring goes through them; all, in their own order, by default.
    pieces : int
        m.
    offset : int
    """
    order = np.arange(build.ranks) if order is None else order
    size = len(order)
    if size == 1:
        return
    chunk = (np.arange(size) + first) % size * pieces + pieces - 1
    send = build.send(
        order,
        np.roll(order, -1),
        repeat=steps * pieces,
        chunk=chunk,
        step=-1,
        modulus=size * pieces,
        offset=offset,
        reduce=reduce * pieces,
    )
    build.depend(np.roll(send, 1), send, offset=pieces)


def between_all(ranks: int) -> tuple[Integers, Integers]:
    """Return source and target of a message from every rank to every other.

    Each begins with its right-hand neighbour, so that no receiver is everybody's first.
    """
    source = np.repeat(np.arange(ranks), ranks - 1)
    return source, (source + 1 + np.tile(np.arange(ranks - 1), ranks)) % ranks
