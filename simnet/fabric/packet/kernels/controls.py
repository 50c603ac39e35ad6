"""The congestion controls that come with simnet, compiled: `self` is a row of the table of connections."""

from __future__ import annotations

from simnet.fabric.kernels.compiled import called, inlined
from simnet.fabric.packet.kernels.packets import CONTROL, schedule
from simnet.fabric.packet.kernels.records import SECOND
from simnet.fabric.packet.kernels.tables import PacketTables
from simnet.protocols.congestion import CONTROLS

__all__ = [
    "ACKNOWLEDGED",
    "IDLE",
    "LOSS",
    "NOTIFIED",
    "NUMBERS",
    "OWN",
    "TIMEOUT",
    "on_acknowledged",
    "on_bytes",
    "on_idle",
    "on_loss",
    "on_notified",
    "on_timeout",
    "on_timer",
]

OWN = 99
"""Number of a control that is not compiled: what happens is noted, and its connection's owner is told."""

# What happens, a bit each.
ACKNOWLEDGED, LOSS, TIMEOUT, NOTIFIED, IDLE = 1, 2, 4, 8, 16

NONE, RENO, CUBIC, DCTCP, DCQCN = 0, 1, 2, 3, 4

NUMBERS = {"none": NONE, "reno": RENO, "cubic": CUBIC, "dctcp": DCTCP, "dcqcn": DCQCN, "dcqcn_vendor": DCQCN}
"""What stands in the table of connections for the name of a control."""

_SECONDS = 1.0 / SECOND
_FAR_S = 4e6  # beyond the clock of the network, of 2^62 ps [s]

_reno, _cubic, _dctcp, _dcqcn = (CONTROLS[name] for name in ("reno", "cubic", "dctcp", "dcqcn"))
_reno_acknowledged = inlined(_reno.on_acknowledged)
_cubic_acknowledged = inlined(_cubic.on_acknowledged)
_dctcp_acknowledged = inlined(_dctcp.on_acknowledged)
_reno_loss, _cubic_loss, _dctcp_loss = inlined(_reno.on_loss), inlined(_cubic.on_loss), inlined(_dctcp.on_loss)
_reno_timeout, _cubic_timeout = inlined(_reno.on_timeout), inlined(_cubic.on_timeout)
_dctcp_timeout = inlined(_dctcp.on_timeout)
_reno_idle, _cubic_idle, _dctcp_idle = inlined(_reno.on_idle), inlined(_cubic.on_idle), inlined(_dctcp.on_idle)
_dcqcn_notified, _dcqcn_timer = inlined(_dcqcn.on_notified), inlined(_dcqcn.on_timer)
_dcqcn_bytes = inlined(_dcqcn.on_bytes)


@called
def on_acknowledged(tables: PacketTables, row: int, packets: int, marked: int) -> None:
    """Tell that packets have arrived."""
    connection = tables.connections[row]
    now, round_trip = tables.clock[0].now * _SECONDS, connection.round_trip * _SECONDS
    if connection.control == RENO:
        _reno_acknowledged(connection, packets, marked, now, round_trip)
    elif connection.control == CUBIC:
        _cubic_acknowledged(connection, packets, marked, now, round_trip)
    elif connection.control == DCTCP:
        _dctcp_acknowledged(connection, packets, marked, now, round_trip)
    elif connection.control == OWN:
        connection.happened |= ACKNOWLEDGED
        connection.happened_packets += packets
        connection.happened_marked += marked


@called
def on_loss(tables: PacketTables, row: int) -> None:
    """Tell that packets were lost."""
    connection = tables.connections[row]
    now = tables.clock[0].now * _SECONDS
    if connection.control == RENO:
        _reno_loss(connection, now)
    elif connection.control == CUBIC:
        _cubic_loss(connection, now)
    elif connection.control == DCTCP:
        _dctcp_loss(connection, now)
    elif connection.control == OWN:
        connection.happened |= LOSS


@called
def on_timeout(tables: PacketTables, row: int) -> None:
    """Tell that nothing was heard for too long."""
    connection = tables.connections[row]
    now = tables.clock[0].now * _SECONDS
    if connection.control == RENO:
        _reno_timeout(connection, now)
    elif connection.control == CUBIC:
        _cubic_timeout(connection, now)
    elif connection.control == DCTCP:
        _dctcp_timeout(connection, now)
    elif connection.control == OWN:
        connection.happened |= TIMEOUT


@called
def on_idle(tables: PacketTables, row: int) -> None:
    """Tell that a connection sends again after a while."""
    connection = tables.connections[row]
    now = tables.clock[0].now * _SECONDS
    if connection.control == RENO:
        _reno_idle(connection, now)
    elif connection.control == CUBIC:
        _cubic_idle(connection, now)
    elif connection.control == DCTCP:
        _dctcp_idle(connection, now)
    elif connection.control == OWN:
        connection.happened |= IDLE


@called
def on_notified(tables: PacketTables, row: int) -> None:
    """Tell that the receiver has seen marks."""
    connection = tables.connections[row]
    if connection.control == DCQCN:
        _dcqcn_notified(connection, tables.clock[0].now * _SECONDS)
        _see_to_timer(tables, row)
    elif connection.control == OWN:
        connection.happened |= NOTIFIED


@called
def on_timer(tables: PacketTables, row: int) -> None:
    """Tell a control that it is time for what it wanted to do, if it is."""
    connection = tables.connections[row]
    now = tables.clock[0].now
    if now < connection.control_event_at:
        return
    connection.control_event_at = 0
    if connection.control == DCQCN and now * _SECONDS >= connection.timer_at - 0.5 * _SECONDS:
        _dcqcn_timer(connection, now * _SECONDS)
    _see_to_timer(tables, row)


@called
def on_bytes(tables: PacketTables, row: int, time: int) -> None:
    """Tell that so many bytes are sent as a control wanted to hear of."""
    connection = tables.connections[row]
    if connection.control == DCQCN and connection.sent_bytes >= connection.bytes_at:
        _dcqcn_bytes(connection, time * _SECONDS)


@called
def _see_to_timer(tables: PacketTables, row: int) -> None:
    """Have the next event of a control happen when it wants it."""
    connection = tables.connections[row]
    if connection.timer_at >= _FAR_S:
        return
    at = max(int(connection.timer_at * SECOND + 0.5), tables.clock[0].now + 1)
    if connection.control_event_at == 0 or at < connection.control_event_at:
        connection.control_event_at = at
        schedule(tables, at, CONTROL, row)
