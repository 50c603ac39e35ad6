"""For how long at least one of several plays has been under way, and how one is stopped."""

from __future__ import annotations

from dataclasses import dataclass

import simpy

from simnet.fabric.interface import Fabric
from simnet.fabric.play import Play

__all__ = ["UnderWay", "stopped"]


@dataclass
class UnderWay:
    """Counts what is under way, and the time during which anything is.

    Parameters
    ----------
    env : simpy.Environment
    count : int
        How much is under way now.
    """

    env: simpy.Environment
    count: int = 0
    _since: float = 0.0
    _before_s: float = 0.0

    def begin(self) -> None:
        """Say that one more is under way."""
        if self.count == 0:
            self._since = self.env.now
        self.count += 1

    def end(self) -> None:
        """Say that one is over."""
        self.count -= 1
        if self.count == 0:
            self._before_s += self.env.now - self._since

    def busy_s(self) -> float:
        """Return for how long anything has been under way since the beginning [s]."""
        return self._before_s + (self.env.now - self._since if self.count else 0.0)


def stopped(fabric: Fabric, play: Play) -> bool:
    """Cancel a play; return False of one that is over at this very instant, whose end is still to be told."""
    if not play.complete.triggered:
        fabric.cancel(play)
    return not play.complete.triggered
