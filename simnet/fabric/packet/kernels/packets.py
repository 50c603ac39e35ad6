"""Events, packets that come and go, and the lists that they stand in; compiled."""

from __future__ import annotations

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.heap import insert
from simnet.fabric.packet.kernels.tables import CLASSES, NOWHERE, PacketTables

__all__ = [
    "ARRIVAL",
    "DEPARTURE",
    "PACE",
    "SENT",
    "append",
    "count_held",
    "give_back",
    "give_back_packet",
    "make_ready",
    "new_packet",
    "schedule",
]

# Kinds of events, in the three lowest bits of what is in the heap; above them a packet, a flow or a port.
ARRIVAL, PACE, DEPARTURE, SENT = 0, 1, 2, 3


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
def make_ready(tables: PacketTables, flow_row: int, time: int) -> None:
    """Let a flow that may send take its turn at its port."""
    flow = tables.flows[flow_row]
    if flow.is_ready or flow.is_waiting_for_pace or flow.next >= flow.end:
        return
    if flow.allowed_at > time:
        flow.is_waiting_for_pace = True
        schedule(tables, flow.allowed_at, PACE, flow_row)
        return
    flow.is_ready = True
    flow.ready_since = time
    flow.next_ready = NOWHERE
    queue = tables.queues[flow.port * CLASSES + flow.traffic_class]
    if queue.last_ready == NOWHERE:
        queue.first_ready = flow_row
    else:
        tables.flows[queue.last_ready].next_ready = flow_row
    queue.last_ready = flow_row


@inlined
def count_held(tables: PacketTables, port_row: int, time: int) -> None:
    """Add to the integral of the bytes held, up to a time."""
    port = tables.ports[port_row]
    if time > port.counted_at:
        port.byte_time += float(port.held) * float(time - port.counted_at)
        port.counted_at = time


@inlined
def append(tables: PacketTables, port_row: int, row: int) -> None:
    """Put a packet at the end of its queue."""
    packet = tables.packets[row]
    queue = tables.queues[port_row * CLASSES + packet.traffic_class]
    packet.next = NOWHERE
    if queue.tail == NOWHERE:
        queue.head = row
    else:
        tables.packets[queue.tail].next = row
    queue.tail = row
    queue.bytes += packet.bytes
    tables.ports[port_row].waiting += 1
    tables.ports[port_row].held += packet.bytes
    tables.ports[port_row].highest = max(tables.ports[port_row].highest, tables.ports[port_row].held)
