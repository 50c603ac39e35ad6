"""What a share of lost packets leaves of a flow's rate: formulas, and the constants that go into them.

The event kernel draws losses for each message (`simnet.fabric.kernels.stalls`); these are the means that come out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CUBIC_WINDOW",
    "RENO_WINDOW",
    "STALL_CAPS",
    "STALL_LOSSES",
    "STALL_TABLE",
    "go_back_n_efficiency",
    "loss_window",
    "path_loss",
    "selective_repeat_efficiency",
    "stall_per_loss",
]

RENO_WINDOW = math.sqrt(3 / 2)
"""Mean window times the root of the share of lost packets (M. Mathis et al., "The macroscopic behavior of the TCP
congestion avoidance algorithm", CCR 1997)."""

CUBIC_WINDOW = 1.17 * RENO_WINDOW
"""The same for CUBIC in its Reno-friendly region (RFC 9438, section 4.3), where losses are independent: the window
grows faster once it is above that of the last loss."""

STALL_LOSSES = np.array([0.0, 0.032, 0.128, 0.32, 0.96, 1.28, 3.84])
"""Losses in a round trip at which `STALL_TABLE` is given."""

STALL_CAPS = np.array([1.0, 2.0, 4.0])
"""Windows, as multiples of what the path holds, at which `STALL_TABLE` is given."""

STALL_TABLE = (
    np.array([1.0, 0.999, 0.999, 0.99, 0.97, 0.99, 0.97])
    / np.array(
        [
            [1.0, 0.969, 0.901, 0.765, 0.601, 0.597, 0.425],
            [1.0, 0.999, 0.998, 0.973, 0.836, 0.838, 0.627],
            [1.0, 0.999, 0.998, 0.983, 0.899, 0.937, 0.734],
        ]
    )
    - 1.0
).clip(min=0.0)
"""Time for which selective repeat with a window that counts from the last packet in order stands still, for a packet's
time on the wire; by window and by losses in a round trip. Simulated, as there is no closed form."""


def path_loss(link_loss: NDArray[np.float64]) -> float:
    """Return the share of packets that is lost on a path, from that of each of its links."""
    return float(1.0 - np.prod(1.0 - link_loss))


def loss_window(loss: float, round_trip_s: float, *, cubic: bool = False) -> float:
    """Return the mean window of TCP under random loss [packets].

    Parameters
    ----------
    loss : float
        Share of packets lost, above 0.
    round_trip_s : float
        [s]
    cubic : bool
        CUBIC (RFC 9438, section 5.1), otherwise Reno.
    """
    if not cubic:
        return RENO_WINDOW / math.sqrt(loss)
    return max(CUBIC_WINDOW / math.sqrt(loss), 1.054 * (round_trip_s / loss) ** 0.75)


def go_back_n_efficiency(
    loss: float, round_trip_packets: float, timeout_packets: float, answer_loss: float = 0.0
) -> float:
    """Return what share of the packets that go-back-N could send arrives for the first time, in order.

    Each loss wastes what is under way until the sender hears of it; where what was sent again is lost as well, nobody
    reports it, and the sender waits for its timeout; so it does where the report is lost.

    Parameters
    ----------
    loss : float
        Share of packets lost.
    round_trip_packets, timeout_packets : float
        Packets that the wire carries meanwhile.
    answer_loss : float
        Share of what the receiver says that is lost.
    """
    wasted = round_trip_packets + (loss + answer_loss) * timeout_packets
    return (1.0 - loss) / (1.0 + loss * wasted)


def stall_per_loss(loss: float, round_trip_packets: float, window_packets: float) -> float:
    """Return for how long selective repeat stands still for each lost packet [packet times].

    Parameters
    ----------
    loss : float
        Share of packets lost, above 0.
    round_trip_packets : float
        What the path holds.
    window_packets : float
        How far sending may be ahead of the last packet in order; may be infinite.
    """
    cap = window_packets / round_trip_packets
    if math.isinf(cap):
        return 0.0
    losses = loss * min(round_trip_packets, window_packets)
    stalls = [float(np.interp(losses, STALL_LOSSES, row)) for row in STALL_TABLE]
    if losses > STALL_LOSSES[-1]:
        stalls = [stall * losses / float(STALL_LOSSES[-1]) for stall in stalls]
    highest = float(STALL_CAPS[-1])
    stall = float(np.interp(math.log2(max(cap, 1.0)), np.log2(STALL_CAPS), stalls))
    return stall * min(1.0, highest / cap) / loss


def selective_repeat_efficiency(loss: float, round_trip_packets: float, window_packets: float) -> float:
    """Return what share of its rate selective repeat keeps under random loss (IRN: R. Mittal et al., SIGCOMM 2018)."""
    if loss <= 0.0:
        return 1.0
    return (1.0 - loss) / (1.0 + loss * stall_per_loss(loss, round_trip_packets, window_packets))
