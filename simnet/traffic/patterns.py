"""Ways for messages to go that more than one collective is made of: around a ring, between all pairs, along a tree.

Each function adds sends to a schedule that is being built. Rounds are in lockstep at the receiver: a rank takes part in
its next round, sending or receiving, when what it sent and received in its previous round is delivered. Senders that
run ahead would share the links of slower rounds.
"""

from __future__ import annotations

import numpy as np

from simnet.traffic.schedule import Integers, Partition, ScheduleBuilder

__all__ = ["around_ring", "begin_schedule", "between_all", "down_tree", "let_follow", "require_rank", "up_tree"]


def begin_schedule(
    name: str, ranks: int, elements: int, element_bytes: float, *, chunks: int, divisible: bool
) -> ScheduleBuilder:
    """Return a schedule without operations; refuse one without ranks. See `Partition` for what its buffer is."""
    if ranks < 1:
        raise ValueError(f"{name} needs at least one rank: {ranks}")
    return ScheduleBuilder(name, ranks, Partition(elements, element_bytes, chunks, divisible))


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


def around_ring(build: ScheduleBuilder, steps: int, *, first: int, reduce: int = 0) -> None:
    """Let chunks travel around the ring of all ranks: each rank sends to the next one.

    In step k rank r sends chunk (r + first - k) mod N, which arrived in step k - 1. One rank has nobody to send to.

    Parameters
    ----------
    build : ScheduleBuilder
        With as many chunks as ranks.
    steps : int
    first : int
        Which chunk a rank sends first, counted from its own number.
    reduce : int
        So many steps, from the first, add; the others copy.
    """
    if build.ranks == 1:
        return
    rank = np.arange(build.ranks)
    chunk = (rank + first) % build.ranks
    send = build.send(rank, (rank + 1) % build.ranks, repeat=steps, chunk=chunk, step=-1, reduce=reduce)
    build.depend(np.roll(send, 1), send, offset=1)


def between_all(ranks: int) -> tuple[Integers, Integers]:
    """Return source and target of a message from every rank to every other.

    Each begins with its right-hand neighbour, so that no receiver is everybody's first.
    """
    source = np.repeat(np.arange(ranks), ranks - 1)
    return source, (source + 1 + np.tile(np.arange(ranks - 1), ranks)) % ranks


def up_tree(build: ScheduleBuilder, root: int = 0) -> Integers:
    """Add up the whole buffer along a binomial tree, from the leaves to the root.

    With ranks counted from the root: in round j = 0, 1, ... rank r with r mod 2^(j+1) = 2^j sends all it has to
    r - 2^j.

    Returns
    -------
    array of int, shape (ranks,)
        The operation with which each rank, counted from the root, ended its last round; -1 where there is none. In a
        tree that is one: it has sent or received.
    """
    ranks = build.ranks
    last = np.full(ranks, -1)
    for level in range((ranks - 1).bit_length()):
        child = np.arange(1 << level, ranks, 2 << level)
        parent = child - (1 << level)
        send = build.send((child + root) % ranks, (parent + root) % ranks, reduce=1)
        let_follow(build, last[child], send)
        let_follow(build, last[parent], send)
        last[parent] = send
    return last


def down_tree(build: ScheduleBuilder, last: Integers | None = None, root: int = 0) -> None:
    """Spread the whole buffer along a binomial tree, from the root to the leaves: `up_tree` backwards.

    Parameters
    ----------
    build : ScheduleBuilder
    last : array of int, shape (ranks,)
        The operation that each rank, counted from the root, ends first; -1 where there is none, as by default.
    root : int
    """
    ranks = build.ranks
    last = np.full(ranks, -1) if last is None else last.copy()
    for level in reversed(range((ranks - 1).bit_length())):
        parent = np.arange(0, ranks - (1 << level), 2 << level)
        child = parent + (1 << level)
        send = build.send((parent + root) % ranks, (child + root) % ranks)
        # What the child sent upwards is part of what the parent passes on, so it need not be waited for again.
        let_follow(build, last[parent], send)
        last[parent] = last[child] = send
