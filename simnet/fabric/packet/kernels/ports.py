"""Ports: queues, who goes next, marking, dropping and pausing; compiled.

One event a packet and hop. When a packet leaves is decided late, but with what is known at that very instant: whoever
looks at a port at a time first lets it catch up. The event of a packet's arrival at the far end comes after the instant
at which the next one starts, so it is early enough to decide that then. Where a node has paused a neighbour, it must
resume it at the instant at which bytes leave; there each departure is an event as well.
"""

from __future__ import annotations

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.packet.kernels.packets import (
    ARRIVAL,
    DEPARTURE,
    SENT,
    append,
    count_held,
    give_back_packet,
    make_ready,
    new_packet,
    schedule,
)
from simnet.fabric.packet.kernels.pauses import begin_pause, pause_at, release_ingress
from simnet.fabric.packet.kernels.tables import CLASSES, NOWHERE, PacketTables

__all__ = ["catch_up", "enqueue", "set_paused"]

_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407
_LOW_BITS = (1 << 63) - 1

_SECOND = 1_000_000_000_000  # ps
_NEVER = 1 << 62


@inlined
def _service_time(tables: PacketTables, port_row: int, size: int) -> int:
    """How long a packet takes to leave [ps]; what is rounded away is made up for by later ones."""
    port = tables.ports[port_row]
    work = size * _SECOND + port.carry
    time = work // port.bytes_per_s
    port.carry = work - time * port.bytes_per_s
    return time


@inlined
def _random(tables: PacketTables, port_row: int) -> float:
    """Draw a number from 0 to 1: a linear congruential generator modulo 2^63 (D. Knuth, MMIX), its upper 48 bits."""
    port = tables.ports[port_row]
    state = int(port.random)
    state = (state * _MULTIPLIER + _INCREMENT) & _LOW_BITS
    port.random = state
    return float(state >> 15) / 281474976710656.0


@inlined
def _settle(tables: PacketTables, port_row: int, now: int) -> None:
    """Take note of the packets whose last bit has left."""
    port = tables.ports[port_row]
    clock = tables.clock[0]
    row = port.first_release
    while row != NOWHERE and tables.releases[row].finish <= now:
        release = tables.releases[row]
        count_held(tables, port_row, release.finish)
        port.held -= release.bytes
        if release.ingress != NOWHERE:
            release_ingress(tables, port.source, release.ingress, release.bytes, release.finish)
        port.first_release = release.next
        release.next = clock.first_free_release
        clock.first_free_release = row
        clock.free_releases += 1
        row = port.first_release
    if row == NOWHERE:
        port.last_release = NOWHERE


@kernel
def catch_up(tables: PacketTables, port_row: int, now: int) -> None:
    """Fix when packets leave, for all that start until now."""
    port = tables.ports[port_row]
    while port.free_at <= now:
        best, start = NOWHERE, _NEVER
        for number in range(CLASSES):
            queue = tables.queues[port_row * CLASSES + number]
            if queue.is_paused:
                continue
            since = _NEVER
            if queue.head != NOWHERE:
                since = tables.packets[queue.head].arrived_at
            elif queue.first_ready != NOWHERE:
                since = tables.flows[queue.first_ready].ready_since
            if since == _NEVER:
                continue
            begin = max(since, queue.eligible_at, port.free_at)
            if begin < start:
                best, start = number, begin
        if best == NOWHERE or start > now:
            break
        _start(tables, port_row, best, start)
    _settle(tables, port_row, now)


@inlined
def _start(tables: PacketTables, port_row: int, traffic_class: int, start: int) -> None:
    """Let the next packet of a class leave."""
    _settle(tables, port_row, start)
    port = tables.ports[port_row]
    clock = tables.clock[0]
    queue = tables.queues[port_row * CLASSES + traffic_class]
    row = queue.head
    if row != NOWHERE:
        packet = tables.packets[row]
        queue.head = packet.next
        if queue.head == NOWHERE:
            queue.tail = NOWHERE
        queue.bytes -= packet.bytes
        port.waiting -= 1
        if port.marks_at_departure and packet.may_be_marked:
            _mark(tables, port_row, row, port.held - packet.bytes)
    else:
        row = _next_of_flow(tables, port_row, traffic_class, start)
    packet = tables.packets[row]
    finish = start + _service_time(tables, port_row, packet.bytes)
    port.busy += finish - start
    port.free_at = finish
    port.packets += 1
    port.bytes += packet.bytes
    release_row = clock.first_free_release
    clock.first_free_release = tables.releases[release_row].next
    clock.free_releases -= 1
    release = tables.releases[release_row]
    release.finish = finish
    release.bytes = packet.bytes
    release.ingress = packet.ingress
    release.next = NOWHERE
    if port.last_release == NOWHERE:
        port.first_release = release_row
    else:
        tables.releases[port.last_release].next = release_row
    port.last_release = release_row
    if port.loss > 0.0 and packet.flow != NOWHERE and _random(tables, port_row) < port.loss:
        packet.is_lost = True
        port.lost += 1
    packet.port = port_row
    if packet.hop == 0 and packet.kind == 0 and packet.flow != NOWHERE and _is_last(tables, row):
        schedule(tables, finish, SENT, packet.flow)
    schedule(tables, finish + port.delay, ARRIVAL, row)
    if tables.nodes[port.source].paused > 0:
        schedule(tables, finish, DEPARTURE, port_row)


