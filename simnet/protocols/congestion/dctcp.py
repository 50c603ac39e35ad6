"""DCTCP: the window falls by half of the share of packets that switches have marked (RFC 8257).

With one threshold of K packets the queue stays about there. The share alpha settles near sqrt(2/W) for a window of W
packets (M. Alizadeh et al., SIGCOMM 2010). Growth, loss and timeouts are those of Reno.
"""

from __future__ import annotations

from simnet.protocols.congestion.reno import Reno

__all__ = ["Dctcp"]

_GAIN = 1 / 16  # g: RFC 8257, section 4.2; Linux dctcp_shift_g


class Dctcp(Reno):
    """DCTCP.

    Attributes
    ----------
    alpha : share that was marked, smoothed; 1 to begin with, so that the first mark counts in full
    heard, heard_marked : packets that arrived since it was updated, and how many of them were marked
    alpha_until : it is updated when more packets than these are acknowledged
    cut_until : the window stays as it was cut until more packets than these are acknowledged
    """

    alpha: float = 1.0
    heard: int = 0
    heard_marked: int = 0
    alpha_until: int = 0
    cut_until: int = -1

    def on_acknowledged(self, packets: int, marked: int, now: float, round_trip: float) -> None:
        """Estimate the share once a window; cut at the first mark of a window, else grow."""
        self.heard += packets
        self.heard_marked += marked
        if self.acknowledged > self.alpha_until and self.heard > 0:
            self.alpha += _GAIN * (self.heard_marked / self.heard - self.alpha)
            self.heard = 0
            self.heard_marked = 0
            self.alpha_until = self.next
        if self.acknowledged > self.cut_until:
            if marked > 0:
                self.window = max(self.window * (1 - self.alpha / 2), self.least_window)
                self.threshold = self.window
                self.cut_until = self.next
            elif self.may_grow:
                begun = packets if self.window + packets <= self.threshold else max(0.0, self.threshold - self.window)
                self.window += begun
                self.window += (packets - begun) / self.window

    def on_loss(self, now: float) -> None:
        """Halve the window; marks of packets that were under way then do not lower it again."""
        self.threshold = max(self.window / 2, self.least_window)
        self.window = self.threshold
        self.cut_until = self.next
