"""Queues that would overflow where nothing simulates what is dropped then: noticed, so that it can be told; compiled.

Rates at flow level are what links carry. Transports that neither pause links nor let windows follow acknowledgements
send more than that into a queue, as fast as their own links, until it is full.
"""

from __future__ import annotations

from simnet.fabric.kernels.compiled import called, inlined
from simnet.fabric.kernels.tables import Tables

__all__ = ["notice_overflow"]

_END = -1
_SAME = 1e-9  # of a capacity


@called
def notice_overflow(tables: Tables, row: int) -> None:
    """Notice which queues on a path a flow, which has just become active there, makes overflow."""
    operation = tables.operations[row]
    for hop in range(operation.first_hop + 1, operation.first_hop + operation.hops):
        resource = tables.resources[tables.hops[hop].resource]
        if resource.users > 1 and not resource.overflows and _overflows(tables, row, hop):
            resource.overflows = True


@inlined
def _overflows(tables: Tables, row: int, hop: int) -> bool:
    """Tell whether what comes by several links at once is too much for the queue of a hop.

    Of N flows with S bytes each, that come by links as fast as this one, *(N - 1) S* wait when the last byte is there.
    """
    number, entry = tables.hops[hop].resource, tables.hops[hop - 1].resource
    resource = tables.resources[number]
    own, other, others, inflow = _under_way(tables, row, hop), 0.0, 0, 0.0
    following = resource.head
    while following != _END:
        flow = tables.hops[following].flow
        if following > tables.operations[flow].first_hop:
            before = tables.resources[tables.hops[following - 1].resource]
            inflow += min(
                tables.hops[following].coefficient * tables.operations[flow].cap, before.capacity / before.users
            )
            if tables.hops[following - 1].resource != entry:
                other += _under_way(tables, flow, following)
                others += 1
        following = tables.hops[following].next
    if inflow <= resource.capacity * (1.0 + _SAME):
        return False
    arriving = min(own * (others + 1), own + other)
    return arriving * (1.0 - resource.capacity / inflow) > resource.room


@inlined
def _under_way(tables: Tables, flow: int, hop: int) -> float:
    """Return how many bytes of a flow, on the wire, can be under way at once from now on."""
    operation, transport = tables.operations[flow], tables.transports[0]
    left = operation.remaining - operation.rate * (tables.clock[0].now - operation.since)
    return tables.hops[hop].coefficient * min(left, transport.most_window * transport.payload_bytes)
