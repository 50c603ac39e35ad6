"""The flow-level fabric: what actors ask of it, and what it counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.errors import InvariantError
from simnet.fabric.bounds import Bound, bound, cut_together_s
from simnet.fabric.conditions import Conditions
from simnet.fabric.connections import Connections
from simnet.fabric.event_player import EventPlayer
from simnet.fabric.foresight import Foresight
from simnet.fabric.interface import Counts
from simnet.fabric.kernels.tables import Tables
from simnet.fabric.messages import TakeMessages
from simnet.fabric.network import Network
from simnet.fabric.placement import Placement
from simnet.fabric.placements import Placements
from simnet.fabric.play import Play
from simnet.fabric.playing import Playing
from simnet.fabric.settings import DEFAULT_ENGINE, EngineSettings
from simnet.traffic.schedule import Schedule

__all__ = ["FluidFabric"]


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

    Attributes
    ----------
    conditions : Conditions
        Of the network, for whoever changes them.
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
        self._foresight = Foresight(replace(engine, recurrence=False, repeats=False) if record or player else engine)
        behaves = player is None
        connections = Connections(network, windows=behaves)
        self._playing = Playing(env, network, self._events, self._foresight, connections)
        self._placements = Placements(network, self._foresight.forget, behaves=behaves)
        self.conditions = Conditions(network, self._playing, self._placements)
        self._begun = 0
        self._bounds: dict[Placement, Bound] = {}

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
        owner: str = "",
    ) -> Placement:
        """Lay a schedule out on the network; refuse one that would deadlock.

        It is done once for the same schedule, nodes and owner, if flows have the weight 1 and no deadline. For the
        parameters see `simnet.fabric.placement.place`.
        """
        return self._placements.place(schedule, nodes, weight, deadline_s, owner=owner)

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
        self._playing.catch_up()
        placement = self._placements.as_of_now(placement)
        self._playing.play_events_of(placement.used_resources, placement.nodes)
        self._begun += 1
        play = Play(self, name, placement, self._begun, self._events.now)
        self._playing.begin(play, gates_open=gates_open)
        if gates_open:
            self._playing.open(play, np.arange(placement.schedule.ranks))
        self._playing.wake_now()
        return play

    def open_gates(self, play: Play, ranks: NDArray[np.int64]) -> None:
        """Let ranks join a play."""
        self._playing.require(play)
        if ((ranks < 0) | (ranks >= play.placement.schedule.ranks)).any():
            raise ValueError(f"{play.name} has ranks 0 .. {play.placement.schedule.ranks - 1}")
        self._playing.catch_up()
        self._playing.open(play, ranks)
        self._playing.wake_now()

    def watch(self, play: Play, rank: int) -> None:
        """Have the event of a rank happen when it is complete."""
        self._playing.watch(play, rank)

    def is_playing(self, play: Play) -> bool:
        """Tell whether a play is under way."""
        return self._playing.has(play)

    def is_complete(self, play: Play, rank: int) -> bool:
        """Tell whether a rank of a play is complete by now."""
        return self._playing.is_complete(play, rank)

    def cancel(self, play: Play) -> None:
        """End a play where it stands; what it has not delivered is lost, and nobody waiting for it is served."""
        self._playing.require(play)
        self._playing.catch_up()
        self._playing.cancel(play)

    def set_flow_cap(self, play: Play, operation: int, bytes_per_s: float) -> None:
        """Change the highest rate of the flows of an operation from now on."""
        if not bytes_per_s >= 0.0:
            raise ValueError(f"a cap is a number of at least 0 bytes/s: {bytes_per_s}")
        self._playing.require(play)
        self._playing.catch_up()
        self._playing.play_events(play)
        self._foresight.repeats.turn_away(play)
        if not self.conditions.outages.holds(play, operation, bytes_per_s):
            self._events.set_flow_cap(play, operation, bytes_per_s)
        self._playing.wake_now()

    def reroute(self, play: Play, operation: int, resources: Sequence[int], latency_s: float) -> None:
        """Move an operation, and what of it is under way, to other resources from now on.

        Headers and copies are counted as on its old path: the coefficient of its first hop holds on the new one.
        """
        self._playing.require(play)
        self._playing.catch_up()
        self._playing.play_events_of(np.asarray(resources, dtype=np.int64), np.empty(0, np.int64))
        self._playing.play_events(play)
        self._foresight.repeats.turn_away(play)
        self._events.reroute(play, operation, resources, latency_s)
        self._playing.wake_now()

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

    @property
    def overflowing(self) -> list[str]:
        """Names of links whose queues would have overflowed, where what they drop is not simulated."""
        overflows = np.flatnonzero(self._tables.resources["overflows"])
        return [self.network.resource_names[resource] for resource in overflows.tolist()]

    def bound(self, placement: Placement) -> Bound:
        """Return lower bounds on the time of a play; see `simnet.fabric.bounds`."""
        if placement not in self._bounds:
            self._bounds[placement] = bound(placement, self.network.capacity, self._tables.costs)
        return self._bounds[placement]

    def cut_together_s(self, placements: Sequence[Placement], senders: int | None = None) -> float:
        """Return for how long the busiest resource or core works for several plays; see `simnet.fabric.bounds` [s]."""
        return cut_together_s(placements, self.network.capacity, senders)

    def carried_bytes(self) -> NDArray[np.float64]:
        """Return what flows have taken of each resource until now, shape (resources,) [bytes].

        What is foreseen is played from here on, as only that tells; so it is with `busy_s`.
        """
        self._playing.play_all_events()
        return self._events.carried_bytes(self._playing.local_time())

    def busy_s(self) -> NDArray[np.float64]:
        """Return for how long each resource had a flow, shape (resources,) [s]."""
        self._playing.play_all_events()
        return self._events.busy_s(self._playing.local_time())

    def transfer_s(self, node: int) -> float:
        """Return for how long a node had a transfer of its own under way [s]."""
        foreseen_s = self._foresight.transfer_s(node, self._playing.local_time())
        if foreseen_s is None:
            self._playing.play_all_events()
            foreseen_s = 0.0
        devices = self._tables.devices
        since = self._playing.local_time() - float(devices["busy_since"][node]) if devices["active"][node] > 0 else 0.0
        return float(devices["busy"][node]) + since + foreseen_s

    def require_conservation(self) -> None:
        """Check what every run must satisfy.

        Raises
        ------
        InvariantError
            Bytes are missing, or a resource carried more than its capacity allows.
        """
        clock = self._tables.clock[0]
        sent, ended = float(clock["sent_bytes"]), float(clock["delivered_bytes"] + clock["lost_bytes"])
        if not self._playing.is_active and not math.isclose(sent, ended, rel_tol=1e-9, abs_tol=1e-6):
            raise InvariantError(f"{sent} bytes were sent, but {ended} delivered or lost")
        # The clock shows no shorter time than a unit in its last place, at both ends of each message.
        unseen_s = 2.0 * math.ulp(self._playing.local_time()) * self.counts.messages
        most = self.conditions.highest_capacity * (self.busy_s() + unseen_s)
        over = np.flatnonzero(self.carried_bytes() > most * (1 + 1e-9) + 1e-6)
        if len(over):
            worst = self.network.resource_names[over[0]]
            raise InvariantError(f"{worst} carried {self.carried_bytes()[over[0]]} bytes, it could {most[over[0]]}")

    def close(self) -> None:
        """Hand on what messages are recorded and not handed on yet; nothing is to be played after that."""
        self._events.close(self._playing.clock.base_s)
