"""Connections that receive: what is expected, what is there already, and what is acknowledged when; compiled."""

from __future__ import annotations

from typing import Any

from simnet.fabric.kernels.compiled import called, inlined
from simnet.fabric.packet.kernels.packets import ACKNOWLEDGE, NOTIFY, new_packet, schedule
from simnet.fabric.packet.kernels.ports import enqueue
from simnet.fabric.packet.kernels.records import NEVER, NOWHERE
from simnet.fabric.packet.kernels.senders import BEST_EFFORT, GO_BACK_N, cell_of
from simnet.fabric.packet.kernels.tables import PacketTables

__all__ = [
    "ACKNOWLEDGEMENT",
    "ARRIVED",
    "DATA",
    "NOTIFICATION",
    "NOT_EXPECTED",
    "TAKEN",
    "acknowledge",
    "receive",
    "reply",
]

# Kinds of packets that the kernel understands; transports have others of their own.
DATA, ACKNOWLEDGEMENT, NOTIFICATION = 0, 1, 2

# What `receive` makes of a packet: nothing, a message has arrived, or its transport has to be told.
TAKEN, ARRIVED, NOT_EXPECTED = 0, 1, 2

_QUICK = 16
"""Linux TCP_MAX_QUICKACKS."""


@called
def reply(tables: PacketTables, row: int, kind: int, number: int, value: int, sent_at: int) -> int:
    """Send something from the receiver of a connection to its sender; return the packet."""
    connection = tables.connections[row]
    packet_row = new_packet(tables)
    packet = tables.packets[packet_row]
    packet.connection = row
    packet.kind = kind
    packet.number = number
    packet.value = value
    packet.bytes = connection.acknowledgement_bytes
    packet.traffic_class = connection.back_class
    packet.path = connection.back_path
    packet.hops = connection.back_hops
    packet.sent_at = sent_at
    packet.may_be_marked = False
    packet.first_a = packet.first_b = packet.first_c = NOWHERE
    if kind == ACKNOWLEDGEMENT and connection.block_a != NOWHERE:
        packet.first_a = connection.block_a
        packet.end_a = tables.cells[cell_of(tables, row, connection.block_a)].end
        if connection.block_b != NOWHERE:
            packet.first_b = connection.block_b
            packet.end_b = tables.cells[cell_of(tables, row, connection.block_b)].end
        if connection.block_c != NOWHERE:
            packet.first_c = connection.block_c
            packet.end_c = tables.cells[cell_of(tables, row, connection.block_c)].end
    enqueue(tables, tables.steps[connection.back_path].port, packet_row, tables.clock[0].now)
    return packet_row


@called
def acknowledge(tables: PacketTables, row: int) -> None:
    """Acknowledge all that has come."""
    connection = tables.connections[row]
    connection.acknowledge_at = NEVER
    connection.unacknowledged = 0
    marks, connection.marks = connection.marks, 0
    reply(tables, row, ACKNOWLEDGEMENT, connection.expected, marks, connection.echo)


@inlined
def receive(tables: PacketTables, packet_row: int) -> int:
    """Take a packet in, and acknowledge it; tell what else has to be done."""
    packet = tables.packets[packet_row]
    row = packet.connection
    connection = tables.connections[row]
    now = tables.clock[0].now
    if packet.is_marked and connection.notifies:
        _notify(tables, row)
    if connection.every == 0:
        return NOT_EXPECTED
    if connection.rules == BEST_EFFORT:
        return _receive_any(tables, packet_row)
    if connection.rules == GO_BACK_N and packet.number > connection.expected:
        # What follows until it comes tells nothing new.
        is_new = connection.missed != connection.expected
        connection.missed = connection.expected
        if is_new and connection.notifies_loss:
            _notify(tables, row)
        return NOT_EXPECTED if is_new else TAKEN
    # A receiver of DCTCP tells apart what was marked and what was not (RFC 8257, section 3.2).
    if packet.is_marked != connection.was_marked:
        connection.was_marked = packet.is_marked
        if connection.unacknowledged > 0:
            acknowledge(tables, row)
    if packet.is_marked:
        connection.marks += 1
    if connection.unacknowledged == 0:
        connection.echo = packet.sent_at
    connection.unacknowledged += 1
    at_once = _is_quick(connection, now) or connection.unacknowledged >= connection.every
    if packet.number == connection.expected:
        at_once |= connection.block_a != NOWHERE
        _expect_next(tables, row)
    elif packet.number > connection.expected:
        _keep(tables, row, packet.number)
        at_once = True
    else:
        # Its acknowledgement was lost, or it was sent again for nothing.
        at_once |= connection.rules != GO_BACK_N or packet.number == connection.expected - 1
    is_over = connection.receiving != NOWHERE and connection.expected >= tables.messages[connection.receiving].end
    if at_once or is_over:
        acknowledge(tables, row)
    elif connection.acknowledge_delay > 0 and connection.acknowledge_at == NEVER:
        connection.acknowledge_at = now + connection.acknowledge_delay
        schedule(tables, connection.acknowledge_at, ACKNOWLEDGE, row)
    return ARRIVED if is_over else TAKEN


