"""Go-back-N, as reliable connections of InfiniBand and RoCE do it: a state machine without a clock or a network.

The receiver takes what comes in order. At the first packet that does not it says so, once; the sender begins again
where it was told. What is lost once more is found out by a timeout (InfiniBand Architecture Specification 1.3, volume
1, chapter 9.7).
"""

from __future__ import annotations

from dataclasses import dataclass

from simnet.fabric.packet.settings import PacketSettings

__all__ = ["NOT_AS_EXPECTED", "GoBackN", "Instruction", "Message"]

NOT_AS_EXPECTED = 2
"""Kind of packet by which a receiver says what it expects."""


@dataclass
class Message:
    """A message on its way.

    Parameters
    ----------
    name : int
    row : int
        Of its flow.
    packets : int
    pace : int
        [bytes/s], 0: as fast as the port.
    """

    name: int
    row: int
    packets: int
    pace: int
    is_sent: bool = False
    has_arrived: bool = False
    complained_of: int = -1
    timer: int = 0


Instruction = tuple[str, Message, int, int]
"""``send``: packets first .. second - 1; ``back``: a packet of kind first with number second to the sender; ``timer``:
call in first picoseconds."""


class GoBackN:
    """The rules of one connection a message.

    Parameters
    ----------
    settings : PacketSettings
    """

    def __init__(self, settings: PacketSettings) -> None:
        self._timeout = round(settings.timeout_s * 1e12)

    def begin(self, message: Message) -> list[Instruction]:
        """Send all of it, and look after a while what has come of it."""
        return [("send", message, 0, message.packets), ("timer", message, self._timeout, 0)]

    def on_data(self, message: Message, number: int, expected: int) -> list[Instruction]:
        """Take a packet that is not the one expected, or is marked."""
        if number > expected and message.complained_of != expected:
            message.complained_of = expected
            return [("back", message, NOT_AS_EXPECTED, expected)]
        return []

    def on_control(self, message: Message, kind: int, number: int) -> list[Instruction]:
        """Go back to where the receiver is."""
        if kind == NOT_AS_EXPECTED:
            return [("send", message, number, message.packets)]
        return []

    def on_timeout(self, message: Message, acknowledged: int, since: int) -> list[Instruction]:
        """Begin again where it was acknowledged last, if there was no progress for as long as a timeout.

        Parameters
        ----------
        message : Message
        acknowledged : int
            Packets.
        since : int
            For how long there was none [ps].
        """
        if since < self._timeout:
            return [("timer", message, self._timeout - since, 0)]
        return [("send", message, acknowledged, message.packets), ("timer", message, self._timeout, 0)]
