"""Plays under way at flow level, and how their time passes inside SimPy.

Submissions are taken in at once; one wake-up an instant, after all that the actors do at that instant, lets the kernel
run ahead to the next SimPy event, or to the first completion that somebody waits for.

A play that shares nothing with any other is foreseen, all others are played event by event; what is foreseen is handed
over when something comes that shares what it uses, or asks what is known only by playing.
"""

from __future__ import annotations

import math

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.alarm import URGENT, only_ticks
from simnet.engine.wake_up import WakeUp
from simnet.errors import InvariantError, StalledError
from simnet.fabric.connections import Connections
from simnet.fabric.event_player import EventPlayer
from simnet.fabric.foresight import Foresight
from simnet.fabric.kernels import events
from simnet.fabric.local_clock import LocalClock
from simnet.fabric.network import Network
from simnet.fabric.play import Play
from simnet.fabric.stall import describe_stall

__all__ = ["Playing"]


class Playing:
    """The plays of a fabric that are under way.

    Parameters
    ----------
    env : simpy.Environment
    network : Network
    events : EventPlayer
    foresight : Foresight
    connections : Connections

    Attributes
    ----------
    clock : LocalClock
        From which time on the clock of the events counts.
    """

    def __init__(
        self,
        env: simpy.Environment,
        network: Network,
        events: EventPlayer,
        foresight: Foresight,
        connections: Connections,
    ) -> None:
        self.env = env
        self.events = events
        self.foresight = foresight
        self.clock = LocalClock(env)
        self._network = network
        self._connections = connections
        self._wake_up = WakeUp(env, self._go_on)

    @property
    def is_active(self) -> bool:
        """Whether anything is under way."""
        return bool(self.events.plays or self.foresight.plays)

    def has(self, play: Play) -> bool:
        """Tell whether a play is under way."""
        return self.events.is_playing(play) or self.foresight.find(play) is not None

    def require(self, play: Play) -> None:
        """Refuse a play that is over."""
        if not self.has(play):
            raise ValueError(f"{play.name} is over")

    # -- what is under way ------------------------------------------------------------------------------------------

    def begin(self, play: Play, *, gates_open: bool) -> None:
        """Take on a play: foresee it where it shares nothing, otherwise play it event by event."""
        first = self._connections.begin(play.placement, self.env.now)
        alone = self.events.leaves_alone(play.placement)
        if not alone or not self.foresight.take(play, self.events.tables, first, gates_open=gates_open):
            if alone:
                self.foresight.watch(play, first, self.events.tables)
            self.events.begin(play, first)

    def open(self, play: Play, ranks: NDArray[np.int64]) -> None:
        """Let ranks join a play that is under way."""
        foreseen = self.foresight.find(play)
        if foreseen is not None:
            if foreseen.join(ranks, self.events.now) and not self.foresight.work_out(foreseen):
                self.play_events(play)
            return
        if self.events.now > play.begun:
            self.foresight.repeats.turn_away(play)
        self.events.open(play, ranks)

    def watch(self, play: Play, rank: int) -> None:
        """Have the kernel stop when a rank is complete; nobody is served by a play that was cancelled."""
        if not self.has(play):
            return
        foreseen = self.foresight.find(play)
        if foreseen is not None:
            foreseen.watched.add(rank)
            self.wake_now()
            return
        self.events.watch(play, rank)

    def cancel(self, play: Play) -> None:
        """End a play where it stands; what it has not delivered is lost, and nobody waiting for it is served."""
        self.play_events(play)
        # Ranks with nothing to do may have become complete at this instant, and with them the play.
        self._report()
        if not self.has(play):
            return
        self.foresight.repeats.turn_away(play)
        self.events.cancel(play)
        self._connections.end(play.placement, self.env.now)
        self.wake_now()

    def is_complete(self, play: Play, rank: int) -> bool:
        """Tell whether a rank of a play is complete by now."""
        if math.isnan(play.rank_duration_s[rank]) and not play.rows:
            foreseen = self.foresight.find(play)
            if foreseen is not None:
                return foreseen.is_complete(rank, self.local_time())
        return not math.isnan(play.rank_duration_s[rank])

    # -- from what is foreseen to events ----------------------------------------------------------------------------

    def play_events_of(self, resources: NDArray[np.int64], nodes: NDArray[np.int64]) -> None:
        """Have the kernel take over what is foreseen and uses one of these resources or nodes."""
        self.foresight.repeats.disturb(resources, nodes)
        for foreseen in self.foresight.using(resources, nodes):
            self.play_events(foreseen.play)

    def play_all_events(self) -> None:
        """Have the kernel take over all that is foreseen."""
        for foreseen in list(self.foresight.plays):
            self.catch_up()
            self.play_events(foreseen.play)
            self.wake_now()

    def play_events(self, play: Play) -> None:
        """Have the kernel play what was foreseen again, from its beginning until now, and take over from here."""
        foreseen = self.foresight.find(play)
        if foreseen is None:
            return
        # What was submitted at this instant is taken in before the kernel's clock goes back.
        self._advance(self.events.now)
        self._report()
        self.foresight.plays.remove(foreseen)
        if foreseen.recurrence is None and foreseen.outcome is not None:
            self.foresight.repeats.hand_over(play.placement)
        self.events.replay(play, foreseen.first, foreseen.joined(), foreseen.watched)
        self._report()

    # -- time -------------------------------------------------------------------------------------------------------

    def local_time(self) -> float:
        """Return the present time on the clock of the events [s]."""
        return self.clock.present(self.events.now)

    def catch_up(self) -> None:
        """Bring the kernel's clock to the present; move its base there if nothing plays."""
        local = self.local_time()
        if not self.is_active:
            self.events.read_log(self.clock.base_s)
            self.events.rest(local)
            self.clock.move_base()
            return
        if local < self.events.now:
            ahead = self.clock.base_s + self.events.now
            raise InvariantError(f"the fabric is at {ahead} s, ahead of the actors at {self.env.now} s")
        self.events.now = local

    def wake_now(self) -> None:
        """Have time pass when the actors have done all that they do at this instant."""
        self._wake_up.at(self.env.now)

    def _go_on(self) -> None:
        """Let time pass up to the next thing that actors do, or are told."""
        if not self.is_active:
            return
        self.catch_up()
        for foreseen in self.foresight.unsure():
            self.play_events(foreseen.play)
        horizon = self.env.peek()
        until = math.inf if horizon == math.inf else self.clock.before(horizon)
        foreseen_at = self.foresight.next_completion()
        why = self._advance(min(until, foreseen_at))
        comes_true = why == events.QUIET and foreseen_at < until
        if comes_true:
            # What the kernel has at that instant belongs to it.
            self.events.now = max(foreseen_at, self.events.now)
            self._advance(self.events.now)
            why = events.COMPLETE
        self._report(foreseen=comes_true)
        if not self.is_active:
            return
        if why == events.COMPLETE:
            self._wake_up.at(self.clock.base_s + self.events.now)
        elif horizon < math.inf and not self._is_dead():
            self._wake_up.at(horizon)
        else:
            # What is foreseen waits for ranks that never join; its other ranks go as far as they can.
            self.play_all_events()
            self._advance(math.inf)
            plays, names = list(self.events.plays), self._network.resource_names
            raise StalledError(describe_stall(self.events.tables, plays, names, self.clock.base_s))

    def _is_dead(self) -> bool:
        """Tell whether nothing that still happens can make anything move again."""
        if not only_ticks(self.env) or self.events.moves_on() or self.foresight.next_completion() < math.inf:
            return False
        cut = self._network.is_cut
        return all(cut(source, target, self._network.lost) for source, target in self.events.waiting_pairs())

    def _advance(self, until: float) -> int:
        return self.events.advance(until, self.clock.base_s)

    # -- completions ------------------------------------------------------------------------------------------------

    def _report(self, *, foreseen: bool = False) -> None:
        """Tell those who wait which ranks and plays are complete, by play and rank.

        Parameters
        ----------
        foreseen : bool
            Also those whose foreseen times have come.
        """
        complete = self.events.completions()
        if foreseen:
            complete += self.foresight.completions(self.events.now)
        complete.sort(key=lambda one: one[0].number)
        delay = self.clock.delay_until(self.events.now)
        for play, ranks in complete:
            for rank in ranks if play.rank_events else ():
                event = play.rank_events.get(rank)
                if event is not None and not event.triggered:
                    event.set(delay, URGENT, play)
        for play, _ in complete:
            if not np.isnan(play.rank_duration_s).any():
                play.complete.set(delay, URGENT, play)
                self._forget(play)

    def _forget(self, play: Play) -> None:
        """Be done with a play: take back what it has."""
        self._connections.end(play.placement, self.clock.base_s + self.events.now)
        foreseen = self.foresight.find(play)
        if foreseen is not None:
            self.foresight.close(foreseen, self.events.tables)
            return
        self.foresight.repeats.remember(play, self.events.tables)
        self.events.end(play)
