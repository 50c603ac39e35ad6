"""Lower bounds on the time of a schedule on a network, whatever the rates that flows get.

Two of them: the *cut* bound, bytes over the capacity of each resource and overheads over each server; and the *chain*
bound, the longest chain of dependencies when every flow has its path to itself. No simulation may be faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.chains import follow_chains
from simnet.fabric.kernels.tables import Table
from simnet.fabric.placement import Placement

__all__ = ["MOST_FIRINGS", "Bound", "bound", "chain_times", "cut_together_s"]

MOST_FIRINGS = 5_000_000
"""Chains are followed through schedules of at most so many firings; beyond, only the cut bound is used."""


@dataclass(frozen=True)
class Bound:
    """Lower bounds on one playing of a schedule.

    Parameters
    ----------
    cut_s : float
        Until everything is delivered, from what resources and servers have to carry [s].
    resource : int
        The resource that is busy longest; -1 where none is used.
    chain_s : float
        Until the last rank is complete, from chains of dependencies [s].
    first_rank_s : float
        Until the first rank is complete, likewise [s].
    """

    cut_s: float
    resource: int
    chain_s: float
    first_rank_s: float

    @property
    def total_s(self) -> float:
        """The larger of both [s]."""
        return max(self.cut_s, self.chain_s)


def bound(placement: Placement, capacity: NDArray[np.float64], costs: Table) -> Bound:
    """Return lower bounds on the time of a schedule that is laid out on a network.

    Parameters
    ----------
    placement : Placement
    capacity : ndarray, shape (resources,)
        [bytes/s]
    costs : table
        Of the kernel of the fabric that plays it.
    """
    taken = placement.resource_bytes
    busiest = max(taken, key=lambda row: (taken[row] / capacity[row], -row), default=-1)
    cut_s = max(taken[busiest] / float(capacity[busiest]) if taken else 0.0, _server_s(placement, costs))
    firings = int(placement.operations["firings"].sum())
    if firings > MOST_FIRINGS:
        return Bound(cut_s, busiest, 0.0, 0.0)
    complete = chain_times(placement, capacity, costs)
    return Bound(cut_s, busiest, float(complete.max(initial=0.0)), float(complete.min(initial=math.inf)))


def cut_together_s(placements: Sequence[Placement], capacity: NDArray[np.float64], senders: int | None = None) -> float:
    """Return for how long the busiest resource, or core, works on what several schedules ask of it together [s].

    Parameters
    ----------
    placements : sequence of Placement
    capacity : ndarray, shape (resources,)
        [bytes/s]
    senders : int, optional
        Only what the first so many ranks send counts, and no core.
    """
    taken = np.zeros(len(capacity))
    cores: dict[tuple[int, int], float] = {}
    for placement in placements:
        sent = placement.schedule.flow_bytes()
        if senders is not None:
            sent = np.where(placement.schedule.operations.source < senders, sent, 0.0)
        hops = placement.hops
        np.add.at(taken, hops["resource"], sent[hops["flow"]] * hops["coefficient"])
        for core, seconds in placement.core_s.items() if senders is None else ():
            cores[core] = cores.get(core, 0.0) + seconds
    used = taken > 0.0
    return max(float((taken[used] / capacity[used]).max(initial=0.0)), max(cores.values(), default=0.0))


def chain_times(placement: Placement, capacity: NDArray[np.float64], costs: Table) -> NDArray[np.float64]:
    """Return when each rank would be complete if no flow shared anything, shape (ranks,) [s]."""
    operations = placement.operations
    fastest = np.full(len(operations), np.inf)
    np.minimum.at(fastest, placement.hops["flow"], capacity[placement.hops["resource"]] / placement.hops["coefficient"])
    fastest = np.minimum(fastest, operations["cap"])
    first = np.concatenate([[0], np.cumsum(operations["firings"])])
    drained, delivered = np.zeros(first[-1]), np.zeros(first[-1])
    evaluated = follow_chains(
        operations,
        placement.dependencies,
        placement.outgoing,
        costs,
        1.0 / fastest,
        first,
        drained,
        delivered,
        np.zeros(len(operations), np.int64),
        np.arange(len(operations)),
        np.ones(len(operations), np.bool_),
    )
    if evaluated != first[-1]:
        raise ValueError(f"{placement.schedule.name} deadlocks: {first[-1] - evaluated} firings never start")
    complete = np.zeros(placement.schedule.ranks)
    if len(operations):
        np.maximum.at(complete, operations["source"], drained[first[1:] - 1])
        np.maximum.at(complete, operations["target"], delivered[first[1:] - 1])
    return complete


def _server_s(placement: Placement, costs: Table) -> float:
    """Return for how long the busiest sender or receiver works on overheads [s]."""
    operations = placement.operations
    cost = costs[operations["cost"]]
    paying = np.minimum(operations["chunk_bytes"], cost["pipeline_bytes"])
    is_message = operations["is_message"]
    longest = 0.0
    for rank, each, per_byte in (("source", "send", "send_per_byte"), ("target", "receive", "receive_per_byte")):
        work = np.where(is_message, (cost[each] + cost[per_byte] * paying) * operations["firings"], 0.0)
        longest = max(longest, float(np.bincount(operations[rank], weights=work).max(initial=0.0)))
    return longest
