"""The event kernel: plays schedules on resources that flows share max-min fairly; compiled.

All that happens at one instant, and all that it causes without delay, is applied before rates are solved once, for what
has changed. The kernel has a clock of its own, never waits for anything, and can be left and entered again between any
two steps; `simnet.fabric.fluid` couples it with SimPy.
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.compiled import kernel
from simnet.fabric.kernels.heap import drop_first
from simnet.fabric.kernels.rates import (
    CHANGED,
    JOINED,
    make_dirty,
    make_fresh,
    make_path_dirty,
    occupy_path,
    release_path,
    repair_rates,
    set_off,
)
from simnet.fabric.kernels.steps import (
    OVER,
    SAME_INSTANT,
    arrive_after,
    drain,
    firing_bytes_of,
    leave_device,
    let_next_set_out,
    one_less,
    take_step,
    towards_completion,
    unmet,
)
from simnet.fabric.kernels.tables import Table, Tables
from simnet.fabric.kernels.turns import leave_turns

__all__ = [
    "BEGUN",
    "COMPLETE",
    "CROWDED",
    "QUIET",
    "advance",
    "arrive_elsewhere",
    "begin_play",
    "cancel",
    "end_elsewhere",
    "next_instant",
    "open_gates",
    "reroute",
    "set_capacity",
    "set_flow_cap",
]

# Why `advance` came back.
QUIET = 0  # nothing more happens before the given time
COMPLETE = 1  # a rank is complete that somebody waits for
CROWDED = 2  # the heap of events, or the log, needs more room
BEGUN = 3  # flows have begun that go elsewhere


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
        `QUIET`, `COMPLETE`, `CROWDED` or `BEGUN`.
    """
    clock = tables.clock[0]
    operations = tables.operations
    while True:
        horizon = clock.now * (1.0 + SAME_INSTANT)
        while True:
            # One step adds at most this much to the heap of events and to the queue.
            if clock.events + clock.step > len(tables.events) or clock.queue_size + clock.step > len(tables.queue):
                return CROWDED
            if clock.records and clock.logged == len(tables.log):
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
                take_step(tables, item)
            elif clock.drains > 0 and operations[tables.drains[0].row].finish <= horizon:
                drain(tables, tables.drains[0].row)
            elif clock.dirty > 0:
                repair_rates(tables)
            else:
                break
        if clock.begun > 0:
            return BEGUN
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
def next_instant(tables: Tables) -> float:
    """Return when something happens next by itself, infinite if never [s on the kernel's clock]."""
    clock = tables.clock[0]
    if clock.queue_size > 0 or clock.dirty > 0:
        return clock.now
    following = np.inf
    if clock.events > 0:
        following = tables.events[0].key
    if clock.drains > 0:
        following = min(following, tables.operations[tables.drains[0].row].finish)
    return following


@kernel
def end_elsewhere(tables: Tables, row: int) -> None:
    """Say that the last byte of a firing whose flow goes elsewhere has left its sender."""
    drain(tables, row)


@kernel
def arrive_elsewhere(tables: Tables, row: int, delay: float, lost_bytes: float) -> None:
    """Say that a firing whose flow went elsewhere reaches its receiver after a delay, in the order of firings.

    What of it was lost does not count as delivered.
    """
    tables.operations[row].lost_bytes += lost_bytes
    tables.clock[0].lost_bytes += lost_bytes
    tables.clock[0].delivered_bytes -= lost_bytes
    arrive_after(tables, row, delay)


@kernel
def begin_play(tables: Tables, first_operation: int, operations: int, first_gate: int, gates: int) -> None:
    """Take in a play whose rows are filled in; nothing of it moves before its gates open."""
    clock = tables.clock[0]
    for row in range(first_operation, first_operation + operations):
        tables.operations[row].missing = unmet(tables, row) + 1
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
            one_less(tables, tables.behind_gate[edge].row)
        towards_completion(tables, gate)


@kernel
def set_capacity(tables: Tables, resource: int, capacity: float) -> None:
    """Change the capacity of a resource [bytes/s]."""
    record = tables.resources[resource]
    if record.capacity > 0.0:
        record.unused *= capacity / record.capacity
    record.capacity = capacity
    make_dirty(tables, resource, CHANGED)


@kernel
def set_flow_cap(tables: Tables, row: int, cap: float) -> None:
    """Change the highest rate of an operation's flows, also of the one that drains now [bytes/s]."""
    operation = tables.operations[row]
    operation.cap = cap
    operation.most = cap
    if operation.active and operation.hops == 0:
        set_off(tables, row)
    elif operation.active:
        make_path_dirty(tables, row, JOINED)
        make_fresh(tables, row)


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
        release_path(tables, row)
    operation.first_hop = first_hop
    operation.hops = hops
    operation.latency = latency
    if operation.active:
        occupy_path(tables, row)
        set_off(tables, row)


@kernel
def cancel(tables: Tables, first_operation: int, operations: int) -> None:
    """End operations where they stand; what they have not delivered is accounted as lost."""
    clock = tables.clock[0]
    for row in range(first_operation, first_operation + operations):
        operation = tables.operations[row]
        if operation.active and not operation.is_elsewhere:
            release_path(tables, row)
        operation.active = False
        if operation.is_flow:
            for firing in range(operation.delivered, operation.fired):
                lost = firing_bytes_of(tables, row, firing)
                operation.lost_bytes += lost
                clock.lost_bytes += lost
                if operation.is_message:
                    leave_device(tables, tables.gates[operation.source].node)
                    leave_device(tables, tables.gates[operation.target].node)
        if operation.turn >= 0:
            let_next_set_out(tables, leave_turns(tables, row))
        operation.state = OVER
        operation.stamp += 1
