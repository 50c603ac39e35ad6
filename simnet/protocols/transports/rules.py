"""The rules of a transport: a state machine without a clock or a network, stimulus in, instructions out.

There is one object for each connection, of which both ends make use. What happens to every packet is done by the packet
level itself: sending, counting in what comes in order, acknowledging. The rules are asked about what is out of the
ordinary.
"""

from __future__ import annotations

from dataclasses import dataclass

from simnet.protocols.transport import Transport

__all__ = ["FinishMessage", "GoBack", "Instruction", "Progress", "Reply", "Rules", "SendAgain", "SetTimer"]


@dataclass(frozen=True)
class Progress:
    """How far a message has come.

    Attributes
    ----------
    message : int
        Which one it is.
    first, end : int
        Numbers of its packets, from and up to without.
    received : int
        Packets of it that have come, where order does not matter.
    heard_at_s : float
        When the last of them did [s].
    critical_missing : int
        Of the first packets, those that are critical, how many have not come.
    """

    message: int
    first: int
    end: int
    received: int
    heard_at_s: float
    critical_missing: int = 0

    @property
    def packets(self) -> int:
        """How many it consists of."""
        return self.end - self.first


@dataclass(frozen=True)
class Reply:
    """Send the sender a packet of a kind, from 3 on, with a number and a count."""

    kind: int
    number: int
    count: int = 0


@dataclass(frozen=True)
class GoBack:
    """Send everything from a packet on; all before it is acknowledged."""

    number: int


@dataclass(frozen=True)
class SendAgain:
    """Send again so many of the packets that have not come of a message."""

    message: int
    packets: int


@dataclass(frozen=True)
class FinishMessage:
    """Hand over a message, as far as it has come."""

    message: int


@dataclass(frozen=True)
class SetTimer:
    """Call `on_timer` for a message after a while [s]."""

    message: int
    delay_s: float


Instruction = Reply | GoBack | SendAgain | FinishMessage | SetTimer


class Rules:
    """Rules that never do anything; others begin with these.

    Parameters
    ----------
    transport : Transport
        The numbers to go by.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def on_message(self, progress: Progress, now_s: float) -> list[Instruction]:
        """Take note that a message begins."""
        return []

    def on_data(self, number: int, expected: int, progress: Progress | None, now_s: float) -> list[Instruction]:
        """Take note, at the receiver, of a packet; `expected` is the first number that has not come.

        Of packets that come while the same one is missing only the first is told.
        """
        return []

    def on_reply(self, kind: int, number: int, count: int, now_s: float) -> list[Instruction]:
        """Take note, at the sender, of what the receiver sent."""
        return []

    def on_timeout(self, acknowledged: int, now_s: float) -> list[Instruction]:
        """Nothing was acknowledged for as long as the timeout of the transport."""
        return []

    def on_timer(self, progress: Progress, now_s: float) -> list[Instruction]:
        """Take note that the time of a `SetTimer` has passed, of a message that is not over."""
        return []
