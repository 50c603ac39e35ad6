"""Which active flows use which resources: linked lists over path hops, and connected components; compiled.

A *hop* is one use of a resource by a flow. The hops of a flow's path lie side by side in their table; the hops of the
flows that are active on a resource form a list, so that a flow comes and goes in O(path).
"""

from __future__ import annotations

from simnet.fabric.kernels.compiled import kernel
from simnet.fabric.kernels.tables import Table

__all__ = ["attach", "detach", "gather_component"]


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


@kernel
def gather_component(
    flows: Table,
    hops: Table,
    resources: Table,
    flow_members: Table,
    resource_members: Table,
    mark: int,
    resource: int,
) -> tuple[int, int]:
    """Collect all flows and resources that are connected with a resource and do not bear the mark yet.

    Those collected bear it afterwards, so that a caller who takes a new mark once meets every component once.

    Returns
    -------
    tuple of int
        How many flows and how many resources there are; they lie in `flow_members` and `resource_members`.
    """
    found_flows = 0
    found_resources = 0
    if resources[resource].mark != mark:
        resources[resource].mark = mark
        resource_members[0].row = resource
        found_resources = 1
    seen_flows = 0
    seen_resources = 0
    while seen_flows < found_flows or seen_resources < found_resources:
        if seen_resources < found_resources:
            hop = resources[resource_members[seen_resources].row].head
            seen_resources += 1
            while hop >= 0:
                user = hops[hop].flow
                if flows[user].mark != mark:
                    flows[user].mark = mark
                    flow_members[found_flows].row = user
                    found_flows += 1
                hop = hops[hop].next
        else:
            member = flows[flow_members[seen_flows].row]
            seen_flows += 1
            for hop in range(member.first_hop, member.first_hop + member.hops):
                used = hops[hop].resource
                if resources[used].mark != mark:
                    resources[used].mark = mark
                    resource_members[found_resources].row = used
                    found_resources += 1
    return found_flows, found_resources
