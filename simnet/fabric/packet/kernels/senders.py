"""Connections that send: whose turn it is, what it sends next, and when it must send it again; compiled.

What is lost goes first. Where single packets are accounted for, those under way stand in a list in the order in which
they were sent, and those to be sent again in another.
"""

from __future__ import annotations

from typing import Any

from simnet.fabric.kernels.compiled import called, inlined
from simnet.fabric.packet.kernels import controls
from simnet.fabric.packet.kernels.packets import PACE, TIMEOUT, new_packet, schedule
from simnet.fabric.packet.kernels.records import CLASSES, NEVER, NOWHERE, SECOND
from simnet.fabric.packet.kernels.tables import PacketTables
from simnet.protocols.transport import PROBE_FLOOR_S

__all__ = [
    "BEST_EFFORT",
    "GO_BACK_N",
    "LOST",
    "NOTHING",
    "OUT",
    "SACK",
    "SACKED",
    "SELECTIVE_REPEAT",
    "arm",
    "cell_of",
    "first_ready",
    "make_ready",
    "may_send",
    "next_packet",
    "set_timer",
    "take_out",
    "to_lost",
]

# Rules of connections: what is done about loss.
GO_BACK_N, SACK, SELECTIVE_REPEAT, BEST_EFFORT = 0, 1, 2, 3

# States of cells.
NOTHING, OUT, SACKED, LOST = 0, 1, 2, 3

_PROBE_FLOOR = round(PROBE_FLOOR_S * SECOND)


@inlined
def may_send(tables: PacketTables, row: int) -> bool:
    """Tell whether a connection has something to send, and its windows allow it."""
    connection = tables.connections[row]
    is_new = connection.next < min(connection.end, connection.acknowledged + connection.room)
    if connection.cells == 0:
        return is_new and connection.next - connection.acknowledged + 1 <= connection.window
    most = connection.reduced if connection.reduced > 0.0 else connection.window
    return (is_new or connection.first_lost != NOWHERE) and connection.in_flight + 1 <= most


@called
def make_ready(tables: PacketTables, row: int, time: int) -> None:
    """Let a connection that may send take its turn at its port."""
    connection = tables.connections[row]
    if connection.is_ready or connection.is_waiting_for_pace:
        return
    if not may_send(tables, row):
        _note_limit(tables, row)
        return
    if connection.allowed_at > max(time, tables.clock[0].now):
        connection.is_waiting_for_pace = True
        schedule(tables, connection.allowed_at, PACE, row)
        return
    # A port that catches up sends what was sent before now: by then its pace may have let the next one go, too.
    _line_up(tables, row, max(time, connection.allowed_at))


@called
def _line_up(tables: PacketTables, row: int, since: int) -> None:
    """Let a connection have its turn behind all that are ready at that time."""
    connection = tables.connections[row]
    queue = tables.queues[connection.port * CLASSES + connection.traffic_class]
    connection.is_ready = True
    connection.ready_since = since
    before, following = queue.last_ready, NOWHERE
    if before != NOWHERE and tables.connections[before].ready_since > since:
        before, following = NOWHERE, queue.first_ready
        while tables.connections[following].ready_since <= since:
            before, following = following, tables.connections[following].next_ready
    connection.next_ready = following
    if before == NOWHERE:
        queue.first_ready = row
    else:
        tables.connections[before].next_ready = row
    if following == NOWHERE:
        queue.last_ready = row


@inlined
def _note_limit(tables: PacketTables, row: int) -> None:
    """Take note if it is the congestion window that keeps a connection from sending (Linux: tcp_cwnd_validate)."""
    connection = tables.connections[row]
    under_way = connection.in_flight if connection.cells > 0 else connection.next - connection.acknowledged
    has_some = connection.next < connection.end or connection.first_lost != NOWHERE
    if has_some and under_way + 1 > connection.window:
        connection.limited_until = connection.next


@called
def first_ready(tables: PacketTables, queue_row: int) -> int:
    """Return the connection whose turn it is, or NOWHERE; those that may not send any more have no turn."""
    queue = tables.queues[queue_row]
    while queue.first_ready != NOWHERE and not may_send(tables, queue.first_ready):
        _end_turn(tables, queue_row)
    return queue.first_ready


@inlined
def _end_turn(tables: PacketTables, queue_row: int) -> None:
    queue = tables.queues[queue_row]
    connection = tables.connections[queue.first_ready]
    connection.is_ready = False
    queue.first_ready = connection.next_ready
    if queue.first_ready == NOWHERE:
        queue.last_ready = NOWHERE


