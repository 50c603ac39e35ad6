"""The events of packets, one after the other, up to whatever somebody has to be told of; compiled."""

from __future__ import annotations

from simnet.fabric.kernels.compiled import called, inlined, kernel
from simnet.fabric.kernels.heap import drop_first
from simnet.fabric.packet.kernels import controls
from simnet.fabric.packet.kernels.credits import return_credit
from simnet.fabric.packet.kernels.packets import (
    ACKNOWLEDGE,
    ARRIVAL,
    CONTROL,
    DEPARTURE,
    PACE,
    SENT,
    TIMEOUT,
    give_back_packet,
)
from simnet.fabric.packet.kernels.pauses import PAUSE
from simnet.fabric.packet.kernels.ports import catch_up, enqueue, set_paused
from simnet.fabric.packet.kernels.receivers import (
    ACKNOWLEDGEMENT,
    DATA,
    NOT_EXPECTED,
    NOTIFICATION,
    TAKEN,
    acknowledge,
    receive,
    reply,
)
from simnet.fabric.packet.kernels.records import CLASSES, NEVER, NOWHERE
from simnet.fabric.packet.kernels.scoreboard import learn, time_out
from simnet.fabric.packet.kernels.senders import (
    BEST_EFFORT,
    GO_BACK_N,
    NOTHING,
    OUT,
    cell_of,
    make_ready,
    set_timer,
    take_out,
    to_lost,
)
from simnet.fabric.packet.kernels.tables import PacketTables

__all__ = [
    "ALL_SENT",
    "ARRIVED",
    "FULL",
    "GAVE_UP",
    "HAPPENED",
    "LATE",
    "QUIET",
    "TIMED_OUT",
    "TOLD",
    "begin_message",
    "end_message",
    "go_back",
    "run",
    "send_again",
    "send_back",
    "set_window",
    "wait_longer",
]

# Why `run` came back.
QUIET, TOLD, FULL, ALL_SENT, ARRIVED, TIMED_OUT, HAPPENED, LATE, GAVE_UP = 0, 1, 2, 3, 4, 5, 6, 7, 8


@kernel
def run(tables: PacketTables, until: int) -> int:
    """Let time pass up to and including an instant.

    Returns
    -------
    int
        `QUIET`: nothing more happens until then, and it is then; `FULL`: there is no room for more packets, releases
        or events; else it is the time of the clock, and ``clock.reported`` is: `TOLD`: a packet that has arrived and
        that its transport has to be told of, to be given back; `ALL_SENT`: a message whose last bit has left;
        `ARRIVED`: a connection that has received all of a message; `TIMED_OUT`: a connection whose timer has run out;
        `HAPPENED`: a connection whose congestion control is not compiled, and has to be told what has happened;
        `LATE`: a connection over lossless links that has heard nothing for too long, and does what it does then;
        `GAVE_UP`: a connection that has sent again in vain too often.
    """
    clock = tables.clock[0]
    while clock.events > 0:
        first = tables.events[0]
        if first.key > until:
            break
        if (
            clock.free_packets < clock.room
            or clock.free_releases < clock.room
            or clock.events + clock.room > len(tables.events)
        ):
            return FULL
        clock.now = first.key
        what = first.what
        clock.events = drop_first(tables.events, clock.events)
        clock.handled += 1
        kind, row = what & 7, what >> 3
        if kind == ARRIVAL:
            why = _arrive(tables, row)
            if why != QUIET:
                return why
        elif kind == DEPARTURE:
            catch_up(tables, row, clock.now)
        elif kind == SENT:
            clock.reported = row
            return ALL_SENT
        elif kind == PACE:
            connection = tables.connections[row]
            connection.is_waiting_for_pace = False
            make_ready(tables, row, clock.now)
            catch_up(tables, connection.port, clock.now)
        elif kind == TIMEOUT:
            why = _look_at_timer(tables, row)
            if why != QUIET:
                clock.reported = row
                return why
        elif kind == ACKNOWLEDGE:
            if tables.connections[row].acknowledge_at <= clock.now:
                acknowledge(tables, row)
        elif kind == CONTROL:
            catch_up(tables, tables.connections[row].port, clock.now)
            controls.on_timer(tables, row)
        else:
            reply(tables, row, NOTIFICATION, 0, 0, clock.now)
    clock.now = max(clock.now, until)
    return QUIET


