"""Congestion controls that are not compiled: told in plain Python what the kernel has noted."""

from __future__ import annotations

from typing import Any

from simnet.fabric.packet.kernels.controls import ACKNOWLEDGED, IDLE, LOSS, NOTIFIED, TIMEOUT
from simnet.fabric.packet.ports import PICOSECOND
from simnet.protocols.congestion import Control

__all__ = ["tell"]


def tell(control: Control, connection: Any, now_s: float) -> None:
    """Call the methods of a control for what has happened to its connection, and forget that.

    Parameters
    ----------
    control : Control
    connection : record
        Its row in the table of connections.
    now_s : float
        [s]
    """
    happened = int(connection["happened"])
    control.next, control.acknowledged = int(connection["next"]), int(connection["acknowledged"])
    control.sent_bytes = int(connection["sent_bytes"])
    control.may_grow = bool(connection["may_grow"])
    if happened & IDLE:
        control.on_idle(now_s)
    if happened & TIMEOUT:
        control.on_timeout(now_s)
    if happened & LOSS:
        control.on_loss(now_s)
    if happened & NOTIFIED:
        control.on_notified(now_s)
    if happened & ACKNOWLEDGED:
        round_trip_s = int(connection["round_trip"]) * PICOSECOND
        packets, marked = int(connection["happened_packets"]), int(connection["happened_marked"])
        control.on_acknowledged(packets, marked, now_s, round_trip_s)
    for column in ("happened", "happened_packets", "happened_marked"):
        connection[column] = 0
