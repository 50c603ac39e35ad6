"""Rates where switches pause links, or give them no more credit, instead of dropping: head-of-line blocking; compiled.

A link out of a switch that is congested serves the links that flows come in by in turn, so each of these has an equal
share of it, not each flow. A link that brings more than its share is paused, and what waits in it waits in order: all
of its flows, also those that go elsewhere, are slowed down as those to the congested link are; and so are the flows of
the links that bring them, up to the hosts. Flows that nothing holds up then share what is left max-min fairly.
"""

from __future__ import annotations

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.incidence import BY_CAP
from simnet.fabric.kernels.maxmin import raise_levels
from simnet.fabric.kernels.tables import Table

__all__ = ["share_paused"]

_FULL = 1.0 - 1e-9  # of a capacity
_DEEPEST = 64  # links of a path that are gone through backwards


@kernel
def share_paused(
    flows: Table,
    hops: Table,
    resources: Table,
    levels: Table,
    members: Table,
    count: int,
    resource_members: Table,
    mark: int,
) -> None:
    """Write the rates of all flows of a component into ``rate``.

    Parameters
    ----------
    flows, hops, resources, levels : tables
        As of `simnet.fabric.kernels.maxmin.raise_levels`; the hops of a flow are in the order of its path.
    members, count
        The flows, with all that they share resources with.
    resource_members : table
        Scratch for the resources of the set.
    mark : int
        Given to nothing else so far.
    """
    used = 0
    deepest = 0
    for i in range(count):
        flow = flows[members[i].row]
        flow.rate = flow.cap
        flow.limit = BY_CAP
        for hop in range(flow.first_hop, flow.first_hop + flow.hops):
            row = hops[hop].resource
            resource = resources[row]
            flow.rate = min(flow.rate, (resource.capacity - resource.unused) / hops[hop].coefficient)
            if resource.mark != mark:
                resource.mark = mark
                resource.position = 0
                resource.seen = -1
                resource_members[used].row = row
                used += 1
            resource.position = max(resource.position, hop - flow.first_hop)
            deepest = max(deepest, resource.position)
    # In the order of paths, so that what comes to a link is what the links before let through.
    seen = 0
    for position in range(deepest + 1):
        for i in range(used):
            row = resource_members[i].row
            if resources[row].position == position and _load(flows, hops, resources, row) > resources[row].capacity:
                seen = _serve_in_turn(flows, hops, resources, levels, members, count, row, seen + 1)
    _share_the_rest(flows, hops, resources, levels, members, count, resource_members, used)


@inlined
def _load(flows: Table, hops: Table, resources: Table, row: int) -> float:
    """Return what flows take of a resource, and of which it has so much less to give."""
    load = resources[row].unused
    hop = resources[row].head
    while hop >= 0:
        load += hops[hop].coefficient * flows[hops[hop].flow].rate
        hop = hops[hop].next
    return load


@inlined
def _serve_in_turn(
    flows: Table,
    hops: Table,
    resources: Table,
    levels: Table,
    members: Table,
    count: int,
    row: int,
    stamp: int,
) -> int:
    """Share a congested resource equally between the links that flows come in by; pause those that bring more.

    `stamp` tells groups of this resource from those of others; return the latest that was used.
    """
    resource = resources[row]
    groups = 0
    hop = resource.head
    while hop >= 0:
        user = hops[hop].flow
        takes = hops[hop].coefficient * flows[user].rate
        group = _group(flows, hops, resources, row, hop)
        if group < len(resources):
            if resources[group].seen != stamp:
                resources[group].seen = stamp
                resources[group].demand = 0.0
                levels[groups].what = group
                groups += 1
            resources[group].demand += takes
        else:
            levels[groups].what = group
            levels[groups].key = takes
            groups += 1
        hop = hops[hop].next
    for i in range(groups):
        if levels[i].what < len(resources):
            levels[i].key = resources[levels[i].what].demand
    share = _equal_share(levels, groups, resource.capacity - resource.unused)
    for i in range(groups):
        if levels[i].what < len(resources):
            resources[levels[i].what].granted = min(1.0, share / levels[i].key) if levels[i].key > 0.0 else 1.0
    latest = stamp
    hop = resource.head
    while hop >= 0:
        user = hops[hop].flow
        flow = flows[user]
        group = _group(flows, hops, resources, row, hop)
        if group >= len(resources):
            takes = hops[hop].coefficient * flow.rate
            if takes > share:
                flow.rate *= share / takes
                flow.limit = row
        hop = hops[hop].next
    for i in range(groups):
        group = levels[i].what
        if group < len(resources) and resources[group].granted < 1.0:
            latest += 1
            _pause(flows, hops, resources, members, count, group, resources[group].granted, row, latest)
    return latest


