"""When a sender that hears nothing gives up, and with it the run."""

from __future__ import annotations

from simnet.errors import StalledError
from simnet.fabric.outages import GIVES_UP_AFTER_S
from simnet.fabric.packet.ports import PICOSECOND
from simnet.units import format_duration

__all__ = ["GaveUpError", "reason_to_give_up"]


class GaveUpError(StalledError):
    """A sender does not try any longer.

    Parameters
    ----------
    message : int
        That it could not send, as whoever started it calls it.
    reason : str
        From where to where, since when, and how often it was tried.
    """

    def __init__(self, message: int, reason: str) -> None:
        super().__init__(f"a message does not get through {reason}")
        self.message = message
        self.reason = reason


def reason_to_give_up(*, vain: int, retries: int, since: int, now: int, timeout: int, is_cut: bool) -> str:
    """Return why a connection gives up after a timeout, or nothing where it does not.

    Parameters
    ----------
    vain, retries : int
        Timeouts since something was acknowledged, and as many of them as its transport puts up with.
    since, now : int
        When something was acknowledged last, or there was something to send again; and the time [ps].
    timeout : int
        How long it has waited [ps].
    is_cut : bool
        A link on its way is down. What is sent again meanwhile does not count, but there is an end to that as well: a
        run waits as long for a link as TCP does.
    """
    told = f"since {since * PICOSECOND:.9g} s: "
    until = f"until {now * PICOSECOND:.9g} s"
    if is_cut:
        if (now - since) * PICOSECOND <= GIVES_UP_AFTER_S:
            return ""
        return f"{told}each time that its sender tried again, {until}, a link on its way was down"
    if vain <= retries:
        return ""
    return (
        f"{told}sent again {retries} times, {until}, the last time for {format_duration(timeout * PICOSECOND)}, in vain; "
        "then its transport gives up (retries). Where links are slow rather than broken, it needs a longer timeout"
    )
