"""First windows of many senders that meet in front of one link, and overflow its queue: incast; compiled.

A round trip after a window was sent, its sender hears what was lost of it. Then all that have begun to send through the
same queue since it was last looked at are played, packet time by packet time for their first windows, round by round
from there on; what comes of it for each is the time for which it stands still. docs/flow.md derives the law.
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.compiled import called, inlined, kernel
from simnet.fabric.kernels.draws import draw
from simnet.fabric.kernels.tables import Tables

__all__ = ["hear_of_losses", "may_overflow"]

_LEAST_WINDOW = 2.0  # packets, after a loss
_TOGETHER = 4.0  # round trips
_QUICK = 16.0  # packets that Linux acknowledges at once before it waits for a second one (TCP_MAX_QUICKACKS)
_MOST_ROUNDS = 200  # a message that is not over by then goes on as one that shares its link
_END = -1

# What a message does in the rounds after its first window.
_OVER, _WAITS, _SENDS = 0, 1, 2


@inlined
def may_overflow(tables: Tables, row: int) -> bool:
    """Tell whether the first window of a message goes through a queue that can overflow."""
    operation = tables.operations[row]
    if not operation.opens or operation.fired != 1 or operation.is_elsewhere:
        return False
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        if tables.resources[tables.hops[hop].resource].buffer < np.inf:
            return True
    return False


@kernel
def hear_of_losses(tables: Tables, row: int) -> None:
    """Play all that have begun to send through the queues on a path, where they are not yet; note their stalls."""
    operation = tables.operations[row]
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        number = tables.hops[hop].resource
        resource = tables.resources[number]
        if resource.buffer == np.inf or resource.capacity <= 0.0 or operation.flow_began <= resource.heard_at:
            continue
        packet = min(tables.hops[hop].coefficient * operation.firing_bytes, tables.transports[0].packet_bytes)
        if _send_first_windows(tables, number, packet):
            _go_on(tables, number, packet, operation.round_trip)
        resource.heard_at = tables.clock[0].now


@inlined
def _is_in(tables: Tables, number: int, hop: int) -> bool:
    """Tell whether the message of a hop is one of those that are played."""
    operation = tables.operations[tables.hops[hop].flow]
    is_first = operation.opens and operation.fired == 1 and operation.round_trip > 0.0
    return is_first and operation.flow_began > tables.resources[number].heard_at


@called
def _send_first_windows(tables: Tables, number: int, packet: float) -> bool:
    """Fill the queue packet time by packet time; note what each sender loses, and tell whether any does.

    Once the queue is full, the place that the link frees in each packet time goes to the same sender until its window
    is over, as all send at the same pace (S. Floyd and V. Jacobson, "On traffic phase effects", 1992); who that is is
    drawn. Senders that begin at the very same instant are taken to begin within the time of a window: hosts do not
    keep step to less.
    """
    resource, transport = tables.resources[number], tables.transports[0]
    count, hop, last_hop = 0, resource.head, _END
    while hop != _END:
        if _is_in(tables, number, hop):
            count += 1
            last_hop = hop
        hop = tables.hops[hop].next
    if count < 2:
        return False
    # The list begins with whoever came last.
    first_at, end_at, before = np.inf, 0.0, -np.inf
    hop = last_hop
    while hop != _END:
        if _is_in(tables, number, hop):
            operation = tables.operations[tables.hops[hop].flow]
            packets = max(np.ceil(operation.firing_bytes / transport.payload_bytes), 1.0)
            operation.window = min(packets, transport.first_window)
            operation.left = packets
            operation.heard = operation.window
            operation.is_last_lost = False
            operation.sends_from = operation.flow_began
            if operation.flow_began == before:
                operation.sends_from += draw(tables.operations, tables.hops[hop].flow) * _length(tables, hop)
            before = operation.flow_began
            first_at = min(first_at, operation.sends_from)
            end_at = max(end_at, operation.sends_from + _length(tables, hop))
        hop = tables.hops[hop].previous
    pace = packet / resource.capacity
    level = max(resource.burst - (first_at - resource.burst_at) * resource.capacity, 0.0)
    served, overflows, now = _END, False, first_at
    while now < end_at:
        served, level, lost = _send_at(tables, number, packet, last_hop, served, level, now)
        overflows = overflows or lost
        now += pace
    resource.burst = level
    resource.burst_at = now
    # Where none is lost, the second windows are as large as acknowledgements make them.
    return overflows or count * 2.0 * transport.first_window * packet > resource.buffer


@inlined
def _length(tables: Tables, hop: int) -> float:
    """Time that a first window takes [s]."""
    operation = tables.operations[tables.hops[hop].flow]
    return operation.window * operation.packet_time


@inlined
def _send_at(
    tables: Tables,
    number: int,
    packet: float,
    last_hop: int,
    served: int,
    level: float,
    now: float,
) -> tuple[int, float, bool]:
    """Let all who send at a time send a packet; return whose turn the free place is, the queue, if any is lost."""
    resource = tables.resources[number]
    level = max(level - packet, 0.0)
    sending, hop, is_on = 0, last_hop, False
    while hop != _END:
        if _is_in(tables, number, hop) and _sends(tables, hop, now):
            sending += 1
            is_on = is_on or hop == served
        hop = tables.hops[hop].previous
    room = np.floor((resource.buffer - level) / packet + 1e-9)
    if sending <= room:
        return _END, level + sending * packet, False
    turn = 0
    if not is_on:
        turn = int(draw(tables.operations, tables.hops[last_hop].flow) * sending)
    # From the one whose turn it is, as many as there is room for, round and round.
    place, hop = 0, last_hop
    while hop != _END:
        if _is_in(tables, number, hop) and _sends(tables, hop, now):
            if is_on and hop == served:
                turn = place
            place += 1
        hop = tables.hops[hop].previous
    place, hop = 0, last_hop
    while hop != _END:
        if _is_in(tables, number, hop) and _sends(tables, hop, now):
            if place == turn:
                served = hop
            operation = tables.operations[tables.hops[hop].flow]
            if (place - turn) % sending >= room:
                operation.heard -= 1.0
                operation.is_last_lost = True
            else:
                operation.is_last_lost = False
            place += 1
        hop = tables.hops[hop].previous
    return served, level + room * packet, True


@inlined
def _sends(tables: Tables, hop: int, now: float) -> bool:
    """Tell whether a sender is in its first window at a time."""
    operation = tables.operations[tables.hops[hop].flow]
    since = now - operation.sends_from
    return since >= 0.0 and since < _length(tables, hop) * (1.0 - 1e-9)


@called
def _go_on(tables: Tables, number: int, packet: float, round_trip: float) -> None:
    """Play rounds until all is sent; senders that wait come back with others who do when all else is over."""
    resource, transport = tables.resources[number], tables.transports[0]
    hop = resource.head
    while hop != _END:
        if _is_in(tables, number, hop):
            _end_first_window(tables, tables.hops[hop].flow)
        hop = tables.hops[hop].next
    room = (resource.buffer + resource.capacity * round_trip) / packet
    rounds = 0
    while rounds < _MOST_ROUNDS:
        back_at = np.inf
        hop = resource.head
        while hop != _END:
            operation = tables.operations[tables.hops[hop].flow]
            if _is_in(tables, number, hop) and operation.phase == _WAITS:
                back_at = min(back_at, operation.stands_still)
            hop = tables.hops[hop].next
        if back_at == np.inf:
            break
        # Those that come back within a few round trips meet.
        hop = resource.head
        while hop != _END:
            operation = tables.operations[tables.hops[hop].flow]
            is_back = operation.stands_still <= back_at + _TOGETHER * round_trip
            if _is_in(tables, number, hop) and operation.phase == _WAITS and is_back:
                operation.phase = _SENDS
            hop = tables.hops[hop].next
        while rounds < _MOST_ROUNDS:
            rounds += 1
            under_way, growth, hop = 0.0, 0.0, resource.head
            while hop != _END:
                operation = tables.operations[tables.hops[hop].flow]
                if _is_in(tables, number, hop) and operation.phase == _SENDS:
                    sent = _sent(operation.window, operation.left)
                    under_way += sent
                    growth += sent * _growth(operation.window, operation.heard)
                hop = tables.hops[hop].next
            if under_way == 0.0:
                break
            share = min(max(under_way - room, 0.0) / max(growth, 1.0), 1.0)
            marked = transport.has_marks and under_way * packet > resource.capacity * round_trip
            hop = resource.head
            while hop != _END:
                row = tables.hops[hop].flow
                if _is_in(tables, number, hop) and tables.operations[row].phase == _SENDS:
                    _take_turn(tables, row, share, marked)
                hop = tables.hops[hop].next


@inlined
def _sent(window: float, left: float) -> float:
    """Packets of a round."""
    return min(max(np.floor(window), 1.0), left)


@inlined
def _growth(window: float, heard: float) -> float:
    """Share of a window that no acknowledgement made room for."""
    return max(1.0 - heard / max(np.floor(window), 1.0), 0.0)


@inlined
def _end_first_window(tables: Tables, row: int) -> None:
    """Take note of what was lost of a first window."""
    operation, transport = tables.operations[row], tables.transports[0]
    window = operation.window
    operation.left -= operation.heard
    operation.quick = max(_QUICK - operation.heard, 0.0)
    operation.threshold = window if transport.has_marks else np.inf
    operation.stands_still = 0.0
    operation.timeouts = 0
    operation.repairs = False
    operation.phase = _OVER if operation.left == 0.0 else _WAITS
    if operation.phase == _OVER:
        return
    is_end = operation.left + operation.heard == window
    if operation.heard == 0.0 or (is_end and operation.is_last_lost):
        _wait_for_timer(tables, row)
    elif operation.heard < window:
        _make_good(tables, row)
    else:
        operation.window = min(2.0 * window, operation.threshold)


@inlined
def _take_turn(tables: Tables, row: int, share: float, marked: bool) -> None:
    """Send a window, of whose growth a share is lost."""
    operation, transport = tables.operations[row], tables.transports[0]
    sent = _sent(operation.window, operation.left)
    probability = share * _growth(operation.window, operation.heard)
    lost, is_last_lost = 0.0, False
    if probability > 0.0:
        for _ in range(int(sent)):
            is_last_lost = draw(tables.operations, row) < probability
            lost += 1.0 if is_last_lost else 0.0
    is_end = sent == operation.left
    operation.heard = sent - lost
    operation.left -= operation.heard
    operation.quick = max(operation.quick - operation.heard, 0.0)
    if operation.heard > 0.0:
        operation.timeouts = 0
    if operation.left == 0.0:
        operation.phase = _OVER
    elif lost == sent or (is_end and is_last_lost):
        _wait_for_timer(tables, row)
    elif lost > 0.0:
        _make_good(tables, row)
    else:
        operation.repairs = False
        if sent == 1.0 and operation.quick == 0.0 and transport.acknowledge_delay > 0.0:
            # Its receiver waits for a second one.
            operation.stands_still += transport.acknowledge_delay
            operation.phase = _WAITS
        if marked:
            operation.window = max(0.5 * operation.window, _LEAST_WINDOW)
        elif operation.window < operation.threshold:
            operation.window = min(operation.window + sent, operation.threshold)
        else:
            operation.window += 1.0


@inlined
def _make_good(tables: Tables, row: int) -> None:
    """Go on after a loss, with as much as has arrived, and no more than the new window (RFC 6937)."""
    operation = tables.operations[row]
    _lower_threshold(tables, row)
    operation.window = min(operation.threshold, operation.heard)


@inlined
def _lower_threshold(tables: Tables, row: int) -> None:
    """Have a loss make the window smaller, once until it is made good."""
    operation = tables.operations[row]
    if not operation.repairs:
        operation.threshold = max(tables.transports[0].keeps * operation.window, _LEAST_WINDOW)
    operation.repairs = True


@inlined
def _wait_for_timer(tables: Tables, row: int) -> None:
    """Nothing that tells of the loss arrives: probe the tail (RFC 8985), while no loss is made good, or time out."""
    operation, transport = tables.operations[row], tables.transports[0]
    probe = 2.0 * operation.round_trip + transport.probe
    timeout = transport.first_timeout * 2.0**operation.timeouts
    if operation.repairs or probe >= timeout:
        operation.stands_still += timeout + operation.round_trip
        operation.timeouts += 1
        operation.quick = _QUICK
        tables.clock[0].timeouts += 1
    else:
        operation.stands_still += probe
    _lower_threshold(tables, row)
    operation.window = 1.0
    operation.heard = 0.0
    operation.phase = _WAITS
