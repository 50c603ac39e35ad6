"""What arrives of a burst, and when it is acknowledged; compiled."""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.compiled import called, inlined
from simnet.fabric.kernels.tables import Tables

__all__ = ["acknowledge_late", "begin_to_receive", "receive"]

_QUICK = 16  # packets that Linux acknowledges at once before it waits for a second one (TCP_MAX_QUICKACKS)


@inlined
def begin_to_receive(tables: Tables, number: int) -> None:
    """Have nothing arrived of a sender."""
    sender = tables.senders[number]
    sender.expected = sender.unsent
    sender.quick = _QUICK
    sender.waiting = sender.waiting_old = sender.holes = sender.unseen = 0
    sender.is_marked = False
    sender.arrived_at = -np.inf
    sender.late_at = sender.back_at = np.inf


@called
def receive(tables: Tables, place: int, now: float) -> None:
    """Take in a packet that has left the queue, whose row then says what is acknowledged; no packets: nothing yet."""
    transport, packet = tables.transports[0], tables.transit[place]
    sender = tables.senders[packet.sender]
    lost = packet.gap + packet.gap_new
    sender.expected -= 1
    sender.has_last = sender.has_last or packet.is_last
    if sender.waiting == 0:
        sender.echo = packet.sent_at
    sender.waiting += 1
    sender.waiting_old += 1 if packet.repair != sender.repairs else 0
    sender.is_marked = sender.is_marked or packet.is_marked
    if now - sender.arrived_at > transport.timeout:
        sender.quick = _QUICK
    sender.arrived_at = now
    sender.quick = max(sender.quick - 1, 0)
    # What comes beyond a hole, or fills one, is acknowledged at once, so that losses are heard of; as are the first,
    # every second and the last.
    at_once = sender.holes > 0 or lost > 0 or sender.quick > 0 or sender.waiting >= 2 or sender.expected == 0
    if packet.is_again:
        _fill(tables, packet.sender, lost - packet.gap_again, packet.gap_again)
    else:
        sender.holes += lost + sender.unseen
        sender.unseen = 0
    at_once = at_once or sender.holes > 0
    packet.progress = packet.is_again or sender.holes == 0
    packet.packets = packet.old = 0
    if at_once or transport.acknowledge_delay == 0.0:
        packet.packets, packet.old, packet.is_marked = sender.waiting, sender.waiting_old, sender.is_marked
        packet.echo = sender.echo
        sender.waiting = sender.waiting_old = 0
        sender.is_marked = False
        sender.late_at = np.inf
    elif sender.late_at == np.inf:
        sender.late_at = now + transport.acknowledge_delay


@inlined
def _fill(tables: Tables, number: int, lost: int, lost_again: int) -> None:
    """Take in what was sent again, behind others that are lost for the first time, or again.

    What is missing comes in order: first what is below all that has arrived, then what is beyond that.
    """
    sender = tables.senders[number]
    if lost_again < sender.holes:
        sender.holes -= 1
    else:
        # It is beyond all that has arrived, and so are such as were lost again before it.
        beyond = lost_again - sender.holes
        sender.holes += beyond
        sender.unseen = max(sender.unseen - beyond - 1, 0)
    sender.unseen += lost


@inlined
def acknowledge_late(tables: Tables, number: int, back_s: float) -> None:
    """Acknowledge a packet that no second one has followed."""
    sender = tables.senders[number]
    sender.back_at = sender.late_at + back_s
    sender.back_old = sender.waiting_old
    sender.back_echo = sender.echo
    sender.back_marked = sender.is_marked
    sender.stands_still += tables.transports[0].acknowledge_delay
    sender.waiting = sender.waiting_old = 0
    sender.is_marked = False
    sender.late_at = np.inf
