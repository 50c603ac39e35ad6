"""A message of a TCP connection whose packets are lost at random, round trip by round trip; compiled.

The window of a connection outlives its messages. Slow start: it grows by what is acknowledged; congestion avoidance:
by `growth` packets a round trip (RFC 5681), with CUBIC by one once it is above its last highest, and by its cubic
function where that is larger (RFC 9438). A loss leaves the share `keeps` of it. What is lost is sent again from the
window of the next round, as selective acknowledgements tell (RFC 6675, RFC 8985); where nothing that comes after it is
acknowledged, by a probe or the timeout (RFC 6298).
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.compiled import inlined, kernel
from simnet.fabric.kernels.draws import draw, packets_until_loss
from simnet.fabric.kernels.tables import Tables

__all__ = ["send_by_windows"]

_CUBIC = 0.4  # RFC 9438, section 5
_LEAST = 2.0  # packets, after a loss
_FAST = 1.5  # most that a window grows in a round trip by the cubic function


@kernel
def send_by_windows(tables: Tables, row: int, packets: float) -> float:
    """Send a message; write its cap and what is sent again; return for how long it waits [s].

    It waits for its slow start, at its end and for timeouts; idle times of congestion avoidance make its cap lower.
    """
    clock, transport = tables.clock[0], tables.transports[0]
    operations = tables.operations
    operation = operations[row]
    connection = tables.connections[operation.connection]
    if connection.window <= 0.0:
        connection.window = min(transport.first_window, transport.most_window)
        connection.threshold = np.inf
        connection.until_loss = packets_until_loss(operations, row, operation.loss)
    elif transport.restarts and clock.now - connection.used_at > transport.timeout:
        connection.window = min(connection.window, transport.first_window)
    wait, idle, again, left = 0.0, 0.0, 0.0, packets
    while left > 0.0:
        sent = max(min(np.floor(connection.window), left, transport.most_window), 1.0)
        lost, last = 0.0, 0.0
        while connection.until_loss <= sent - last:
            last += connection.until_loss
            lost += 1.0
            connection.until_loss = packets_until_loss(operations, row, operation.loss)
        connection.until_loss -= sent - last
        over = sent == left
        left -= sent - lost
        again += lost
        slow = connection.window < connection.threshold
        if left > 0.0:
            # The next round begins when the first acknowledgement is back; the last loss is heard of that late, too.
            pause = operation.round_trip - sent * operation.packet_time
            if over:
                pause = operation.round_trip - (sent - last) * operation.packet_time
            pause = max(pause, 0.0)
            if slow or over:
                wait += pause
            else:
                idle += pause
        connection.since_loss += max(operation.round_trip, sent * operation.packet_time)
        if lost == 0.0:
            _grow(tables, row, sent)
            continue
        if transport.is_cubic and connection.window < connection.highest:
            # It makes room for others (RFC 9438, section 4.7).
            connection.highest = 0.5 * connection.window * (1.0 + transport.keeps)
        else:
            connection.highest = connection.window
        connection.since_loss = 0.0
        connection.threshold = max(connection.window * transport.keeps, _LEAST)
        connection.window = connection.threshold
        if lost == sent or (over and last == sent):
            # Nothing after it is acknowledged.
            probe = 2.0 * operation.round_trip + transport.probe
            if probe < transport.timeout and draw(operations, row) >= operation.loss:
                wait += probe + operation.round_trip
            else:
                wait += transport.timeout + operation.round_trip
                clock.timeouts += 1
                connection.window = 1.0
    connection.used_at = clock.now + wait + packets * operation.packet_time + idle
    operation.resent_bytes = again * transport.payload_bytes
    total = (packets + again) * operation.packet_time + idle
    operation.cap = min(operation.most, (packets + again) * transport.payload_bytes / total)
    return wait


@inlined
def _grow(tables: Tables, row: int, acknowledged: float) -> None:
    """Open the window by what was acknowledged in a round trip without loss."""
    transport = tables.transports[0]
    operation = tables.operations[row]
    connection = tables.connections[operation.connection]
    if connection.window < connection.threshold:
        connection.window = min(connection.window + acknowledged, connection.threshold)
        return
    growth = transport.growth
    if connection.window >= connection.highest:
        growth = 1.0
    window = connection.window + growth * acknowledged / connection.window
    if transport.is_cubic and connection.highest > 0.0:
        at = connection.since_loss - np.cbrt(connection.highest * (1.0 - transport.keeps) / _CUBIC)
        window = max(window, min(_CUBIC * at * at * at + connection.highest, _FAST * connection.window))
    connection.window = window
