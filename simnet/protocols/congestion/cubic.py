"""CUBIC: the window is a cubic function of the time since the last loss (RFC 9438). HyStart is left out.

It rises fast back to where the loss was, lingers there, and rises faster again. Where Reno would have more, it does as
Reno does, which is so at every round trip of a data centre: the cubic part takes over where a share of packets below
0.549 RTT^3 is lost, which is 5.5e-13 at 100 us.
"""

from __future__ import annotations

from simnet.protocols.congestion.control import Control

__all__ = ["Cubic"]

_SCALE = 0.4  # C of RFC 9438 [packets/s^3]
_KEPT = 0.7  # beta_cubic
_ADDED = 3 * (1 - _KEPT) / (1 + _KEPT)  # alpha_cubic: as fair as Reno with half the window kept


class Cubic(Control):
    """CUBIC.

    Attributes
    ----------
    plateau : window around which the curve is flat, W_max [packets]
    window_before_loss : [packets]
    epoch_at : when this rise began; negative: it has yet to [s]
    plateau_after : how long after that the plateau is reached, K [s]
    reno_window : what Reno would have with the same loss, W_est [packets]
    """

    plateau: float = 0.0
    window_before_loss: float = 0.0
    epoch_at: float = -1.0
    plateau_after: float = 0.0
    reno_window: float = 0.0

    def on_acknowledged(self, packets: int, marked: int, now: float, round_trip: float) -> None:
        """Double the window each round trip up to the threshold, from there on follow the curve."""
        if not self.may_grow:
            return
        begun = packets if self.window + packets <= self.threshold else max(0.0, self.threshold - self.window)
        self.window += begun
        left = packets - begun
        if left > 0:
            if self.epoch_at < 0:
                self.epoch_at = now
                self.plateau = max(self.plateau, self.window)
                self.plateau_after = ((self.plateau - self.window) / _SCALE) ** (1 / 3)
                self.reno_window = self.window
            since = now - self.epoch_at - self.plateau_after
            added = _ADDED if self.reno_window < self.window_before_loss else 1.0
            self.reno_window += added * left / self.window
            if _SCALE * since**3 + self.plateau < self.reno_window:
                self.window = max(self.window, self.reno_window)
            else:
                target = _SCALE * (since + round_trip) ** 3 + self.plateau
                target = min(max(target, self.window), 1.5 * self.window)
                self.window += left * (target - self.window) / self.window

    def on_loss(self, now: float) -> None:
        """Keep 0.7 of the window; a flow that had less than before makes room (fast convergence)."""
        self.window_before_loss = self.window
        self.plateau = self.window * (1 + _KEPT) / 2 if self.window < self.plateau else self.window
        self.threshold = max(_KEPT * self.window, self.least_window)
        self.window = self.threshold
        self.epoch_at = -1.0

    def on_timeout(self, now: float) -> None:
        """Begin again with one packet, and with no plateau (RFC 9438, section 4.8)."""
        if self.window > 1.0:
            self.window_before_loss = self.window
            self.threshold = max(_KEPT * self.window, self.least_window)
        self.window = 1.0
        self.plateau = 0.0
        self.epoch_at = -1.0

    def on_idle(self, now: float) -> None:
        """Begin again with the first window, but remember what there was (RFC 2861); the curve begins anew."""
        self.threshold = max(self.threshold, 0.75 * self.window)
        self.window = min(self.window, self.first_window)
        self.epoch_at = -1.0
