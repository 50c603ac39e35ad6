"""A wake-up after all that the actors do at an instant, for who simulates beside them with a clock of its own."""

from __future__ import annotations

import math
from collections.abc import Callable

import simpy

from simnet.engine.alarm import LATE, Alarm

__all__ = ["WakeUp"]


class WakeUp:
    """Calls somebody once at the earliest of the times that were asked for, after the actors of that instant.

    Parameters
    ----------
    env : simpy.Environment
    call : callable
        Called without arguments; may ask for another time.
    """

    def __init__(self, env: simpy.Environment, call: Callable[[], None]) -> None:
        self._env = env
        self._call = call
        self._alarm: simpy.Event | None = None
        self._at_s = math.inf

    def at(self, time_s: float) -> None:
        """Ask for a time, not before now [s]; an earlier one that was asked for serves as well."""
        # A clock of one's own may be behind by what rounding makes of an instant.
        delay = max(time_s - self._env.now, 0.0)
        # What the clock will show then, which rounding can make another time.
        time_s = self._env.now + delay
        if time_s >= self._at_s:
            return
        self._at_s = time_s
        self._alarm = alarm = Alarm(self._env)
        alarm.callbacks = [self._ring]
        alarm.set(delay, LATE)

    def _ring(self, alarm: simpy.Event) -> None:
        if alarm is self._alarm:
            self._alarm = None
            self._at_s = math.inf
            self._call()
