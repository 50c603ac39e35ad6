"""Local repair of max-min fair rates: solve again only around what changed; compiled.

Every flow has a limit: its cap, or a full resource on which no flow has a higher level. That is the max-min condition
(D. Bertsekas and R. Gallager, *Data Networks*, 2nd ed., section 6.5.2), and it is local. So a change is repaired by
solving for a set of flows alone, with all others as they are; flows whose limit does not hold any more join the set,
until nobody joins. How far a change reaches is the subject of bottleneck structures (J. Ros-Giralt et al., "On the
bottleneck structure of congestion-controlled networks", SIGMETRICS 2020).
"""

from __future__ import annotations

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
                resource = hops[hop].resource
                if resources[resource].mark != mark:
                    resources[resource].mark = mark
                    resource_members[used].row = resource
                    used += 1
                    if whole:
                        count = _join_users(flows, hops, resources, resource, members, count, mark)
        for i in range(used):
            _leave_to_members(flows, hops, resources, resource_members[i].row, mark)
        raise_levels(flows, hops, resources, levels, members, count, resource_members, used)
        before = count
        for i in range(used):
            count = _join_those_without_limit(flows, hops, resources, resource_members[i].row, members, count, mark)
        if count == before:
            return count, passes


@inlined
def _join_users(flows: Table, hops: Table, resources: Table, row: int, members: Table, count: int, mark: int) -> int:
    """Add to the set all flows that are active on a resource."""
    hop = resources[row].head
    while hop >= 0:
        count = join(flows, members, count, mark, hops[hop].flow)
        hop = hops[hop].next
    return count


@inlined
def _leave_to_members(flows: Table, hops: Table, resources: Table, row: int, mark: int) -> None:
    """Work out what of a resource the flows outside of the set leave."""
    left = resources[row].capacity
    hop = resources[row].head
    while hop >= 0:
        flow = flows[hops[hop].flow]
        if flow.mark != mark:
            left -= hops[hop].coefficient * flow.rate
        hop = hops[hop].next
    resources[row].left = max(left, 0.0)


@inlined
def _join_those_without_limit(
    flows: Table, hops: Table, resources: Table, row: int, members: Table, count: int, mark: int
) -> int:
    """Add to the set who has more than those that the resource limits, or is not limited by it any more."""
    resource = resources[row]
    taken = 0.0
    highest = 0.0
    outside = 0
    hop = resource.head
    while hop >= 0:
        flow = flows[hops[hop].flow]
        taken += hops[hop].coefficient * flow.rate
        highest = max(highest, flow.rate / flow.weight)
        if flow.mark != mark:
            outside += 1
        hop = hops[hop].next
    if outside == 0:
        return count
    full = taken >= resource.capacity * (1.0 - _SAME_LEVEL)
    hop = resource.head
    while hop >= 0:
        user = hops[hop].flow
        flow = flows[user]
        if flow.mark != mark:
            level = flow.rate / flow.weight
            too_much = resource.level >= 0.0 and level > resource.level * (1.0 + _SAME_LEVEL)
            limited = flow.limit != row or (full and level >= highest * (1.0 - _SAME_LEVEL))
            if too_much or not limited:
                count = join(flows, members, count, mark, user)
        hop = hops[hop].next
    return count
