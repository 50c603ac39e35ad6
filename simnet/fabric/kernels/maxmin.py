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
from simnet.fabric.kernels.incidence import BY_CAP
from simnet.fabric.kernels.tables import Table

__all__ = ["raise_levels"]


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
    """Write the weighted max-min fair rates of some flows into ``rate``, and what limits each into ``limit``.

    A flow of rate x takes ``coefficient * x`` of each resource on its path. The flows share what is ``left`` of the
    resources, which is all of their capacity where no other flow is active on them.

    Parameters
    ----------
    flows : table
        Reads ``first_hop``, ``hops``, ``weight`` (> 0) and ``cap`` [bytes/s, may be infinite]; writes ``rate``
        [bytes/s] and ``limit``, a row of resources or `BY_CAP`; uses ``fixed``.
    hops : table
        ``resource``, ``coefficient`` (> 0), ``flow``; uses ``next_member``.
    resources : table
        ``left`` [bytes/s]; writes ``level``, at which it filled, -1 if it did not; uses ``left``, ``load``, ``open``,
        ``first_member``.
    levels : table
        Scratch for a heap, with room for all these flows and resources.
    flow_members, flow_count, resource_members, resource_count
        These flows, and all resources that they use.
    """
    size = 0
    for i in range(resource_count):
        resource = resources[resource_members[i].row]
        resource.load = 0.0
        resource.open = 0
        resource.first_member = -1
        resource.level = -1.0
    for i in range(flow_count):
        row = flow_members[i].row
        flow = flows[row]
        flow.fixed = False
        for hop in range(flow.first_hop, flow.first_hop + flow.hops):
            resource = resources[hops[hop].resource]
            resource.load += hops[hop].coefficient * flow.weight
            resource.open += 1
            hops[hop].next_member = resource.first_member
            resource.first_member = hop
        if flow.cap < np.inf:
            size = insert(levels, size, flow.cap / flow.weight, len(resources) + row, len(resources) + row)
    for i in range(resource_count):
        row = resource_members[i].row
        if resources[row].open > 0:
            size = insert(levels, size, resources[row].left / resources[row].load, row, row)
    unfixed = flow_count
    while size > 0 and unfixed > 0:
        level = levels[0].key
        row = levels[0].what
        size = drop_first(levels, size)
        if row >= len(resources):
            row -= len(resources)
            if not flows[row].fixed:
                unfixed -= 1
                _fix(flows, hops, resources, row, flows[row].cap, BY_CAP)
            continue
        if resources[row].open == 0:
            continue
        current = resources[row].left / resources[row].load
        if current > level:
            size = insert(levels, size, current, row, row)
            continue
        resources[row].level = level
        hop = resources[row].first_member
        while hop >= 0:
            user = hops[hop].flow
            if not flows[user].fixed:
                unfixed -= 1
                _fix(flows, hops, resources, user, min(level * flows[user].weight, flows[user].cap), row)
            hop = hops[hop].next_member


@inlined
def _fix(flows: Table, hops: Table, resources: Table, row: int, rate: float, limit: int) -> None:
    """Settle the rate of a flow and take it out of what its resources still have to share."""
    flow = flows[row]
    flow.rate = rate
    flow.limit = limit
    flow.level = rate / flow.weight
    flow.fixed = True
    for hop in range(flow.first_hop, flow.first_hop + flow.hops):
        resource = resources[hops[hop].resource]
        resource.open -= 1
        resource.left = max(resource.left - hops[hop].coefficient * rate, 0.0)
        if resource.open > 0:
            resource.load -= hops[hop].coefficient * flow.weight
        else:
            # Nobody is left to share; what rounding leaves behind must not look like a demand.
            resource.load = 0.0
