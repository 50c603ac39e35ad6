"""Events that are set for a time and a place in the order of that instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import simpy

if TYPE_CHECKING:
    from simpy.events import EventPriority

__all__ = ["LATE", "NORMAL", "URGENT", "Alarm", "Tick", "only_ticks"]

URGENT, NORMAL, LATE = 0, 1, 2
"""Order within an instant: SimPy's own two priorities, and one after all that the actors do."""


class Alarm(simpy.Event):
    """An event that will have happened at a time that is fixed beforehand.

    SimPy's timeouts do the same, but only at one priority.
    """

    def set(self, delay_s: float, priority: int, value: Any = None) -> Alarm:
        """Let the event happen after `delay_s` seconds, once.

        Parameters
        ----------
        delay_s : float
            From now on; at least 0 [s].
        priority : int
            `URGENT`, `NORMAL` or `LATE`.
        value : object
            What a process that waits for it receives.

        Returns
        -------
        Alarm
            The event itself.
        """
        self._ok = True
        self._value = value
        # SimPy orders an instant by any whole number; its own type names only the first two.
        self.env.schedule(self, cast("EventPriority", priority), delay_s)
        return self


class Tick(Alarm):
    """An alarm of what goes on whether anybody makes progress or not, such as a link that flaps."""


def only_ticks(env: simpy.Environment) -> bool:
    """Tell whether nothing is to happen any more but ticks."""
    # SimPy has no other way to ask; nearly always the first is none.
    return all(isinstance(event, Tick) for *_, event in env._queue)
