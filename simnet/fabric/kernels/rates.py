"""Which resources a flow is on, and what rates change at an instant; compiled."""

from __future__ import annotations

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.heap import discard, set_finish
from simnet.fabric.kernels.incidence import BY_CAP, attach, detach, free_from_limit, settle
from simnet.fabric.kernels.overflow import notice_overflow
from simnet.fabric.kernels.paused import share_paused
from simnet.fabric.kernels.repair import join, join_all, join_limited, repair
from simnet.fabric.kernels.tables import Tables

__all__ = [
    "CHANGED",
    "JOINED",
    "LEFT",
    "MOST_SHARING",
    "make_dirty",
    "make_fresh",
    "make_path_dirty",
    "occupy_path",
    "release_path",
    "repair_rates",
    "set_off",
]

# What happened to a resource; the larger includes what the smaller asks for.
JOINED, LEFT, CHANGED = 1, 2, 3

MOST_SHARING = 64
"""Flows on a resource, of which more leave no more unused."""

_DRAINED = 1e-12  # of a flow's size


@inlined
def occupy_path(tables: Tables, row: int) -> None:
    """Make the flow of an operation active on its resources."""
    operation = tables.operations[row]
    operation.on_path = operation.remaining
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        resource = tables.resources[tables.hops[hop].resource]
        if resource.users == 0:
            resource.busy_since = tables.clock[0].now
    attach(tables.operations, tables.hops, tables.resources, row)
    if tables.clock[0].notices_overflow:
        notice_overflow(tables, row)
    if tables.clock[0].leaves_unused:
        _leave_unused(tables, row)
    make_path_dirty(tables, row, JOINED)
    make_fresh(tables, row)


