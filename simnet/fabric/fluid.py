"""The flow-level fabric: the event kernel inside SimPy.

Submissions are taken in at once; one wake-up an instant, after all that the actors do at that instant, lets the kernel
run ahead to the next SimPy event, or to the first completion that somebody waits for.

The kernel's clock counts from a base that moves to now whenever nothing plays, so that a play takes the same time to
the last digit whether it begins at 0 s or after eleven days.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.alarm import LATE, URGENT, Alarm
from simnet.errors import InvariantError, StalledError
from simnet.fabric import kernel
from simnet.fabric.network import Network
from simnet.fabric.placement import LOCAL, REMOTE, Placement, place
from simnet.fabric.slots import Slots, enlarge, enlarge_events
from simnet.fabric.stall import describe_stall
from simnet.fabric.tables import Table, Tables, make_tables
from simnet.traffic.deadlock import check_deadlock
from simnet.traffic.schedule import Schedule

__all__ = ["FluidFabric", "Play"]


class Play:
    """A schedule that is being played, or was.

    Attributes
    ----------
    name : str
    placement : Placement
    complete : simpy.Event
        Happens when the last rank is complete; its value is the play.
    started_at_s : float
        When it was submitted [s].
    rank_duration_s : ndarray, shape (ranks,)
        From the submission until each rank is complete, NaN before; exact, as it never passed through the SimPy clock.
    """

    def __init__(
        self, fabric: FluidFabric, name: str, placement: Placement, rows: dict[str, int], begun: float
    ) -> None:
        self.name = name
        self.placement = placement
        self.complete = Alarm(fabric.env)
        self.started_at_s: float = fabric.env.now
        self.rank_duration_s: NDArray[np.float64] = np.full(placement.schedule.ranks, math.nan)
        self._fabric = fabric
        self._rows = rows
        self._begun = begun
        self._rank_events: dict[int, Alarm] = {}

    @property
    def duration_s(self) -> float:
        """From the submission until the last rank is complete, NaN before [s]."""
        return float(self.rank_duration_s.max())

    def is_complete_on(self, rank: int) -> bool:
        """Tell whether a rank is complete."""
        return not math.isnan(self.rank_duration_s[rank])

    def rank_complete(self, rank: int) -> simpy.Event:
        """Return the event of one rank being complete; it may have happened."""
        event = self._rank_events.get(rank)
        if event is None:
            event = self._rank_events[rank] = Alarm(self._fabric.env)
            if self.is_complete_on(rank):
                event.set(0.0, URGENT, self)
            else:
                self._fabric.watch(self, rank)
        return event

    def open(self, ranks: Sequence[int] | NDArray[np.int64]) -> None:
        """Let ranks join that have not yet."""
        self._fabric.open_gates(self, np.asarray(ranks, dtype=np.int64))


class FluidFabric:
    """Plays schedules on a network at flow level.

    Parameters
    ----------
    env : simpy.Environment
    network : Network
    reduce_s_per_byte : float
        Time that a receiver needs to add a byte to what it holds [s/byte].
    """

    def __init__(self, env: simpy.Environment, network: Network, reduce_s_per_byte: float = 0.0) -> None:
        self.env = env
        self.network = network
        nodes = len(network.compiled.node_names)
        self._tables: Tables = make_tables(
            operations=64,
            dependencies=64,
            hops=256,
            resources=len(network.capacity),
            gates=64,
            plays=8,
            servers=2 * nodes,
            devices=nodes,
            costs=2,
            events=256,
        )
        self._tables.operations["place"] = -1
        self._tables.resources["capacity"] = network.capacity
        self._tables.resources["head"] = -1
        self._set_costs(reduce_s_per_byte)
        self._slots = {name: Slots() for name in ("operations", "dependencies", "hops", "gates", "plays")}
        self._streams: dict[tuple[int, int], int] = {}
        self._playing: dict[int, Play] = {}
        self._opened: set[tuple[int, int]] = set()
        self._placements: dict[tuple[int, bytes], Placement] = {}
        self._begun = 0
        self._base = 0.0
        self._alarm: simpy.Event | None = None
        self._awake_at = math.inf

    # -- what actors call -------------------------------------------------------------------------------------------

    def place(self, schedule: Schedule, nodes: Sequence[int] | NDArray[np.int64]) -> Placement:
        """Lay a schedule out on the network, once for the same schedule and nodes; refuse one that would deadlock."""
        nodes = np.asarray(nodes, dtype=np.int64)
        key = (id(schedule), nodes.tobytes())
        found = self._placements.get(key)
        if found is None:
            check_deadlock(schedule)
            found = self._placements[key] = place(schedule, nodes, self.network)
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
        rows = self._take_rows(placement)
        play = Play(self, name, placement, rows, self._now)
        self._playing[rows["plays"]] = play
        self._fill_rows(placement, rows)
        kernel.begin_play(
            self._tables, rows["operations"], len(placement.operations), rows["gates"], placement.schedule.ranks
        )
        if gates_open:
            kernel.open_gates(self._tables, np.arange(rows["gates"], rows["gates"] + placement.schedule.ranks))
        self._wake_now()
        return play

    def open_gates(self, play: Play, ranks: NDArray[np.int64]) -> None:
        """Let ranks join a play."""
        self._require_playing(play)
        self._catch_up()
        gates = play._rows["gates"] + ranks
        if len(np.unique(ranks)) < len(ranks) or self._tables.gates["is_open"][gates].any():
            raise ValueError(f"a rank has joined {play.name} already")
        kernel.open_gates(self._tables, gates)
        self._wake_now()

    def watch(self, play: Play, rank: int) -> None:
        """Have the kernel stop when a rank is complete; nobody is served by a play that was cancelled."""
        if not self._is_playing(play):
            return
        gate = self._tables.gates[play._rows["gates"] + rank]
        gate["watched"] = True
        if not math.isnan(gate["complete_at"]):
            self._tables.clock["watched"] += 1

    def cancel(self, play: Play) -> None:
        """End a play where it stands; what it has not delivered is lost, and nobody waiting for it is served."""
        self._require_playing(play)
        self._catch_up()
        # Ranks with nothing to do may have become complete at this instant, and with them the play.
        self._report()
        if not self._is_playing(play):
            return
        kernel.cancel(self._tables, play._rows["operations"], len(play.placement.operations))
        self._forget(play)
        self._wake_now()

    def set_capacity(self, resource: int, bytes_per_s: float) -> None:
        """Change the capacity of a resource from now on."""
        if not 0.0 <= bytes_per_s < math.inf:
            raise ValueError(f"a capacity is a finite number of at least 0 bytes/s: {bytes_per_s}")
        self._catch_up()
        kernel.set_capacity(self._tables, resource, bytes_per_s)
        self._wake_now()

    def set_flow_cap(self, play: Play, operation: int, bytes_per_s: float) -> None:
        """Change the highest rate of the flows of an operation from now on."""
        if not bytes_per_s >= 0.0:
            raise ValueError(f"a cap is a number of at least 0 bytes/s: {bytes_per_s}")
        self._require_playing(play)
        self._catch_up()
        kernel.set_flow_cap(self._tables, play._rows["operations"] + operation, bytes_per_s)
        self._wake_now()

    def reroute(self, play: Play, operation: int, resources: Sequence[int], latency_s: float) -> None:
        """Move an operation, and what of it is under way, to other resources from now on.

        Headers and copies are counted as on its old path: the coefficient of its first hop holds on the new one.
        """
        self._require_playing(play)
        self._catch_up()
        first = self._slots["hops"].take(len(resources))
        self._tables = enlarge(self._tables, hops=self._slots["hops"].used)
        row = play._rows["operations"] + operation
        hops = self._tables.hops[first : first + len(resources)]
        hops["resource"], hops["flow"] = resources, row
        hops["coefficient"] = play.placement.wire_factor[operation]
        kernel.reroute(self._tables, row, first, len(resources), latency_s)
        self._wake_now()

    @property
    def costs(self) -> Table:
        """Costs per message and byte, within a host and through the protocol; not to be changed."""
        return self._tables.costs

    # -- counters ---------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> int:
        """Messages begun so far."""
        return int(self._tables.clock["messages"][0])

    @property
    def solves(self) -> int:
        """Connected components whose rates were solved so far."""
        return int(self._tables.clock["solves"][0])

    def carried_bytes(self) -> NDArray[np.float64]:
        """Return what flows that are over took of each resource, shape (resources,) [bytes]."""
        return self._tables.resources["carried"].copy()

    def busy_s(self) -> NDArray[np.float64]:
        """Return for how long each resource had a flow, shape (resources,) [s]."""
        resources = self._tables.resources
        since = np.where(resources["users"] > 0, self._local_time() - resources["busy_since"], 0.0)
        return np.asarray(resources["busy"] + since, dtype=np.float64)

    def transfer_s(self, node: int) -> float:
        """Return for how long a node had a transfer of its own under way [s]."""
        device = self._tables.devices[node]
        since = self._local_time() - float(device["busy_since"]) if device["active"] > 0 else 0.0
        return float(device["busy"]) + since

    def require_conservation(self) -> None:
        """Check what every run must satisfy.

        Raises
        ------
        InvariantError
            Bytes are missing, or a resource carried more than its capacity allows.
        """
        clock = self._tables.clock[0]
        sent, ended = float(clock["sent_bytes"]), float(clock["delivered_bytes"] + clock["lost_bytes"])
        if not self._playing and not math.isclose(sent, ended, rel_tol=1e-9, abs_tol=1e-6):
            raise InvariantError(f"{sent} bytes were sent, but {ended} delivered or lost")
        most = self.network.capacity * self.busy_s()
        over = np.flatnonzero(self.carried_bytes() > most * (1 + 1e-9) + 1e-6)
        if len(over) and np.array_equal(self._tables.resources["capacity"], self.network.capacity):
            worst = self.network.resource_names[over[0]]
            raise InvariantError(f"{worst} carried {self.carried_bytes()[over[0]]} bytes, it could {most[over[0]]}")

    # -- rows -------------------------------------------------------------------------------------------------------

    def _set_costs(self, reduce_s_per_byte: float) -> None:
        protocol, costs = self.network.protocol, self._tables.costs
        costs["reduce_per_byte"] = reduce_s_per_byte
        costs["pipeline_bytes"][REMOTE] = protocol.pipeline_bytes
        costs["packet_bytes"][REMOTE] = protocol.payload_bytes + protocol.header_bytes
        costs["packet_bytes"][LOCAL] = math.inf
        costs["send"][REMOTE] = protocol.send_overhead_s
        costs["send_per_byte"][REMOTE] = protocol.send_overhead_s_per_byte
        costs["receive"][REMOTE] = protocol.receive_overhead_s
        costs["receive_per_byte"][REMOTE] = protocol.receive_overhead_s_per_byte

    def _take_rows(self, placement: Placement) -> dict[str, int]:
        lengths = _lengths(placement)
        rows = {name: self._slots[name].take(length) for name, length in lengths.items()}
        servers = self._number_streams(placement)
        self._tables = enlarge(self._tables, servers=servers, **{name: self._slots[name].used for name in lengths})
        return rows

    def _fill_rows(self, placement: Placement, rows: dict[str, int]) -> None:
        """Copy a placement into its rows, renumbered."""
        tables, at = self._tables, {name: slice(rows[name], rows[name] + n) for name, n in _lengths(placement).items()}
        self._begun += 1
        operations = tables.operations[at["operations"]]
        operations[:] = placement.operations
        # What is left of an earlier play in these rows, and of this one should it be cancelled, must not be taken for it.
        operations["stamp"] = 2 * self._begun
        operations["play"] = rows["plays"]
        for column, offset in (
            ("source", rows["gates"]),
            ("target", rows["gates"]),
            ("first_in", rows["dependencies"]),
            ("first_out", rows["dependencies"]),
            ("first_hop", rows["hops"]),
        ):
            operations[column] += offset
        self._set_up_connections(placement, operations)
        for row, stream in placement.streams:
            operations["server"][row] = self._streams[stream]
        dependencies = tables.dependencies[at["dependencies"]]
        dependencies[:] = placement.dependencies
        dependencies["before"] += rows["operations"]
        dependencies["after"] += rows["operations"]
        tables.outgoing["row"][at["dependencies"]] = placement.outgoing["row"] + rows["dependencies"]
        tables.behind_gate["row"][at["operations"]] = placement.behind_gate["row"] + rows["operations"]
        hops = tables.hops[at["hops"]]
        hops[:] = placement.hops
        hops["flow"] += rows["operations"]
        gates = tables.gates[at["gates"]]
        gates[:] = placement.gates
        gates["play"] = rows["plays"]
        gates["first_operation"] += rows["operations"]
        tables.plays["number"][rows["plays"]] = self._begun
        tables.plays["left"][rows["plays"]] = placement.schedule.ranks
        tables.plays["is_watched"][rows["plays"]] = True

    def _set_up_connections(self, placement: Placement, operations: np.ndarray) -> None:
        """Charge the opening of a persistent connection to the first message over it."""
        for row in np.flatnonzero(placement.setup_s > 0.0).tolist():
            ops = placement.schedule.operations
            pair = (int(placement.nodes[ops.source[row]]), int(placement.nodes[ops.target[row]]))
            if pair not in self._opened:
                self._opened.add(pair)
                operations["first_setup"][row] = placement.setup_s[row]

    def _number_streams(self, placement: Placement) -> int:
        """Give each stream of calculations, which exclude each other, a server; return how many servers there are."""
        first = 2 * len(self.network.compiled.node_names)
        for _, stream in placement.streams:
            self._streams.setdefault(stream, first + len(self._streams))
        return first + len(self._streams)

    def _is_playing(self, play: Play) -> bool:
        return self._playing.get(play._rows["plays"]) is play

    def _require_playing(self, play: Play) -> None:
        if not self._is_playing(play):
            raise ValueError(f"{play.name} is over")

    def _forget(self, play: Play) -> None:
        """Take the rows of a play back."""
        del self._playing[play._rows["plays"]]
        for name, length in _lengths(play.placement).items():
            self._slots[name].give_back(play._rows[name], length)

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
        if not self._playing:
            passed = self._local_time()
            self._base = self.env.now
            clock["now"], clock["events"], clock["queue_size"] = 0.0, 0, 0
            servers = self._tables.servers["free_at"]
            np.maximum(servers - passed, 0.0, out=servers)
            for slots in self._slots.values():
                slots.reset()
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
        if not self._playing:
            return
        self._catch_up()
        horizon = self.env.peek()
        until = math.inf if horizon == math.inf else self._before(horizon)
        while (why := kernel.advance(self._tables, until)) == kernel.CROWDED:
            self._tables = enlarge_events(self._tables)
        self._report()
        if not self._playing:
            return
        if why == kernel.COMPLETE:
            self._wake_at(self._base + self._now)
        elif horizon < math.inf:
            self._wake_at(horizon)
        else:
            raise StalledError(describe_stall(self._tables, list(self._playing.values()), self._base))

    def _before(self, time_s: float) -> float:
        """Return where the kernel must stop: the window of a SimPy instant belongs to that instant."""
        return time_s - self._base - 8.0 * math.ulp(max(time_s, 1e-300))

    # -- completions ------------------------------------------------------------------------------------------------

    def _report(self) -> None:
        """Tell those who wait which ranks and plays are complete."""
        clock = self._tables.clock
        count = int(clock["complete"][0])
        clock["complete"], clock["watched"] = 0, 0
        if not count:
            return
        gates = self._tables.gates[self._tables.complete["row"][:count]]
        number = self._tables.plays["number"][gates["play"]]
        delay = max(self._base + self._now - self.env.now, 0.0)
        order = np.lexsort((gates["rank"], number))
        for row, rank, complete_at in zip(
            gates["play"][order].tolist(),
            gates["rank"][order].tolist(),
            gates["complete_at"][order].tolist(),
            strict=True,
        ):
            play = self._playing[row]
            play.rank_duration_s[rank] = complete_at - play._begun
            event = play._rank_events.get(rank)
            if event is not None:
                event.set(delay, URGENT, play)
        for row in dict.fromkeys(gates["play"][order].tolist()):
            if self._tables.plays["left"][row] == 0:
                play = self._playing[row]
                play.complete.set(delay, URGENT, play)
                self._forget(play)


def _lengths(placement: Placement) -> dict[str, int]:
    """Return how many rows of each table a play needs."""
    return {
        "operations": len(placement.operations),
        "dependencies": len(placement.dependencies),
        "hops": len(placement.hops),
        "gates": placement.schedule.ranks,
        "plays": 1,
    }