@inlined
def _arrive(tables: PacketTables, row: int) -> int:
    """Take a packet on at the end of a link; say what `run` is to report."""
    clock = tables.clock[0]
    packet = tables.packets[row]
    port_row = packet.port
    port = tables.ports[port_row]
    if packet.connection == NOWHERE and packet.hop == 0:
        # A frame that has just been made.
        packet.hop = 1
        enqueue(tables, port_row, row, clock.now)
        return QUIET
    clock.hops += 1
    catch_up(tables, port_row, clock.now)
    if packet.connection == NOWHERE:
        set_paused(tables, packet.number, packet.kind == PAUSE, clock.now)
        give_back_packet(tables, row)
        return QUIET
    packet.hop += 1
    ingress = port_row * CLASSES + packet.traffic_class
    is_there = packet.hop == packet.hops
    # What goes no further, or into a queue without credit, makes room at once.
    makes_room = is_there or packet.is_lost or not tables.nodes[port.target].has_credits
    if makes_room and port.credit > 0 and packet.traffic_class > 0:
        return_credit(tables, ingress, packet.bytes, clock.now)
    if packet.is_lost:
        give_back_packet(tables, row)
        return QUIET
    if not is_there:
        packet.ingress = ingress
        enqueue(tables, tables.steps[packet.path + packet.hop].port, row, clock.now)
        return QUIET
    return _hand_over(tables, row)


@called
def _hand_over(tables: PacketTables, row: int) -> int:
    """Hand a packet to the connection that it is for."""
    clock = tables.clock[0]
    packet = tables.packets[row]
    connection_row = packet.connection
    if packet.kind == DATA:
        what = receive(tables, row)
        if what == NOT_EXPECTED:
            clock.reported = row
            return TOLD
        give_back_packet(tables, row)
        if what == TAKEN:
            return QUIET
        clock.reported = connection_row
        return ARRIVED
    connection = tables.connections[connection_row]
    if packet.kind == NOTIFICATION:
        catch_up(tables, connection.port, clock.now)
        controls.on_notified(tables, connection_row)
    elif packet.kind != ACKNOWLEDGEMENT:
        clock.reported = row
        return TOLD
    else:
        if connection.cells > 0:
            catch_up(tables, connection.port, clock.now)
            learn(tables, row)
        else:
            _move_window(tables, row)
        _forget_messages(tables, connection_row)
    give_back_packet(tables, row)
    if connection.happened != 0:
        clock.reported = connection_row
        return HAPPENED
    return QUIET


@called
def _move_window(tables: PacketTables, row: int) -> None:
    """Let what is acknowledged in order be more."""
    packet = tables.packets[row]
    connection = tables.connections[packet.connection]
    if packet.number <= connection.acknowledged:
        return
    now = tables.clock[0].now
    catch_up(tables, connection.port, now)
    connection.may_grow = connection.acknowledged < connection.limited_until
    controls.on_acknowledged(tables, packet.connection, packet.number - connection.acknowledged, packet.value)
    connection.acknowledged = packet.number
    connection.next = max(connection.next, connection.acknowledged)
    _note_progress(tables, packet.connection)
    if connection.acknowledged == connection.end:
        connection.timeout_at = NEVER
    else:
        set_timer(tables, packet.connection, now + connection.timeout)
    make_ready(tables, packet.connection, now)
    catch_up(tables, connection.port, now)


@inlined
def _note_progress(tables: PacketTables, row: int) -> None:
    """Take note that more is acknowledged in order: what was in vain before does not count any more."""
    connection = tables.connections[row]
    connection.progress_at = tables.clock[0].now
    connection.vain = 0
    if connection.rules == GO_BACK_N:
        connection.timeout = connection.first_timeout


@called
def _forget_messages(tables: PacketTables, row: int) -> None:
    """Give back what is acknowledged and has arrived."""
    clock = tables.clock[0]
    connection = tables.connections[row]
    while connection.first_message != NOWHERE:
        message_row = connection.first_message
        message = tables.messages[message_row]
        if message.end > connection.acknowledged or not message.is_over:
            return
        if connection.sending == message_row:
            connection.sending = NOWHERE
        connection.first_message = message.next
        if message.next == NOWHERE:
            connection.last_message = NOWHERE
        message.next = clock.first_free_message
        clock.first_free_message = message_row
        clock.free_messages += 1


@called
def _look_at_timer(tables: PacketTables, row: int) -> int:
    """See whether the timer of a connection has run out; say what `run` is to report."""
    connection = tables.connections[row]
    now = tables.clock[0].now
    if connection.timeout_event_at != now:
        return QUIET
    connection.timeout_event_at = NEVER
    if connection.rules == BEST_EFFORT or connection.timeout_at == NEVER:
        return QUIET
    if now < connection.timeout_at:
        set_timer(tables, row, connection.timeout_at)
        return QUIET
    connection.timeout_at = NEVER
    if connection.cells == 0:
        return TIMED_OUT
    time_out(tables, row)
    if connection.happened != 0:
        return HAPPENED
    if connection.vain > connection.retries:
        return GAVE_UP
    return LATE if connection.is_lossless else QUIET