@called
def next_packet(tables: PacketTables, queue_row: int, start: int) -> int:
    """Make the next packet of the connection whose turn it is, and let the others have theirs before its next."""
    connection_row = tables.queues[queue_row].first_ready
    _end_turn(tables, queue_row)
    connection = tables.connections[connection_row]
    number = connection.next
    if connection.first_lost != NOWHERE:
        number = connection.first_lost
    else:
        connection.next += 1
    row = new_packet(tables)
    packet = tables.packets[row]
    packet.connection = connection_row
    packet.kind = 0
    packet.number = number
    packet.bytes = connection.full_bytes
    packet.traffic_class = connection.traffic_class
    packet.path = connection.path
    packet.hops = connection.hops
    packet.complete_at = 0
    packet.sent_at = start
    packet.may_be_marked = connection.may_be_marked
    _find_message(tables, connection_row, number)
    message = tables.messages[connection.sending]
    if number == message.end - 1:
        packet.bytes = message.last_bytes
        packet.is_last = number >= connection.highest
        packet.value = connection.sending
    if connection.routes > 1:
        connection.route = (connection.route + 1) % connection.routes
        route = tables.routes[connection.first_route + connection.route]
        packet.path = route.path
        packet.hops = route.hops
    if connection.cells > 0:
        _account(tables, connection_row, number, start)
    if number < connection.highest:
        connection.retransmitted += 1
    connection.highest = max(connection.highest, number + 1)
    connection.sent += 1
    connection.sent_since += 1
    connection.sent_at = start
    connection.sent_bytes += packet.bytes
    controls.on_bytes(tables, connection_row, start)
    pace = connection.pace
    if connection.limit > 0 and (pace <= 0.0 or connection.limit < pace):
        pace = float(connection.limit)
    if pace > 0.0:
        connection.allowed_at = max(connection.allowed_at, start) + int(packet.bytes * SECOND / pace)
    if connection.rules == GO_BACK_N or connection.rules == BEST_EFFORT:
        if connection.timeout_at == NEVER:
            set_timer(tables, connection_row, start + connection.timeout)
    elif connection.timeout_at == NEVER or _may_probe(connection) or connection.in_flight == connection.few + 1:
        arm(tables, connection_row, start)
    make_ready(tables, connection_row, start)
    return row


@inlined
def _may_probe(connection: Any) -> bool:
    """Tell whether the tail is to be probed: that was not done, nothing is being made good, a round trip is known."""
    is_fine = connection.acknowledged >= connection.recovery_end and connection.round_trip > 0
    return connection.probes and not connection.has_probed and is_fine


@called
def arm(tables: PacketTables, row: int, now: int) -> None:
    """Set the timer anew, as packets are sent or acknowledged: a probe of the tail, or else a timeout.

    RFC 8985, section 7.2, with the 2 ms more of Linux (TCP_TIMEOUT_MIN_US).
    """
    connection = tables.connections[row]
    wait = connection.timeout
    if connection.rules == SELECTIVE_REPEAT and connection.in_flight <= connection.few:
        wait = connection.few_timeout
    connection.probe_at = NEVER
    if _may_probe(connection):
        probe = 2 * connection.round_trip + _PROBE_FLOOR
        if connection.in_flight == 1:
            probe += connection.acknowledge_delay
        if probe < wait:
            wait = probe
            connection.probe_at = now + probe
    set_timer(tables, row, now + wait)


@inlined
def _find_message(tables: PacketTables, row: int, number: int) -> None:
    """Have `sending` point to the message that a packet belongs to."""
    connection = tables.connections[row]
    if connection.sending == NOWHERE or number < tables.messages[connection.sending].first:
        connection.sending = connection.first_message
    while number >= tables.messages[connection.sending].end:
        connection.sending = tables.messages[connection.sending].next


@inlined
def cell_of(tables: PacketTables, row: int, number: int) -> int:
    """Return the row of the cell of a packet."""
    connection = tables.connections[row]
    return connection.first_cell + (number & (connection.cells - 1))


@called
def _account(tables: PacketTables, row: int, number: int, time: int) -> None:
    """Note that a packet is sent: it is the last of those under way."""
    connection = tables.connections[row]
    cell = tables.cells[cell_of(tables, row, number)]
    is_again = number < connection.highest
    if is_again:
        take_out(tables, row, number)
    else:
        cell.skip = 0
    cell.again = is_again
    cell.state = OUT
    cell.sent_at = time
    _put_in(tables, row, number)


@called
def _put_in(tables: PacketTables, row: int, number: int) -> None:
    """Put a packet at the end of the list that its state says."""
    connection = tables.connections[row]
    cell = tables.cells[cell_of(tables, row, number)]
    is_out = cell.state == OUT
    last = connection.last_out if is_out else connection.last_lost
    cell.next = NOWHERE
    cell.previous = last
    if last != NOWHERE:
        tables.cells[cell_of(tables, row, last)].next = number
    elif is_out:
        connection.first_out = number
    else:
        connection.first_lost = number
    if is_out:
        connection.last_out = number
        connection.in_flight += 1
    else:
        connection.last_lost = number


@called
def take_out(tables: PacketTables, row: int, number: int) -> None:
    """Take a packet out of the list that it is in."""
    connection = tables.connections[row]
    cell = tables.cells[cell_of(tables, row, number)]
    is_out = cell.state == OUT
    if cell.previous != NOWHERE:
        tables.cells[cell_of(tables, row, cell.previous)].next = cell.next
    elif is_out:
        connection.first_out = cell.next
    else:
        connection.first_lost = cell.next
    if cell.next != NOWHERE:
        tables.cells[cell_of(tables, row, cell.next)].previous = cell.previous
    elif is_out:
        connection.last_out = cell.previous
    else:
        connection.last_lost = cell.previous
    if is_out:
        connection.in_flight -= 1


@called
def to_lost(tables: PacketTables, row: int, number: int) -> None:
    """Have a packet under way sent again, after those that already are to be."""
    take_out(tables, row, number)
    tables.cells[cell_of(tables, row, number)].state = LOST
    _put_in(tables, row, number)


@inlined
def set_timer(tables: PacketTables, row: int, time: int) -> None:
    """Have a connection looked at, at a time; an earlier look finds that it is not yet time."""
    connection = tables.connections[row]
    connection.timeout_at = time
    if time < connection.timeout_event_at:
        connection.timeout_event_at = time
        schedule(tables, time, TIMEOUT, row)
