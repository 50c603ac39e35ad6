"""Ports: queues, who goes next, marking, dropping and pausing; compiled.

One event a packet and hop. When a packet leaves is decided late, but with what is known at that very instant: whoever
looks at a port at a time first lets it catch up. The event of a packet's arrival at the far end comes after the instant
at which the next one starts, so it is early enough to decide that then. Where a node has paused a neighbour, some
departures are events as well; see `simnet.fabric.packet.kernels.pauses`.
"""

from __future__ import annotations

from typing import Any

from simnet.fabric.kernels.compiled import called, inlined, kernel
from simnet.fabric.packet.kernels.credits import credit_since, return_credit, use_credit
from simnet.fabric.packet.kernels.packets import (
    ARRIVAL,
    DEPARTURE,
    SENT,
    append,
    count_held,
    first_waiting,
    give_back_packet,
    give_back_release,
    new_release,
    schedule,
    take_first,
)
from simnet.fabric.packet.kernels.pauses import begin_pause, has_to_resume, pause_at, release_paused
from simnet.fabric.packet.kernels.records import CLASSES, NEVER, NOWHERE, SECOND
from simnet.fabric.packet.kernels.senders import SACK, first_ready, next_packet
from simnet.fabric.packet.kernels.tables import PacketTables
from simnet.protocols.transport import ANSWER_JITTER

__all__ = ["catch_up", "enqueue", "look_at", "set_paused"]

_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407
_LOW_BITS = (1 << 63) - 1


@inlined
def _service_time(tables: PacketTables, port_row: int, size: int) -> int:
    """How long a packet takes to leave [ps]; what is rounded away is made up for by later ones."""
    port = tables.ports[port_row]
    work = size * SECOND + port.carry
    time = work // port.bytes_per_s
    port.carry = work - time * port.bytes_per_s
    return time


@inlined
def _random(row: Any) -> float:
    """Draw a number from 0 to 1: a linear congruential generator modulo 2^63 (D. Knuth, MMIX), its upper 48 bits."""
    state = int(row.random)
    state = (state * _MULTIPLIER + _INCREMENT) & _LOW_BITS
    row.random = state
    return float(state >> 15) / 281474976710656.0


@inlined
def _settle(tables: PacketTables, port_row: int, now: int) -> None:
    """Take note of the packets whose last bit has left."""
    row = tables.ports[port_row].first_release
    if row != NOWHERE and tables.releases[row].finish <= now:
        _settle_all(tables, port_row, now)


@called
def _settle_all(tables: PacketTables, port_row: int, now: int) -> None:
    port = tables.ports[port_row]
    row = port.first_release
    while row != NOWHERE and tables.releases[row].finish <= now:
        release = tables.releases[row]
        count_held(tables, port_row, release.finish)
        port.held -= release.bytes
        port.first_release = release.next
        if release.ingress != NOWHERE:
            release_paused(tables, port.source, release.ingress, release.bytes, release.finish)
        give_back_release(tables, row)
        row = port.first_release
    if row == NOWHERE:
        port.last_release = NOWHERE


@inlined
def catch_up(tables: PacketTables, port_row: int, now: int) -> None:
    """Fix when packets leave, for all that start until now."""
    port = tables.ports[port_row]
    if port.free_at <= now:
        _start_all(tables, port_row, now)
    else:
        _settle(tables, port_row, now)


@kernel
def look_at(tables: PacketTables, port_row: int, now: int) -> None:
    """Let a port catch up that somebody wants to look at."""
    catch_up(tables, port_row, now)


@called
def _start_all(tables: PacketTables, port_row: int, now: int) -> None:
    """Let one packet after the other leave, while they start until now.

    Of those that can begin first the class of the least level goes first, and of these the one that had least for its
    weight (start-time fair queueing; P. Goyal, H. Vin and H. Cheng 1996).
    """
    port = tables.ports[port_row]
    while port.free_at <= now:
        best, start, level, served = NOWHERE, NEVER, 0, 0.0
        for number in range(CLASSES):
            queue_row = port_row * CLASSES + number
            queue = tables.queues[queue_row]
            if queue.is_paused:
                continue
            row = first_waiting(tables, queue_row)
            if row != NOWHERE:
                since, size = tables.packets[row].arrived_at, tables.packets[row].bytes
            elif queue.first_ready != NOWHERE:
                ready = first_ready(tables, queue_row)
                if ready == NOWHERE:
                    continue
                since, size = tables.connections[ready].ready_since, tables.connections[ready].full_bytes
            else:
                continue
            begin = max(since, queue.eligible_at, port.free_at)
            if port.credit > 0 and number > 0:
                begin = max(begin, credit_since(tables, port_row, number, size, now))
            own = max(queue.served, port.served)
            if begin < start or (begin == start and (queue.level < level or (queue.level == level and own < served))):
                best, start, level, served = number, begin, queue.level, own
        if best == NOWHERE or start > now:
            break
        _start(tables, port_row, best, start, served)
    _settle(tables, port_row, now)


