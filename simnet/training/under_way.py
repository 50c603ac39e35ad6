"""For how long at least one of several things has been under way."""

from __future__ import annotations

from dataclasses import dataclass

import simpy

__all__ = ["UnderWay"]


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
