"""The life of a send, of a calculation and of what is taken of memory, as steps; compiled.

Each step follows at once or at a later time. A send: dependencies met and gate open, overhead of the sender (first in,
first out), its turn where messages take turns, connection set-up, the flow drains, latency, overhead of the receiver
(first in, first out) and reduction, delivered. Steps that follow at once go through one queue, so that each is compiled
into one place. Taking of memory goes the way of a send that costs nothing but its flow.
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.bursts import hear_of_losses, may_overflow
from simnet.fabric.kernels.compiled import inlined
from simnet.fabric.kernels.heap import insert, set_finish
from simnet.fabric.kernels.losses import RELIABLE, suffer_losses
from simnet.fabric.kernels.rates import occupy_path, release_path, set_off
from simnet.fabric.kernels.tables import Tables
from simnet.fabric.kernels.turns import pass_turn, take_turn

__all__ = [
    "OVER",
    "RUNNING",
    "SAME_INSTANT",
    "WAITING",
    "arrive_after",
    "drain",
    "firing_bytes_of",
    "leave_device",
    "let_next_set_out",
    "one_less",
    "take_step",
    "towards_completion",
    "unmet",
]

# States of an operation.
WAITING, RUNNING, OVER = 0, 1, 2

# Steps; an item packs the stamp of the operation, the row and the kind of step.
_START, _BEGIN_FLOW, _ARRIVE, _DELIVER, _END_CALC, _GIVE_TOKEN, _MEET_DEADLINE, _HEAR = 0, 1, 2, 3, 4, 5, 6, 7
_TAKE_TURN, _SET_OUT = 8, 9
_KIND_BITS, _ROW_BITS = 4, 32

SAME_INSTANT = 1e-15  # of the kernel's time: a few units in the last place


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
def take_step(tables: Tables, item: int) -> None:
    """Take one step, unless what it belongs to has been cancelled."""
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
    elif kind == _MEET_DEADLINE:
        _meet_deadline(tables, row)
    elif kind == _TAKE_TURN:
        if take_turn(tables, row):
            _then(tables, tables.clock[0].now, _SET_OUT, row, stamp)
    elif kind == _SET_OUT:
        _set_out(tables, row, tables.clock[0].now)
    else:
        _hear(tables, row)


@inlined
def firing_bytes_of(tables: Tables, row: int, firing: int) -> float:
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
    operation.began = clock.now
    time = clock.now
    if not operation.is_flow:
        if operation.server >= 0:
            time = max(time, tables.servers[operation.server].free_at)
            tables.servers[operation.server].free_at = time + operation.seconds
        _then(tables, time + operation.seconds, _END_CALC, row, operation.stamp)
        return
    operation.firing_bytes = firing_bytes_of(tables, row, firing)
    clock.sent_bytes += operation.firing_bytes
    if operation.is_message:
        clock.messages += 1
        _join_device(tables, tables.gates[operation.source].node)
        _join_device(tables, tables.gates[operation.target].node)
    cost = tables.costs[operation.cost]
    overhead = cost.send + cost.send_per_byte * min(operation.firing_bytes, cost.pipeline_bytes) + operation.more_send
    if overhead > 0.0:
        overhead += overhead * tables.servers[operation.server].slowed
        time = max(time, tables.servers[operation.server].free_at) + overhead
        tables.servers[operation.server].free_at = time
    if operation.turn >= 0:
        _then(tables, time, _TAKE_TURN, row, operation.stamp)
    else:
        _set_out(tables, row, time)


@inlined
def _set_out(tables: Tables, row: int, time: float) -> None:
    """Let a message that the sender is done with begin to flow, once its connection is open."""
    operation = tables.operations[row]
    time += operation.first_setup if operation.fired == 1 else operation.each_setup
    operation.resent_bytes = 0.0
    operation.lost_here = 0.0
    if operation.reliability != RELIABLE:
        time += suffer_losses(tables, row)
    _then(tables, time, _BEGIN_FLOW, row, operation.stamp)


@inlined
def _begin_flow(tables: Tables, row: int) -> None:
    """Let the payload of a firing flow."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    operation.active = True
    operation.remaining = operation.firing_bytes + operation.resent_bytes
    operation.rate = 0.0
    operation.since = clock.now
    operation.flow_began = clock.now
    if operation.deadline < np.inf:
        operation.deadline_at = clock.now + operation.deadline
        _then(tables, operation.deadline_at, _MEET_DEADLINE, row, operation.stamp)
    if operation.is_elsewhere:
        operation.on_path = operation.remaining
        tables.begun[clock.begun].row = row
        clock.begun += 1
        return
    occupy_path(tables, row)
    set_off(tables, row)
    operation.stands_still = 0.0
    if may_overflow(tables, row):
        _then(tables, clock.now + operation.round_trip, _HEAR, row, operation.stamp)


