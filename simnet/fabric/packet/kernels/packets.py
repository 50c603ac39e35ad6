"""Events, packets that come and go, and the lists that they stand in; compiled."""

from __future__ import annotations

import math

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.heap import insert
from simnet.fabric.packet.kernels.records import CLASSES, LEVELS, NOWHERE
from simnet.fabric.packet.kernels.tables import PacketTables

__all__ = [
    "ACKNOWLEDGE",
    "ARRIVAL",
    "CONTROL",
    "DEPARTURE",
    "NOTIFY",
    "PACE",
    "SENT",
    "TIMEOUT",
    "append",
    "count_held",
    "first_waiting",
    "give_back",
    "give_back_packet",
    "give_back_release",
    "new_packet",
    "new_release",
    "schedule",
    "take_first",
]

# Kinds of events, in the three lowest bits of what is in the heap; above them a packet, a port, a message or a
# connection.
ARRIVAL, PACE, DEPARTURE, SENT, TIMEOUT, ACKNOWLEDGE, CONTROL, NOTIFY = 0, 1, 2, 3, 4, 5, 6, 7


@inlined
def schedule(tables: PacketTables, time: int, kind: int, row: int) -> None:
    """Let something happen at a time, after what happens then already."""
    clock = tables.clock[0]
    clock.sequence += 1
    clock.events = insert(tables.events, clock.events, time, clock.sequence, row << 3 | kind)


@inlined
def new_packet(tables: PacketTables) -> int:
    """Take a packet that is free; there is one."""
    clock = tables.clock[0]
    row = clock.first_free_packet
    clock.first_free_packet = tables.packets[row].next
    clock.free_packets -= 1
    packet = tables.packets[row]
    packet.hop = 0
    packet.is_marked = False
    packet.is_lost = False
    packet.is_last = False
    packet.ingress = NOWHERE
    packet.next = NOWHERE
    return row


@inlined
def give_back_packet(tables: PacketTables, row: int) -> None:
    """Be done with a packet."""
    clock = tables.clock[0]
    tables.packets[row].next = clock.first_free_packet
    clock.first_free_packet = row
    clock.free_packets += 1


@kernel
def give_back(tables: PacketTables, row: int) -> None:
    """Be done with a packet that somebody was told of."""
    give_back_packet(tables, row)


@inlined
def new_release(tables: PacketTables, finish: int, size: int, ingress: int) -> int:
    """Note that bytes are free from a time on; there is room for the note."""
    clock = tables.clock[0]
    row = clock.first_free_release
    release = tables.releases[row]
    clock.first_free_release = release.next
    clock.free_releases -= 1
    release.finish = finish
    release.bytes = size
    release.ingress = ingress
    release.next = NOWHERE
    return row


@inlined
def give_back_release(tables: PacketTables, row: int) -> None:
    """Be done with such a note."""
    clock = tables.clock[0]
    tables.releases[row].next = clock.first_free_release
    clock.first_free_release = row
    clock.free_releases += 1


@inlined
def count_held(tables: PacketTables, port_row: int, time: int) -> None:
    """Account for the bytes held up to a time: their integral, and for how long there were so many."""
    port = tables.ports[port_row]
    if time > port.counted_at:
        passed = float(time - port.counted_at)
        held = port.held
        port.byte_time += float(held) * passed
        # Two levels for each power of two: 1, 2, 3, 4 - 5, 6 - 7, 8 - 11, ...
        level = 0
        if held > 0:
            fraction, power = math.frexp(float(held))
            level = 2 * power - (1 if fraction < 0.75 else 0)
        tables.levels[port_row * LEVELS + min(level, LEVELS - 1)].time += passed
        port.counted_at = time


@inlined
def _take_turn(tables: PacketTables, queue_row: int, lane_row: int) -> None:
    """Let an input that has packets have its turn after the others."""
    queue = tables.queues[queue_row]
    tables.lanes[lane_row].next = NOWHERE
    if queue.last_lane == NOWHERE:
        queue.first_lane = lane_row
    else:
        tables.lanes[queue.last_lane].next = lane_row
    queue.last_lane = lane_row


@inlined
def append(tables: PacketTables, port_row: int, row: int) -> None:
    """Put a packet at the end of its queue, or of those that came by the same port."""
    packet = tables.packets[row]
    port = tables.ports[port_row]
    node = tables.nodes[port.source]
    queue = tables.queues[port_row * CLASSES + packet.traffic_class]
    packet.next = NOWHERE
    if node.first_lane != NOWHERE and packet.ingress != NOWHERE:
        entry = tables.ports[packet.ingress // CLASSES].entry
        number = ((port.number * node.inputs) + entry) * CLASSES + packet.traffic_class
        lane_row = node.first_lane + number
        lane = tables.lanes[lane_row]
        if lane.tail == NOWHERE:
            lane.head = row
            _take_turn(tables, port_row * CLASSES + packet.traffic_class, lane_row)
        else:
            tables.packets[lane.tail].next = row
        lane.tail = row
    else:
        if queue.tail == NOWHERE:
            queue.head = row
        else:
            tables.packets[queue.tail].next = row
        queue.tail = row
    queue.bytes += packet.bytes
    port.waiting += 1
    port.held += packet.bytes
    port.highest = max(port.highest, port.held)


@inlined
def first_waiting(tables: PacketTables, queue_row: int) -> int:
    """Return the packet of a queue that is next, or NOWHERE."""
    queue = tables.queues[queue_row]
    if queue.first_lane != NOWHERE:
        return tables.lanes[queue.first_lane].head
    return queue.head


@inlined
def take_first(tables: PacketTables, queue_row: int) -> None:
    """Take the packet that is next out of its queue; the other inputs have their turn before its input has another."""
    queue = tables.queues[queue_row]
    if queue.first_lane != NOWHERE:
        lane_row = queue.first_lane
        lane = tables.lanes[lane_row]
        row = lane.head
        lane.head = tables.packets[row].next
        queue.first_lane = lane.next
        if queue.first_lane == NOWHERE:
            queue.last_lane = NOWHERE
        if lane.head == NOWHERE:
            lane.tail = NOWHERE
        else:
            _take_turn(tables, queue_row, lane_row)
    else:
        row = queue.head
        queue.head = tables.packets[row].next
        if queue.head == NOWHERE:
            queue.tail = NOWHERE
    queue.bytes -= tables.packets[row].bytes
    tables.ports[queue_row // CLASSES].waiting -= 1
