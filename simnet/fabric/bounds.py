"""Lower bounds on the time of a schedule on a network, whatever the rates that flows get.

Two of them: the *cut* bound, bytes over the capacity of each resource and overheads over each server; and the *chain*
bound, the longest chain of dependencies when every flow has its path to itself. No simulation may be faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.compiled import kernel
from simnet.fabric.placement import Placement
from simnet.fabric.tables import Table

__all__ = ["MOST_FIRINGS", "Bound", "bound", "chain_times"]

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
        As of the fabric that plays it; see `FluidFabric.costs`.
    """
    taken = placement.resource_bytes
    busiest = max(taken, key=lambda row: (taken[row] / capacity[row], -row), default=-1)
    cut_s = max(taken[busiest] / float(capacity[busiest]) if taken else 0.0, _server_s(placement, costs))
    firings = int(placement.operations["firings"].sum())
    if firings > MOST_FIRINGS:
        return Bound(cut_s, busiest, 0.0, 0.0)
    complete = chain_times(placement, capacity, costs)
    return Bound(cut_s, busiest, float(complete.max(initial=0.0)), float(complete.min(initial=math.inf)))


def chain_times(placement: Placement, capacity: NDArray[np.float64], costs: Table) -> NDArray[np.float64]:
    """Return when each rank would be complete if no flow shared anything, shape (ranks,) [s]."""
    operations = placement.operations
    fastest = np.full(len(operations), np.inf)
    np.minimum.at(fastest, placement.hops["flow"], capacity[placement.hops["resource"]] / placement.hops["coefficient"])
    fastest = np.minimum(fastest, operations["cap"])
    first = np.concatenate([[0], np.cumsum(operations["firings"])])
    drained, delivered = np.zeros(first[-1]), np.zeros(first[-1])
    evaluated = _evaluate(
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
    is_send = operations["is_send"]
    longest = 0.0
    for rank, each, per_byte in (("source", "send", "send_per_byte"), ("target", "receive", "receive_per_byte")):
        work = np.where(is_send, (cost[each] + cost[per_byte] * paying) * operations["firings"], 0.0)
        longest = max(longest, float(np.bincount(operations[rank], weights=work).max(initial=0.0)))
    return longest


@kernel
def _evaluate(
    operations: Table,
    dependencies: Table,
    outgoing: Table,
    costs: Table,
    s_per_byte: NDArray[np.float64],
    first: NDArray[np.int64],
    drained: NDArray[np.float64],
    delivered: NDArray[np.float64],
    done: NDArray[np.int64],
    waiting: NDArray[np.int64],
    listed: NDArray[np.bool_],
) -> int:
    """Write when each firing drains and is delivered; return how many firings could be evaluated."""
    size = len(operations)
    total = 0
    while size > 0:
        size -= 1
        row = waiting[size]
        listed[row] = False
        operation = operations[row]
        cost = costs[operation.cost]
        while done[row] < operation.firings:
            firing = done[row]
            start = 0.0
            if firing > 0:
                start = drained[first[row] + firing - 1]
            ready = True
            for edge in range(operation.first_in, operation.first_in + operation.ins):
                dependency = dependencies[edge]
                needed = firing - dependency.offset
                if needed < 0:
                    continue
                before = dependency.before
                needed = min(needed, operations[before].firings - 1)
                if needed >= done[before]:
                    ready = False
                    break
                met = drained[first[before] + needed]
                if dependency.until_delivered:
                    met = delivered[first[before] + needed]
                start = max(start, met + dependency.delay)
            if not ready:
                break
            end = start + operation.seconds
            arrival = end
            if operation.is_send:
                # The shorter of the chunk sizes, so that it stays a bound.
                amount = operation.chunk_bytes
                paying = min(amount, cost.pipeline_bytes)
                begin = start + cost.send + cost.send_per_byte * paying + operation.each_setup
                end = begin + amount * s_per_byte[row]
                arrival = end + operation.latency + operation.forward_per_byte * min(amount, cost.packet_bytes)
                arrival += cost.receive + cost.receive_per_byte * paying
                if firing < operation.reduce_firings:
                    arrival += cost.reduce_per_byte * amount
                if firing > 0:
                    arrival = max(arrival, delivered[first[row] + firing - 1])
            drained[first[row] + firing] = end
            delivered[first[row] + firing] = arrival
            done[row] = firing + 1
            total += 1
            for edge in range(operation.first_out, operation.first_out + operation.outs):
                after = dependencies[outgoing[edge].row].after
                if not listed[after]:
                    listed[after] = True
                    waiting[size] = after
                    size += 1
    return total
