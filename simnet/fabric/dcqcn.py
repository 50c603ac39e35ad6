"""What DCQCN leaves unused of a link that flows share.

Rates that are cut together leave the link idle until they have grown again, the more so the more flows there are, as a
notification to each of N flows cuts N rates, and each grows by the same step. No closed form holds where the marks come
in bursts (Y. Zhu et al., "ECN or delay", CoNEXT 2016, have one for few flows), so the equations themselves are
stepped through, once for a link and a number of flows.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.dcqcn import DCQCN, RATE, share_link
from simnet.fabric.kernels.rates import MOST_SHARING
from simnet.protocols.transport import Transport

__all__ = ["steady_queue_bytes", "unused_shares", "utilisation"]

_STEPPED = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # numbers of flows; between them the share is interpolated
_LONGEST_STEP_S = 2e-6
_PERIODS = 1500  # of increase, that are stepped through, a third of which do not count


def steady_queue_bytes(transport: Transport, capacity: float, packet_bytes: float, flows: int) -> float:
    """Return the queue of the steady state, valid where at most a third of `most_marked` is marked there [bytes].

    The share of marked packets is p = cbrt(R_AI N^2 / (tau C^2) (1/B + N/(T C))^2), rates in packets a second and B in
    packets (the same paper, on the fixed point of DCQCN).
    """
    rate = capacity / packet_bytes
    increase = transport.additive_increase_bytes_per_s / packet_bytes
    events = packet_bytes / transport.increase_bytes + flows / (transport.increase_period_s * rate)
    marked = (increase * flows**2 / (transport.alpha_period_s * rate**2) * events**2) ** (1.0 / 3.0)
    start, end = transport.mark_from_s * capacity, transport.mark_all_s * capacity
    return start + (end - start) * marked / transport.most_marked


@lru_cache(maxsize=1024)
def utilisation(
    transport: Transport, capacity: float, packet_bytes: float, round_trip_s: float, flows: int
) -> tuple[float, float]:
    """Return the share of a link that so many flows use together, and the mean queue [bytes].

    Parameters
    ----------
    transport : Transport
    capacity : float
        Of the link [bytes/s].
    packet_bytes : float
        On the wire.
    round_trip_s : float
        Of the path, when nothing waits [s].
    flows : int
    """
    parameters = np.zeros(1, DCQCN)
    its = parameters[0]
    its["capacity"], its["packet_bytes"] = capacity, packet_bytes
    its["mark_from"], its["mark_all"] = transport.mark_from_s * capacity, transport.mark_all_s * capacity
    its["most_marked"] = transport.most_marked
    its["delay"] = round_trip_s + transport.notification_delay_s
    its["gain"], its["alpha_period"] = transport.alpha_gain, transport.alpha_period_s
    its["notification_interval"] = transport.notification_interval_s
    its["decrease_interval"] = transport.decrease_interval_s
    its["increase_period"], its["increase_bytes"] = transport.increase_period_s, transport.increase_bytes
    its["recovery_steps"] = transport.recovery_steps
    its["additive_increase"] = transport.additive_increase_bytes_per_s
    its["hyper_increase"] = transport.hyper_increase_bytes_per_s
    its["minimum_rate"] = transport.minimum_rate_bytes_per_s
    state = np.zeros(flows, RATE)
    state["current"] = state["target"] = capacity / flows
    state["told_at"] = state["cut_at"] = -math.inf
    state["notified_at"] = math.inf
    state["alpha"] = 0.5
    # Nobody's timer expires together with another's.
    state["timer"] = -transport.increase_period_s * np.arange(flows) / flows
    step_s = min(_LONGEST_STEP_S, transport.notification_interval_s / 2)
    steps = math.ceil(_PERIODS * transport.increase_period_s / step_s)
    return share_link(parameters, state, step_s, steps, steps // 3, 1)


def unused_shares(
    transport: Transport, capacity: float, packet_bytes: float, round_trip_s: float
) -> NDArray[np.float64]:
    """Return what 0, 1 .. `MOST_SHARING` flows leave unused of a link, shape (MOST_SHARING + 1,)."""
    unused = np.zeros(MOST_SHARING + 1)
    if not math.isfinite(transport.mark_from_s) or not math.isfinite(packet_bytes):
        return unused
    shares = [1.0 - utilisation(transport, capacity, packet_bytes, round_trip_s, flows)[0] for flows in _STEPPED]
    unused[2:] = np.interp(np.arange(2, MOST_SHARING + 1), _STEPPED, shares)
    return unused