@kernel
def begin_message(tables: PacketTables, row: int, packets: int, last_bytes: int) -> int:
    """Have a connection send another message, behind the others; return its row.

    There is a free message, and cells for all packets that may be on their way.
    """
    clock = tables.clock[0]
    connection = tables.connections[row]
    message_row = clock.first_free_message
    message = tables.messages[message_row]
    clock.first_free_message = message.next
    clock.free_messages -= 1
    message.connection = row
    message.first = connection.end
    message.end = connection.end + packets
    message.last_bytes = last_bytes
    message.received = 0
    message.received_bytes = 0
    message.wanted = 0
    message.heard_at = clock.now
    message.is_over = False
    message.next = NOWHERE
    if connection.last_message == NOWHERE:
        connection.first_message = message_row
    else:
        tables.messages[connection.last_message].next = message_row
    connection.last_message = message_row
    if connection.receiving == NOWHERE:
        connection.receiving = message_row
    catch_up(tables, connection.port, clock.now)
    is_idle = connection.acknowledged == connection.end and connection.sent > 0
    if is_idle and connection.restarts and clock.now - connection.sent_at > connection.timeout:
        controls.on_idle(tables, row)
    if connection.acknowledged == connection.end:
        connection.progress_at = clock.now
    connection.end = message.end
    make_ready(tables, row, clock.now)
    catch_up(tables, connection.port, clock.now)
    return message_row


@kernel
def end_message(tables: PacketTables, message_row: int) -> None:
    """Have the receiver be done with the message that it is at, however much of it there is."""
    message = tables.messages[message_row]
    row = message.connection
    connection = tables.connections[row]
    message.is_over = True
    if connection.receiving == message_row:
        connection.receiving = message.next
        while connection.receiving != NOWHERE and tables.messages[connection.receiving].is_over:
            connection.receiving = tables.messages[connection.receiving].next
    if connection.rules == BEST_EFFORT:
        catch_up(tables, connection.port, tables.clock[0].now)
        for number in range(message.first, message.end):
            cell = tables.cells[cell_of(tables, row, number)]
            if number < connection.highest and cell.state != NOTHING:
                take_out(tables, row, number)
            cell.state = NOTHING
            cell.has = False
        connection.next = max(connection.next, message.end)
        connection.highest = max(connection.highest, message.end)
        first = connection.first_message
        while first != NOWHERE and tables.messages[first].is_over:
            connection.acknowledged = tables.messages[first].end
            first = tables.messages[first].next
        make_ready(tables, row, tables.clock[0].now)
    _forget_messages(tables, row)


@kernel
def send_again(tables: PacketTables, message_row: int, most: int) -> None:
    """Have so many packets of a message that have not come sent again, the first ones."""
    message = tables.messages[message_row]
    row = message.connection
    connection = tables.connections[row]
    now = tables.clock[0].now
    catch_up(tables, connection.port, now)
    count = 0
    for number in range(message.first, min(message.end, connection.highest)):
        if count == most:
            break
        cell = tables.cells[cell_of(tables, row, number)]
        if not cell.has and cell.state == OUT:
            to_lost(tables, row, number)
            count += 1
    message.wanted = message.received + count
    make_ready(tables, row, now)
    catch_up(tables, connection.port, now)


@kernel
def send_back(tables: PacketTables, row: int, kind: int, number: int, value: int) -> None:
    """Send something from the receiver of a connection to its sender; `value` is for transports."""
    reply(tables, row, kind, number, value, tables.clock[0].now)


@kernel
def go_back(tables: PacketTables, row: int, number: int) -> None:
    """Have a connection begin again at a packet, which is the first that is not acknowledged."""
    connection = tables.connections[row]
    now = tables.clock[0].now
    catch_up(tables, connection.port, now)
    if number > connection.acknowledged:
        _note_progress(tables, row)
    connection.acknowledged = max(connection.acknowledged, number)
    connection.next = max(number, connection.acknowledged)
    if connection.acknowledged < connection.end:
        set_timer(tables, row, now + connection.timeout)
    make_ready(tables, row, now)
    catch_up(tables, connection.port, now)
    if connection.rules == GO_BACK_N:
        _forget_messages(tables, row)


@kernel
def wait_longer(tables: PacketTables, row: int) -> None:
    """Have the timer of a connection begin anew, and send nothing."""
    set_timer(tables, row, tables.clock[0].now + tables.connections[row].timeout)


@kernel
def set_window(tables: PacketTables, row: int, window: float, pace: float) -> None:
    """Let so many packets be on their way, at most so fast [packets], [bytes/s]."""
    connection = tables.connections[row]
    now = tables.clock[0].now
    catch_up(tables, connection.port, now)
    connection.window = window
    connection.pace = pace
    make_ready(tables, row, now)
    catch_up(tables, connection.port, now)
