"""N flows of DCQCN that share a link for a while: their rates, in short steps, and what of the link they use; compiled.

Reaction point, notification point and marking as in Y. Zhu et al., "Congestion control for large-scale RDMA
deployments", SIGCOMM 2015, section 3; rates are a fluid between the steps.
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.compiled import kernel
from simnet.fabric.kernels.draws import DRAWS
from simnet.fabric.kernels.tables import Table

__all__ = ["DCQCN", "RATE", "share_link"]

DCQCN = np.dtype(
    (
        np.record,
        [
            (name, np.float64)
            for name in (
                *("capacity", "packet_bytes", "mark_from", "mark_all", "most_marked", "delay", "gain", "alpha_period"),
                *("notification_interval", "decrease_interval", "increase_period", "increase_bytes", "recovery_steps"),
                *("additive_increase", "hyper_increase", "minimum_rate"),
            )
        ],
    )
)
"""Parameters: times in seconds, sizes in bytes, rates in bytes per second."""

RATE = np.dtype(
    (
        np.record,
        [
            (name, np.float64)
            for name in (
                *("current", "target", "alpha", "sent", "by_time", "by_bytes"),
                *("timer", "told_at", "cut_at", "notified_at"),
            )
        ],
    )
)
"""State of a flow."""


_FULL = 2.0  # times the queue from which on all is marked


@kernel
def share_link(
    parameters: Table, flows: Table, step: float, steps: int, skipped: int, random: int
) -> tuple[float, float]:
    """Let flows share a link; return the share of it that they use, and the mean queue [bytes].

    Parameters
    ----------
    parameters : table, shape (1,)
    flows : table
        Begins with ``current`` and ``target``.
    step : float
        [s]
    steps, skipped : int
        How many, and how many of them before anything is counted.
    random : int
        State of the random numbers.
    """
    its = parameters[0]
    now, queue, served, waiting = 0.0, 0.0, 0.0, 0.0
    decay = (1.0 - its.gain) ** (step / its.alpha_period)
    for at in range(steps):
        now += step
        arriving = 0.0
        for row in range(len(flows)):
            arriving += flows[row].current * step
        left = min(queue + arriving, its.capacity * step)
        # Whatever a switch does when it holds that much, drop or pause, no more waits for the link.
        queue = min(queue + arriving - left, _FULL * its.mark_all)
        if at >= skipped:
            served += left
            waiting += queue
        marked = 0.0
        if queue >= its.mark_all:
            marked = 1.0
        elif queue > its.mark_from:
            marked = its.most_marked * (queue - its.mark_from) / (its.mark_all - its.mark_from)
        for row in range(len(flows)):
            flow = flows[row]
            if marked > 0.0 and now - flow.told_at >= its.notification_interval and flow.notified_at == np.inf:
                random = random * 48271 % DRAWS
                if random / DRAWS < 1.0 - (1.0 - marked) ** (flow.current * step / its.packet_bytes):
                    flow.told_at = now
                    flow.notified_at = now + queue / its.capacity + its.delay
            if now >= flow.notified_at:
                flow.notified_at = np.inf
                if now - flow.cut_at >= its.decrease_interval:
                    flow.cut_at = now
                    flow.target = flow.current
                    flow.current = max(flow.current * (1.0 - 0.5 * flow.alpha), its.minimum_rate)
                    flow.alpha = (1.0 - its.gain) * flow.alpha + its.gain
                    flow.by_time = 0.0
                    flow.by_bytes = 0.0
                    flow.sent = 0.0
                    flow.timer = now
                continue
            flow.alpha *= decay
            flow.sent += flow.current * step
            increases = 0
            if now - flow.timer >= its.increase_period:
                flow.timer = now
                flow.by_time += 1.0
                increases += 1
            if flow.sent >= its.increase_bytes:
                flow.sent = 0.0
                flow.by_bytes += 1.0
                increases += 1
            for _ in range(increases):
                if min(flow.by_time, flow.by_bytes) > its.recovery_steps:
                    flow.target += its.hyper_increase
                elif max(flow.by_time, flow.by_bytes) >= its.recovery_steps:
                    flow.target += its.additive_increase
                flow.target = min(flow.target, its.capacity)
                flow.current = min(0.5 * (flow.current + flow.target), its.capacity)
    counted = steps - skipped
    return served / (counted * step * its.capacity), waiting / counted
