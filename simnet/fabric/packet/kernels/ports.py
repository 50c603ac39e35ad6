"""Ports: queues, who goes next, marking, dropping and pausing; compiled.

One event a packet and hop. When a packet leaves is decided late, but with what is known at that very instant: whoever
looks at a port at a time first lets it catch up. The event of a packet's arrival at the far end comes after the instant
at which the next one starts, so it is early enough to decide that then. Where a node has paused a neighbour, it must
resume it at the instant at which bytes leave; there each departure is an event as well.
"""

from __future__ import annotations

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.heap import insert
from simnet.fabric.packet.kernels.tables import CLASSES, NOWHERE, PacketTables

__all__ = [
    "ARRIVAL",
    "DEPARTURE",
    "PACE",
    "PAUSE",
    "RESUME",
    "SENT",
    "catch_up",
    "enqueue",
    "give_back",
    "give_back_packet",
    "make_ready",
    "new_packet",
    "schedule",
    "set_paused",
]

# Kinds of events, in the three lowest bits of what is in the heap; above them a packet, a flow or a port.
ARRIVAL, PACE, DEPARTURE, SENT = 0, 1, 2, 3

# Kinds of packets that ports themselves send and understand; those of transports are 0 and more.
PAUSE, RESUME = -1, -2

_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407
_LOW_BITS = (1 << 63) - 1

_SECOND = 1_000_000_000_000  # ps
_NEVER = 1 << 62
_PAUSE_BYTES = 84  # a frame of the least size, with preamble and gap
_RESUME_GAP = 3072  # bytes below the threshold at which a shared buffer resumes


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
def _count_held(tables: PacketTables, port_row: int, time: int) -> None:
    """Add to the integral of the bytes held, up to a time."""
    port = tables.ports[port_row]
    if time > port.counted_at:
        port.byte_time += float(port.held) * float(time - port.counted_at)
        port.counted_at = time


@inlined
def _settle(tables: PacketTables, port_row: int, now: int) -> None:
    """Take note of the packets whose last bit has left."""
    port = tables.ports[port_row]
    clock = tables.clock[0]
    row = port.first_release
    while row != NOWHERE and tables.releases[row].finish <= now:
        release = tables.releases[row]
        _count_held(tables, port_row, release.finish)
        port.held -= release.bytes
        if release.ingress != NOWHERE:
            _release_ingress(tables, port.source, release.ingress, release.bytes, release.finish)
        port.first_release = release.next
        release.next = clock.first_free_release
        clock.first_free_release = row
        clock.free_releases += 1
        row = port.first_release
    if row == NOWHERE:
        port.last_release = NOWHERE


@inlined
def _release_ingress(tables: PacketTables, node_row: int, ingress_row: int, size: int, time: int) -> None:
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
def _pause_at(tables: PacketTables, node_row: int) -> int:
    node = tables.nodes[node_row]
    if node.shares_buffer:
        return max(node.buffer - node.shared, 0) >> node.threshold_shift
    return node.pause_at


@inlined
def _resume_at(tables: PacketTables, node_row: int) -> int:
    node = tables.nodes[node_row]
    if node.shares_buffer:
        return max(_pause_at(tables, node_row) - _RESUME_GAP, 0)
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
    _append(tables, back, row)
    schedule(tables, time, DEPARTURE, back)


@inlined
def _append(tables: PacketTables, port_row: int, row: int) -> None:
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
    _count_held(tables, port_row, start)
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
    _count_held(tables, port_row, now)
    packet.port = port_row
    packet.arrived_at = now
    _append(tables, port_row, row)
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
    if ingress.bytes + size > _pause_at(tables, node_row) or ingress.has_paused:
        for port_row in range(node.first_port, node.first_port + node.ports):
            catch_up(tables, port_row, now)
    above = ingress.bytes + size > _pause_at(tables, node_row)
    if above or ingress.headroom > 0:
        if ingress.headroom + size > node.headroom:
            return False
        ingress.headroom += size
        if not ingress.has_paused:
            _begin_pause(tables, node_row, ingress_row, now)
        return True
    ingress.bytes += size
    if node.shares_buffer:
        node.shared += size
    return True


@inlined
def _begin_pause(tables: PacketTables, node_row: int, ingress_row: int, now: int) -> None:
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
