"""What a connection loses while its window opens, and what a window allows: formulas for a lone flow.

A sender begins with a few packets and doubles their number each round trip. Until a window of packets takes as long on
the wire as a round trip, the wire idles for the rest of each; after that, acknowledgements come as fast as packets go.
"""

from __future__ import annotations

import math
from functools import lru_cache

_ROUNDING = 1e-12

__all__ = ["start_up_idle_s", "window_rate_bytes_per_s"]


@lru_cache(maxsize=4096)
def start_up_idle_s(
    packets: float, window: float, packet_s: float, round_trip_s: float, messages: int = 1
) -> tuple[float, float]:
    """Return for how long a lone flow idles while its window opens, and the window afterwards.

    Parameters
    ----------
    packets : float
        Of a message.
    window : float
        That the connection begins with [packets].
    packet_s : float
        Time of a full packet on the slowest link [s].
    round_trip_s : float
        From the first bit of a packet until its acknowledgement is here [s].
    messages : int
        As many follow each other, each when the one before has arrived.

    Returns
    -------
    tuple of float
        Idle time of all messages together [s], and the window [packets]; infinite once it is open.

    Notes
    -----
    RFC 5681, section 3.1, with an acknowledgement of each packet: a window of W takes W s on the wire, and its
    acknowledgements open the next, of 2 W, after a round trip R = RTT + s. Each round but the last idles R - W s.

    Examples
    --------
    >>> idle_s, _ = start_up_idle_s(691, 10.0, 1538 * 8 / 10e9, 100e-6 + 1538 * 8 / 10e9)
    >>> round(idle_s * 1e6, 1)
    220.5
    """
    idle_s = 0.0
    open_s = round_trip_s * (1.0 - _ROUNDING)
    for _ in range(messages):
        sent = 0.0
        while window * packet_s < open_s and sent + window < packets:
            idle_s += round_trip_s - window * packet_s
            sent += window
            window *= 2.0
        if window * packet_s >= open_s:
            return idle_s, math.inf
        # What was acknowledged of the last round opens the window as well.
        window += packets - sent
    return idle_s, math.inf if window * packet_s >= open_s else window


def window_rate_bytes_per_s(window_bytes: float, round_trip_s: float) -> float:
    """Return the rate that a window allows: all of it each round trip [bytes/s]."""
    return window_bytes / round_trip_s if math.isfinite(window_bytes) else math.inf
