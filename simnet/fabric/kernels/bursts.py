"""First windows of many senders that meet in front of one link, and overflow its queue: incast; compiled.

A round trip after a window was sent, its sender hears what was lost of it. Then all that have begun to send through the
same queue since it was last looked at are played, packet by packet, in packet times of the link, until all has arrived;
what comes of it for each is the time for which it stands still. docs/flow.md says what is left out.
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.burst_receivers import acknowledge_late, begin_to_receive, receive
from simnet.fabric.kernels.burst_senders import begin_to_send, expire, may_send, send, take_in
from simnet.fabric.kernels.compiled import called, inlined, kernel
from simnet.fabric.kernels.draws import draw
from simnet.fabric.kernels.tables import Tables

__all__ = ["hear_of_losses", "may_overflow"]

_MOST_ROUNDS = 200  # a message that is not over by then goes on as one that shares its link
_SAME = 1e-6  # packet times
_END = -1


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
        senders = _gather(tables, number)
        if senders > 1:
            packet = min(tables.hops[hop].coefficient * operation.firing_bytes, tables.transports[0].packet_bytes)
            _play(tables, number, senders, packet, operation.round_trip)
            for sender in range(senders):
                own = tables.operations[tables.senders[sender].operation]
                own.stands_still = max(own.stands_still, tables.senders[sender].stands_still)
        resource.heard_at = tables.clock[0].now


@inlined
def _is_in(tables: Tables, number: int, hop: int) -> bool:
    """Tell whether the message of a hop is one of those that are played."""
    operation = tables.operations[tables.hops[hop].flow]
    is_first = operation.opens and operation.fired == 1 and operation.round_trip > 0.0
    return is_first and operation.flow_began > tables.resources[number].heard_at


@called
def _gather(tables: Tables, number: int) -> int:
    """Have those that are played be senders, in the order in which they began; return how many there are.

    Such as begin at the very same instant are taken to begin within the time of a window: hosts do not keep step to
    less.
    """
    hop, last_hop = tables.resources[number].head, _END
    while hop != _END:
        last_hop = hop
        hop = tables.hops[hop].next
    senders, before = 0, -np.inf
    # The list begins with whoever came last.
    hop = last_hop
    while hop != _END:
        if _is_in(tables, number, hop):
            row = tables.hops[hop].flow
            operation = tables.operations[row]
            begins_at = operation.flow_began
            if begins_at == before:
                begins_at += draw(tables.operations, row) * tables.transports[0].first_window * operation.packet_time
            before = operation.flow_began
            begin_to_send(tables, senders, row, begins_at)
            begin_to_receive(tables, senders)
            senders += 1
        hop = tables.hops[hop].previous
    return senders


@called
def _play(tables: Tables, number: int, senders: int, packet: float, round_trip: float) -> None:
    """Play some senders until all has arrived, a packet time of the link after the other.

    `transit` is a ring: rows back .. head have left the queue, and are acknowledged at their time, head .. end are in
    it. In each packet time one leaves, and who sends in it finds room in the order of the instants of sending.
    """
    resource, transport, ring = tables.resources[number], tables.transports[0], len(tables.transit)
    pace = packet / resource.capacity
    back_s = max(round_trip - pace, 0.0)
    path = int(np.ceil(back_s / pace)) + 2
    room = int(min(np.floor(resource.buffer / packet + _SAME), ring - path))
    most = resource.buffer + _SAME * packet
    first_at, first_sent_at = np.inf, 0.0
    for sender in range(senders):
        begins_at = tables.senders[sender].next_at
        first_at = min(first_at, begins_at)
        operation = tables.operations[tables.senders[sender].operation]
        first_sent_at = max(first_sent_at, begins_at + transport.first_window * operation.packet_time)
    level = max(resource.burst - (first_at - resource.burst_at) * resource.capacity, 0.0)
    back, head, end = 0, 0, int(min(np.ceil(level / packet - _SAME), room))
    for place in range(end):
        tables.transit[place].sender = _END
        tables.transit[place].bytes = packet
    held = end * packet
    # Where none is lost, the second windows are as large as acknowledgements make them.
    may_lose = senders * 2.0 * transport.first_window * packet > resource.buffer
    is_noted = False
    slot, steps = 0, 0
    while steps < _MOST_ROUNDS * (room + path):
        steps += 1
        now = first_at + slot * pace
        if not is_noted and now >= tables.clock[0].now:
            is_noted = True
            resource.burst, resource.burst_at = held, now
        until = now + pace * (1.0 - _SAME)
        while back < head and tables.transit[back % ring].back_at < until:
            told = tables.transit[back % ring]
            if told.packets > 0:
                take_in(
                    tables,
                    told.sender,
                    told.back_at,
                    told.packets,
                    told.old,
                    told.echo,
                    told.gap,
                    told.gap_new,
                    told.gap_again,
                    told.progress,
                    told.is_marked,
                )
            back += 1
        if head < end:
            leaving = tables.transit[head % ring]
            leaving.packets = 0
            held -= leaving.bytes
            if leaving.sender != _END:
                receive(tables, head % ring, now)
            leaving.back_at = now + back_s
            head += 1
        first = _line_up(tables, senders, now, until, back_s, pace)
        is_quiet = first == _END and head == end
        sender, coming_in = first, 0.0
        while sender != _END:
            place = end % ring
            send(tables, sender, place, max(tables.senders[sender].next_at, now))
            coming = tables.transit[place]
            coming.bytes = tables.senders[sender].last_bytes if coming.is_last else packet
            # It has to find room when all of it has come in. What is sent before a short one may come in after it.
            is_later = _comes_in_later(tables, place, packet, pace, until)
            before = held - coming_in
            if is_later:
                before = held - (tables.transit[head % ring].bytes if head < end else 0.0)
            if before + coming.bytes <= most and end - head < ring - path:
                coming.is_marked = end > head
                tables.senders[sender].gap = tables.senders[sender].gap_new = tables.senders[sender].gap_again = 0
                held += coming.bytes
                coming_in += coming.bytes if is_later else 0.0
                end += 1
            else:
                may_lose = True
                if coming.repair == -1:
                    tables.senders[sender].gap += 1
                else:
                    tables.senders[sender].gap_new += 1
                tables.senders[sender].gap_again += 1 if coming.is_again else 0
            sender = tables.senders[sender].following
        if not may_lose and now > first_sent_at:
            break
        slot += 1
        if is_quiet:
            following = _next_instant(tables, senders)
            if back < head:
                following = min(following, tables.transit[back % ring].back_at)
            if following == np.inf:
                break
            slot = max(slot, int(np.floor((following - first_at) / pace + _SAME)))
    if not is_noted:
        resource.burst, resource.burst_at = held, first_at + slot * pace


@inlined
def _comes_in_later(tables: Tables, place: int, packet: float, pace: float, until: float) -> bool:
    """Tell whether the packet in service has left by the time at which another one has come in whole.

    A switch that stores packets before it passes them on is behind by just as much, so that it has not.
    """
    coming = tables.transit[place]
    operation = tables.operations[tables.senders[coming.sender].operation]
    cuts_through = operation.forward_per_byte == 0.0 and operation.packet_time <= pace * (1.0 + _SAME)
    return cuts_through and coming.sent_at + pace * coming.bytes / packet >= until


@called
def _line_up(tables: Tables, senders: int, now: float, until: float, back_s: float, pace: float) -> int:
    """Let senders notice that time has passed; return the first of those that send a packet now, in order.

    Who keeps the same pace sends at the same instant in each packet time, so that the place that the link frees goes to
    the same sender until its window is over (S. Floyd and V. Jacobson, "On traffic phase effects", 1992). What
    acknowledgements let out would all come at the same instant of a packet time; but no two hosts take as long.
    """
    first = _END
    for number in range(senders):
        sender = tables.senders[number]
        if sender.missing == 0:
            continue
        if sender.timer_at < until:
            expire(tables, number)
        if sender.late_at < until:
            acknowledge_late(tables, number, back_s)
        if sender.back_at < until:
            back_at, sender.back_at = sender.back_at, np.inf
            take_in(tables, number, back_at, 1, sender.back_old, sender.back_echo, 0, 0, 0, True, sender.back_marked)
        if sender.next_at >= until or not may_send(tables, number):
            continue
        before, following = _END, first
        while following != _END and not _comes_first(tables, number, following, now, pace):
            before, following = following, tables.senders[following].following
        sender.following = following
        if before == _END:
            first = number
        else:
            tables.senders[before].following = number
    return first


@inlined
def _comes_first(tables: Tables, number: int, other: int, now: float, pace: float) -> bool:
    """Tell whether a sender is to send before another."""
    later = max(tables.senders[other].next_at, now) - max(tables.senders[number].next_at, now)
    return later > _SAME * pace


@called
def _next_instant(tables: Tables, senders: int) -> float:
    """Return when a sender or a receiver does something by itself."""
    following = np.inf
    for number in range(senders):
        sender = tables.senders[number]
        if sender.missing > 0:
            following = min(following, sender.timer_at, sender.late_at, sender.back_at)
            if may_send(tables, number):
                following = min(following, sender.next_at)
    return float(following)
