"""First windows of many senders that meet in front of one link, and overflow its queue: incast; compiled.

What waits in front of a link is a bucket of first windows that leaks at the rate of the link, so that senders that come
one after the other meet only as far as they overlap. N senders of window W that bring far more than a queue of B bytes
holds lose the share q of it. A sender that loses its last packets, and the probe for them, hears nothing and waits for
its timeout; N q^4 do. As soon as that is more than one, few are spared: who loses much of a window sends little, and
loses what it sends again as well.
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.tables import Tables

__all__ = ["enter_queues", "wait_for_room"]

_LAST_PACKETS = 4.0  # three whose loss would have been reported, had a later one arrived, and the probe
_TIMED_OUT = 1.4  # expected senders, from which on there are some: whatever is between 1 and 2 fits what was simulated
_SPARED = 4  # of so many senders one goes on
_LEAST_WINDOW = 2.0  # packets of each sender; where queue and path do not hold as many, some are always lost
_NEXT_WINDOWS = 6.0  # a message that ends within the next two, twice and four times as large, ends while it overflows
_OVERSHOOT = 2.0  # slow start without marks fills a queue so often before it hears of the first loss


@kernel
def enter_queues(tables: Tables, row: int) -> bool:
    """Let the first window of a flow go into the queues on its path; return whether there is one that can overflow."""
    now = tables.clock[0].now
    operation = tables.operations[row]
    entered = False
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        use = tables.hops[hop]
        resource = tables.resources[use.resource]
        if resource.buffer == np.inf or resource.capacity <= 0.0:
            continue
        waiting = resource.burst - (now - resource.burst_at) * resource.capacity
        if waiting <= 0.0:
            waiting = 0.0
            resource.met = 0
        resource.burst = waiting + _window(tables, row) * _packet(tables, row, use.coefficient)
        resource.burst_at = now
        entered = True
    return entered


@kernel
def wait_for_room(tables: Tables, row: int) -> float:
    """Return for how long a flow waits whose first window is in the queues, if it is lost there; otherwise 0 [s]."""
    clock, transport = tables.clock[0], tables.transports[0]
    operation = tables.operations[row]
    longest = 0.0
    for hop in range(operation.first_hop, operation.first_hop + operation.hops):
        use = tables.hops[hop]
        resource = tables.resources[use.resource]
        if resource.buffer == np.inf or resource.capacity <= 0.0:
            continue
        packet = _packet(tables, row, use.coefficient)
        waiting = max(resource.burst - (clock.now - resource.burst_at) * resource.capacity, 0.0)
        if operation.timeouts > 0:
            # It is back with a single packet, after what the queue still holds.
            waiting = min(waiting, resource.buffer) + packet
            if waiting > resource.buffer:
                longest = max(longest, resource.buffer / resource.capacity)
            else:
                resource.burst = waiting
                resource.burst_at = clock.now
        elif _overflows(tables, row, resource.buffer, resource.capacity, waiting, packet):
            resource.met += 1
            if resource.met % _SPARED != 0:
                longest = max(longest, resource.buffer / resource.capacity)
    if longest == 0.0:
        return 0.0
    clock.timeouts += 1
    operation.timeouts += 1
    timeout = transport.first_timeout * 2.0 ** (operation.timeouts - 1)
    if operation.timeouts == 1:
        timeout = min(timeout, 2.0 * operation.round_trip + transport.probe)
    return timeout + operation.round_trip + longest


@inlined
def _window(tables: Tables, row: int) -> float:
    """Packets that a flow sends at once in the beginning."""
    packets = np.ceil(tables.operations[row].firing_bytes / tables.transports[0].payload_bytes)
    return min(max(packets, 1.0), tables.transports[0].first_window)


@inlined
def _packet(tables: Tables, row: int, coefficient: float) -> float:
    """Bytes that a packet of a flow takes of a queue."""
    return min(coefficient * tables.operations[row].firing_bytes, tables.transports[0].packet_bytes)


@inlined
def _overflows(tables: Tables, row: int, buffer: float, capacity: float, burst: float, packet: float) -> bool:
    """Tell whether senders whose first windows are in a queue together are left to their timeouts."""
    operation, transport = tables.operations[row], tables.transports[0]
    window = _window(tables, row)
    packets = max(np.ceil(operation.firing_bytes / transport.payload_bytes), 1.0)
    senders = burst / (window * packet)
    if senders * _LEAST_WINDOW * packet > buffer + capacity * operation.round_trip:
        return True
    most = burst
    if not transport.has_marks:
        # Each acknowledgement brings two packets, until all are sent or the first loss is heard of.
        most = max(burst, min(0.5 * (packets + window) * senders * packet, _OVERSHOOT * buffer))
    share = 1.0 - buffer / most
    if share <= 0.0:
        return False
    # Where a message goes on after that, only the loss of all that is under way leaves its sender to the timeout.
    under_way = most / (senders * packet)
    losses = min(_LAST_PACKETS, packets)
    if packets - window > _NEXT_WINDOWS * under_way:
        losses = under_way
    return senders * share**losses > _TIMED_OUT
