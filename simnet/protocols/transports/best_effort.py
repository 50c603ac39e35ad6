"""Transports that put up with loss: nothing is acknowledged, and a message is handed over with what has come of it.

A message is over when all of it is there; or at its deadline; or when its last packet came, or none has for a while,
and no more is missing than the loss budget allows. If more is missing, that is asked for again (MLT; H. Wang et al.,
NSDI 2024), unless there is a deadline (OptiReduce; E. Warraich et al., NSDI 2025). The first packets may be critical:
a message is not over without them (LTP's critical packets; what else is critical has to be put first).
"""

from __future__ import annotations

import math

from simnet.protocols.transport import Transport
from simnet.protocols.transports.rules import FinishMessage, Instruction, Progress, Reply, Rules, SendAgain, SetTimer

__all__ = ["MISSING", "BestEffort"]

MISSING = 4
"""Kind of packet by which a receiver asks for what is missing of a message."""


class BestEffort(Rules):
    """The rules of one connection."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._deadline_s: dict[int, float] = {}

    def on_message(self, progress: Progress, now_s: float) -> list[Instruction]:
        """Set a deadline, and look after a while whether still something comes."""
        self._deadline_s[progress.message] = now_s + self.transport.deadline_s
        wait = min(self.transport.deadline_s, self.transport.quiet_s)
        return [SetTimer(progress.message, wait)] if math.isfinite(wait) else []

    def on_data(self, number: int, expected: int, progress: Progress | None, now_s: float) -> list[Instruction]:
        """Hand a message over when it is complete, or its last packet is there and enough of it."""
        return [] if progress is None else self._judge(progress, now_s)

    def on_reply(self, kind: int, number: int, count: int, now_s: float) -> list[Instruction]:
        """Send again what the receiver misses."""
        return [SendAgain(number, count)] if kind == MISSING else []

    def on_timer(self, progress: Progress, now_s: float) -> list[Instruction]:
        """Hand a message over at its deadline, or judge it if nothing has come for a while."""
        quiet_at = progress.heard_at_s + self.transport.quiet_s
        deadline = self._deadline_s[progress.message]
        # Past its deadline only what is critical is still waited for, and asked for when nothing else is under way.
        due = quiet_at if now_s >= deadline * (1 - 1e-12) and progress.critical_missing else min(quiet_at, deadline)
        if now_s < due * (1 - 1e-12):
            return [SetTimer(progress.message, due - now_s)]
        instructions = self._judge(progress, now_s)
        if FinishMessage(progress.message) not in instructions:
            wait = min(self.transport.quiet_s, self.transport.minimum_timeout_s)
            instructions.append(SetTimer(progress.message, min(wait, deadline - now_s) if now_s < deadline else wait))
        return instructions

    def _judge(self, progress: Progress, now_s: float) -> list[Instruction]:
        """Say what becomes of a message of which nothing more is under way."""
        missing = progress.packets - progress.received
        allowed = math.floor(self.transport.loss_budget * progress.packets)
        is_late = now_s >= self._deadline_s[progress.message] * (1 - 1e-12)
        wanted = 0 if is_late or math.isfinite(self.transport.deadline_s) else max(missing - allowed, 0)
        wanted = max(wanted, progress.critical_missing)
        if wanted:
            return [Reply(MISSING, progress.message, wanted)]
        if missing <= allowed or is_late:
            del self._deadline_s[progress.message]
            return [FinishMessage(progress.message)]
        return []
