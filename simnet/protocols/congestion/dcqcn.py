"""DCQCN: a receiver reports marks, the sender cuts its rate and climbs back (Y. Zhu et al., SIGCOMM 2015).

It sets a pace and no window. A connection begins at the rate of its link. After a cut it goes half way back to the old
rate at each step; after `recovery_steps` of them that rate rises as well. Steps by time and by bytes are counted apart.
Numbers: `simnet.protocols.congestion.dcqcn_parameters`.
"""

from __future__ import annotations

import math

from simnet.protocols.congestion.control import Control

__all__ = ["Dcqcn"]

_CLOSE = 1.0  # so near to the rate of the link it is that of the link [bytes/s]


class Dcqcn(Control):
    """DCQCN. The parameters have the names that `simnet.protocols.Transport` has for them.

    Attributes
    ----------
    alpha : how bad congestion is, from 0 to 1
    alpha_at : when it last changed; infinite: there was no notification yet [s]
    target_rate : that it climbs back to [bytes/s]
    time_steps, byte_steps : since the last cut
    cut_at : when that was [s]
    """

    alpha_gain: float = 1 / 256
    alpha_period_s: float = 55e-6
    decrease_interval_s: float = 0.0
    increase_period_s: float = 55e-6
    increase_bytes: float = 10e6
    recovery_steps: float = 5.0
    additive_increase_bytes_per_s: float = 40e6 / 8
    hyper_increase_bytes_per_s: float = 200e6 / 8
    minimum_rate_bytes_per_s: float = 10e6 / 8

    alpha: float = 1.0
    alpha_at: float = math.inf
    target_rate: float = 0.0
    time_steps: int = 0
    byte_steps: int = 0
    cut_at: float = -math.inf

    def on_notified(self, now: float) -> None:
        """Cut the rate by half of alpha, unless that was just done, and raise alpha."""
        if self.alpha_at < now:
            self.alpha *= (1 - self.alpha_gain) ** math.floor((now - self.alpha_at) / self.alpha_period_s)
        if now >= self.cut_at + self.decrease_interval_s:
            rate = self.pace if self.pace > 0 else self.line_rate
            self.target_rate = rate
            self.pace = max(rate * (1 - self.alpha / 2), min(self.minimum_rate_bytes_per_s, self.line_rate))
            self.time_steps = 0
            self.byte_steps = 0
            self.cut_at = now
            self.timer_at = now + self.increase_period_s
            self.bytes_at = self.sent_bytes + self.increase_bytes
        self.alpha += self.alpha_gain * (1 - self.alpha)
        self.alpha_at = now

    def on_timer(self, now: float) -> None:
        """Raise the rate by a step of time."""
        self.timer_at = now + self.increase_period_s
        if min(self.time_steps, self.byte_steps) > self.recovery_steps:
            self.target_rate += self.hyper_increase_bytes_per_s
        elif max(self.time_steps, self.byte_steps) >= self.recovery_steps:
            self.target_rate += self.additive_increase_bytes_per_s
        self.time_steps += 1
        self.target_rate = min(self.target_rate, self.line_rate)
        self.pace = (self.pace + self.target_rate) / 2
        if self.pace > self.line_rate - _CLOSE:
            self.pace = self.line_rate
            self.timer_at = math.inf
            self.bytes_at = math.inf

    def on_bytes(self, now: float) -> None:
        """Raise the rate by a step of bytes."""
        self.bytes_at += self.increase_bytes
        if min(self.time_steps, self.byte_steps) > self.recovery_steps:
            self.target_rate += self.hyper_increase_bytes_per_s
        elif max(self.time_steps, self.byte_steps) >= self.recovery_steps:
            self.target_rate += self.additive_increase_bytes_per_s
        self.byte_steps += 1
        self.target_rate = min(self.target_rate, self.line_rate)
        self.pace = (self.pace + self.target_rate) / 2
        if self.pace > self.line_rate - _CLOSE:
            self.pace = self.line_rate
            self.timer_at = math.inf
            self.bytes_at = math.inf
