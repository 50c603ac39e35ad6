"""Flows that a dead link has stopped, from when they have a path again until their transport tries again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import simpy

from simnet.engine.alarm import NORMAL, Alarm
from simnet.errors import StalledError
from simnet.fabric.event_player import Stopped
from simnet.fabric.play import Play
from simnet.fabric.retransmission import goes_on_s
from simnet.protocols import FlowProtocol

__all__ = ["GIVES_UP_AFTER_S", "Outages"]

GIVES_UP_AFTER_S = 924.6
"""For how long a sender tries in vain, while its path comes and goes, until the run is given up [s]: Linux closes a TCP
connection after 15 retransmissions without an answer, which are at least so long (``tcp_retries2``, ip-sysctl)."""

_Resume = Callable[[Play, int, float], bool]


@dataclass(eq=False)
class _Hold:
    """A flow that waits for its transport.

    Attributes
    ----------
    stopped_at_s : since when it does not get through, on the clock of the simulation [s]
    until_s : when it goes on [s]
    cap_bytes_per_s : the highest rate that it then has
    """

    stopped_at_s: float
    until_s: float
    cap_bytes_per_s: float


class Outages:
    """The flows of a fabric that wait for their transport to try again.

    Parameters
    ----------
    env : simpy.Environment
    protocol : FlowProtocol
    resume : callable
        Called with a play, an operation and the highest rate that its flows have from now on, which it had before it
        was held; tells whether that could be done: otherwise its path is dead again, and it is held on.
    """

    def __init__(self, env: simpy.Environment, protocol: FlowProtocol, resume: _Resume) -> None:
        self._env = env
        self._protocol = protocol
        self._resume = resume
        self._holds: dict[tuple[Play, int], _Hold] = {}

    def holds(self, play: Play, operation: int, cap_bytes_per_s: float) -> bool:
        """Tell whether an operation is held; then it has another highest rate when it goes on."""
        hold = self._holds.get((play, operation))
        if hold is not None:
            hold.cap_bytes_per_s = cap_bytes_per_s
        return hold is not None

    def hold(self, flow: Stopped, base_s: float, cap_bytes_per_s: float) -> bool:
        """Hold a flow that was stopped and has a path again; tell whether it has to be held from now on.

        Parameters
        ----------
        flow : Stopped
        base_s : float
            From which the kernel's clock counts [s].
        cap_bytes_per_s : float
        """
        place = flow.play, flow.operation
        hold = self._holds.get(place)
        stopped_at_s = hold.stopped_at_s if hold else base_s + flow.since
        until_s = goes_on_s(self._protocol, stopped_at_s, self._env.now, flow.round_trip_s, flow.sending_s)
        is_new = hold is None
        if hold is None:
            if until_s <= self._env.now:
                return False
            hold = self._holds[place] = _Hold(stopped_at_s, until_s, cap_bytes_per_s)
        hold.until_s = until_s
        alarm = Alarm(self._env)
        alarm.callbacks = [lambda _: self._ring(place, until_s)]
        alarm.set(max(until_s - self._env.now, 0.0), NORMAL)
        return is_new

    def _ring(self, place: tuple[Play, int], until_s: float) -> None:
        hold = self._holds.get(place)
        if hold is None or hold.until_s != until_s:
            return
        if self._resume(*place, hold.cap_bytes_per_s):
            del self._holds[place]
        elif self._env.now - hold.stopped_at_s > GIVES_UP_AFTER_S:
            raise StalledError(
                f"{place[0].name} does not get through since {hold.stopped_at_s:.9g} s: each time that its sender "
                f"tried again, until {self._env.now:.9g} s, a link on its way was down"
            )
