"""When a transport sends again what a dead link has swallowed: the instants at which its timers run out."""

from __future__ import annotations

import math

from simnet.protocols import FlowProtocol
from simnet.protocols.transport import PROBE_FLOOR_S

__all__ = ["goes_on_s"]


def goes_on_s(
    protocol: FlowProtocol, stalled_s: float, alive_s: float, round_trip_s: float, sending_s: float = 0.0
) -> float:
    """Return when a sender that nothing was acknowledged to goes on: at the first retransmission that gets through.

    Parameters
    ----------
    protocol : FlowProtocol
    stalled_s : float
        Since when nothing gets through [s].
    alive_s : float
        Since when it would again [s].
    round_trip_s : float
        Of the path [s].
    sending_s : float
        For how long a sender without a window sends on, each time, before it waits for its timeout [s].

    Returns
    -------
    float
        [s]; at once where messages are not made of packets, or where what is lost is not sent again.

    Notes
    -----
    TCP waits for its retransmission timeout, and twice as long each time after that (RFC 6298, section 5.5), with the
    floor of Linux added to the round trip and a probe of the tail before where the stack has one (RFC 8985, section 7).
    Reliable connections of InfiniBand and RoCE, and IRN, wait as long each time (InfiniBand Architecture Specification
    1.3, volume 1, section 9.7.6.1.3), with adaptive retransmission twice as long each time up to that. Those without a
    window send all of a message meanwhile; the first packet that gets through makes the receiver say what it misses, at
    once.

    Examples
    --------
    >>> from simnet.protocols import resolve
    >>> goes_on_s(resolve("tcp", {"tail_loss_probe": False}), 10.0, 10.5, 0.0)
    10.6
    """
    transport = protocol.transport
    if not math.isfinite(protocol.payload_bytes) or transport.reliability == "best_effort" or alive_s <= stalled_s:
        return alive_s
    if transport.reliability != "sack":
        since_s = alive_s - stalled_s
        wait_s = transport.shortest_timeout_s if transport.reliability == "go_back_n" else transport.initial_timeout_s
        while wait_s < transport.minimum_timeout_s and since_s >= wait_s:
            since_s -= wait_s
            wait_s = min(2.0 * wait_s, transport.minimum_timeout_s)
        since_s %= wait_s
        if math.isinf(transport.window_bytes) and transport.reliability == "go_back_n" and since_s < sending_s:
            return alive_s
        return alive_s + wait_s - since_s
    wait_s = round_trip_s + transport.minimum_timeout_s
    sent_s = stalled_s
    if transport.tail_loss_probe:
        sent_s += min(2.0 * round_trip_s + PROBE_FLOOR_S, wait_s)
    while sent_s < alive_s or sent_s == stalled_s:
        sent_s += min(wait_s, transport.maximum_timeout_s)
        wait_s *= 2.0
    return sent_s
