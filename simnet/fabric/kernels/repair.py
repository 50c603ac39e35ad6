"""Local repair of max-min fair rates: solve again only around what changed; compiled.

Every flow has a limit: its cap, or a full resource on which no flow has a higher level. That is the max-min condition
(D. Bertsekas and R. Gallager, *Data Networks*, 2nd ed., section 6.5.2), and it is local. So a change is repaired by
solving for a set of flows alone, with all others as they are; flows whose limit does not hold any more join the set,
until nobody joins. How far a change reaches is the subject of bottleneck structures (J. Ros-Giralt et al., "On the
bottleneck structure of congestion-controlled networks", SIGMETRICS 2020).
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.maxmin import raise_levels
from simnet.fabric.kernels.tables import Table

__all__ = ["join", "repair"]

_SAME_LEVEL = 1e-12  # relative


@inlined
def join(flows: Table, members: Table, count: int, mark: int, row: int) -> int:
    """Add a flow to the set, if it is not in yet; return the size of the set."""
    if flows[row].mark == mark:
        return count
    flows[row].mark = mark
    flows[row].old_rate = flows[row].rate
    members[count].row = row
    return count + 1


@kernel
def repair(
    flows: Table,
    hops: Table,
    resources: Table,
    levels: Table,
    members: Table,
    count: int,
    mark: int,
    resource_members: Table,
    whole: bool,
) -> tuple[int, int]:
    """Solve for a set of flows, and for those who join it.

    Parameters
    ----------
    flows, hops, resources, levels : tables
        As of `simnet.fabric.kernels.maxmin.fill`.
    members : table
        The set to begin with; each of its flows bears the mark. Those who join follow.
    count : int
        Its size.
    mark : int
        Given to nothing else so far.
    resource_members : table
        Scratch for the resources of the set.
    whole : bool
        Begin with all flows that are connected with the set by resources: the full solve.

    Returns
    -------
    tuple of int
        Size of the set in the end, and passes.
    """
    used = 0
    collected = 0
    passes = 0
    while True:
        passes += 1
        while collected < count:
            flow = flows[members[collected].row]
            collected += 1
            for hop in range(flow.first_hop, flow.first_hop + flow.hops):
                row = hops[hop].resource
                if resources[row].mark != mark:
                    resources[row].mark = mark
                    resource_members[used].row = row
                    used += 1
                    count = _take_in(flows, hops, resources, row, members, count, mark, whole)
        for i in range(used):
            resource = resources[resource_members[i].row]
            resource.left = resource.capacity - resource.unused
            if resource.outside > 0:
                resource.left = max(resource.left - resource.outside_takes, 0.0)
        raise_levels(flows, hops, resources, levels, members, count, resource_members, used)
        before = count
        for i in range(used):
            row = resource_members[i].row
            if resources[row].outside > 0:
                count = _join_those_without_limit(flows, hops, resources, row, members, count, mark)
        if count == before:
            return count, passes


@inlined
def _take_in(
    flows: Table, hops: Table, resources: Table, row: int, members: Table, count: int, mark: int, whole: bool
) -> int:
    """Work out what flows outside of the set take of a resource that is new to it, and let those that it limits join.

    A member's rate will change, and with it what is left to them; to let them join now saves a pass.
    """
    resource = resources[row]
    resource.outside = 0
    resource.outside_takes = 0.0
    some_join = False
    hop = resource.head
    while hop >= 0:
        flow = flows[hops[hop].flow]
        if flow.mark != mark:
            resource.outside += 1
            resource.outside_takes += hops[hop].coefficient * flow.rate
            some_join |= whole or flow.limit == row
        hop = hops[hop].next
    hop = resource.head
    while some_join and hop >= 0:
        flow = flows[hops[hop].flow]
        if flow.mark != mark and (whole or flow.limit == row):
            count = _enter(flows, hops, resources, hops[hop].flow, members, count, mark)
        hop = hops[hop].next
    return count


@inlined
def _enter(flows: Table, hops: Table, resources: Table, row: int, members: Table, count: int, mark: int) -> int:
    """Let a flow from outside join the set."""
    flow = flows[row]
    for hop in range(flow.first_hop, flow.first_hop + flow.hops):
        resource = resources[hops[hop].resource]
        if resource.mark == mark:
            resource.outside -= 1
            resource.outside_takes -= hops[hop].coefficient * flow.rate
    return join(flows, members, count, mark, row)


@inlined
def _join_those_without_limit(
    flows: Table, hops: Table, resources: Table, row: int, members: Table, count: int, mark: int
) -> int:
    """Add to the set who has more than those that the resource limits, or is not limited by it any more."""
    resource = resources[row]
    too_much = np.inf
    too_little = np.inf
    if resource.level >= 0.0:
        too_much = resource.level * (1.0 + _SAME_LEVEL)
        too_little = resource.level * (1.0 - _SAME_LEVEL)
    elif resource.left <= resource.capacity * _SAME_LEVEL:
        too_little = _highest_level(flows, hops, resource.head) * (1.0 - _SAME_LEVEL)
    hop = resource.head
    while hop >= 0:
        user = hops[hop].flow
        flow = flows[user]
        if flow.mark != mark and (flow.level > too_much or (flow.limit == row and flow.level < too_little)):
            count = _enter(flows, hops, resources, user, members, count, mark)
        hop = hops[hop].next
    return count


@inlined
def _highest_level(flows: Table, hops: Table, head: int) -> float:
    highest = 0.0
    hop = head
    while hop >= 0:
        highest = max(highest, flows[hops[hop].flow].level)
        hop = hops[hop].next
    return highest
