"""What a sender of TCP does while first windows, and what follows from them, overflow a queue; compiled.

It is what `simnet.fabric.packet` has packet by packet, for a path on which nothing overtakes: packets get through or
are lost in the order in which they were sent, so that numbers of packets tell all, and no packet needs a number.
A packet is known to be lost when one that was sent later has arrived (RFC 8985); then as many may be under way as
RFC 6937 says, the tail is probed (RFC 8985), and at last there is a timeout (RFC 6298).
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.compiled import called, inlined
from simnet.fabric.kernels.draws import draw
from simnet.fabric.kernels.tables import Tables
from simnet.protocols.transport import ANSWER_JITTER

__all__ = ["begin_to_send", "expire", "may_send", "send", "take_in"]

_LEAST_WINDOW = 2.0  # packets, after a loss
_SMOOTHING = 1 / 8  # of round trips (RFC 6298, section 2)


@called
def begin_to_send(tables: Tables, number: int, row: int, begins_at: float) -> None:
    """Have an operation be a sender, which has sent nothing yet."""
    operation, transport, sender = tables.operations[row], tables.transports[0], tables.senders[number]
    sender.operation = row
    sender.next_at = begins_at
    sender.unsent = max(int(np.ceil(operation.firing_bytes / transport.payload_bytes)), 1)
    sender.missing = sender.unsent
    sender.last_bytes = operation.firing_bytes - (sender.unsent - 1) * transport.payload_bytes
    sender.last_bytes += transport.packet_bytes - transport.payload_bytes
    sender.window = transport.first_window
    sender.threshold = np.inf
    sender.smoothed = operation.round_trip
    sender.timeout = operation.round_trip + transport.first_timeout
    sender.timer_at = np.inf
    sender.in_flight = sender.again = sender.again_new = sender.gap = sender.gap_new = sender.gap_again = 0
    sender.before_hole = sender.repairing = sender.repairs = sender.arrived_since = sender.sent_since = 0
    sender.cuts_from = sender.unsent
    sender.window_before = sender.most = sender.stands_still = 0.0
    sender.has_timed_out = sender.has_probed = sender.is_probe = sender.is_probing = sender.has_last = False


@inlined
def may_send(tables: Tables, number: int) -> bool:
    """Tell whether a sender has something to send, and its windows allow it."""
    sender = tables.senders[number]
    most = sender.most if sender.most > 0.0 else sender.window
    return sender.unsent + sender.again + sender.again_new > 0 and sender.in_flight + 1 <= most


@inlined
def send(tables: Tables, number: int, place: int, now: float) -> None:
    """Send a packet, which may be lost: what it tells when it gets through stands in a row of `transit`."""
    sender, packet = tables.senders[number], tables.transit[place]
    packet.sender = number
    packet.sent_at = now
    packet.is_again = sender.again + sender.again_new > 0 and not sender.is_probing
    packet.repair = -1
    sender.is_probing = False
    if sender.again > 0:
        sender.again -= 1
    elif sender.again_new > 0:
        sender.again_new -= 1
        packet.repair = sender.repairs
    else:
        sender.unsent -= 1
        if sender.repairing > 0:
            packet.repair = sender.repairs
    # What is lost is sent again in order, so that the end of the message is the last of it.
    packet.is_last = sender.unsent + sender.again + sender.again_new == 0 and not sender.has_last
    packet.gap = sender.gap
    packet.gap_new = sender.gap_new
    packet.gap_again = sender.gap_again
    sender.in_flight += 1
    sender.sent_since += 1
    sender.next_at = now + tables.operations[sender.operation].packet_time
    if sender.timer_at == np.inf or _may_probe(tables, number):
        _arm(tables, number, now)


@called
def take_in(
    tables: Tables,
    number: int,
    now: float,
    packets: int,
    old: int,
    echo: float,
    gap: int,
    gap_new: int,
    gap_again: int,
    progress: bool,
    marked: bool,
) -> None:
    """Take in an acknowledgement.

    Parameters
    ----------
    tables : Tables
    number : int
        Of the sender.
    now : float
    packets : int
        That have arrived, without those known before.
    old : int
        Of these, such as were sent before the loss that is being made good was known.
    echo : float
        When the first of them was sent.
    gap, gap_new : int
        Packets that are known to be lost now, sent before and after that.
    gap_again : int
        Of these, such as were sent again.
    progress : bool
        What is acknowledged in order is more.
    marked : bool
    """
    sender, transport = tables.senders[number], tables.transports[0]
    lost = gap + gap_new
    has_waited = not may_send(tables, number)
    sender.in_flight -= packets + lost
    sender.missing -= packets
    progress = progress and _fills_hole(tables, number, packets, lost, gap_again)
    sender.again += gap
    sender.again_new += gap_new
    # Linux adds its floor to the round trip (tcp_set_rto); the deviation is less than that.
    sender.smoothed += _SMOOTHING * (now - echo - sender.smoothed)
    sender.timeout = sender.smoothed + transport.timeout
    if progress:
        sender.has_probed = False
    sender.repairing = max(sender.repairing - old, 0)
    if sender.repairing == 0:
        sender.has_timed_out = False
    is_fine = sender.has_timed_out or (sender.repairing == 0 and lost == 0)
    if lost > 0 and sender.repairing == 0:
        sender.window_before = sender.window
        sender.threshold = max(transport.keeps * sender.window, _LEAST_WINDOW)
        sender.window = sender.threshold
        sender.arrived_since = sender.sent_since = 0
        _begin_repair(tables, number)
    if is_fine:
        _grow(tables, number, packets, marked)
    sender.most = 0.0
    if sender.repairing > 0 and not sender.has_timed_out:
        _reduce(tables, number, packets, progress and lost == 0)
    if sender.missing == 0:
        sender.timer_at = np.inf
    else:
        _arm(tables, number, now)
    if has_waited:
        jitter = ANSWER_JITTER * draw(tables.operations, sender.operation)
        sender.next_at = max(sender.next_at, now + jitter * tables.operations[sender.operation].packet_time)


@called
def expire(tables: Tables, number: int) -> None:
    """Nothing was heard for too long: probe the tail, or take all that is on its way to be lost."""
    sender, transport = tables.senders[number], tables.transports[0]
    now = sender.timer_at
    if sender.is_probe:
        sender.is_probe = False
        sender.has_probed = True
        sender.stands_still += _probe_wait(tables, number)
        if sender.in_flight > 0 and sender.again + sender.again_new == 0:
            sender.in_flight -= 1
            sender.again += 1
            sender.is_probing = True
            if sender.gap_new > 0:
                sender.gap_new -= 1
            elif sender.gap > 0:
                sender.gap -= 1
    else:
        sender.stands_still += sender.timeout
        tables.clock[0].timeouts += 1
        sender.again += sender.in_flight
        sender.in_flight = sender.gap = sender.gap_new = sender.gap_again = sender.before_hole = 0
        _begin_repair(tables, number)
        # A second time in a row does not lower it (RFC 5681, section 3.1).
        if sender.window > 1.0:
            sender.threshold = max(transport.keeps * sender.window, _LEAST_WINDOW)
        sender.window = 1.0
        sender.most = 0.0
        sender.has_timed_out = True
        sender.timeout *= 2.0
    sender.timer_at = now + sender.timeout
    sender.next_at = max(sender.next_at, now)


@inlined
def _fills_hole(tables: Tables, number: int, packets: int, lost: int, lost_again: int) -> bool:
    """Tell whether what arrives can be acknowledged in order, and is not beyond a packet that was lost again.

    What is lost again goes behind all that is under way or waits to be sent again; what comes before it fills no hole.
    """
    sender = tables.senders[number]
    if sender.repairing == 0:
        sender.before_hole = 0
    elif lost_again > sender.before_hole:
        sender.before_hole = sender.in_flight + sender.again
        return False
    elif packets + lost <= sender.before_hole:
        sender.before_hole -= packets + lost
        return False
    else:
        sender.before_hole = 0
    return True


@inlined
def _begin_repair(tables: Tables, number: int) -> None:
    """Have all that is not acknowledged be what is to be made good before a loss counts as another."""
    sender = tables.senders[number]
    sender.again += sender.again_new
    sender.gap += sender.gap_new
    sender.again_new = sender.gap_new = 0
    sender.repairs += 1
    sender.repairing = sender.in_flight + sender.again


@inlined
def _grow(tables: Tables, number: int, packets: int, marked: bool) -> None:
    """Let the window grow as the control has it: up to the threshold by what has arrived, then by a share of that.

    Marks halve it, once a window.
    """
    sender = tables.senders[number]
    if marked and tables.transports[0].has_marks:
        if sender.missing <= sender.cuts_from:
            sender.window = max(0.5 * sender.window, _LEAST_WINDOW)
            sender.threshold = sender.window
            sender.cuts_from = sender.missing - sender.in_flight
    else:
        begun = min(float(packets), max(sender.threshold - sender.window, 0.0))
        sender.window += begun
        sender.window += tables.transports[0].growth * (packets - begun) / sender.window


@inlined
def _reduce(tables: Tables, number: int, packets: int, is_fine: bool) -> None:
    """Say how many packets may be under way while loss is made good; see the scoreboard of the packet level."""
    sender = tables.senders[number]
    sender.arrived_since += packets
    room = sender.window - sender.in_flight
    if room < 0.0:
        share = sender.window / sender.window_before
        more = np.ceil(share * sender.arrived_since) - sender.sent_since
    else:
        more = min(max(sender.arrived_since - sender.sent_since, packets) + (1.0 if is_fine else 0.0), room)
    sender.most = sender.in_flight + max(more, 0.0 if sender.sent_since > 0 else 1.0)


@inlined
def _may_probe(tables: Tables, number: int) -> bool:
    sender = tables.senders[number]
    return tables.transports[0].probe < np.inf and not sender.has_probed and sender.repairing == 0


@inlined
def _probe_wait(tables: Tables, number: int) -> float:
    """Return for how long to hear nothing until the tail is probed; a lone packet may be acknowledged late."""
    sender, transport = tables.senders[number], tables.transports[0]
    late = transport.acknowledge_delay if sender.in_flight == 1 else 0.0
    return 2.0 * sender.smoothed + transport.probe + late


@inlined
def _arm(tables: Tables, number: int, now: float) -> None:
    """Set the timer anew, as packets are sent or acknowledged: a probe of the tail, or else a timeout."""
    sender = tables.senders[number]
    wait = sender.timeout
    sender.is_probe = False
    if _may_probe(tables, number):
        probe = _probe_wait(tables, number)
        if probe < wait:
            wait = probe
            sender.is_probe = True
    sender.timer_at = now + wait
