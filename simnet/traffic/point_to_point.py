"""All-to-all and send-receive: what each rank sends is for one other rank, and nothing is added.

Times are those on an uncontended star, with the letters of `simnet.traffic.all_reduce`. The size S is that of what one
rank has to give, its own share of an all-to-all included.

In a schedule all ranks share one numbering of chunks. So the buffer here is that of all ranks together, and each rank
has and gets its own part of it.

References
----------
.. [1] R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH",
   Int. J. of High Performance Computing Applications 19(1), 2005.
"""

from __future__ import annotations

import numpy as np

from simnet.traffic.patterns import begin_schedule, between_all, let_follow
from simnet.traffic.schedule import Schedule
from simnet.traffic.schedule_builder import ScheduleBuilder

__all__ = ["direct_all_to_all", "pairwise_all_to_all", "ring_send_recv"]


def direct_all_to_all(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Direct: every rank sends every other the share that is for it, all at once.

    Steps 1; messages N(N - 1); each rank sends (N - 1)/N S.
    Time (N - 1)S/(NB) + p. NCCL's way: all sends and receives of a rank in one group.

    Parameters
    ----------
    ranks : int
        N.
    elements : int
        Elements that each rank has to give, cut into one share a rank.
    element_bytes : float
        Size of one element [bytes].
    divisible : bool
        Cut elements too, so that shares are exactly equal.

    Returns
    -------
    Schedule
        Over N ranks; chunk ``d N + s`` of N^2 is what rank s has for rank d.

    Raises
    ------
    ValueError
        No rank.
    """
    build = _all_to_all("direct all-to-all", ranks, elements, element_bytes, divisible)
    if ranks > 1:
        source, target = between_all(ranks)
        build.send(source, target, chunk=target * ranks + source)
    return build.schedule(joint=True)


def pairwise_all_to_all(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Pairwise: in round k = 1 .. N - 1 rank r sends to r + k and receives from r - k [1]_.

    Rounds are in lockstep at the receiver; see `simnet.traffic.patterns`.

    Steps N - 1; messages N(N - 1); each rank sends (N - 1)/N S.
    Time (N - 1)(S/(NB) + p).

    Parameters
    ----------
    ranks, elements, element_bytes, divisible
        See `direct_all_to_all`.

    Returns
    -------
    Schedule
        As of `direct_all_to_all`.

    Raises
    ------
    ValueError
        No rank.

    References
    ----------
    .. [1] R. Thakur, R. Rabenseifner, W. Gropp, Int. J. of High Performance Computing Applications 19(1), 2005.
    """
    build = _all_to_all("pairwise all-to-all", ranks, elements, element_bytes, divisible)
    rank = np.arange(ranks)
    # The operations with which each rank sent and received in its last round.
    sent = received = np.full(ranks, -1)
    for distance in range(1, ranks):
        target = (rank + distance) % ranks
        send = build.send(rank, target, chunk=target * ranks + rank)
        for end in (rank, target):
            let_follow(build, sent[end], send)
            let_follow(build, received[end], send)
        sent, received = send, np.roll(send, distance)
    return build.schedule(joint=True)


def ring_send_recv(ranks: int, elements: int, element_bytes: float, *, divisible: bool = False) -> Schedule:
    """Ring: every rank sends its buffer to the next one, all at once, as in nccl-tests' sendrecv.

    Steps 1; messages N; each rank sends S.
    Time S/B + p.

    Parameters
    ----------
    ranks : int
        N; one alone keeps its buffer.
    elements : int
        Elements that each rank sends.
    element_bytes : float
        Size of one element [bytes].
    divisible : bool
        Of no effect: the buffers are not cut.

    Returns
    -------
    Schedule
        Over N ranks; chunk r of N is the buffer of rank r.

    Raises
    ------
    ValueError
        No rank.
    """
    build = begin_schedule(
        "ring send-receive", ranks, ranks * elements, element_bytes, chunks=ranks, divisible=divisible
    )
    if ranks > 1:
        rank = np.arange(ranks)
        build.send(rank, (rank + 1) % ranks, chunk=rank)
    return build.schedule()


def _all_to_all(name: str, ranks: int, elements: int, element_bytes: float, divisible: bool) -> ScheduleBuilder:
    """Begin a schedule over the N² shares; that of rank s for rank d is chunk ``d N + s``.

    In this order the first chunks, which are longer where elements do not come out even, are those for the first ranks:
    every rank cuts what it has in the same way.
    """
    return begin_schedule(name, ranks, ranks * elements, element_bytes, chunks=ranks * ranks, divisible=divisible)