@inlined
def release_path(tables: Tables, row: int) -> None:
    """Take the flow of an operation off its resources and account for what it has moved there."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    operation.remaining = max(operation.remaining - operation.rate * (clock.now - operation.since), 0.0)
    operation.since = clock.now
    moved = operation.on_path - operation.remaining
    clock.drains = discard(tables.operations, tables.drains, clock.drains, row)
    detach(tables.operations, tables.hops, tables.resources, row)
    operation.rate = 0.0
    if clock.leaves_unused:
        _leave_unused(tables, row)
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        resource = tables.resources[tables.hops[hop].resource]
        resource.carried += tables.hops[hop].coefficient * moved
        if resource.users == 0:
            resource.busy += clock.now - resource.busy_since
            resource.busy_since = clock.now
    make_path_dirty(tables, row, LEFT)


@kernel
def _leave_unused(tables: Tables, row: int) -> None:
    """Have resources of a path, whose number of flows has changed, leave unused what so many of them do."""
    operation = tables.operations[row]
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        resource = tables.resources[tables.hops[hop].resource]
        if resource.sharing >= 0:
            unused = tables.sharing[resource.sharing + min(resource.users, MOST_SHARING)].unused * resource.capacity
            if unused != resource.unused:
                resource.unused = unused
                make_dirty(tables, tables.hops[hop].resource, CHANGED)


@inlined
def make_path_dirty(tables: Tables, row: int, what: int) -> None:
    """Note what happened to the resources of a flow at this instant."""
    operation = tables.operations[row]
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        make_dirty(tables, tables.hops[hop].resource, what)


@inlined
def make_dirty(tables: Tables, resource: int, what: int) -> None:
    """Note what happened to a resource at this instant."""
    if tables.resources[resource].dirty == 0:
        tables.dirty[tables.clock[0].dirty].row = resource
        tables.clock[0].dirty += 1
    tables.resources[resource].dirty = max(tables.resources[resource].dirty, what)


@inlined
def make_fresh(tables: Tables, row: int) -> None:
    """Note that a flow began, or has another cap or path, at this instant."""
    operation = tables.operations[row]
    free_from_limit(tables.operations, tables.resources, row)
    if not operation.fresh:
        operation.fresh = True
        tables.fresh[tables.clock[0].fresh].row = row
        tables.clock[0].fresh += 1


@inlined
def repair_rates(tables: Tables) -> None:
    """Find the rates that change at this instant, beginning with the flows that something happened to.

    With ``full_solves``, the oracle, begin with all that are connected with what changed.
    """
    clock = tables.clock[0]
    operations, resources, members = tables.operations, tables.resources, tables.flow_members
    clock.mark += 1
    count = 0
    for i in range(clock.dirty):
        row = tables.dirty[i].row
        everyone = resources[row].dirty == CHANGED or clock.full_solves
        if everyone:
            count = join_all(operations, tables.hops, resources, row, members, count, clock.mark)
        elif resources[row].dirty >= LEFT:
            count = join_limited(operations, resources, row, members, count, clock.mark)
        resources[row].dirty = 0
    clock.dirty = 0
    for i in range(clock.fresh):
        row = tables.fresh[i].row
        operations[row].fresh = False
        if operations[row].active and operations[row].mark != clock.mark:
            if _is_alone(tables, row):
                operations[row].old_rate = operations[row].rate
                _flow_alone(tables, row)
            else:
                count = join(operations, resources, members, count, clock.mark, row)
    clock.fresh = 0
    if count == 0:
        return
    count, passes = repair(
        operations,
        tables.hops,
        resources,
        tables.levels,
        members,
        count,
        clock.mark,
        tables.resource_members,
        clock.full_solves,
    )
    if clock.pauses:
        clock.mark += 1
        share_paused(
            operations, tables.hops, resources, tables.levels, members, count, tables.resource_members, clock.mark
        )
    clock.solves += 1
    clock.passes += passes
    clock.touched += count
    for i in range(count):
        row = members[i].row
        settle(operations, tables.hops, resources, row)
        if operations[row].rate != operations[row].old_rate:
            _set_drain_time(tables, row)


@inlined
def _is_alone(tables: Tables, row: int) -> bool:
    """Tell whether a flow shares none of its resources."""
    operation = tables.operations[row]
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        if tables.resources[tables.hops[hop].resource].users > 1:
            return False
    return True


@inlined
def _flow_alone(tables: Tables, row: int) -> None:
    """Give a flow all that its path and its cap allow."""
    operation = tables.operations[row]
    tables.clock[0].solves += 1
    tables.clock[0].passes += 1
    tables.clock[0].touched += 1
    operation.rate = operation.cap
    operation.limit = BY_CAP
    operation.fixed = True
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        resource = tables.hops[hop].resource
        usable = tables.resources[resource].capacity - tables.resources[resource].unused
        rate = usable / tables.hops[hop].coefficient
        if rate < operation.rate:
            operation.rate = rate
            operation.limit = resource
    operation.level = operation.rate / operation.weight
    settle(tables.operations, tables.hops, tables.resources, row)
    if operation.rate != operation.old_rate:
        _set_drain_time(tables, row)


@inlined
def set_off(tables: Tables, row: int) -> None:
    """Foresee the end of a flow that no solving will: it is empty, or uses no resource and has its cap as its rate."""
    operation = tables.operations[row]
    operation.old_rate = operation.rate
    operation.rate = operation.cap if operation.hops == 0 else 0.0
    _set_drain_time(tables, row)


@inlined
def _set_drain_time(tables: Tables, row: int) -> None:
    """Work out when a flow drains, after its rate has changed."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    operation.remaining -= operation.old_rate * (clock.now - operation.since)
    operation.since = clock.now
    if operation.remaining <= _DRAINED * operation.firing_bytes:
        operation.remaining = 0.0
        finish = clock.now
    elif operation.rate > 0.0:
        finish = clock.now + operation.remaining / operation.rate
    else:
        clock.drains = discard(tables.operations, tables.drains, clock.drains, row)
        return
    clock.drains = set_finish(tables.operations, tables.drains, clock.drains, row, finish)
