"""Go-back-N, as reliable connections of InfiniBand and RoCE do it.

The receiver takes what comes in order. At the first packet that does not it says so, once; the sender begins again
where it was told. What is lost once more is found out by a timeout (InfiniBand Architecture Specification 1.3, volume
1, chapter 9.7).
"""

from __future__ import annotations

from simnet.protocols.transports.rules import GoBack, Instruction, Progress, Reply, Rules

__all__ = ["OUT_OF_SEQUENCE", "GoBackN"]

OUT_OF_SEQUENCE = 3
"""Kind of packet by which a receiver says what it expects."""


class GoBackN(Rules):
    """The rules of one connection."""

    def on_data(self, number: int, expected: int, progress: Progress | None, now_s: float) -> list[Instruction]:
        """Say what is missing; that is told but once."""
        return [Reply(OUT_OF_SEQUENCE, expected)] if number > expected else []

    def on_reply(self, kind: int, number: int, count: int, now_s: float) -> list[Instruction]:
        """Go back to where the receiver is."""
        return [GoBack(number)] if kind == OUT_OF_SEQUENCE else []

    def on_timeout(self, acknowledged: int, now_s: float) -> list[Instruction]:
        """Begin again where it was acknowledged last."""
        return [GoBack(acknowledged)]
