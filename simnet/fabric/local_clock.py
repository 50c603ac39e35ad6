"""A clock that counts from a base, beside SimPy's.

The base moves to now whenever nothing plays, so that a play takes the same time to the last digit whether it begins at
0 s or after eleven days.
"""

from __future__ import annotations

import math

import simpy

__all__ = ["LocalClock"]

_SAME_INSTANT_ULPS = 8.0


class LocalClock:
    """Between the time of SimPy and the time since a base.

    Parameters
    ----------
    env : simpy.Environment

    Attributes
    ----------
    base_s : float
        SimPy time at which the local time was 0 [s].
    """

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env
        self.base_s = 0.0

    def move_base(self) -> None:
        """Count from now on."""
        self.base_s = self._env.now

    def present(self, known: float) -> float:
        """Return the local time; `known` where that is the same instant, a few units in the last place away."""
        local = self._env.now - self.base_s
        slack = _slack(self._env.now) + _slack(local)
        return known if abs(local - known) <= slack else local

    def before(self, time_s: float) -> float:
        """Return, as a local time, the end of all that is not yet the same instant as a SimPy time."""
        return time_s - self.base_s - _slack(time_s)

    def delay_until(self, local: float) -> float:
        """Return how long it is until a local time; 0 where it has just been [s]."""
        return max(self.base_s + local - self._env.now, 0.0)


def _slack(time_s: float) -> float:
    return _SAME_INSTANT_ULPS * math.ulp(max(time_s, 1e-300))
