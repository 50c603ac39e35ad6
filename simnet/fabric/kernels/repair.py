"""Local repair of max-min fair rates: solve again only around what changed; compiled.

Every flow has a limit: its cap, or a full resource on which no flow has a higher level. That is the max-min condition
(D. Bertsekas and R. Gallager, *Data Networks*, 2nd ed., section 6.5.2), and it is local. So a change is repaired by
solving for a set of flows alone, with all others as they are; flows whose limit does not hold any more join the set,
until nobody joins. How far a change reaches is the subject of bottleneck structures (J. Ros-Giralt et al., "On the
bottleneck structure of congestion-controlled networks", SIGMETRICS 2020).
"""

from __future__ import annotations

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.incidence import free_from_limit
from simnet.fabric.kernels.maxmin import raise_levels
from simnet.fabric.kernels.tables import Table

__all__ = ["join", "join_all", "join_limited", "repair"]

_SAME_LEVEL = 1e-12  # relative


@inlined
def join(flows: Table, resources: Table, members: Table, count: int, mark: int, row: int) -> int:
    """Add a flow to the set, if it is not in yet; return the size of the set."""
    if flows[row].mark == mark:
        return count
    free_from_limit(flows, resources, row)
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
    """Solve for a set of flows, and for those who join it; to `settle` their rates is left to the caller.

    Parameters
    ----------
    flows, hops, resources, levels : tables
        As of `simnet.fabric.kernels.maxmin.raise_levels`, with what `simnet.fabric.kernels.incidence` keeps.
    members : table
        The set to begin with, made with `join`. Those who join follow.
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
                resource = resources[row]
                if resource.mark != mark:
                    resource.mark = mark
                    resource.outside = resource.users
                    resource.outside_takes = resource.takes
                    resource_members[used].row = row
                    used += 1
                    if whole:
                        count = join_all(flows, hops, resources, row, members, count, mark)
                    else:
                        count = join_limited(flows, resources, row, members, count, mark)
                resource.outside -= 1
                resource.outside_takes -= hops[hop].coefficient * flow.old_rate
        for i in range(used):
            resource = resources[resource_members[i].row]
            resource.left = resource.capacity - resource.unused
            if resource.outside > 0:
                resource.left = max(resource.left - resource.outside_takes, 0.0)
        raise_levels(flows, hops, resources, levels, members, count, resource_members, used)
        before = count
        for i in range(used):
            row = resource_members[i].row
            too_much = resources[row].level * (1.0 + _SAME_LEVEL)
            if resources[row].outside > 0 and resources[row].level >= 0.0 and resources[row].ceiling > too_much:
                count = _join_those_above(flows, hops, resources, row, too_much, members, count, mark)
        if count == before:
            return count, passes


@inlined
def join_all(flows: Table, hops: Table, resources: Table, row: int, members: Table, count: int, mark: int) -> int:
    """Let all flows of a resource join."""
    hop = resources[row].head
    while hop >= 0:
        count = join(flows, resources, members, count, mark, hops[hop].flow)
        hop = hops[hop].next
    return count


@inlined
def join_limited(flows: Table, resources: Table, row: int, members: Table, count: int, mark: int) -> int:
    """Let the flows join that a resource limits: what is left to them will change."""
    user = resources[row].limited
    while user >= 0:
        after = flows[user].next_limited
        count = join(flows, resources, members, count, mark, user)
        user = after
    return count


@inlined
def _join_those_above(
    flows: Table, hops: Table, resources: Table, row: int, too_much: float, members: Table, count: int, mark: int
) -> int:
    """Let the flows join that have more than those that the resource limits now, and see how high the others are."""
    ceiling = 0.0
    hop = resources[row].head
    while hop >= 0:
        user = hops[hop].flow
        hop = hops[hop].next
        if flows[user].mark == mark:
            continue
        if flows[user].level > too_much:
            count = join(flows, resources, members, count, mark, user)
        else:
            ceiling = max(ceiling, flows[user].level)
    resources[row].ceiling = ceiling
    return count
