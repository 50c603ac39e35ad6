"""When a sender that hears nothing gives up, and with it the run."""

from __future__ import annotations

from typing import Any

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


def reason_to_give_up(connection: Any, now: int, *, is_cut: bool) -> str:
    """Return why a connection gives up after a timeout, or nothing where it does not.

    Parameters
    ----------
    connection : record
        See `simnet.fabric.packet.kernels.records.CONNECTION`.
    now : int
        [ps]
    is_cut : bool
        A link on its way is down. What is sent again meanwhile does not count, but there is an end to that as well: a
        run waits as long for a link as TCP does.
    """
    passed_s = (now - int(connection["progress_at"])) * PICOSECOND
    if passed_s <= GIVES_UP_AFTER_S if is_cut else connection["vain"] <= connection["retries"]:
        return ""
    since = f"since {int(connection['progress_at']) * PICOSECOND:.9g} s: "
    until = f"until {now * PICOSECOND:.9g} s"
    if is_cut:
        return f"{since}each time that its sender tried again, {until}, a link on its way was down"
    return (
        f"{since}sent again {int(connection['retries'])} times, {until}, the last time for "
        f"{format_duration(int(connection['timeout']) * PICOSECOND)}, in vain; then its transport gives up (retries). "
        "Where links are slow rather than broken, it needs a longer timeout"
    )
