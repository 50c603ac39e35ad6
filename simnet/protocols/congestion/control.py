"""What a congestion control is: a state machine that is told what happens to a connection, and sets window or pace.

It knows no clock and no network. A control is a class whose attributes are its state, with annotations and with values
to begin with, and whose methods say what changes. The ones that come with simnet are also compiled: there, `self` is a
row of the table of connections. So they may only use attributes, arithmetic and functions of `math`. A control of one's
own need not be compiled, and may use whatever Python has.
"""

from __future__ import annotations

import math

__all__ = ["Control"]


class Control:
    """No congestion control: a window that never changes. The others begin with the same attributes.

    Attributes
    ----------
    window : packets that may be on their way
    threshold : window at which slow start ends [packets]
    least_window : [packets]
    pace : at most so fast; 0: no limit [bytes/s]
    line_rate : of the sender's link [bytes/s]
    first_window : what a connection begins with [packets]
    timer_at : when `on_timer` is to be called; infinite: never [s]
    bytes_at : when so many bytes are sent `on_bytes` is to be called; infinite: never
    next : number of the packet that is sent next; only to be read
    acknowledged : packets acknowledged in order; only to be read
    may_grow : whether the window is what holds the connection back, and no loss is being made good; a window that
        is not used says nothing about the network and must not grow (RFC 9438, section 5.8); only to be read
    sent_bytes : bytes sent so far; only to be read
    """

    window: float = math.inf
    threshold: float = math.inf
    least_window: float = 2.0
    pace: float = 0.0
    line_rate: float = math.inf
    first_window: float = math.inf
    timer_at: float = math.inf
    bytes_at: float = math.inf
    next: int = 0
    acknowledged: int = 0
    may_grow: bool = True
    sent_bytes: int = 0

    def on_acknowledged(self, packets: int, marked: int, now: float, round_trip: float) -> None:
        """Packets are newly known to have arrived.

        Parameters
        ----------
        packets : int
            How many, in order or selectively.
        marked : int
            How many of them carried a mark of congestion.
        now : float
            [s]
        round_trip : float
            The latest measured; 0 if none is [s].
        """

    def on_loss(self, now: float) -> None:
        """Packets were found to be lost; called once for all that were under way then."""

    def on_timeout(self, now: float) -> None:
        """Nothing was heard for too long; all that was under way is taken to be lost."""

    def on_notified(self, now: float) -> None:
        """Heed a report of congestion by the receiver (a congestion notification packet of RoCE)."""

    def on_timer(self, now: float) -> None:
        """Do what was to be done at `timer_at`."""

    def on_bytes(self, now: float) -> None:
        """Do what was to be done when so many bytes as `bytes_at` were sent."""

    def on_idle(self, now: float) -> None:
        """Send again after there was nothing to send for longer than a timeout."""