@inlined
def _hear(tables: Tables, row: int) -> None:
    """Have a message whose first window was sent stand still for as long as what was lost costs it, or go on again."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    if operation.drained > 0:
        return
    if operation.active:
        hear_of_losses(tables, row)
        until = operation.flow_began + operation.stands_still
        if until > clock.now:
            release_path(tables, row)
            operation.active = False
            _then(tables, until, _HEAR, row, operation.stamp)
        return
    operation.active = True
    operation.since = clock.now
    occupy_path(tables, row)
    set_off(tables, row)


@inlined
def _meet_deadline(tables: Tables, row: int) -> None:
    """Give up what of a firing has not flowed in time; an earlier firing's deadline means nothing any more."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    if not operation.active or operation.deadline_at > clock.now * (1.0 + SAME_INSTANT):
        return
    left = max(operation.remaining - operation.rate * (clock.now - operation.since), 0.0)
    lost = left
    if operation.resent_bytes > 0.0 or operation.lost_here > 0.0:
        # What is lost anyway does not count twice, nor what flows a second time.
        whole = operation.firing_bytes + operation.resent_bytes
        lost = left / whole * (operation.firing_bytes - operation.lost_here)
    operation.lost_bytes += lost
    clock.lost_bytes += lost
    clock.delivered_bytes -= lost
    operation.on_path -= left
    operation.remaining = 0.0
    clock.drains = set_finish(tables.operations, tables.drains, clock.drains, row, clock.now)


@inlined
def drain(tables: Tables, row: int) -> None:
    """Let a firing whose last byte has left go on its way, and the operation fire again."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    operation.remaining = 0.0
    if not operation.is_elsewhere:
        release_path(tables, row)
    operation.active = False
    if clock.records and operation.is_message:
        _record(tables, row, operation.drained, False)
    operation.drained += 1
    if not operation.is_elsewhere:
        stored = min(operation.firing_bytes, tables.costs[operation.cost].packet_bytes)
        arrival = max(clock.now + operation.latency + operation.forward_per_byte * stored, operation.last_arrival)
        operation.last_arrival = arrival
        _then(tables, arrival, _ARRIVE, row, operation.stamp)
    if operation.turn >= 0:
        let_next_set_out(tables, pass_turn(tables, row))
    _send_tokens(tables, row, False)
    _end_firing(tables, row)


@inlined
def let_next_set_out(tables: Tables, row: int) -> None:
    """Let the message whose turn it is now set out, unless it is that of nobody."""
    if row >= 0:
        _then(tables, tables.clock[0].now, _SET_OUT, row, tables.operations[row].stamp)


@inlined
def arrive_after(tables: Tables, row: int, delay: float) -> None:
    """Let a firing whose flow went elsewhere reach its receiver in a while."""
    _then(tables, tables.clock[0].now + delay, _ARRIVE, row, tables.operations[row].stamp)


@inlined
def _arrive(tables: Tables, row: int) -> None:
    """Have the receiver take in and reduce a firing that has reached it."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    firing = operation.arrived
    operation.arrived = firing + 1
    size = firing_bytes_of(tables, row, firing)
    cost = tables.costs[operation.cost]
    work = cost.receive + cost.receive_per_byte * min(size, cost.pipeline_bytes) + operation.more_receive
    if firing < operation.reduce_firings:
        work += cost.reduce_per_byte * size
    end = clock.now
    if work > 0.0:
        work += work * tables.servers[operation.receive_server].slowed
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
    tables.clock[0].delivered_bytes += firing_bytes_of(tables, row, operation.delivered)
    if tables.clock[0].records and operation.is_message:
        _record(tables, row, operation.delivered, True)
    operation.delivered += 1
    if operation.is_message:
        leave_device(tables, tables.gates[operation.source].node)
        leave_device(tables, tables.gates[operation.target].node)
    _send_tokens(tables, row, True)
    if operation.delivered == operation.firings:
        towards_completion(tables, operation.target)


@inlined
def _record(tables: Tables, row: int, firing: int, is_delivery: bool) -> None:
    """Note that a firing has drained, or has been delivered; `advance` sees to it that there is room."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    entry = tables.log[clock.logged]
    entry.stamp = operation.stamp
    entry.row = row
    entry.firing = firing
    entry.is_delivery = is_delivery
    entry.size_bytes = operation.firing_bytes
    entry.began = operation.began
    entry.flow_began = operation.flow_began
    entry.time = clock.now
    clock.logged += 1


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
        towards_completion(tables, operation.source)
        return
    operation.state = WAITING
    operation.waiting_since = tables.clock[0].now
    operation.missing = unmet(tables, row)
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
def unmet(tables: Tables, row: int) -> int:
    """Count the dependencies that the next firing of an operation still waits for."""
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
        one_less(tables, record.after)


@inlined
def one_less(tables: Tables, row: int) -> None:
    """Let an operation wait for one thing less, and start if that was the last."""
    operation = tables.operations[row]
    operation.missing -= 1
    if operation.missing == 0 and operation.state == WAITING:
        _then(tables, tables.clock[0].now, _START, row, operation.stamp)


@inlined
def towards_completion(tables: Tables, gate: int) -> None:
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
def leave_device(tables: Tables, device: int) -> None:
    """Let a node have one transfer less under way."""
    record = tables.devices[device]
    record.active -= 1
    if record.active == 0:
        record.busy += tables.clock[0].now - record.busy_since
        record.busy_since = tables.clock[0].now
