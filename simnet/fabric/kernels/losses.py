"""What random loss does to one message, by what its transport does about it; compiled.

Packets are lost independently of each other. What is sent again loads the wire like anything else, and is added to the
bytes that flow; time in which the sender sends nothing is either waited for before the flow begins, or, where it is
spread all over the message, makes its cap lower.
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.draws import draw, packets_until_loss
from simnet.fabric.kernels.tables import Tables
from simnet.fabric.kernels.windows import send_by_windows

__all__ = ["BEST_EFFORT", "GO_BACK_N", "RELIABLE", "SACK", "SELECTIVE_REPEAT", "suffer_losses"]

RELIABLE, GO_BACK_N, SACK, SELECTIVE_REPEAT, BEST_EFFORT = 0, 1, 2, 3, 4
"""What happens to packets that are lost; none are where it is `RELIABLE`."""

_TIMEOUT_OF_TABLE = 4.0  # round trips; see `simnet.fabric.loss.STALL_TABLE`


@kernel
def suffer_losses(tables: Tables, row: int) -> float:
    """Draw what a firing loses; write its cap and what is sent again; return for how long it waits [s]."""
    clock = tables.clock[0]
    operation = tables.operations[row]
    packets = np.ceil(operation.firing_bytes / tables.transports[0].payload_bytes)
    if packets <= 0.0:
        return 0.0
    if operation.reliability == SACK:
        wait = send_by_windows(tables, row, packets)
    elif operation.reliability == GO_BACK_N:
        wait = _go_back(tables, row, packets)
    elif operation.reliability == SELECTIVE_REPEAT:
        wait = _repeat_what_is_missing(tables, row, packets)
    else:
        wait = _do_without(tables, row, packets)
    clock.resent_bytes += operation.resent_bytes
    return wait


@inlined
def _timeouts(tables: Tables, row: int, timeout: float) -> float:
    """Return how long to wait until a packet that is sent again, each time after a timeout, gets through [s]."""
    operation = tables.operations[row]
    wait = 0.0
    while draw(tables.operations, row) < operation.loss:
        wait += timeout
        tables.clock[0].timeouts += 1
    return wait


@inlined
def _go_back(tables: Tables, row: int, packets: float) -> float:
    """Send everything again from each lost packet on; the sender hears of it a round trip later.

    The receiver says once that a packet is missing: where that, or what is sent again, is lost, or nothing comes after
    it, only the timeout helps.
    """
    operation, transport = tables.operations[row], tables.transports[0]
    under_way = min(operation.round_trip / operation.packet_time, transport.most_window)
    wait, again, sent = 0.0, 0.0, 0.0
    while True:
        sent += packets_until_loss(tables.operations, row, operation.loss)
        if sent > packets:
            break
        if sent == packets:
            wait += transport.timeout
            tables.clock[0].timeouts += 1
        else:
            wasted = min(under_way, packets - sent)
            again += wasted
            wait += operation.round_trip - wasted * operation.packet_time
            if draw(tables.operations, row) < operation.loss:
                # What the receiver says goes back over as many lossy links.
                wait += transport.timeout
                tables.clock[0].timeouts += 1
        wait += _timeouts(tables, row, transport.timeout)
    operation.resent_bytes = again * transport.payload_bytes
    return wait


@inlined
def _repeat_what_is_missing(tables: Tables, row: int, packets: float) -> float:
    """Send only lost packets again; the window stands still behind them, longest at the end of a message."""
    operation, transport = tables.operations[row], tables.transports[0]
    under_way = min(operation.round_trip / operation.packet_time, transport.most_window)
    timeout = transport.timeout
    if min(packets, under_way) <= transport.few_packets:
        timeout = transport.few_timeout
    wait, still, again, sent = 0.0, 0.0, 0.0, 0.0
    while True:
        sent += packets_until_loss(tables.operations, row, operation.loss)
        if sent > packets:
            break
        again += 1.0
        behind = packets - sent
        if behind == 0.0:
            wait += timeout
            tables.clock[0].timeouts += 1
        elif behind < under_way:
            wait += operation.round_trip - behind * operation.packet_time
        else:
            still += operation.stall * operation.packet_time
        if draw(tables.operations, row) < operation.loss:
            # Lost again: only the timeout helps, and the stall of the table has a short one in it.
            again += 1.0
            tables.clock[0].timeouts += 1
            wait += max(timeout - _TIMEOUT_OF_TABLE * operation.round_trip, 0.0)
            wait += _timeouts(tables, row, timeout)
    operation.resent_bytes = again * transport.payload_bytes
    operation.cap = min(operation.most, _rate_with(tables, row, packets + again, still))
    return wait


@inlined
def _do_without(tables: Tables, row: int, packets: float) -> float:
    """Send nothing again, unless more is lost than is put up with: then that much is asked for once more."""
    clock = tables.clock[0]
    operation, transport = tables.operations[row], tables.transports[0]
    missing, sent = 0.0, 0.0
    while True:
        sent += packets_until_loss(tables.operations, row, operation.loss)
        if sent > packets:
            break
        missing += 1.0
    wait = 0.0
    if transport.critical_share > 0.0 and missing > 0.0:
        critical = transport.critical_share * missing
        operation.resent_bytes = critical / (1.0 - operation.loss) * transport.payload_bytes
        missing -= critical
        wait = operation.round_trip
    allowed = np.floor(transport.loss_budget * packets)
    if transport.loss_budget > 0.0 and missing > allowed:
        again = missing - allowed
        operation.resent_bytes += again / (1.0 - operation.loss) * transport.payload_bytes
        missing = allowed
        wait = operation.round_trip
    lost = min(missing * transport.payload_bytes, operation.firing_bytes)
    operation.lost_bytes += lost
    operation.lost_here = lost
    clock.lost_bytes += lost
    clock.delivered_bytes -= lost
    return wait


@inlined
def _rate_with(tables: Tables, row: int, packets: float, still: float) -> float:
    """Return the rate of a lone flow of so many packets that stands still for so long [bytes/s]."""
    return packets * tables.transports[0].payload_bytes / (packets * tables.operations[row].packet_time + still)
