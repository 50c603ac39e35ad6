"""The event kernel: plays schedules on resources that flows share max-min fairly; compiled.

All that happens at one instant, and all that it causes without delay, is applied before rates are solved once, for the
connected components that changed. The kernel has a clock of its own, never waits for anything, and can be left and
entered again between any two steps; `simnet.fabric.fluid` couples it with SimPy.

The life of a send: dependencies met and gate open, overhead of the sender (first in, first out), connection set-up, the
flow drains, latency, overhead of the receiver (first in, first out) and reduction, delivered.
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.compiled import inlined, kernel
from simnet.fabric.heap import discard, drop_first, insert, set_finish
from simnet.fabric.incidence import attach, detach, gather_component
from simnet.fabric.maxmin import BY_CAP, UNLIMITED, fill
from simnet.fabric.repair import join, repair
from simnet.fabric.tables import Table, Tables

__all__ = [
    "COMPLETE",
    "CROWDED",
    "OVER",
    "QUIET",
    "RUNNING",
    "WAITING",
    "advance",
    "begin_play",
    "cancel",
    "open_gates",
    "reroute",
    "set_capacity",
    "set_flow_cap",
]

# States of an operation.
WAITING, RUNNING, OVER = 0, 1, 2

# Why `advance` came back.
QUIET = 0  # nothing more happens before the given time
COMPLETE = 1  # a rank is complete that somebody waits for
CROWDED = 2  # the heap of events needs more room

# What happened to a resource; the larger includes what the smaller asks for.
_JOINED, _LEFT, _CHANGED = 1, 2, 3

# Steps; an item packs the stamp of the operation, the row and the kind of step.
_START, _BEGIN_FLOW, _ARRIVE, _DELIVER, _END_CALC, _GIVE_TOKEN, _MEET_DEADLINE = 0, 1, 2, 3, 4, 5, 6
_KIND_BITS, _ROW_BITS = 3, 34

_SAME_INSTANT = 1e-15  # of the kernel's time: a few units in the last place
_DRAINED = 1e-12  # of a flow's size


@kernel
def advance(tables: Tables, until: float) -> int:
    """Let time pass until somebody who waits is served, or up to, and without, the instant `until`.

    Parameters
    ----------
    tables : Tables
    until : float
        Instants at or after it are left alone [s on the kernel's clock]; the present one is finished in any case.

    Returns
    -------
    int
        `QUIET`, `COMPLETE` or `CROWDED`.
    """
    clock = tables.clock[0]
    operations = tables.operations
    while True:
        horizon = clock.now * (1.0 + _SAME_INSTANT)
        while True:
            # One step adds at most this much to the heap of events and to the queue.
            if clock.events + clock.step > len(tables.events) or clock.queue_size + clock.step > len(tables.queue):
                return CROWDED
            item = -1
            if clock.queue_size > 0:
                item = tables.queue[clock.queue_head].row
                clock.queue_head = (clock.queue_head + 1) % len(tables.queue)
                clock.queue_size -= 1
            elif clock.events > 0 and tables.events[0].key <= horizon:
                item = tables.events[0].what
                clock.events = drop_first(tables.events, clock.events)
            if item >= 0:
                _take_step(tables, item)
            elif clock.drains > 0 and operations[tables.drains[0].row].finish <= horizon:
                _drain(tables, tables.drains[0].row)
            elif clock.dirty > 0:
                if clock.full_solves:
                    _solve_components(tables)
                else:
                    _repair(tables)
            else:
                break
        if clock.watched > 0:
            return COMPLETE
        following = np.inf
        if clock.events > 0:
            following = tables.events[0].key
        if clock.drains > 0:
            following = min(following, operations[tables.drains[0].row].finish)
        if following >= until:
            return QUIET
        clock.now = following


@kernel
def begin_play(tables: Tables, first_operation: int, operations: int, first_gate: int, gates: int) -> None:
    """Take in a play whose rows are filled in; nothing of it moves before its gates open."""
    clock = tables.clock[0]
    for row in range(first_operation, first_operation + operations):
        tables.operations[row].missing = _unmet(tables, row) + 1
        tables.operations[row].waiting_since = clock.now
        clock.step = max(clock.step, 2 * tables.operations[row].outs + 4)
    for gate in range(first_gate, first_gate + gates):
        tables.gates[gate].left += 1


@kernel
def open_gates(tables: Tables, gates: Table) -> None:
    """Let ranks join their play; their operations may start from now on.

    Parameters
    ----------
    tables : Tables
    gates : ndarray of int
        Rows of gates that are closed.
    """
    for gate in gates:
        record = tables.gates[gate]
        record.is_open = True
        for edge in range(record.first_operation, record.first_operation + record.operations):
            _one_less(tables, tables.behind_gate[edge].row)
        _towards_completion(tables, gate)


@kernel
def set_capacity(tables: Tables, resource: int, capacity: float) -> None:
    """Change the capacity of a resource [bytes/s]."""
    tables.resources[resource].capacity = capacity
    _make_dirty(tables, resource, _CHANGED)


@kernel
def set_flow_cap(tables: Tables, row: int, cap: float) -> None:
    """Change the highest rate of an operation's flows, also of the one that drains now [bytes/s]."""
    operation = tables.operations[row]
    operation.cap = cap
    if operation.active and operation.hops == 0:
        _set_off(tables, row)
    elif operation.active:
        _make_path_dirty(tables, row, _JOINED)
        _make_fresh(tables, row)


@kernel
def reroute(tables: Tables, row: int, first_hop: int, hops: int, latency: float) -> None:
    """Move an operation, and the flow that drains now, to another path.

    Parameters
    ----------
    tables : Tables
    row : int
        The operation.
    first_hop, hops : int
        Its new rows of hops.
    latency : float
        One way, for firings that have not drained yet [s].
    """
    operation = tables.operations[row]
    if operation.active:
        _release_path(tables, row)
    operation.first_hop = first_hop
    operation.hops = hops
    operation.latency = latency
    if operation.active:
        _occupy_path(tables, row)
        _set_off(tables, row)


@kernel
def cancel(tables: Tables, first_operation: int, operations: int) -> None:
    """End operations where they stand; what they have not delivered is accounted as lost."""
    clock = tables.clock[0]
    for row in range(first_operation, first_operation + operations):
        operation = tables.operations[row]
        if operation.active:
            _release_path(tables, row)
            operation.active = False
        if operation.is_send:
            for firing in range(operation.delivered, operation.fired):
                lost = _firing_bytes(tables, row, firing)
                operation.lost_bytes += lost
                clock.lost_bytes += lost
                _leave_device(tables, tables.gates[operation.source].node)
                _leave_device(tables, tables.gates[operation.target].node)
        operation.state = OVER
        operation.stamp += 1


@inlined
def _then(tables: Tables, time: float, kind: int, row: int, stamp: int) -> None:
    """Let a step follow: at once, after those that already wait, or at a later time."""
    clock = tables.clock[0]
    item = (((stamp << _ROW_BITS) | row) << _KIND_BITS) | kind
    if time <= clock.now:
        tables.queue[(clock.queue_head + clock.queue_size) % len(tables.queue)].row = item
        clock.queue_size += 1
    else:
        clock.sequence += 1
        clock.events = insert(tables.events, clock.events, time, clock.sequence, item)


@inlined
def _take_step(tables: Tables, item: int) -> None:
    kind = item & ((1 << _KIND_BITS) - 1)
    row = (item >> _KIND_BITS) & ((1 << _ROW_BITS) - 1)
    stamp = item >> (_KIND_BITS + _ROW_BITS)
    if kind == _GIVE_TOKEN:
        if tables.operations[tables.dependencies[row].after].stamp == stamp:
            _give_token(tables, row)
        return
    if tables.operations[row].stamp != stamp:
        return
    if kind == _START:
        _start(tables, row)
    elif kind == _BEGIN_FLOW:
        _begin_flow(tables, row)
    elif kind == _ARRIVE:
        _arrive(tables, row)
    elif kind == _DELIVER:
        _deliver(tables, row)
    elif kind == _END_CALC:
        _end_calc(tables, row)
    else:
        _meet_deadline(tables, row)


@inlined
def _firing_bytes(tables: Tables, row: int, firing: int) -> float:
    """Size of one firing of a send."""
    operation = tables.operations[row]
    if operation.longer == 0:
        return operation.chunk_bytes
    turned = (operation.chunk_first + firing * operation.chunk_step) % operation.chunk_modulus
    carried = min(max(operation.longer - operation.chunk_offset - turned, 0), operation.chunk_width)
    return operation.chunk_bytes + carried * operation.element_bytes


@inlined
def _start(tables: Tables, row: int) -> None:
    """Begin the next firing of an operation that waits for nothing more."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    firing = operation.fired
    operation.fired = firing + 1
    operation.state = RUNNING
    time = clock.now
    if not operation.is_send:
        if operation.server >= 0:
            time = max(time, tables.servers[operation.server].free_at)
            tables.servers[operation.server].free_at = time + operation.seconds
        _then(tables, time + operation.seconds, _END_CALC, row, operation.stamp)
        return
    operation.firing_bytes = _firing_bytes(tables, row, firing)
    clock.messages += 1
    clock.sent_bytes += operation.firing_bytes
    _join_device(tables, tables.gates[operation.source].node)
    _join_device(tables, tables.gates[operation.target].node)
    cost = tables.costs[operation.cost]
    overhead = cost.send + cost.send_per_byte * min(operation.firing_bytes, cost.pipeline_bytes)
    if overhead > 0.0:
        time = max(time, tables.servers[operation.server].free_at) + overhead
        tables.servers[operation.server].free_at = time
    time += operation.first_setup if firing == 0 else operation.each_setup
    _then(tables, time, _BEGIN_FLOW, row, operation.stamp)


@inlined
def _begin_flow(tables: Tables, row: int) -> None:
    """Let the payload of a firing flow."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    operation.active = True
    operation.remaining = operation.firing_bytes
    operation.rate = 0.0
    operation.since = clock.now
    if operation.deadline < np.inf:
        operation.deadline_at = clock.now + operation.deadline
        _then(tables, operation.deadline_at, _MEET_DEADLINE, row, operation.stamp)
    _occupy_path(tables, row)
    _set_off(tables, row)


@inlined
def _meet_deadline(tables: Tables, row: int) -> None:
    """Give up what of a firing has not flowed in time; an earlier firing's deadline means nothing any more."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    if not operation.active or operation.deadline_at > clock.now * (1.0 + _SAME_INSTANT):
        return
    lost = max(operation.remaining - operation.rate * (clock.now - operation.since), 0.0)
    operation.lost_bytes += lost
    clock.lost_bytes += lost
    clock.delivered_bytes -= lost
    operation.on_path -= lost
    operation.remaining = 0.0
    clock.drains = set_finish(tables.operations, tables.drains, clock.drains, row, clock.now)


@inlined
def _drain(tables: Tables, row: int) -> None:
    """Let a firing whose last byte has left go on its way, and the operation fire again."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    operation.remaining = 0.0
    operation.rate = 0.0
    _release_path(tables, row)
    operation.active = False
    operation.drained += 1
    stored = min(operation.firing_bytes, tables.costs[operation.cost].packet_bytes)
    arrival = max(clock.now + operation.latency + operation.forward_per_byte * stored, operation.last_arrival)
    operation.last_arrival = arrival
    _then(tables, arrival, _ARRIVE, row, operation.stamp)
    _send_tokens(tables, row, False)
    _end_firing(tables, row)


@inlined
def _arrive(tables: Tables, row: int) -> None:
    """Have the receiver take in and reduce a firing that has reached it."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    firing = operation.arrived
    operation.arrived = firing + 1
    size = _firing_bytes(tables, row, firing)
    cost = tables.costs[operation.cost]
    work = cost.receive + cost.receive_per_byte * min(size, cost.pipeline_bytes)
    if firing < operation.reduce_firings:
        work += cost.reduce_per_byte * size
    end = clock.now
    if work > 0.0:
        end = max(end, tables.servers[operation.receive_server].free_at) + work
        tables.servers[operation.receive_server].free_at = end
    # What costs nothing does not queue, but does not overtake what its own operation sent before.
    end = max(end, operation.last_delivery)
    operation.last_delivery = end
    _then(tables, end, _DELIVER, row, operation.stamp)


@inlined
def _deliver(tables: Tables, row: int) -> None:
    """Tell those who wait that a firing is received and reduced."""
    operation = tables.operations[row]
    tables.clock[0].delivered_bytes += _firing_bytes(tables, row, operation.delivered)
    operation.delivered += 1
    _leave_device(tables, tables.gates[operation.source].node)
    _leave_device(tables, tables.gates[operation.target].node)
    _send_tokens(tables, row, True)
    if operation.delivered == operation.firings:
        _towards_completion(tables, operation.target)


@inlined
def _end_calc(tables: Tables, row: int) -> None:
    operation = tables.operations[row]
    operation.drained += 1
    operation.delivered += 1
    _send_tokens(tables, row, False)
    _send_tokens(tables, row, True)
    _end_firing(tables, row)


@inlined
def _end_firing(tables: Tables, row: int) -> None:
    """Let the operation wait for its next firing, or be over."""
    operation = tables.operations[row]
    if operation.fired == operation.firings:
        operation.state = OVER
        _towards_completion(tables, operation.source)
        return
    operation.state = WAITING
    operation.waiting_since = tables.clock[0].now
    operation.missing = _unmet(tables, row)
    if operation.missing == 0:
        _then(tables, operation.waiting_since, _START, row, operation.stamp)


@inlined
def _needed(tables: Tables, dependency: int) -> int:
    """How many firings of its `before` a dependency must have seen before the next firing of its `after`."""
    record = tables.dependencies[dependency]
    firing = tables.operations[record.after].fired - record.offset
    if firing < 0:
        return 0
    return min(firing, tables.operations[record.before].firings - 1) + 1


@inlined
def _unmet(tables: Tables, row: int) -> int:
    operation = tables.operations[row]
    count = 0
    for dependency in range(operation.first_in, operation.first_in + operation.ins):
        if tables.dependencies[dependency].tokens < _needed(tables, dependency):
            count += 1
    return count


@inlined
def _send_tokens(tables: Tables, row: int, delivered: bool) -> None:
    """Tell the operations that depend on this one that a firing of it has drained, or has been delivered."""
    operation = tables.operations[row]
    for edge in range(operation.first_out, operation.first_out + operation.outs):
        row_of_dependency = tables.outgoing[edge].row
        dependency = tables.dependencies[row_of_dependency]
        if dependency.until_delivered != delivered:
            continue
        stamp = tables.operations[dependency.after].stamp
        _then(tables, tables.clock[0].now + dependency.delay, _GIVE_TOKEN, row_of_dependency, stamp)


@inlined
def _give_token(tables: Tables, dependency: int) -> None:
    record = tables.dependencies[dependency]
    record.tokens += 1
    if tables.operations[record.after].state == WAITING and record.tokens == _needed(tables, dependency):
        _one_less(tables, record.after)


@inlined
def _one_less(tables: Tables, row: int) -> None:
    operation = tables.operations[row]
    operation.missing -= 1
    if operation.missing == 0 and operation.state == WAITING:
        _then(tables, tables.clock[0].now, _START, row, operation.stamp)


@inlined
def _towards_completion(tables: Tables, gate: int) -> None:
    """One thing less to wait for until a rank is complete."""
    clock = tables.clock[0]
    record = tables.gates[gate]
    record.left -= 1
    if record.left > 0:
        return
    record.complete_at = clock.now
    play = tables.plays[record.play]
    play.left -= 1
    tables.complete[clock.complete].row = gate
    clock.complete += 1
    if record.watched or (play.is_watched and play.left == 0):
        clock.watched += 1


@inlined
def _join_device(tables: Tables, device: int) -> None:
    record = tables.devices[device]
    if record.active == 0:
        record.busy_since = tables.clock[0].now
    record.active += 1


@inlined
def _leave_device(tables: Tables, device: int) -> None:
    record = tables.devices[device]
    record.active -= 1
    if record.active == 0:
        record.busy += tables.clock[0].now - record.busy_since


@inlined
def _occupy_path(tables: Tables, row: int) -> None:
    """Make the flow of an operation active on its resources."""
    operation = tables.operations[row]
    operation.on_path = operation.remaining
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        resource = tables.resources[tables.hops[hop].resource]
        if resource.users == 0:
            resource.busy_since = tables.clock[0].now
    attach(tables.operations, tables.hops, tables.resources, row)
    _make_path_dirty(tables, row, _JOINED)
    _make_fresh(tables, row)


@inlined
def _release_path(tables: Tables, row: int) -> None:
    """Take the flow of an operation off its resources and account for what it has moved there."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    operation.remaining = max(operation.remaining - operation.rate * (clock.now - operation.since), 0.0)
    operation.since = clock.now
    operation.rate = 0.0
    moved = operation.on_path - operation.remaining
    clock.drains = discard(tables.operations, tables.drains, clock.drains, row)
    detach(tables.operations, tables.hops, tables.resources, row)
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        resource = tables.resources[tables.hops[hop].resource]
        resource.carried += tables.hops[hop].coefficient * moved
        if resource.users == 0:
            resource.busy += clock.now - resource.busy_since
            resource.busy_since = clock.now
    _make_path_dirty(tables, row, _LEFT)


@inlined
def _make_path_dirty(tables: Tables, row: int, what: int) -> None:
    operation = tables.operations[row]
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        _make_dirty(tables, tables.hops[hop].resource, what)


@inlined
def _make_dirty(tables: Tables, resource: int, what: int) -> None:
    """Note what happened to a resource at this instant."""
    if tables.resources[resource].dirty == 0:
        tables.dirty[tables.clock[0].dirty].row = resource
        tables.clock[0].dirty += 1
    tables.resources[resource].dirty = max(tables.resources[resource].dirty, what)


@inlined
def _make_fresh(tables: Tables, row: int) -> None:
    """Note that a flow began, or has another cap or path, at this instant."""
    operation = tables.operations[row]
    operation.limit = UNLIMITED
    if not operation.fresh:
        operation.fresh = True
        tables.fresh[tables.clock[0].fresh].row = row
        tables.clock[0].fresh += 1


@inlined
def _repair(tables: Tables) -> None:
    """Find the rates that change at this instant, beginning with the flows that something happened to."""
    clock = tables.clock[0]
    operations, resources, members = tables.operations, tables.resources, tables.flow_members
    clock.mark += 1
    count = 0
    for i in range(clock.dirty):
        row = tables.dirty[i].row
        if resources[row].dirty >= _LEFT:
            hop = resources[row].head
            while hop >= 0:
                user = tables.hops[hop].flow
                if resources[row].dirty == _CHANGED or operations[user].limit == row:
                    count = join(operations, members, count, clock.mark, user)
                hop = tables.hops[hop].next
        resources[row].dirty = 0
    clock.dirty = 0
    for i in range(clock.fresh):
        row = tables.fresh[i].row
        operations[row].fresh = False
        if operations[row].active:
            if _is_alone(tables, row):
                operations[row].old_rate = operations[row].rate
                _flow_alone(tables, row)
            else:
                count = join(operations, members, count, clock.mark, row)
    clock.fresh = 0
    if count == 0:
        return
    count, passes = repair(
        operations, tables.hops, resources, tables.levels, members, count, clock.mark, tables.resource_members
    )
    clock.solves += 1
    clock.passes += passes
    clock.touched += count
    for i in range(count):
        row = members[i].row
        if operations[row].rate != operations[row].old_rate:
            _foresee(tables, row)


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
        rate = tables.resources[resource].capacity / tables.hops[hop].coefficient
        if rate < operation.rate:
            operation.rate = rate
            operation.limit = resource
    if operation.rate != operation.old_rate:
        _foresee(tables, row)


@inlined
def _solve_components(tables: Tables) -> None:
    """Find the rates in all components that changed at this instant, whole: the oracle of `_repair`."""
    clock = tables.clock[0]
    clock.mark += 1
    for i in range(clock.dirty):
        resource = tables.dirty[i].row
        tables.resources[resource].dirty = 0
        if tables.resources[resource].users > 0:
            _solve_component(tables, resource)
    clock.dirty = 0
    for i in range(clock.fresh):
        tables.operations[tables.fresh[i].row].fresh = False
    clock.fresh = 0


@inlined
def _solve_component(tables: Tables, resource: int) -> None:
    """Find the rates in the component of a resource, and when its flows drain."""
    operations = tables.operations
    flows, resources = gather_component(
        operations,
        tables.hops,
        tables.resources,
        tables.flow_members,
        tables.resource_members,
        tables.clock[0].mark,
        resource,
    )
    if flows == 0:
        return
    tables.clock[0].solves += 1
    tables.clock[0].passes += 1
    tables.clock[0].touched += flows
    for i in range(flows):
        operation = operations[tables.flow_members[i].row]
        operation.old_rate = operation.rate
    fill(
        operations,
        tables.hops,
        tables.resources,
        tables.levels,
        tables.flow_members,
        flows,
        tables.resource_members,
        resources,
    )
    for i in range(flows):
        row = tables.flow_members[i].row
        if operations[row].rate != operations[row].old_rate:
            _foresee(tables, row)


@inlined
def _set_off(tables: Tables, row: int) -> None:
    """Foresee the end of a flow that no solving will: it is empty, or uses no resource and has its cap as its rate."""
    operation = tables.operations[row]
    operation.old_rate = operation.rate
    operation.rate = operation.cap if operation.hops == 0 else 0.0
    _foresee(tables, row)


@inlined
def _foresee(tables: Tables, row: int) -> None:
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
