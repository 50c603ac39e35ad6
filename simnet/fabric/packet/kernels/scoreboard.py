"""What a sender learns from acknowledgements, packet by packet: arrived, lost, or still on its way; compiled.

TCP (``SACK``): a packet is lost if one that was sent later has arrived (RACK; Y. Cheng et al., RFC 8985), unless the
path may reorder; again if it was sent again. The tail is probed, then there is a timeout (RFC 6298, with the floor of
Linux). IRN (``SELECTIVE_REPEAT``; R. Mittal et al., SIGCOMM 2018): below the highest number that has arrived everything
that has not is lost, once; what is lost again is found out by a timeout.
"""

from __future__ import annotations

import math

from simnet.fabric.kernels.compiled import called, inlined
from simnet.fabric.packet.kernels import controls
from simnet.fabric.packet.kernels.ports import catch_up
from simnet.fabric.packet.kernels.records import NEVER, NOWHERE
from simnet.fabric.packet.kernels.senders import (
    LOST,
    NOTHING,
    OUT,
    SACK,
    SACKED,
    SELECTIVE_REPEAT,
    arm,
    cell_of,
    make_ready,
    set_timer,
    take_out,
    to_lost,
)
from simnet.fabric.packet.kernels.tables import PacketTables

__all__ = ["learn", "time_out"]


@called
def learn(tables: PacketTables, packet_row: int) -> None:
    """Take in an acknowledgement."""
    packet = tables.packets[packet_row]
    row = packet.connection
    connection = tables.connections[row]
    now = tables.clock[0].now
    _measure(tables, row, now - packet.sent_at)
    before = connection.acknowledged
    delivered = 0
    while connection.acknowledged < packet.number:
        delivered += _arrived(tables, row, connection.acknowledged, NOTHING)
        connection.acknowledged += 1
    delivered += _arrived_between(tables, row, packet.first_a, packet.end_a)
    delivered += _arrived_between(tables, row, packet.first_b, packet.end_b)
    delivered += _arrived_between(tables, row, packet.first_c, packet.end_c)
    if connection.acknowledged > before:
        connection.progress_at = now
        connection.vain = 0
        connection.has_probed = False
    is_recovering = connection.acknowledged < connection.recovery_end
    if connection.has_timed_out and not is_recovering:
        connection.has_timed_out = False
    has_lost = _find_losses(tables, row)
    if has_lost and not is_recovering:
        connection.recovery_end = connection.next
        connection.window_before = connection.window
        connection.delivered_since = connection.sent_since = 0
        controls.on_loss(tables, row)
    if delivered > 0:
        is_fine = connection.has_timed_out or not (is_recovering or has_lost)
        connection.may_grow = is_fine and before < connection.limited_until
        controls.on_acknowledged(tables, row, delivered, packet.value)
        _reduce(tables, row, delivered, connection.acknowledged > before and not has_lost)
    if connection.acknowledged == connection.highest:
        connection.timeout_at = NEVER
        connection.probe_at = NEVER
    elif delivered > 0:
        arm(tables, row, now)
    make_ready(tables, row, now)
    catch_up(tables, connection.port, now)


@inlined
def _measure(tables: PacketTables, row: int, sample: int) -> None:
    """Take a round trip into account (RFC 6298, section 2)."""
    connection = tables.connections[row]
    if connection.round_trip == 0:
        connection.round_trip = sample
        connection.deviation = sample // 2
        connection.least_round_trip = sample
    else:
        connection.deviation += (abs(sample - connection.round_trip) - connection.deviation) // 4
        connection.round_trip += (sample - connection.round_trip) // 8
        connection.least_round_trip = min(connection.least_round_trip, sample)
    if connection.rules == SACK:
        # Linux adds its floor to the round trip (tcp_set_rto).
        waiting = max(4 * connection.deviation, connection.least_timeout)
        connection.timeout = min(connection.round_trip + waiting, connection.most_timeout)


