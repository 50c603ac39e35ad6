"""The flow-level fabric: the event kernel inside SimPy.

Submissions are taken in at once; one wake-up an instant, after all that the actors do at that instant, lets the kernel
run ahead to the next SimPy event, or to the first completion that somebody waits for.

The kernel's clock counts from a base that moves to now whenever nothing plays, so that a play takes the same time to
the last digit whether it begins at 0 s or after eleven days.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.alarm import LATE, URGENT, Alarm
from simnet.errors import InvariantError, StalledError
from simnet.fabric.foresight import Foresight
from simnet.fabric.kernels import events
from simnet.fabric.kernels.tables import Table, Tables
from simnet.fabric.messages import LOG_ROWS, MessageLog, TakeMessages
from simnet.fabric.network import Network
from simnet.fabric.placement import Placement, place
from simnet.fabric.play import Play
from simnet.fabric.rows import Rows
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
    """

    def __init__(
        self,
        env: simpy.Environment,
        network: Network,
        reduce_s_per_byte: float = 0.0,
        engine: EngineSettings = DEFAULT_ENGINE,
        record: TakeMessages | None = None,
    ) -> None:
        self.env = env
        self.network = network
        self._rows = Rows(network, reduce_s_per_byte, LOG_ROWS if record else 0)
        self._log = MessageLog(record) if record else None
        self._tables.clock["records"] = record is not None
        self._tables.clock["full_solves"] = not engine.local_repair
        self._playing: dict[int, Play] = {}
        self._opened: set[tuple[int, int]] = set()
        self._placements: dict[tuple[int, bytes], Placement] = {}
        self._highest_capacity = network.capacity.copy()
        self._foresight = Foresight(replace(engine, recurrence=False) if record else engine)
        self._resource_users = np.zeros(len(network.capacity), np.int64)
        self._node_users = np.zeros(len(network.compiled.node_names), np.int64)
        self._begun = 0
        self._base = 0.0
        self._alarm: simpy.Event | None = None
        self._awake_at = math.inf

    @property
    def _tables(self) -> Tables:
        return self._rows.tables

    # -- what actors call -------------------------------------------------------------------------------------------

    def place(self, schedule: Schedule, nodes: Sequence[int] | NDArray[np.int64]) -> Placement:
        """Lay a schedule out on the network, once for the same schedule and nodes; refuse one that would deadlock."""
        nodes = np.asarray(nodes, dtype=np.int64)
        key = (id(schedule), nodes.tobytes())
        found = self._placements.pop(key, None)
        if found is None:
            check_deadlock(schedule)
            found = place(schedule, nodes, self.network)
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
        self._play_events_of(placement.used_resources, placement.nodes)
        self._begun += 1
        play = Play(self, name, placement, self._begun, self._now)
        first_setup_s = self._set_up_connections(placement)
        shared = self._resource_users[placement.used_resources].any() or self._node_users[placement.used_nodes].any()
        alone = not shared and self._servers_are_free(placement.used_nodes)
        if not alone or not self._foresight.take(play, self._tables, first_setup_s, gates_open=gates_open):
            self._begin(play, first_setup_s)
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
        gate = self._tables.gates[play.rows["gates"] + rank]
        gate["watched"] = True
        if not math.isnan(gate["complete_at"]):
            self._tables.clock["watched"] += 1

    def cancel(self, play: Play) -> None:
        """End a play where it stands; what it has not delivered is lost, and nobody waiting for it is served."""
        self._require_playing(play)
        self._catch_up()
        self._play_events(play)
        # Ranks with nothing to do may have become complete at this instant, and with them the play.
        self._report()
        if not self._is_playing(play):
            return
        events.cancel(self._tables, play.rows["operations"], len(play.placement.operations))
        self._forget(play)
        self._wake_now()

    def set_capacity(self, resource: int, bytes_per_s: float) -> None:
        """Change the capacity of a resource from now on."""
        if not 0.0 <= bytes_per_s < math.inf:
            raise ValueError(f"a capacity is a finite number of at least 0 bytes/s: {bytes_per_s}")
        self._catch_up()
        self._play_events_of(np.array([resource]), np.empty(0, np.int64))
        # What is alone on its resources with one capacity may not be with another.
        self._foresight.forget_capacities()
        self._highest_capacity[resource] = max(self._highest_capacity[resource], bytes_per_s)
        events.set_capacity(self._tables, resource, bytes_per_s)
        self._wake_now()

    def set_flow_cap(self, play: Play, operation: int, bytes_per_s: float) -> None:
        """Change the highest rate of the flows of an operation from now on."""
        if not bytes_per_s >= 0.0:
            raise ValueError(f"a cap is a number of at least 0 bytes/s: {bytes_per_s}")
        self._require_playing(play)
        self._catch_up()
        self._play_events(play)
        events.set_flow_cap(self._tables, play.rows["operations"] + operation, bytes_per_s)
        self._wake_now()

    def reroute(self, play: Play, operation: int, resources: Sequence[int], latency_s: float) -> None:
        """Move an operation, and what of it is under way, to other resources from now on.

        Headers and copies are counted as on its old path: the coefficient of its first hop holds on the new one.
        """
        self._require_playing(play)
        self._catch_up()
        used = np.asarray(resources, dtype=np.int64)
        self._play_events_of(used, np.empty(0, np.int64))
        self._play_events(play)
        np.add.at(self._resource_users, used, 1)
        first = self._rows.lend_hops(len(resources))
        before = play.rerouted.pop(operation, None)
        play.rerouted[operation] = first, used
        row = play.rows["operations"] + operation
        hops = self._tables.hops[first : first + len(resources)]
        hops["resource"], hops["flow"] = resources, row
        hops["coefficient"] = play.placement.wire_factor[operation]
        events.reroute(self._tables, row, first, len(resources), latency_s)
        if before is not None:
            self._leave_path(*before)
        self._wake_now()

    @property
    def costs(self) -> Table:
        """Costs per message and byte, within a host and through the protocol; not to be changed."""
        return self._tables.costs

    # -- counters ---------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> int:
        """Messages begun so far; those of a play that is foreseen count when it is over."""
        return int(self._tables.clock["messages"][0]) + self._foresight.messages

    @property
    def simulated_messages(self) -> int:
        """Those whose times were worked out one by one; the others repeat a period, or a play, that was."""
        return int(self._tables.clock["messages"][0]) + self._foresight.simulated_messages

    @property
    def solves(self) -> int:
        """Connected components whose rates were solved so far."""
        return int(self._tables.clock["solves"][0])

    def carried_bytes(self) -> NDArray[np.float64]:
        """Return what flows that are over took of each resource, shape (resources,) [bytes]."""
        self._play_all_events()
        return self._tables.resources["carried"].copy()

    def busy_s(self) -> NDArray[np.float64]:
        """Return for how long each resource had a flow, shape (resources,) [s]."""
        self._play_all_events()
        resources = self._tables.resources
        since = np.where(resources["users"] > 0, self._local_time() - resources["busy_since"], 0.0)
        return np.asarray(resources["busy"] + since, dtype=np.float64)

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
        most = self._highest_capacity * self.busy_s()
        over = np.flatnonzero(self.carried_bytes() > most * (1 + 1e-9) + 1e-6)
        if len(over):
            worst = self.network.resource_names[over[0]]
            raise InvariantError(f"{worst} carried {self.carried_bytes()[over[0]]} bytes, it could {most[over[0]]}")

    def close(self) -> None:
        """Hand on what messages are recorded and not handed on yet; nothing is to be played after that."""
        if self._log is not None:
            self._read_log()
            self._log.close()

    @property
    def _is_active(self) -> bool:
        return bool(self._playing or self._foresight.plays)

    def _is_playing(self, play: Play) -> bool:
        if play.rows:
            return self._playing.get(play.rows["plays"]) is play
        return self._foresight.find(play) is not None

    def _servers_are_free(self, nodes: NDArray[np.int64]) -> bool:
        """Tell whether nothing is left of a cancelled play for senders and receivers to work on."""
        free_at = self._tables.servers["free_at"]
        return bool((free_at[2 * nodes] <= self._now).all() and (free_at[2 * nodes + 1] <= self._now).all())

    def _require_playing(self, play: Play) -> None:
        if not self._is_playing(play):
            raise ValueError(f"{play.name} is over")

    def _begin(self, play: Play, first_setup_s: NDArray[np.float64]) -> None:
        """Hand a play to the event kernel."""
        placement = play.placement
        play.rows = rows = self._rows.lend(placement, first_setup_s)
        self._playing[rows["plays"]] = play
        self._resource_users[placement.used_resources] += 1
        self._node_users[placement.used_nodes] += 1
        if self._log is not None and len(placement.operations):
            self._log.begin(play, int(self._tables.operations["stamp"][rows["operations"]]))
        events.begin_play(
            self._tables, rows["operations"], len(placement.operations), rows["gates"], placement.schedule.ranks
        )

    def _open(self, play: Play, ranks: NDArray[np.int64]) -> None:
        """Let ranks join a play that is under way."""
        foreseen = self._foresight.find(play)
        if foreseen is not None:
            if foreseen.join(ranks, self._now) and not self._foresight.work_out(foreseen):
                self._play_events(play)
            return
        gates = play.rows["gates"] + ranks
        if len(np.unique(ranks)) < len(ranks) or self._tables.gates["is_open"][gates].any():
            raise ValueError(f"a rank has joined {play.name} already")
        events.open_gates(self._tables, gates)

    def _forget(self, play: Play) -> None:
        """Be done with a play: take back what it has."""
        foreseen = self._foresight.find(play)
        if foreseen is not None:
            self._foresight.close(foreseen, self._tables)
            return
        del self._playing[play.rows["plays"]]
        self._resource_users[play.placement.used_resources] -= 1
        self._node_users[play.placement.used_nodes] -= 1
        for path in play.rerouted.values():
            self._leave_path(*path)
        self._rows.give_back(play.placement, play.rows)
        if self._log is not None:
            self._log.end(play)

    def _leave_path(self, first_hop: int, used: NDArray[np.int64]) -> None:
        """Take back what a rerouted operation does not use any more."""
        np.subtract.at(self._resource_users, used, 1)
        self._rows.give_back_hops(first_hop, len(used))

    def _set_up_connections(self, placement: Placement) -> NDArray[np.float64]:
        """Return what the first message over a persistent connection pays for opening it, shape (operations,) [s]."""
        first_setup_s = np.zeros(len(placement.operations))
        ops = placement.schedule.operations
        for row in np.flatnonzero(placement.setup_s > 0.0).tolist():
            pair = (int(placement.nodes[ops.source[row]]), int(placement.nodes[ops.target[row]]))
            if pair not in self._opened:
                self._opened.add(pair)
                first_setup_s[row] = placement.setup_s[row]
        return first_setup_s

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
        now = self._now
        # What was submitted at this instant is taken in before the kernel's clock goes back.
        self._advance(now)
        self._report()
        self._foresight.plays.remove(foreseen)
        self._tables.clock["now"] = foreseen.begun
        self._begin(play, foreseen.first_setup_s)
        self._tables.plays["is_watched"][play.rows["plays"]] = False
        for joined_at, ranks in foreseen.joined():
            self._advance(joined_at)
            self._tables.clock["now"] = joined_at
            events.open_gates(self._tables, play.rows["gates"] + ranks)
        self._advance(now)
        self._tables.clock["now"] = now
        self._tables.plays["is_watched"][play.rows["plays"]] = True
        self._tables.gates["watched"][play.rows["gates"] + np.array(sorted(foreseen.watched), dtype=np.int64)] = True
        self._report()

    def is_complete(self, play: Play, rank: int) -> bool:
        """Tell whether a rank of a play is complete by now."""
        if math.isnan(play.rank_duration_s[rank]) and not play.rows:
            foreseen = self._foresight.find(play)
            if foreseen is not None:
                return foreseen.is_complete(rank, self._local_time())
        return not math.isnan(play.rank_duration_s[rank])

    # -- time -------------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> float:
        return float(self._tables.clock["now"][0])

    def _local_time(self) -> float:
        """Return the present on the kernel's clock; a few units in the last place of SimPy's are the same instant."""
        local = self.env.now - self._base
        slack = 8.0 * math.ulp(max(self.env.now, 1e-300)) + 8.0 * math.ulp(local if local > 0 else 1e-300)
        if abs(local - self._now) <= slack:
            return self._now
        return local

    def _catch_up(self) -> None:
        """Bring the kernel's clock to the present; move its base there if nothing plays."""
        clock = self._tables.clock
        if not self._is_active:
            passed = self._local_time()
            self._read_log()
            self._base = self.env.now
            clock["now"], clock["events"], clock["queue_size"] = 0.0, 0, 0
            servers = self._tables.servers["free_at"]
            np.maximum(servers - passed, 0.0, out=servers)
            self._rows.give_back_all()
            return
        local = self._local_time()
        if local < self._now:
            raise InvariantError(
                f"the fabric is at {self._base + self._now} s, ahead of the actors at {self.env.now} s"
            )
        clock["now"] = local

    def _wake_now(self) -> None:
        self._wake_at(self.env.now)

    def _wake_at(self, time_s: float) -> None:
        """Have the kernel go on at a time, after the actors; earlier wake-ups that are set already serve as well."""
        delay = time_s - self.env.now
        # What the clock will show then, which rounding can make another time.
        time_s = self.env.now + delay
        if time_s >= self._awake_at:
            return
        self._awake_at = time_s
        self._alarm = alarm = Alarm(self.env)
        alarm.callbacks = [self._on_wake]
        alarm.set(delay, LATE)

    def _on_wake(self, alarm: simpy.Event) -> None:
        if alarm is not self._alarm:
            return
        self._alarm = None
        self._awake_at = math.inf
        if not self._is_active:
            return
        self._catch_up()
        horizon = self.env.peek()
        until = math.inf if horizon == math.inf else self._before(horizon)
        foreseen_at = self._foresight.next_completion()
        why = self._advance(min(until, foreseen_at))
        comes_true = why == events.QUIET and foreseen_at < until
        if comes_true:
            # What the kernel has at that instant belongs to it.
            self._tables.clock["now"] = max(foreseen_at, self._now)
            self._advance(self._now)
            why = events.COMPLETE
        self._report(foreseen=comes_true)
        if not self._is_active:
            return
        if why == events.COMPLETE:
            self._wake_at(self._base + self._now)
        elif horizon < math.inf:
            self._wake_at(horizon)
        else:
            # What is foreseen waits for ranks that never join; its other ranks go as far as they can.
            self._play_all_events()
            self._advance(math.inf)
            raise StalledError(describe_stall(self._tables, list(self._playing.values()), self._base))

    def _advance(self, until: float) -> int:
        """Let the kernel run; see `events.advance`."""
        if not self._playing:
            # Reading the kernel back from the cache takes longer than many a run that is foreseen from end to end.
            return events.QUIET
        while (why := events.advance(self._tables, until)) == events.CROWDED:
            if self._log is not None and self._tables.clock["logged"][0] == len(self._tables.log):
                self._read_log()
            else:
                self._rows.make_room_for_events()
        return why

    def _read_log(self) -> None:
        if self._log is not None:
            self._log.read(self._tables, self._base)

    def _before(self, time_s: float) -> float:
        """Return where the kernel must stop: the window of a SimPy instant belongs to that instant."""
        return time_s - self._base - 8.0 * math.ulp(max(time_s, 1e-300))

    # -- completions ------------------------------------------------------------------------------------------------

    def _report(self, *, foreseen: bool = False) -> None:
        """Tell those who wait which ranks and plays are complete, by play and rank.

        Parameters
        ----------
        foreseen : bool
            Also those whose foreseen times have come.
        """
        complete = self._completions()
        if foreseen:
            complete += self._foreseen_completions()
        complete.sort(key=lambda one: one[0].number)
        delay = max(self._base + self._now - self.env.now, 0.0)
        for play, ranks in complete:
            for rank in ranks if play.rank_events else ():
                event = play.rank_events.get(rank)
                if event is not None and not event.triggered:
                    event.set(delay, URGENT, play)
        for play, _ in complete:
            if not np.isnan(play.rank_duration_s).any():
                play.complete.set(delay, URGENT, play)
                self._forget(play)

    def _completions(self) -> list[tuple[Play, list[int]]]:
        """Take from the kernel the ranks that are complete, by play and in order."""
        clock = self._tables.clock
        count = int(clock["complete"][0])
        clock["complete"], clock["watched"] = 0, 0
        found: list[tuple[Play, list[int]]] = []
        if count:
            gates = self._tables.gates[self._tables.complete["row"][:count]]
            for row in np.unique(gates["play"]).tolist():
                play, own = self._playing[row], gates[gates["play"] == row]
                play.rank_duration_s[own["rank"]] = own["complete_at"] - play.begun
                found.append((play, np.sort(own["rank"]).tolist()))
        return found

    def _foreseen_completions(self) -> list[tuple[Play, list[int]]]:
        """Return the ranks of foreseen plays that are complete by now, by play and in order."""
        found: list[tuple[Play, list[int]]] = []
        for foreseen in self._foresight.plays:
            play, ranks = foreseen.play, foreseen.complete_until(self._now)
            if len(ranks) and foreseen.outcome is not None:
                play.rank_duration_s[ranks] = foreseen.outcome.complete_s[ranks]
                foreseen.watched.difference_update(ranks.tolist())
                found.append((play, ranks.tolist()))
        return found