@inlined
def _group(flows: Table, hops: Table, resources: Table, row: int, hop: int) -> int:
    """Return the link that a flow comes in by, or, where it begins or takes turns by itself, a number of its own."""
    user = hops[hop].flow
    if resources[row].from_switch and hop > flows[user].first_hop:
        return hops[hop - 1].resource
    return len(resources) + user


@inlined
def _equal_share(levels: Table, groups: int, capacity: float) -> float:
    """Return the most that each group gets, so that together they have the capacity (water-filling)."""
    share = capacity / max(groups, 1)
    while True:
        modest, others = 0.0, 0
        for i in range(groups):
            if levels[i].key <= share:
                modest += levels[i].key
            else:
                others += 1
        if others == 0:
            return share
        higher = (capacity - modest) / others
        if higher <= share * (1.0 + 1e-12):
            return share
        share = higher


@kernel
def _pause(
    flows: Table,
    hops: Table,
    resources: Table,
    members: Table,
    count: int,
    link: int,
    granted: float,
    by: int,
    stamp: int,
) -> None:
    """Slow down all flows of a link, and of the links that bring what it carries, by the same factor, each once."""
    _slow_down(flows, hops, resources, link, granted, by, stamp)
    for _ in range(_DEEPEST):
        spread = False
        for i in range(count):
            flow = flows[members[i].row]
            for hop in range(flow.first_hop + 1, flow.first_hop + flow.hops):
                after, before = hops[hop].resource, hops[hop - 1].resource
                if resources[after].seen == stamp and resources[after].from_switch and resources[before].seen != stamp:
                    _slow_down(flows, hops, resources, before, granted, by, stamp)
                    spread = True
        if not spread:
            return


@inlined
def _slow_down(flows: Table, hops: Table, resources: Table, link: int, granted: float, by: int, stamp: int) -> None:
    """Slow down the flows of a link that are on no link that was slowed down before, with the same stamp."""
    resources[link].seen = stamp
    hop = resources[link].head
    while hop >= 0:
        flow = flows[hops[hop].flow]
        is_slow = False
        for at in range(flow.first_hop, flow.first_hop + flow.hops):
            other = hops[at].resource
            if other != link and resources[other].seen == stamp:
                is_slow = True
        if not is_slow:
            flow.rate *= granted
            flow.limit = by
        hop = hops[hop].next


@inlined
def _share_the_rest(
    flows: Table,
    hops: Table,
    resources: Table,
    levels: Table,
    members: Table,
    count: int,
    resource_members: Table,
    used: int,
) -> None:
    """Let flows have more that nothing holds up any more: what did is not full."""
    for i in range(used):
        row = resource_members[i].row
        resources[row].left = resources[row].capacity - _load(flows, hops, resources, row)
    free = 0
    for i in range(count):
        row = members[i].row
        flow = flows[row]
        limit = flow.limit
        flow.fixed = True
        if limit >= 0 and resources[limit].left > (1.0 - _FULL) * resources[limit].capacity:
            # Free flows to the front of the members.
            members[i].row = members[free].row
            members[free].row = row
            free += 1
    if free == 0:
        return
    for i in range(free):
        flow = flows[members[i].row]
        for hop in range(flow.first_hop, flow.first_hop + flow.hops):
            resources[hops[hop].resource].left += hops[hop].coefficient * flow.rate
    for i in range(used):
        resources[resource_members[i].row].left = max(resources[resource_members[i].row].left, 0.0)
    raise_levels(flows, hops, resources, levels, members, free, resource_members, used)
