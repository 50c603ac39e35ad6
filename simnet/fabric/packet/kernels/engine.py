"""The events of packets, one after the other, up to whatever somebody has to be told of; compiled."""

from __future__ import annotations

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.heap import drop_first
from simnet.fabric.packet.kernels.packets import (
    ARRIVAL,
    PACE,
    SENT,
    give_back_packet,
    make_ready,
    new_packet,
)
from simnet.fabric.packet.kernels.pauses import PAUSE
from simnet.fabric.packet.kernels.ports import catch_up, enqueue, set_paused
from simnet.fabric.packet.kernels.tables import CLASSES, NOWHERE, PacketTables

__all__ = ["ACKNOWLEDGEMENT", "ALL_SENT", "DATA", "FULL", "QUIET", "TOLD", "allow", "run", "send_back"]

# Why `run` came back.
QUIET, TOLD, FULL, ALL_SENT = 0, 1, 2, 3

# Kinds of packets that the kernel understands; transports have others of their own.
DATA, ACKNOWLEDGEMENT = 0, 1

_ROOM = 8  # packets that an event can make at the most


@kernel
def run(tables: PacketTables, until: int) -> int:
    """Let time pass up to and including an instant.

    Returns
    -------
    int
        `QUIET`: nothing more happens until then, and it is then; `TOLD`: at the time of the clock a packet has arrived
        that its transport has to be told of, ``clock.reported``, which is to be given back; `FULL`: there is no room
        for more packets or events; `ALL_SENT`: the last bit of the last packet of flow ``clock.reported`` has left.
    """
    clock = tables.clock[0]
    while clock.events > 0:
        first = tables.events[0]
        if first.key > until:
            break
        if clock.free_packets < _ROOM or clock.free_releases < _ROOM or clock.events + _ROOM > len(tables.events):
            return FULL
        clock.now = first.key
        what = first.what
        clock.events = drop_first(tables.events, clock.events)
        clock.handled += 1
        kind, row = what & 7, what >> 3
        if kind == ARRIVAL:
            if _arrive(tables, row):
                clock.reported = row
                return TOLD
        elif kind == PACE:
            flow = tables.flows[row]
            flow.is_waiting_for_pace = False
            make_ready(tables, row, clock.now)
            catch_up(tables, flow.port, clock.now)
        elif kind == SENT:
            clock.reported = row
            return ALL_SENT
        else:
            catch_up(tables, row, clock.now)
    clock.now = max(clock.now, until)
    return QUIET


@inlined
def _arrive(tables: PacketTables, row: int) -> bool:
    """Take a packet on at the end of a link; tell whether its transport has to be told."""
    clock = tables.clock[0]
    packet = tables.packets[row]
    port_row = packet.port
    clock.hops += 1
    catch_up(tables, port_row, clock.now)
    if packet.is_lost:
        give_back_packet(tables, row)
        return False
    if packet.flow == NOWHERE:
        set_paused(tables, packet.number, packet.kind == PAUSE, clock.now)
        give_back_packet(tables, row)
        return False
    packet.hop += 1
    if packet.hop < packet.hops:
        packet.ingress = port_row * CLASSES + packet.traffic_class
        enqueue(tables, tables.steps[packet.path + packet.hop].port, row, clock.now)
        return False
    if packet.kind == DATA:
        return _receive(tables, row)
    if packet.kind == ACKNOWLEDGEMENT:
        return _acknowledge(tables, row)
    return True


@inlined
def _receive(tables: PacketTables, row: int) -> bool:
    """Take in what comes as expected, and acknowledge it; tell whether anything else has to be done."""
    packet = tables.packets[row]
    flow = tables.flows[packet.flow]
    if flow.every == 0 or packet.number != flow.expected or packet.is_marked:
        return True
    flow.expected += 1
    flow.unacknowledged += 1
    if flow.unacknowledged >= flow.every or flow.expected == flow.packets:
        flow.unacknowledged = 0
        size, number = flow.acknowledgement_bytes, flow.expected
        _send_back(tables, packet.flow, ACKNOWLEDGEMENT, number, 0, size, packet.sent_at)
    if flow.expected == flow.packets:
        return True
    give_back_packet(tables, row)
    return False


@inlined
def _acknowledge(tables: PacketTables, row: int) -> bool:
    """Let a window move on; tell whether the sender has to be told, as when all is acknowledged."""
    packet = tables.packets[row]
    flow_row = packet.flow
    flow = tables.flows[flow_row]
    if flow.window == 0 or packet.number >= flow.packets or packet.is_marked:
        return True
    if packet.number > flow.acknowledged:
        flow.acknowledged = packet.number
        flow.progress_at = tables.clock[0].now
        flow.end = min(flow.packets, flow.acknowledged + flow.window)
        make_ready(tables, flow_row, tables.clock[0].now)
        catch_up(tables, flow.port, tables.clock[0].now)
    give_back_packet(tables, row)
    return False


@inlined
def _send_back(
    tables: PacketTables, flow_row: int, kind: int, number: int, value: int, size: int, sent_at: int
) -> None:
    """Send something from the receiver of a flow to its sender."""
    flow = tables.flows[flow_row]
    row = new_packet(tables)
    packet = tables.packets[row]
    packet.flow = flow_row
    packet.kind = kind
    packet.number = number
    packet.value = value
    packet.bytes = size
    packet.traffic_class = flow.back_class
    packet.path = flow.back_path
    packet.hops = flow.back_hops
    packet.sent_at = sent_at
    packet.may_be_marked = False
    enqueue(tables, tables.steps[flow.back_path].port, row, tables.clock[0].now)


@kernel
def send_back(tables: PacketTables, flow_row: int, kind: int, number: int, value: int, size: int, sent_at: int) -> None:
    """Send something from the receiver of a flow to its sender; `value` is for transports."""
    _send_back(tables, flow_row, kind, number, value, size, sent_at)


@kernel
def allow(tables: PacketTables, flow_row: int, first: int, end: int, pace: int) -> None:
    """Let a flow send packets `first` .. `end` - 1, at `pace` bytes/s; 0 is as fast as its port."""
    flow = tables.flows[flow_row]
    now = tables.clock[0].now
    catch_up(tables, flow.port, now)
    flow.next = first
    flow.end = end
    flow.progress_at = now
    flow.pace = pace
    make_ready(tables, flow_row, now)
    catch_up(tables, flow.port, now)