@inlined
def _is_last(tables: PacketTables, row: int) -> bool:
    """Tell whether a packet is the last of its flow."""
    packet = tables.packets[row]
    return packet.number == tables.flows[packet.flow].packets - 1


@inlined
def _next_of_flow(tables: PacketTables, port_row: int, traffic_class: int, start: int) -> int:
    """Make the next packet of the flow whose turn it is, and let the others have theirs before its next."""
    queue = tables.queues[port_row * CLASSES + traffic_class]
    flow_row = queue.first_ready
    flow = tables.flows[flow_row]
    queue.first_ready = flow.next_ready
    if queue.first_ready == NOWHERE:
        queue.last_ready = NOWHERE
    flow.is_ready = False
    row = new_packet(tables)
    packet = tables.packets[row]
    packet.flow = flow_row
    packet.kind = 0
    packet.number = flow.next
    packet.bytes = flow.last_bytes if flow.next == flow.packets - 1 else flow.full_bytes
    packet.traffic_class = traffic_class
    packet.path = flow.path
    packet.hops = flow.hops
    packet.sent_at = start
    packet.may_be_marked = flow.may_be_marked
    flow.next += 1
    flow.sent += 1
    flow.sent_bytes += packet.bytes
    port = tables.ports[port_row]
    count_held(tables, port_row, start)
    port.held += packet.bytes
    if flow.pace > 0:
        flow.allowed_at = max(flow.allowed_at, start) + packet.bytes * _SECOND // flow.pace
    make_ready(tables, flow_row, start)
    return row


@inlined
def _mark(tables: PacketTables, port_row: int, row: int, held: int) -> None:
    """Mark a packet that finds so many bytes before it, at random between the two thresholds."""
    port = tables.ports[port_row]
    if held <= port.mark_from:
        return
    if held <= port.mark_all:
        probability = port.most_marked * float(held - port.mark_from) / float(port.mark_all - port.mark_from)
        if _random(tables, port_row) >= probability:
            return
    tables.packets[row].is_marked = True
    port.marked += 1


@kernel
def enqueue(tables: PacketTables, port_row: int, row: int, now: int) -> bool:
    """Let a packet join the queue of a port; tell whether there was room for it."""
    catch_up(tables, port_row, now)
    port = tables.ports[port_row]
    packet = tables.packets[row]
    node = tables.nodes[port.source]
    is_lossless = packet.ingress != NOWHERE and (node.lossless >> packet.traffic_class) & 1 == 1
    if is_lossless:
        if not _admit_lossless(tables, port.source, packet.ingress, packet.bytes, now):
            port.dropped += 1
            give_back_packet(tables, row)
            return False
    elif port.held + packet.bytes > _room(tables, port_row):
        port.dropped += 1
        give_back_packet(tables, row)
        return False
    else:
        if node.shares_buffer and packet.ingress != NOWHERE:
            tables.ingresses[packet.ingress].bytes += packet.bytes
            node.shared += packet.bytes
        else:
            packet.ingress = NOWHERE
    if packet.may_be_marked and not port.marks_at_departure:
        _mark(tables, port_row, row, port.held)
    count_held(tables, port_row, now)
    packet.port = port_row
    packet.arrived_at = now
    append(tables, port_row, row)
    catch_up(tables, port_row, now)
    return True


@inlined
def _room(tables: PacketTables, port_row: int) -> int:
    """Most bytes that a port may hold."""
    port = tables.ports[port_row]
    node = tables.nodes[port.source]
    if node.shares_buffer:
        return max(node.buffer - node.shared, 0) >> node.threshold_shift
    return port.limit


@inlined
def _admit_lossless(tables: PacketTables, node_row: int, ingress_row: int, size: int, now: int) -> bool:
    """Count a packet where it came in, and pause the neighbour if that is too much; False if it does not even fit so.

    What is counted may be too high while departures are not yet taken note of, never too low.
    """
    ingress = tables.ingresses[ingress_row]
    node = tables.nodes[node_row]
    if ingress.bytes + size > pause_at(tables, node_row) or ingress.has_paused:
        for port_row in range(node.first_port, node.first_port + node.ports):
            catch_up(tables, port_row, now)
    above = ingress.bytes + size > pause_at(tables, node_row)
    if above or ingress.headroom > 0:
        if ingress.headroom + size > node.headroom:
            return False
        ingress.headroom += size
        if not ingress.has_paused:
            begin_pause(tables, node_row, ingress_row, now)
        return True
    ingress.bytes += size
    if node.shares_buffer:
        node.shared += size
    return True


@inlined
def set_paused(tables: PacketTables, queue_row: int, is_paused: bool, now: int) -> None:
    """Pause or resume a class of a port."""
    queue = tables.queues[queue_row]
    port_row = queue_row // CLASSES
    catch_up(tables, port_row, now)
    if is_paused and not queue.is_paused:
        queue.is_paused = True
        queue.paused_since = now
    elif not is_paused and queue.is_paused:
        queue.is_paused = False
        queue.eligible_at = now
        tables.ports[port_row].paused_time += now - queue.paused_since
        catch_up(tables, port_row, now)
