"""Which active flows use which resources: linked lists over the hops of their paths; compiled.

A *hop* is one use of a resource by a flow. The hops of a flow's path lie side by side in their table; the hops of the
flows that are active on a resource form a list, so that a flow comes and goes in O(path).
"""

from __future__ import annotations

from simnet.fabric.kernels.compiled import kernel
from simnet.fabric.kernels.tables import Table

__all__ = ["attach", "detach"]


@kernel
def attach(flows: Table, hops: Table, resources: Table, flow: int) -> None:
    """Make a flow active on the resources of its path."""
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
    """Take an active flow off the resources of its path."""
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
