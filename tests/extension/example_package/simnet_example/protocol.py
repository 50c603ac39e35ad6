"""A transport: TCP with a congestion control of its own, and less work for hosts."""

from dataclasses import replace

from simnet.protocols import Default, changed
from simnet.protocols.congestion import Control
from simnet.protocols.tcp import TCP


class Gentle(Control):
    """Additive increase by a packet a round trip, multiplicative decrease by a tenth."""

    def on_acknowledged(self, packets, marked, now, round_trip):
        self.window += packets / self.window

    def on_loss(self, now):
        self.window = max(0.9 * self.window, self.least_window)

    def on_timeout(self, now):
        self.window = self.least_window


GENTLE = replace(
    TCP,
    summary="TCP that gives way by a tenth",
    defaults=changed(TCP.defaults, Default("send_overhead_s", 1e-6, "measured on our hosts")),
    control=Gentle,
)