@inlined
def _arrived(tables: PacketTables, row: int, number: int, state: int) -> int:
    """Take note that a packet has arrived; return 1 if that is new."""
    connection = tables.connections[row]
    cell = tables.cells[cell_of(tables, row, number)]
    is_new = cell.state == OUT or cell.state == LOST
    if is_new:
        take_out(tables, row, number)
        # That a packet which was just sent again has arrived is told of the first time it was sent.
        if not cell.again or tables.clock[0].now - cell.sent_at >= connection.least_round_trip:
            connection.latest_sent_at = max(connection.latest_sent_at, cell.sent_at)
        connection.highest_heard = max(connection.highest_heard, number + 1)
    cell.state = state
    return 1 if is_new else 0


@called
def _arrived_between(tables: PacketTables, row: int, first: int, end: int) -> int:
    """Take note that packets in a row have arrived, and skip what was known; return how many are new."""
    if first == NOWHERE or end <= tables.connections[row].acknowledged:
        return 0
    first = max(first, tables.connections[row].acknowledged)
    delivered = 0
    number = first
    while number < end:
        cell = tables.cells[cell_of(tables, row, number)]
        if cell.state == SACKED:
            number = max(number + 1, cell.skip)
        else:
            delivered += _arrived(tables, row, number, SACKED)
            number += 1
    tables.cells[cell_of(tables, row, first)].skip = end
    return delivered


@called
def _find_losses(tables: PacketTables, row: int) -> bool:
    """Take what must be lost to be so; tell whether there is any."""
    connection = tables.connections[row]
    found = False
    number = connection.first_out
    while number != NOWHERE:
        cell = tables.cells[cell_of(tables, row, number)]
        following = cell.next
        if connection.rules == SACK:
            if cell.sent_at + connection.reorder >= connection.latest_sent_at:
                break
            to_lost(tables, row, number)
            found = True
        elif not cell.again:
            if number + connection.reorder >= connection.highest_heard:
                break
            to_lost(tables, row, number)
            found = True
        number = following
    return found


@inlined
def _reduce(tables: PacketTables, row: int, delivered: int, is_fine: bool) -> None:
    """Say how many packets may be under way while loss is made good (RFC 6937, as Linux has it).

    Above the new window, what arrives lets out its share of it. Below, which is where many were lost, it lets out as
    much as has arrived, and one more where all goes well: slow start, not a burst of half a window. The first that is
    lost is sent again at once, whatever is under way (RFC 6675, section 5, step 4.3).
    """
    connection = tables.connections[row]
    if connection.rules != SACK:
        return
    if connection.has_timed_out or connection.acknowledged >= connection.recovery_end:
        connection.reduced = 0.0
        return
    connection.delivered_since += delivered
    room = connection.window - connection.in_flight
    if room < 0.0:
        share = connection.window / max(connection.window_before, 1.0)
        more = math.ceil(share * connection.delivered_since) - connection.sent_since
    else:
        more = min(max(connection.delivered_since - connection.sent_since, delivered) + (1 if is_fine else 0), room)
    least = 0.0 if connection.sent_since > 0 else 1.0
    connection.reduced = connection.in_flight + max(float(more), least)


@called
def time_out(tables: PacketTables, row: int) -> None:
    """Nothing was heard for too long: probe the tail, or take all that is on its way to be lost."""
    connection = tables.connections[row]
    now = tables.clock[0].now
    catch_up(tables, connection.port, now)
    if connection.probe_at <= now:
        connection.probe_at = NEVER
        connection.has_probed = True
        if connection.last_out != NOWHERE and connection.first_lost == NOWHERE:
            to_lost(tables, row, connection.last_out)
        set_timer(tables, row, now + connection.timeout)
    elif connection.rules == SELECTIVE_REPEAT:
        connection.timeouts += 1
        connection.vain += 1
        number = connection.acknowledged
        if tables.cells[cell_of(tables, row, number)].state == OUT:
            to_lost(tables, row, number)
        connection.recovery_end = max(connection.recovery_end, connection.next)
        set_timer(tables, row, now + connection.timeout)
    else:
        connection.timeouts += 1
        connection.vain += 1
        while connection.first_out != NOWHERE:
            to_lost(tables, row, connection.first_out)
        connection.has_timed_out = True
        connection.reduced = 0.0
        connection.recovery_end = connection.next
        controls.on_timeout(tables, row)
        connection.timeout = min(2 * connection.timeout, connection.most_timeout)
        set_timer(tables, row, now + connection.timeout)
    make_ready(tables, row, now)
    catch_up(tables, connection.port, now)
