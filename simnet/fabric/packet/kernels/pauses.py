"""What came by a port and is still held, and the frames that pause and resume its other end (PFC); compiled.

IEEE 802.1Qbb. A node counts what came by each port and class. Above a threshold it pauses the other end, and has
headroom for what comes all the same; below it, it lets the other end go on.

The other end must be told so at the very instant at which enough has left. So where a node has paused a port, it has to
be fixed in time when packets leave: departures are events as long as more packets wait, and so is the departure that
makes enough room.
"""

from __future__ import annotations

from simnet.fabric.kernels.compiled import called, inlined
from simnet.fabric.packet.kernels.packets import ARRIVAL, DEPARTURE, new_packet, schedule
from simnet.fabric.packet.kernels.records import CLASSES, NOWHERE
from simnet.fabric.packet.kernels.tables import PacketTables

__all__ = ["PAUSE", "RESUME", "begin_pause", "has_to_resume", "pause_at", "release_paused"]

# Kinds of packets that ports themselves send and understand; those of transports are 0 and more.
PAUSE, RESUME = -1, -2

_PAUSE_BYTES = 84  # a frame of the least size, with preamble and gap
_RESUME_GAP = 3072  # bytes below the threshold at which a shared buffer resumes


@called
def release_paused(tables: PacketTables, node_row: int, ingress_row: int, size: int, time: int) -> None:
    """Take what has left a node out of what came by one port, and let that go on if there is room."""
    ingress = tables.ingresses[ingress_row]
    node = tables.nodes[node_row]
    ingress.leaving -= size
    from_headroom = min(ingress.headroom, size)
    ingress.headroom -= from_headroom
    ingress.bytes -= size - from_headroom
    if node.shares_buffer:
        node.shared -= size - from_headroom
    if ingress.has_paused and ingress.headroom == 0 and ingress.bytes <= _resume_at(tables, node_row):
        ingress.has_paused = False
        node.paused -= 1
        _tell_neighbour(tables, ingress_row, RESUME, time)


@inlined
def pause_at(tables: PacketTables, node_row: int) -> int:
    """Bytes held of one ingress at which a node pauses; of a shared buffer a part of what is free."""
    node = tables.nodes[node_row]
    if node.shares_buffer:
        return max(node.buffer - node.shared, 0) >> node.threshold_shift
    return node.pause_at


@inlined
def _resume_at(tables: PacketTables, node_row: int) -> int:
    node = tables.nodes[node_row]
    if node.shares_buffer:
        return max(pause_at(tables, node_row) - _RESUME_GAP, 0)
    return node.resume_at


@called
def _tell_neighbour(tables: PacketTables, ingress_row: int, kind: int, time: int) -> None:
    """Send the neighbour that a port comes from a frame that pauses or resumes a class of it."""
    port_row, traffic_class = ingress_row // CLASSES, ingress_row % CLASSES
    back = tables.ports[port_row].reverse
    row = new_packet(tables)
    packet = tables.packets[row]
    packet.connection = NOWHERE
    packet.kind = kind
    packet.number = port_row * CLASSES + traffic_class
    packet.bytes = _PAUSE_BYTES
    packet.traffic_class = 0
    packet.path = NOWHERE
    packet.hops = 1
    packet.port = back
    packet.sent_at = time
    packet.may_be_marked = False
    schedule(tables, max(time, tables.clock[0].now), ARRIVAL, row)


@inlined
def has_to_resume(tables: PacketTables, node_row: int, ingress_row: int) -> bool:
    """Tell whether a port that is paused may go on when what is fixed to leave has left."""
    ingress = tables.ingresses[ingress_row]
    held = ingress.bytes + ingress.headroom - ingress.leaving
    return ingress.has_paused and held <= _resume_at(tables, node_row)


@called
def begin_pause(tables: PacketTables, node_row: int, ingress_row: int) -> None:
    """Pause the neighbour, and see to it that it is resumed in time."""
    tables.ingresses[ingress_row].has_paused = True
    node = tables.nodes[node_row]
    node.paused += 1
    now = tables.clock[0].now
    for port_row in range(node.first_port, node.first_port + node.ports):
        port = tables.ports[port_row]
        if node.paused == 1 and port.waiting > 0:
            schedule(tables, max(port.free_at, now), DEPARTURE, port_row)
        if has_to_resume(tables, node_row, ingress_row):
            row = port.first_release
            while row != NOWHERE:
                schedule(tables, max(tables.releases[row].finish, now), DEPARTURE, port_row)
                row = tables.releases[row].next
    _tell_neighbour(tables, ingress_row, PAUSE, now)
