"""An architecture on a cluster, as who exchanges wants it: the nodes that take part, and the schedules of buckets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simnet.topology import Topology
from simnet.traffic import Schedule

__all__ = ["Alone", "Arrange", "Arrangement", "MakeSchedule", "MakeSchedules", "each_bucket"]

MakeSchedule = Callable[..., Schedule]
"""``(elements, element_bytes, *, divisible) -> Schedule``: that of one bucket."""

MakeSchedules = Callable[[Sequence[int], float, bool], list[Schedule]]
"""``(elements, element_bytes, divisible) -> [Schedule]``: those of all buckets."""


@dataclass(frozen=True, eq=False)
class Alone:
    """What one worker of an architecture exchanges by itself, when it need not wait for others.

    Parameters
    ----------
    push : callable
        As `Arrangement.schedules`: what it sends for each bucket; rank 0 is the worker.
    pull : callable or None
        Likewise, what it then gets.
    nodes : callable
        ``iteration -> ndarray of int``: node index of each rank.
    others : callable
        ``iteration -> sequence of int``: which workers are ranks 1 and up; empty where servers are.
    """

    push: MakeSchedules
    pull: MakeSchedules | None
    nodes: Callable[[int], NDArray[np.int64]]
    others: Callable[[int], Sequence[int]] = lambda _: ()


@dataclass(frozen=True, eq=False)
class Arrangement:
    """An architecture on a cluster.

    Parameters
    ----------
    nodes : ndarray of int, shape (ranks,)
        Node index of each rank: the workers first, then servers or switches.
    schedules : callable
        ``(elements, element_bytes, divisible) -> [Schedule]``, one for each bucket, given their elements.
    joins_late : bool
        Each worker takes part as soon as it is ready itself, not only when all are.
    streams : float
        Exchanges that may be under way at once.
    alone : callable or None
        ``(worker, seed, job) -> Alone``; None where nobody can exchange by itself.
    peers : sequence of sequence of int, or None
        Whom each worker exchanges with, and so waits for; None: all of them.
    """

    nodes: NDArray[np.int64]
    schedules: MakeSchedules
    joins_late: bool = False
    streams: float = 1
    alone: Callable[[int, int, str], Alone] | None = None
    peers: Sequence[Sequence[int]] | None = None


class Arrange(Protocol):
    """Arranges an architecture for some workers."""

    def __call__(
        self, topology: Topology, nodes: NDArray[np.int64], options: Mapping[str, Any], busy: frozenset[int]
    ) -> Arrangement:
        """Arrange it.

        Parameters
        ----------
        topology : Topology
        nodes : ndarray of int, shape (workers,)
            Node index of each worker.
        options : mapping
        busy : frozenset of int
            Hosts with workers on them, of all jobs.
        """


def each_bucket(make: MakeSchedule) -> MakeSchedules:
    """Make the schedule of each bucket by itself; buckets of one size share theirs."""

    def schedules(elements: Sequence[int], element_bytes: float, divisible: bool) -> list[Schedule]:
        made: dict[int, Schedule] = {}
        for size in elements:
            if size not in made:
                made[size] = make(size, element_bytes, divisible=divisible)
        return [made[size] for size in elements]

    return schedules
