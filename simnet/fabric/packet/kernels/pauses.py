"""What came by a port and is still held, and the frames that pause and resume its other end (PFC); compiled.

IEEE 802.1Qbb. A node counts what came by each port and class. Above a threshold it pauses the other end, and has
headroom for what comes all the same; below it, it lets the other end go on.
"""

from __future__ import annotations

from simnet.fabric.kernels.compiled import inlined
from simnet.fabric.packet.kernels.packets import DEPARTURE, append, new_packet, schedule
from simnet.fabric.packet.kernels.tables import CLASSES, NOWHERE, PacketTables

__all__ = ["PAUSE", "RESUME", "begin_pause", "pause_at", "release_ingress"]

# Kinds of packets that ports themselves send and understand; those of transports are 0 and more.
PAUSE, RESUME = -1, -2

_PAUSE_BYTES = 84  # a frame of the least size, with preamble and gap
_RESUME_GAP = 3072  # bytes below the threshold at which a shared buffer resumes


@inlined
def release_ingress(tables: PacketTables, node_row: int, ingress_row: int, size: int, time: int) -> None:
    """Take what has left a node out of what came by one port, and let that go on if there is room."""
    ingress = tables.ingresses[ingress_row]
    node = tables.nodes[node_row]
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


@inlined
def _tell_neighbour(tables: PacketTables, ingress_row: int, kind: int, time: int) -> None:
    """Send the neighbour that a port comes from a frame that pauses or resumes a class of it."""
    port_row, traffic_class = ingress_row // CLASSES, ingress_row % CLASSES
    back = tables.ports[port_row].reverse
    row = new_packet(tables)
    packet = tables.packets[row]
    packet.flow = NOWHERE
    packet.kind = kind
    packet.number = port_row * CLASSES + traffic_class
    packet.bytes = _PAUSE_BYTES
    packet.traffic_class = 0
    packet.path = NOWHERE
    packet.hops = 1
    packet.port = back
    packet.arrived_at = time
    packet.may_be_marked = False
    append(tables, back, row)
    schedule(tables, time, DEPARTURE, back)


@inlined
def begin_pause(tables: PacketTables, node_row: int, ingress_row: int, now: int) -> None:
    """Pause the neighbour; from now on each departure is an event, as it must be resumed in time."""
    ingress = tables.ingresses[ingress_row]
    node = tables.nodes[node_row]
    ingress.has_paused = True
    node.paused += 1
    if node.paused == 1:
        for port_row in range(node.first_port, node.first_port + node.ports):
            row = tables.ports[port_row].first_release
            while row != NOWHERE:
                if tables.releases[row].finish > now:
                    schedule(tables, tables.releases[row].finish, DEPARTURE, port_row)
                row = tables.releases[row].next
    _tell_neighbour(tables, ingress_row, PAUSE, now)
