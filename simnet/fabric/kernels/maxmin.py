"""Weighted max-min fair rates with caps and coefficients; compiled, and knowing nothing of networks.

The *level* of a flow is its rate over its weight. Raise the level of all flows together until a resource is full or a
flow reaches its own cap; fix those flows; go on with the rest (progressive filling: D. Bertsekas and R. Gallager,
*Data Networks*, 2nd ed., section 6.5.2). As flows are only ever fixed at the least level there is, the level at which
a resource fills can only rise, so a heap of levels that are brought up to date when they come up is enough.
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.heap import drop_first, insert
from simnet.fabric.kernels.tables import Table

__all__ = ["BY_CAP", "UNLIMITED", "fill", "raise_levels"]

BY_CAP, UNLIMITED = -2, -1
"""What limits a flow, where it is no resource."""


@kernel
def fill(
    flows: Table,
    hops: Table,
    resources: Table,
    levels: Table,
    flow_members: Table,
    flow_count: int,
    resource_members: Table,
    resource_count: int,
) -> None:
    """Write the weighted max-min fair rates of the flows of one connected component into their field ``rate``.

    A flow of rate x takes ``coefficient * x`` of the capacity of each resource on its path.

    Parameters
    ----------
    flows : table
        Reads ``first_hop``, ``hops``, ``weight`` (> 0) and ``cap`` [bytes/s, may be infinite]; writes ``rate``
        [bytes/s]; uses ``fixed``.
    hops : table
        ``resource``, ``coefficient`` (> 0), ``flow``, ``next``.
    resources : table
        ``capacity`` [bytes/s], ``head``; uses ``left``, ``load``, ``open``.
    levels : table
        Scratch for a heap, with room for all flows and resources of the component.
    flow_members, flow_count, resource_members, resource_count
        The component: every flow that is active on one of its resources is a member.
    """
    for i in range(resource_count):
        resources[resource_members[i].row].left = resources[resource_members[i].row].capacity
    raise_levels(flows, hops, resources, levels, flow_members, flow_count, resource_members, resource_count)


@kernel
def raise_levels(
    flows: Table,
    hops: Table,
    resources: Table,
    levels: Table,
    flow_members: Table,
    flow_count: int,
    resource_members: Table,
    resource_count: int,
) -> None:
    """Share what is ``left`` of some resources among some flows, all others being ``fixed``.

    Parameters as of `fill`; also writes ``limit`` of each flow, and ``level`` of each resource.
    """
    size = 0
    for i in range(resource_count):
        resource = resources[resource_members[i].row]
        resource.load = 0.0
        resource.open = 0
        resource.level = -1.0
    for i in range(flow_count):
        row = flow_members[i].row
        flow = flows[row]
        flow.fixed = False
        for hop in range(flow.first_hop, flow.first_hop + flow.hops):
            resource = resources[hops[hop].resource]
            resource.load += hops[hop].coefficient * flow.weight
            resource.open += 1
        if flow.cap < np.inf:
            size = insert(levels, size, flow.cap / flow.weight, len(resources) + row, len(resources) + row)
    for i in range(resource_count):
        row = resource_members[i].row
        if resources[row].open > 0:
            size = insert(levels, size, resources[row].left / resources[row].load, row, row)
    while size > 0:
        level = levels[0].key
        row = levels[0].what
        size = drop_first(levels, size)
        if row >= len(resources):
            row -= len(resources)
            if not flows[row].fixed:
                _fix(flows, hops, resources, row, flows[row].cap, BY_CAP)
            continue
        if resources[row].open == 0:
            continue
        current = resources[row].left / resources[row].load
        if current > level:
            size = insert(levels, size, current, row, row)
            continue
        resources[row].level = level
        hop = resources[row].head
        while hop >= 0:
            user = hops[hop].flow
            if not flows[user].fixed:
                _fix(flows, hops, resources, user, min(level * flows[user].weight, flows[user].cap), row)
            hop = hops[hop].next


@inlined
def _fix(flows: Table, hops: Table, resources: Table, row: int, rate: float, limit: int) -> None:
    """Settle the rate of a flow and take it out of what its resources still have to share."""
    flow = flows[row]
    flow.rate = rate
    flow.limit = limit
    flow.fixed = True
    for hop in range(flow.first_hop, flow.first_hop + flow.hops):
        resource = resources[hops[hop].resource]
        resource.open -= 1
        if resource.open > 0:
            resource.left = max(resource.left - hops[hop].coefficient * rate, 0.0)
            resource.load -= hops[hop].coefficient * flow.weight
        else:
            # Nobody is left to share; what rounding leaves behind must not look like a demand.
            resource.load = 0.0