@called
def _notify(tables: PacketTables, row: int) -> None:
    """Report congestion to the sender, unless that was just done."""
    connection = tables.connections[row]
    now = tables.clock[0].now
    if now < connection.notified_at + connection.notify_interval:
        return
    connection.notified_at = now
    connection.notified += 1
    schedule(tables, now + connection.notify_delay, NOTIFY, row)


@inlined
def _is_quick(connection: Any, now: int) -> bool:
    """Tell whether a packet is acknowledged at once as one of the first, or of the first after a pause."""
    if connection.acknowledge_delay == 0:
        return False
    if now - connection.heard_at > connection.least_timeout:
        connection.quick = _QUICK
    connection.heard_at = now
    connection.quick = max(connection.quick - 1, 0)
    return connection.quick > 0


@called
def _expect_next(tables: PacketTables, row: int) -> None:
    """Go on to what is expected next: behind the packet that is there, and what was kept behind it."""
    connection = tables.connections[row]
    connection.expected += 1
    # There may be more than the three that are reported.
    if connection.cells == 0:
        return
    cell = tables.cells[cell_of(tables, row, connection.expected)]
    if not cell.has or cell.first != connection.expected:
        return
    first, end = connection.expected, cell.end
    for number in range(first, end):
        tables.cells[cell_of(tables, row, number)].has = False
    connection.expected = end
    _forget_blocks(tables, row, first, end)


@inlined
def _forget_blocks(tables: PacketTables, row: int, first: int, end: int) -> None:
    """Do not report any more what begins in an interval of numbers."""
    connection = tables.connections[row]
    if first <= connection.block_c < end:
        connection.block_c = NOWHERE
    if first <= connection.block_b < end:
        connection.block_b, connection.block_c = connection.block_c, NOWHERE
    if first <= connection.block_a < end:
        connection.block_a, connection.block_b = connection.block_b, connection.block_c
        connection.block_c = NOWHERE


@called
def _keep(tables: PacketTables, row: int, number: int) -> None:
    """Keep a packet that is beyond what is expected, together with its neighbours, and report these first."""
    connection = tables.connections[row]
    cell = tables.cells[cell_of(tables, row, number)]
    first, end = number, number + 1
    if cell.has:
        first, end = cell.first, cell.end
    else:
        before = tables.cells[cell_of(tables, row, number - 1)]
        if number - 1 > connection.expected and before.has:
            first = before.first
        after = tables.cells[cell_of(tables, row, number + 1)]
        if after.has and after.first == number + 1:
            end = after.end
        cell.has = True
        cell.first = first
        cell.end = end
        tables.cells[cell_of(tables, row, first)].end = end
        tables.cells[cell_of(tables, row, end - 1)].first = first
        _forget_blocks(tables, row, first, end)
        connection.block_c, connection.block_b = connection.block_b, connection.block_a
        connection.block_a = first


@called
def _receive_any(tables: PacketTables, packet_row: int) -> int:
    """Count a packet in for its message, whatever else is missing."""
    packet = tables.packets[packet_row]
    connection = tables.connections[packet.connection]
    message_row = connection.receiving
    while message_row != NOWHERE and packet.number >= tables.messages[message_row].end:
        message_row = tables.messages[message_row].next
    if message_row == NOWHERE or packet.number < tables.messages[message_row].first:
        return TAKEN
    cell = tables.cells[cell_of(tables, packet.connection, packet.number)]
    message = tables.messages[message_row]
    message.heard_at = tables.clock[0].now
    if message.is_over or cell.has:
        return TAKEN
    cell.has = True
    message.received += 1
    message.received_bytes += packet.bytes
    packet.value = message_row
    is_told = message.received == message.end - message.first or packet.number == message.end - 1
    if is_told or message.received == message.wanted:
        return NOT_EXPECTED
    return TAKEN
