"""Which active flows use which resources, and which of these limits each flow: linked lists; compiled.

A *hop* is one use of a resource by a flow. The hops of a flow's path lie side by side in their table; the hops of the
flows that are active on a resource form a list, so that a flow comes and goes in O(path). The flows that a resource
limits form another one, and each resource knows the sum of what its flows take and how high the level of the others can
be: what changes at a resource can so be repaired without going through all of its flows.
"""

from __future__ import annotations

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.tables import Table

__all__ = ["BY_CAP", "UNLIMITED", "attach", "detach", "free_from_limit", "settle"]

BY_CAP, UNLIMITED = -2, -1
"""What limits a flow, where it is no resource."""


@kernel
def attach(flows: Table, hops: Table, resources: Table, flow: int) -> None:
    """Make a flow without a rate active on the resources of its path."""
    for hop in range(flows[flow].first_hop, flows[flow].first_hop + flows[flow].hops):
        resource = resources[hops[hop].resource]
        head = resource.head
        hops[hop].next = head
        hops[hop].previous = -1
        if head >= 0:
            hops[head].previous = hop
        resource.head = hop
        resource.users += 1


@kernel
def detach(flows: Table, hops: Table, resources: Table, flow: int) -> None:
    """Take an active flow, with the rate that it has, off the resources of its path."""
    free_from_limit(flows, resources, flow)
    for hop in range(flows[flow].first_hop, flows[flow].first_hop + flows[flow].hops):
        resource = resources[hops[hop].resource]
        after = hops[hop].next
        before = hops[hop].previous
        if after >= 0:
            hops[after].previous = before
        if before >= 0:
            hops[before].next = after
        else:
            resource.head = after
        resource.users -= 1
        _take(resources, hops[hop].resource, -hops[hop].coefficient * flows[flow].rate)
        if resource.users == 0:
            resource.takes = resource.takes_error = resource.ceiling = 0.0


@inlined
def free_from_limit(flows: Table, resources: Table, row: int) -> None:
    """Have nothing limit a flow any more."""
    flow = flows[row]
    if flow.limit >= 0:
        after = flow.next_limited
        before = flow.previous_limited
        if after >= 0:
            flows[after].previous_limited = before
        if before >= 0:
            flows[before].next_limited = after
        else:
            resources[flow.limit].limited = after
    flow.limit = UNLIMITED


@inlined
def _take(resources: Table, row: int, more: float) -> None:
    """Add to what is taken of a resource.

    What one flow can have more may be a hundredth of that, and has to be right to 12 digits after any number of
    changes: so the rounding is made good (W. Kahan, Communications of the ACM 8 (1), 1965).
    """
    resource = resources[row]
    more -= resource.takes_error
    total = resource.takes + more
    resource.takes_error = (total - resource.takes) - more
    resource.takes = total


@inlined
def settle(flows: Table, hops: Table, resources: Table, row: int) -> None:
    """Note at its resources that a flow has another rate than ``old_rate``, and what limits it now."""
    flow = flows[row]
    for hop in range(flow.first_hop, flow.first_hop + flow.hops):
        resource = resources[hops[hop].resource]
        _take(resources, hops[hop].resource, hops[hop].coefficient * (flow.rate - flow.old_rate))
        if hops[hop].resource != flow.limit:
            resource.ceiling = max(resource.ceiling, flow.level)
    if flow.limit >= 0:
        resource = resources[flow.limit]
        head = resource.limited
        flow.next_limited = head
        flow.previous_limited = -1
        if head >= 0:
            flows[head].previous_limited = row
        resource.limited = row
