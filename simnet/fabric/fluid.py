"""The flow-level fabric: the event kernel inside SimPy.

Submissions are taken in at once; one wake-up an instant, after all that the actors do at that instant, lets the kernel
run ahead to the next SimPy event, or to the first completion that somebody waits for.

A play that shares nothing with any other is foreseen, all others are played event by event; what is foreseen is handed
over when something comes that shares what it uses, or asks what is known only by playing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.alarm import URGENT, only_ticks
from simnet.engine.wake_up import WakeUp
from simnet.errors import InvariantError, StalledError
from simnet.fabric.bounds import Bound, bound, cut_together_s
from simnet.fabric.connections import Connections
from simnet.fabric.event_player import EventPlayer, Stopped
from simnet.fabric.foresight import Foresight
from simnet.fabric.interface import Counts
from simnet.fabric.kernels import events
from simnet.fabric.kernels.tables import Tables
from simnet.fabric.local_clock import LocalClock
from simnet.fabric.messages import TakeMessages
from simnet.fabric.network import Condition, Network
from simnet.fabric.outages import Outages
from simnet.fabric.placement import Placement, place
from simnet.fabric.play import Play
from simnet.fabric.settings import DEFAULT_ENGINE, EngineSettings
from simnet.fabric.stall import describe_stall
from simnet.traffic.deadlock import check_deadlock
from simnet.traffic.schedule import Schedule

__all__ = ["FluidFabric"]

_MOST_PLACEMENTS = 256  # that are remembered, those used last


class FluidFabric:
    """Plays schedules on a network at flow level.

    Parameters
    ----------
    env : simpy.Environment
    network : Network
    reduce_s_per_byte : float
        Time that a receiver needs to add a byte to what it holds [s/byte].
    engine : EngineSettings
    record : callable, optional
        Handed each message, in batches; then every message is played.
    player : EventPlayer, optional
        Plays everything, in the place of one for flows.
    """

    def __init__(
        self,
        env: simpy.Environment,
        network: Network,
        reduce_s_per_byte: float = 0.0,
        engine: EngineSettings = DEFAULT_ENGINE,
        record: TakeMessages | None = None,
        player: EventPlayer | None = None,
    ) -> None:
        self.env = env
        self.network = network
        self._events = player or EventPlayer(network, reduce_s_per_byte, engine, record)
        self._foresight = Foresight(replace(engine, recurrence=False) if record or player else engine)
        self._clock = LocalClock(env)
        self._wake_up = WakeUp(env, self._go_on)
        self._behaves = player is None
        self._connections = Connections(network, windows=self._behaves)
        self._placements: dict[tuple[int, bytes, Condition], Placement] = {}
        self._outages = Outages(env, network.protocol, self._resume)
        self._highest_capacity = network.capacity.copy()
        self._begun = 0

    @property
    def _tables(self) -> Tables:
        return self._events.tables

    # -- what actors call -------------------------------------------------------------------------------------------

    def place(
        self,
        schedule: Schedule,
        nodes: Sequence[int] | NDArray[np.int64],
        *,
        weight: float | NDArray[np.float64] = 1.0,
        deadline_s: float | NDArray[np.float64] = math.inf,
    ) -> Placement:
        """Lay a schedule out on the network; refuse one that would deadlock.

        It is done once for the same schedule and nodes, if flows have the weight 1 and no deadline. For the parameters
        see `simnet.fabric.placement.place`.
        """
        nodes = np.asarray(nodes, dtype=np.int64)
        if np.any(np.asarray(weight) != 1.0) or np.any(np.asarray(deadline_s) < math.inf):
            check_deadlock(schedule)
            return place(schedule, nodes, self.network, weight, deadline_s, behaves=self._behaves)
        key = (id(schedule), nodes.tobytes(), self.network.condition)
        found = self._placements.pop(key, None)
        if found is None:
            check_deadlock(schedule)
            found = place(schedule, nodes, self.network, behaves=self._behaves)
            if len(self._placements) >= _MOST_PLACEMENTS:
                self._foresight.forget(self._placements.pop(next(iter(self._placements))))
        self._placements[key] = found
        return found

    def play(self, placement: Placement, name: str, *, gates_open: bool = True) -> Play:
        """Begin to play a schedule.

        Parameters
        ----------
        placement : Placement
        name : str
            For messages and tables.
        gates_open : bool
            Let all ranks join at once; otherwise each waits for `Play.open`.
        """
        self._catch_up()
        placement = self._as_of_now(placement)
        self._play_events_of(placement.used_resources, placement.nodes)
        self._begun += 1
        play = Play(self, name, placement, self._begun, self._events.now)
        first = self._connections.begin(placement, self.env.now)
        alone = self._events.leaves_alone(placement)
        if not alone or not self._foresight.take(play, self._tables, first, gates_open=gates_open):
            self._events.begin(play, first)
        if gates_open:
            self._open(play, np.arange(placement.schedule.ranks))
        self._wake_now()
        return play

    def open_gates(self, play: Play, ranks: NDArray[np.int64]) -> None:
        """Let ranks join a play."""
        self._require_playing(play)
        if ((ranks < 0) | (ranks >= play.placement.schedule.ranks)).any():
            raise ValueError(f"{play.name} has ranks 0 .. {play.placement.schedule.ranks - 1}")
        self._catch_up()
        self._open(play, ranks)
        self._wake_now()

    def watch(self, play: Play, rank: int) -> None:
        """Have the kernel stop when a rank is complete; nobody is served by a play that was cancelled."""
        if not self._is_playing(play):
            return
        foreseen = self._foresight.find(play)
        if foreseen is not None:
            foreseen.watched.add(rank)
            self._wake_now()
            return
        self._events.watch(play, rank)

    def cancel(self, play: Play) -> None:
        """End a play where it stands; what it has not delivered is lost, and nobody waiting for it is served."""
        self._require_playing(play)
        self._catch_up()
        self._play_events(play)
        # Ranks with nothing to do may have become complete at this instant, and with them the play.
        self._report()
        if not self._is_playing(play):
            return
        self._events.cancel(play)
        self._connections.end(play.placement, self.env.now)
        self._wake_now()

    def set_capacity(self, resource: int, bytes_per_s: float) -> None:
        """Change the capacity of a resource from now on.

        What comes to a resource without any waits; when there is some again it goes on as its transport says.
        """
        if not 0.0 <= bytes_per_s < math.inf:
            raise ValueError(f"a capacity is a finite number of at least 0 bytes/s: {bytes_per_s}")
        self._catch_up()
        self._play_events_of(np.array([resource]), np.empty(0, np.int64))
        # What is alone on its resources with one capacity may not be with another.
        self._foresight.forget_capacities()
        self._highest_capacity[resource] = max(self._highest_capacity[resource], bytes_per_s)
        stopped = self._events.stopped() if bytes_per_s > 0.0 else []
        self._events.set_capacity(resource, bytes_per_s)
        self._go_on_with(stopped)
        self._wake_now()

    def set_loss(self, loss: Mapping[int, float]) -> None:
        """Have links lose other shares of packets than they usually do, from now on.

        Parameters
        ----------
        loss : mapping
            Share by link; links that are not in it are as the topology says. What is being sent goes on as it began.
        """
        self._change(Condition(self.network.condition.avoided, frozenset(loss.items())))

    def route_around(self, links: Collection[int]) -> None:
        """Have what needs some links take other paths from now on, and what did not any more its usual one.

        What has no other path waits for the links. What went over them starts again as its transport says.
        """
        self._change(Condition(frozenset(links), self.network.condition.loss))

    def give_up(self, links: Collection[int]) -> None:
        """Take note that some links are down for good, and no others: nobody needs to wait for these."""
        self.network.lost = frozenset(links)

    def set_host_speed(self, host: int, factor: float) -> None:
        """Have the protocol stack and the memory of a host work at a part of their speed from now on.

        Parameters
        ----------
        host : int
            Node index.
        factor : float
            Above 0.
        """
        for resource in self.network.resources_of(host):
            self.set_capacity(resource, factor * float(self.network.capacity[resource]))
        self._catch_up()
        nodes = np.flatnonzero(self.network.compiled.host_of_node == host)
        self._play_events_of(np.empty(0, np.int64), nodes)
        self._events.slow_down(nodes, 1.0 / factor - 1.0)

    def set_flow_cap(self, play: Play, operation: int, bytes_per_s: float) -> None:
        """Change the highest rate of the flows of an operation from now on."""
        if not bytes_per_s >= 0.0:
            raise ValueError(f"a cap is a number of at least 0 bytes/s: {bytes_per_s}")
        self._require_playing(play)
        self._catch_up()
        self._play_events(play)
        if not self._outages.holds(play, operation, bytes_per_s):
            self._events.set_flow_cap(play, operation, bytes_per_s)
        self._wake_now()

    def reroute(self, play: Play, operation: int, resources: Sequence[int], latency_s: float) -> None:
        """Move an operation, and what of it is under way, to other resources from now on.

        Headers and copies are counted as on its old path: the coefficient of its first hop holds on the new one.
        """
        self._require_playing(play)
        self._catch_up()
        self._play_events_of(np.asarray(resources, dtype=np.int64), np.empty(0, np.int64))
        self._play_events(play)
        self._events.reroute(play, operation, resources, latency_s)
        self._wake_now()

    # -- counters ---------------------------------------------------------------------------------------------------

    @property
    def counts(self) -> Counts:
        """What was done so far."""
        clock, foreseen = self._tables.clock[0], self._foresight
        return Counts(
            messages=int(clock["messages"]) + foreseen.messages,
            simulated_messages=int(clock["messages"]) + foreseen.simulated_messages,
            solves=int(clock["solves"]),
            passes=int(clock["passes"]),
            touched_flows=int(clock["touched"]),
        )

    @property
    def lost_bytes(self) -> float:
        """What was not delivered: lost and not sent again, late, or cancelled [bytes]."""
        return float(self._tables.clock["lost_bytes"][0])

    @property
    def resent_bytes(self) -> float:
        """What flowed a second time at flow level [bytes of data]."""
        return float(self._tables.clock["resent_bytes"][0])

    @property
    def timeouts(self) -> int:
        """How often a sender had to wait for its timeout at flow level."""
        return int(self._tables.clock["timeouts"][0])

    def bound(self, placement: Placement) -> Bound:
        """Return lower bounds on the time of a play; see `simnet.fabric.bounds`."""
        return bound(placement, self.network.capacity, self._tables.costs)

    def cut_together_s(self, placements: Sequence[Placement], senders: int | None = None) -> float:
        """Return for how long the busiest resource or core works for several plays; see `simnet.fabric.bounds` [s]."""
        return cut_together_s(placements, self.network.capacity, senders)

    def carried_bytes(self) -> NDArray[np.float64]:
        """Return what flows have taken of each resource until now, shape (resources,) [bytes].

        What is foreseen is played from here on, as only that tells; so it is with `busy_s`.
        """
        self._play_all_events()
        return self._events.carried_bytes(self._local_time())

    def busy_s(self) -> NDArray[np.float64]:
        """Return for how long each resource had a flow, shape (resources,) [s]."""
        self._play_all_events()
        return self._events.busy_s(self._local_time())

    def transfer_s(self, node: int) -> float:
        """Return for how long a node had a transfer of its own under way [s]."""
        foreseen_s = self._foresight.transfer_s(node, self._local_time())
        if foreseen_s is None:
            self._play_all_events()
            foreseen_s = 0.0
        device = self._tables.devices[node]
        since = self._local_time() - float(device["busy_since"]) if device["active"] > 0 else 0.0
        return float(device["busy"]) + since + foreseen_s

    def require_conservation(self) -> None:
        """Check what every run must satisfy.

        Raises
        ------
        InvariantError
            Bytes are missing, or a resource carried more than its capacity allows.
        """
        clock = self._tables.clock[0]
        sent, ended = float(clock["sent_bytes"]), float(clock["delivered_bytes"] + clock["lost_bytes"])
        if not self._is_active and not math.isclose(sent, ended, rel_tol=1e-9, abs_tol=1e-6):
            raise InvariantError(f"{sent} bytes were sent, but {ended} delivered or lost")
        # The clock shows no shorter time than a unit in its last place, at both ends of each message.
        unseen_s = 2.0 * math.ulp(self._local_time()) * self.counts.messages
        most = self._highest_capacity * (self.busy_s() + unseen_s)
        over = np.flatnonzero(self.carried_bytes() > most * (1 + 1e-9) + 1e-6)
        if len(over):
            worst = self.network.resource_names[over[0]]
            raise InvariantError(f"{worst} carried {self.carried_bytes()[over[0]]} bytes, it could {most[over[0]]}")

    def close(self) -> None:
        """Hand on what messages are recorded and not handed on yet; nothing is to be played after that."""
        self._events.close(self._clock.base_s)

    @property
    def _is_active(self) -> bool:
        return bool(self._events.plays or self._foresight.plays)

    def _is_playing(self, play: Play) -> bool:
        return self._events.is_playing(play) or self._foresight.find(play) is not None

    def _require_playing(self, play: Play) -> None:
        if not self._is_playing(play):
            raise ValueError(f"{play.name} is over")

    def _open(self, play: Play, ranks: NDArray[np.int64]) -> None:
        """Let ranks join a play that is under way."""
        foreseen = self._foresight.find(play)
        if foreseen is not None:
            if foreseen.join(ranks, self._events.now) and not self._foresight.work_out(foreseen):
                self._play_events(play)
            return
        self._events.open(play, ranks)

    def _forget(self, play: Play) -> None:
        """Be done with a play: take back what it has."""
        self._connections.end(play.placement, self._clock.base_s + self._events.now)
        foreseen = self._foresight.find(play)
        if foreseen is not None:
            self._foresight.close(foreseen, self._tables)
            return
        self._events.end(play)

    # -- conditions of the network ----------------------------------------------------------------------------------

    def _as_of_now(self, placement: Placement) -> Placement:
        """Return how the same is laid out in the present condition of the network."""
        if placement.condition == self.network.condition:
            return placement
        weight, deadline_s = placement.weight, placement.deadline_s
        return self.place(placement.schedule, placement.nodes, weight=weight, deadline_s=deadline_s)

    def _change(self, condition: Condition) -> None:
        """Let the network be in another condition, for what is under way as well."""
        if condition == self.network.condition:
            return
        self._catch_up()
        self.network.change(condition)
        for foreseen in list(self._foresight.plays):
            if not _goes_the_same_way(foreseen.play.laid_out, self._as_of_now(foreseen.play.laid_out)):
                self._play_events(foreseen.play)
        stopped = self._events.stopped()
        for play in list(self._events.plays):
            self._events.relay(play, self._as_of_now(play.laid_out))
        self._go_on_with(stopped)
        self._wake_now()

    def _go_on_with(self, stopped: Sequence[Stopped]) -> None:
        """Let flows that were stopped and have a path again go on when their transport tries again."""
        for flow in stopped:
            if self._events.is_open(flow.play, flow.operation):
                cap = self._events.cap_of(flow.play, flow.operation)
                if self._outages.hold(flow, self._clock.base_s, cap):
                    self._events.set_flow_cap(flow.play, flow.operation, 0.0)

    def _resume(self, play: Play, operation: int, cap_bytes_per_s: float) -> bool:
        """Let a flow go on; tell whether it has a path, or is over."""
        if not self._events.is_playing(play):
            return True
        if not self._events.is_open(play, operation):
            return False
        self._catch_up()
        self._events.set_flow_cap(play, operation, cap_bytes_per_s)
        self._wake_now()
        return True

    # -- plays that are foreseen ------------------------------------------------------------------------------------

    def _play_events_of(self, resources: NDArray[np.int64], nodes: NDArray[np.int64]) -> None:
        """Have the kernel take over what is foreseen and uses one of these resources or nodes."""
        for foreseen in self._foresight.using(resources, nodes):
            self._play_events(foreseen.play)

    def _play_all_events(self) -> None:
        for foreseen in list(self._foresight.plays):
            self._catch_up()
            self._play_events(foreseen.play)
            self._wake_now()

    def _play_events(self, play: Play) -> None:
        """Have the kernel play what was foreseen again, from its beginning until now, and take over from here."""
        foreseen = self._foresight.find(play)
        if foreseen is None:
            return
        # What was submitted at this instant is taken in before the kernel's clock goes back.
        self._advance(self._events.now)
        self._report()
        self._foresight.plays.remove(foreseen)
        self._events.replay(play, foreseen.first, foreseen.joined(), foreseen.watched)
        self._report()

    def is_complete(self, play: Play, rank: int) -> bool:
        """Tell whether a rank of a play is complete by now."""
        if math.isnan(play.rank_duration_s[rank]) and not play.rows:
            foreseen = self._foresight.find(play)
            if foreseen is not None:
                return foreseen.is_complete(rank, self._local_time())
        return not math.isnan(play.rank_duration_s[rank])

    # -- time -------------------------------------------------------------------------------------------------------

    def _local_time(self) -> float:
        return self._clock.present(self._events.now)

    def _catch_up(self) -> None:
        """Bring the kernel's clock to the present; move its base there if nothing plays."""
        local = self._local_time()
        if not self._is_active:
            self._events.read_log(self._clock.base_s)
            self._events.rest(local)
            self._clock.move_base()
            return
        if local < self._events.now:
            ahead = self._clock.base_s + self._events.now
            raise InvariantError(f"the fabric is at {ahead} s, ahead of the actors at {self.env.now} s")
        self._events.now = local

    def _wake_now(self) -> None:
        self._wake_up.at(self.env.now)

    def _go_on(self) -> None:
        """Let time pass up to the next thing that actors do, or are told."""
        if not self._is_active:
            return
        self._catch_up()
        horizon = self.env.peek()
        until = math.inf if horizon == math.inf else self._clock.before(horizon)
        foreseen_at = self._foresight.next_completion()
        why = self._advance(min(until, foreseen_at))
        comes_true = why == events.QUIET and foreseen_at < until
        if comes_true:
            # What the kernel has at that instant belongs to it.
            self._events.now = max(foreseen_at, self._events.now)
            self._advance(self._events.now)
            why = events.COMPLETE
        self._report(foreseen=comes_true)
        if not self._is_active:
            return
        if why == events.COMPLETE:
            self._wake_up.at(self._clock.base_s + self._events.now)
        elif horizon < math.inf and not self._is_dead():
            self._wake_up.at(horizon)
        else:
            # What is foreseen waits for ranks that never join; its other ranks go as far as they can.
            self._play_all_events()
            self._advance(math.inf)
            plays, names = list(self._events.plays), self.network.resource_names
            raise StalledError(describe_stall(self._tables, plays, names, self._clock.base_s))

    def _is_dead(self) -> bool:
        """Tell whether nothing that still happens can make anything move again."""
        if not only_ticks(self.env) or self._events.moves_on() or self._foresight.next_completion() < math.inf:
            return False
        cut = self.network.is_cut
        return all(cut(source, target, self.network.lost) for source, target in self._events.waiting_pairs())

    def _advance(self, until: float) -> int:
        return self._events.advance(until, self._clock.base_s)

    # -- completions ------------------------------------------------------------------------------------------------

    def _report(self, *, foreseen: bool = False) -> None:
        """Tell those who wait which ranks and plays are complete, by play and rank.

        Parameters
        ----------
        foreseen : bool
            Also those whose foreseen times have come.
        """
        complete = self._events.completions()
        if foreseen:
            complete += self._foresight.completions(self._events.now)
        complete.sort(key=lambda one: one[0].number)
        delay = self._clock.delay_until(self._events.now)
        for play, ranks in complete:
            for rank in ranks if play.rank_events else ():
                event = play.rank_events.get(rank)
                if event is not None and not event.triggered:
                    event.set(delay, URGENT, play)
        for play, _ in complete:
            if not np.isnan(play.rank_duration_s).any():
                play.complete.set(delay, URGENT, play)
                self._forget(play)


def _goes_the_same_way(one: Placement, other: Placement) -> bool:
    """Tell whether two layouts of a schedule differ in nothing that what is under way would notice."""
    if one is other:
        return True
    columns = ("latency", "forward_per_byte", "loss", "reliability")
    same = all(np.array_equal(one.operations[column], other.operations[column]) for column in columns)
    return same and one.paths == other.paths
