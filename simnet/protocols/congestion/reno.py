"""Reno: a packet more each round trip, half the window after a loss (RFC 5681, 6582).

On a path that loses a share p of packets the window is 1.2247/sqrt(p) packets on average (M. Mathis et al., CCR 1997).
"""

from __future__ import annotations

from simnet.protocols.congestion.control import Control

__all__ = ["Reno"]


class Reno(Control):
    """Additive increase, multiplicative decrease."""

    def on_acknowledged(self, packets: int, marked: int, now: float, round_trip: float) -> None:
        """Double the window each round trip up to the threshold, from there on add a packet."""
        if self.may_grow:
            begun = packets if self.window + packets <= self.threshold else max(0.0, self.threshold - self.window)
            self.window += begun
            self.window += (packets - begun) / self.window

    def on_loss(self, now: float) -> None:
        """Halve the window."""
        self.threshold = max(self.window / 2, self.least_window)
        self.window = self.threshold

    def on_timeout(self, now: float) -> None:
        """Begin again with one packet; a second time in a row does not lower the threshold (RFC 5681, section 3.1)."""
        if self.window > 1.0:
            self.threshold = max(self.window / 2, self.least_window)
        self.window = 1.0

    def on_idle(self, now: float) -> None:
        """Begin again with the first window, but remember what there was (RFC 2861)."""
        self.threshold = max(self.threshold, 0.75 * self.window)
        self.window = min(self.window, self.first_window)