@inlined
def _start(tables: PacketTables, port_row: int, traffic_class: int, start: int, served: float) -> None:
    """Let the next packet of a class leave."""
    _settle(tables, port_row, start)
    port = tables.ports[port_row]
    queue_row = port_row * CLASSES + traffic_class
    queue = tables.queues[queue_row]
    row = first_waiting(tables, queue_row)
    if row != NOWHERE:
        take_first(tables, queue_row)
        packet = tables.packets[row]
        if port.marks_at_departure and packet.may_be_marked:
            _mark(tables, port_row, row, port.held - packet.bytes)
    else:
        row = next_packet(tables, queue_row, start)
        packet = tables.packets[row]
        count_held(tables, port_row, start)
        port.held += packet.bytes
    # A packet that begins while the rest of it is still coming in has not left before its last bit was here.
    finish = max(start + _service_time(tables, port_row, packet.bytes), packet.complete_at)
    port.busy += finish - start
    port.free_at = finish
    port.packets += 1
    port.bytes += packet.bytes
    port.served = served
    queue.served = served + packet.bytes / queue.weight
    node = tables.nodes[port.source]
    if node.has_credits and packet.ingress != NOWHERE:
        return_credit(tables, packet.ingress, packet.bytes, finish)
        packet.ingress = NOWHERE
    release_row = new_release(tables, finish, packet.bytes, packet.ingress)
    if port.last_release == NOWHERE:
        port.first_release = release_row
    else:
        tables.releases[port.last_release].next = release_row
    port.last_release = release_row
    if port.credit > 0 and traffic_class > 0:
        use_credit(tables, port_row, traffic_class, packet.bytes)
    if port.loss > 0.0 and packet.connection != NOWHERE and _random(port) < port.loss:
        packet.is_lost = True
        port.lost += 1
    packet.port = port_row
    if packet.is_last:
        packet.is_last = False
        schedule(tables, finish, SENT, packet.value)
    arrival = finish + port.delay
    if packet.hop + 1 == packet.hops and packet.connection != NOWHERE:
        connection = tables.connections[packet.connection]
        arrival += connection.delay
        if connection.rules == SACK:
            arrival += int(ANSWER_JITTER * _random(connection) * (finish - start))
    schedule(tables, arrival, ARRIVAL, row)
    if packet.ingress != NOWHERE:
        tables.ingresses[packet.ingress].leaving += packet.bytes
    if node.paused > 0 and (
        port.waiting > 0 or (packet.ingress != NOWHERE and has_to_resume(tables, port.source, packet.ingress))
    ):
        schedule(tables, finish, DEPARTURE, port_row)


@inlined
def _mark(tables: PacketTables, port_row: int, row: int, held: int) -> None:
    """Mark a packet that finds so many bytes before it, at random between the two thresholds."""
    port = tables.ports[port_row]
    if held <= port.mark_from:
        return
    if held <= port.mark_all:
        probability = port.most_marked * float(held - port.mark_from) / float(port.mark_all - port.mark_from)
        if _random(port) >= probability:
            return
    tables.packets[row].is_marked = True
    port.marked += 1


@called
def enqueue(tables: PacketTables, port_row: int, row: int, now: int) -> bool:
    """Let a packet join the queue of a port; tell whether there was room for it."""
    catch_up(tables, port_row, now)
    port = tables.ports[port_row]
    packet = tables.packets[row]
    node = tables.nodes[port.source]
    if packet.ingress != NOWHERE and not _admit(tables, port_row, row, now):
        port.dropped += 1
        give_back_packet(tables, row)
        return False
    if packet.may_be_marked and not port.marks_at_departure:
        _mark(tables, port_row, row, port.held)
    count_held(tables, port_row, now)
    packet.arrived_at = now
    packet.complete_at = 0
    if node.cuts_through and _may_pass(tables, port_row, row):
        # It may have begun to leave when its head was here; that it could not be seen before its last bit was here
        # only matters where two packets come at once, and then takes the one that is complete first.
        packet.arrived_at = now - packet.bytes * SECOND // tables.ports[packet.port].bytes_per_s
        packet.complete_at = now
    packet.port = port_row
    append(tables, port_row, row)
    catch_up(tables, port_row, now)
    if node.paused > 0 and port.waiting == 1:
        schedule(tables, max(port.free_at, now), DEPARTURE, port_row)
    return True


@inlined
def _may_pass(tables: PacketTables, port_row: int, row: int) -> bool:
    """Tell whether a packet may leave while it still comes in: it came by a link that is not slower."""
    packet = tables.packets[row]
    if packet.hop == 0 or packet.connection == NOWHERE:
        return False
    return tables.ports[packet.port].bytes_per_s >= tables.ports[port_row].bytes_per_s


@inlined
def _admit(tables: PacketTables, port_row: int, row: int, now: int) -> bool:
    """Find room for a packet that came by another port, as its node manages it; tell whether there is any."""
    port = tables.ports[port_row]
    packet = tables.packets[row]
    node = tables.nodes[port.source]
    if node.has_credits:
        return True
    if (node.lossless >> packet.traffic_class) & 1 == 1:
        return _admit_lossless(tables, port.source, packet.ingress, packet.bytes, now)
    # What may not be dropped is counted where it came in, and takes no room from what may. Of that the class counts
    # alone, as far as it waits.
    held = port.held if node.lossless == 0 else tables.queues[port_row * CLASSES + packet.traffic_class].bytes
    if held + packet.bytes > _room(tables, port_row):
        return False
    if node.shares_buffer:
        tables.ingresses[packet.ingress].bytes += packet.bytes
        node.shared += packet.bytes
    else:
        packet.ingress = NOWHERE
    return True


@inlined
def _room(tables: PacketTables, port_row: int) -> int:
    """Most bytes that a port may hold."""
    port = tables.ports[port_row]
    if tables.nodes[port.source].shares_buffer:
        return pause_at(tables, port.source)
    return port.limit


@called
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
            begin_pause(tables, node_row, ingress_row)
        return True
    ingress.bytes += size
    if node.shares_buffer:
        node.shared += size
    return True


@called
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
