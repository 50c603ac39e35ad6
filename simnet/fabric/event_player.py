"""Plays that the event kernel plays: their rows in its tables, and its clock."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.connections import Beginning
from simnet.fabric.kernels import events
from simnet.fabric.kernels.tables import Tables
from simnet.fabric.messages import LOG_ROWS, MessageLog, TakeMessages
from simnet.fabric.network import Condition, Network
from simnet.fabric.placement import Placement
from simnet.fabric.play import Play
from simnet.fabric.rows import Rows
from simnet.fabric.settings import EngineSettings

__all__ = ["EventPlayer", "Stopped"]

_OF_ROUTE = ("latency", "forward_per_byte", "packet_time", "round_trip", "reliability", "loss", "stall")
"""What a route says of the operations that take it, beside their hops."""


@dataclass(frozen=True, eq=False)
class Stopped:
    """A flow that does not get through.

    Attributes
    ----------
    play : Play
    operation : which of its operations
    since : on the kernel's clock [s]
    round_trip_s : of its path, 0 where it has no packets [s]
    sending_s : what is left of it takes so long alone [s]
    """

    play: Play
    operation: int
    since: float
    round_trip_s: float
    sending_s: float


class EventPlayer:
    """Plays schedules event by event, on the kernel's own clock and with no thought of SimPy's.

    Parameters
    ----------
    network : Network
    reduce_s_per_byte : float
        Time that a receiver needs to add a byte to what it holds [s/byte].
    engine : EngineSettings
    record : callable or None
        Handed each message, in batches.
    """

    def __init__(
        self, network: Network, reduce_s_per_byte: float, engine: EngineSettings, record: TakeMessages | None
    ) -> None:
        self._rows = Rows(network, reduce_s_per_byte, LOG_ROWS if record else 0)
        self._log = MessageLog(record) if record else None
        self._playing: dict[int, Play] = {}
        self._capacity = network.capacity
        self._resource_users = np.zeros(len(network.capacity), np.int64)
        self._node_users = np.zeros(len(network.compiled.node_names), np.int64)
        pauses = engine.head_of_line and network.protocol.transport.link_flow_control != "none"
        self.tables.clock["pauses"] = pauses
        self.tables.clock["full_solves"] = pauses or not engine.local_repair
        self.tables.clock["records"] = record is not None

    @property
    def tables(self) -> Tables:
        """The kernel's tables; others when they had to grow."""
        return self._rows.tables

    @property
    def plays(self) -> Iterable[Play]:
        """The plays under way."""
        return self._playing.values()

    @property
    def now(self) -> float:
        """Time on the kernel's clock [s]."""
        return float(self.tables.clock["now"][0])

    @now.setter
    def now(self, time: float) -> None:
        self.tables.clock["now"] = time

    def is_playing(self, play: Play) -> bool:
        """Tell whether a play is among those under way."""
        return bool(play.rows) and self._playing.get(play.rows["plays"]) is play

    def leaves_alone(self, placement: Placement) -> bool:
        """Tell whether nothing under way shares a resource or node, no host is slow, no cancelled overhead lasts."""
        nodes = placement.used_nodes
        shared = self._resource_users[placement.used_resources].any() or self._node_users[nodes].any()
        servers = self.tables.servers[np.concatenate([2 * nodes, 2 * nodes + 1])]
        return not (shared or (servers["free_at"] > self.now).any() or servers["slowed"].any())

    def begin(self, play: Play, first: Beginning) -> None:
        """Take on a play; nothing of it moves before ranks join."""
        placement = play.placement
        play.rows = rows = self._rows.lend(placement, first)
        self._playing[rows["plays"]] = play
        self._resource_users[placement.used_resources] += 1
        self._node_users[placement.used_nodes] += 1
        if self._log is not None and len(placement.operations):
            self._log.begin(play, int(self.tables.operations["stamp"][rows["operations"]]))
        events.begin_play(
            self.tables, rows["operations"], len(placement.operations), rows["gates"], placement.schedule.ranks
        )

    def open(self, play: Play, ranks: NDArray[np.int64]) -> None:
        """Let ranks join.

        Raises
        ------
        ValueError
            One of them has already.
        """
        gates = play.rows["gates"] + ranks
        if len(np.unique(ranks)) < len(ranks) or self.tables.gates["is_open"][gates].any():
            raise ValueError(f"a rank has joined {play.name} already")
        events.open_gates(self.tables, gates)

    def watch(self, play: Play, rank: int) -> None:
        """Have the kernel stop when a rank is complete."""
        gate = self.tables.gates[play.rows["gates"] + rank]
        gate["watched"] = True
        if not math.isnan(gate["complete_at"]):
            self.tables.clock["watched"] += 1

    def cancel(self, play: Play) -> None:
        """End a play where it stands."""
        events.cancel(self.tables, play.rows["operations"], len(play.placement.operations))
        self.end(play)

    def end(self, play: Play) -> None:
        """Be done with a play: take back what it has."""
        del self._playing[play.rows["plays"]]
        first = play.rows["operations"]
        play.lost_bytes = float(
            self.tables.operations["lost_bytes"][first : first + len(play.placement.operations)].sum()
        )
        self._resource_users[play.placement.used_resources] -= 1
        self._node_users[play.placement.used_nodes] -= 1
        for path in play.rerouted.values():
            self._leave_path(*path)
        self._rows.give_back(play.placement, play.rows)
        if self._log is not None:
            self._log.end(play)

    def set_capacity(self, resource: int, bytes_per_s: float) -> None:
        """Change the capacity of a resource."""
        events.set_capacity(self.tables, resource, bytes_per_s)

    def follow(self, condition: Condition) -> None:
        """Be told that the network is in another condition; plays are relaid one by one."""

    def set_flow_cap(self, play: Play, operation: int, bytes_per_s: float) -> None:
        """Change the highest rate of the flows of an operation."""
        events.set_flow_cap(self.tables, play.rows["operations"] + operation, bytes_per_s)

    def reroute(self, play: Play, operation: int, resources: Sequence[int], latency_s: float) -> None:
        """Move an operation, and what of it is under way, to other resources."""
        used = np.asarray(resources, dtype=np.int64)
        coefficients = np.full(len(used), play.placement.wire_factor[operation])
        self._move(play, operation, used, coefficients, latency_s)

    def relay(self, play: Play, placement: Placement) -> None:
        """Have a play go on as the same schedule is laid out now.

        Parameters
        ----------
        play : Play
        placement : Placement
            With the same operations as its own.
        """
        before, play.laid_out = play.laid_out, placement
        first, count = play.rows["operations"], len(placement.operations)
        if placement.is_random:
            self._rows.prepare_losses(placement, first)
        operations = self.tables.operations[first : first + count]
        for column in _OF_ROUTE:
            operations[column] = placement.operations[column]
        elsewhere = operations["is_elsewhere"].tolist()
        at, hops = placement.operations["first_hop"], placement.operations["hops"]
        for operation, (old, new) in enumerate(zip(before.paths, placement.paths, strict=True)):
            if old != new and not elsewhere[operation]:
                own = placement.hops[at[operation] : at[operation] + hops[operation]]
                latency_s = float(placement.operations["latency"][operation])
                self._move(play, operation, own["resource"], own["coefficient"], latency_s)

    def stopped(self) -> list[Stopped]:
        """Return the flows that a resource without capacity holds up."""
        tables = self.tables
        operations = tables.operations
        found = []
        for row in self._standing_still().tolist():
            if not self._is_open(row):
                play = self._playing[int(operations["play"][row])]
                since, round_trip_s = float(operations["since"][row]), float(operations["round_trip"][row])
                sending_s = self._sending_s(row)
                found.append(Stopped(play, row - play.rows["operations"], since, round_trip_s, sending_s))
        return found

    def is_open(self, play: Play, operation: int) -> bool:
        """Tell whether each resource of an operation's path has some capacity."""
        return self._is_open(play.rows["operations"] + operation)

    def cap_of(self, play: Play, operation: int) -> float:
        """Return the highest rate of the flows of an operation [bytes/s]."""
        return float(self.tables.operations["most"][play.rows["operations"] + operation])

    def waiting_pairs(self) -> set[tuple[int, int]]:
        """Return between which nodes a flow stands still."""
        tables = self.tables
        flows, node = tables.operations[self._standing_still()], tables.gates["node"]
        return set(zip(node[flows["source"]].tolist(), node[flows["target"]].tolist(), strict=True))

    def moves_on(self) -> bool:
        """Tell whether something happens by itself."""
        return events.next_instant(self.tables) < math.inf

    def slow_down(self, nodes: NDArray[np.int64], share: float) -> None:
        """Have the overheads of messages take longer on some nodes, by a share of what they take usually."""
        self.tables.servers["slowed"][np.concatenate([2 * nodes, 2 * nodes + 1])] = share

    def _standing_still(self) -> NDArray[np.int64]:
        operations = self.tables.operations
        return np.flatnonzero(operations["active"] & (operations["rate"] == 0.0) & ~operations["is_elsewhere"])

    def _sending_s(self, row: int) -> float:
        """Return for how long a flow would take alone, with all resources as they usually are [s]."""
        operation = self.tables.operations[row]
        hops = self.tables.hops[operation["first_hop"] : operation["first_hop"] + operation["hops"]]
        fastest = float((self._capacity[hops["resource"]] / hops["coefficient"]).min())
        return float(operation["remaining"]) / min(fastest, float(operation["most"]) or math.inf)

    def _is_open(self, row: int) -> bool:
        first, count = self.tables.operations["first_hop"][row], self.tables.operations["hops"][row]
        used = self.tables.hops["resource"][first : first + count]
        return bool((self.tables.resources["capacity"][used] > 0.0).all())

    def _move(
        self,
        play: Play,
        operation: int,
        used: NDArray[np.int64],
        coefficients: NDArray[np.float64],
        latency_s: float,
    ) -> None:
        """Have an operation use other resources."""
        np.add.at(self._resource_users, used, 1)
        first = self._rows.lend_hops(len(used))
        before = play.rerouted.pop(operation, None)
        play.rerouted[operation] = first, used
        row = play.rows["operations"] + operation
        hops = self.tables.hops[first : first + len(used)]
        hops["resource"], hops["flow"], hops["coefficient"] = used, row, coefficients
        events.reroute(self.tables, row, first, len(used), latency_s)
        if before is not None:
            self._leave_path(*before)

    def advance(self, until: float, base_s: float) -> int:
        """Let the kernel run; see `events.advance`.

        Parameters
        ----------
        until : float
            On the kernel's clock [s].
        base_s : float
            Time from which that clock counts, for the records of messages [s].
        """
        if not self._playing:
            # Reading the kernel back from the cache takes longer than many a run that is foreseen from end to end.
            return events.QUIET
        while (why := events.advance(self.tables, until)) == events.CROWDED:
            if self._log is not None and self.tables.clock["logged"][0] == len(self.tables.log):
                self.read_log(base_s)
            else:
                self._rows.make_room_for_events()
        return why

    def completions(self) -> list[tuple[Play, list[int]]]:
        """Take from the kernel the ranks that are complete, by play and in order."""
        clock = self.tables.clock
        count = int(clock["complete"][0])
        clock["complete"], clock["watched"] = 0, 0
        found: list[tuple[Play, list[int]]] = []
        if count:
            gates = self.tables.gates[self.tables.complete["row"][:count]]
            for row in np.unique(gates["play"]).tolist():
                play, own = self._playing[row], gates[gates["play"] == row]
                play.rank_duration_s[own["rank"]] = own["complete_at"] - play.begun
                found.append((play, np.sort(own["rank"]).tolist()))
        return found

    def carried_bytes(self, now: float) -> NDArray[np.float64]:
        """Return what flows have taken of each resource until a time on the kernel's clock, shape (resources,) [bytes].

        The kernel counts a flow when it is over, or leaves its path; what is under way is added here.
        """
        tables = self.tables
        carried: NDArray[np.float64] = tables.resources["carried"].copy()
        rows = np.flatnonzero(tables.operations["active"])
        if len(rows):
            flows = tables.operations[rows]
            moved = flows["on_path"] - flows["remaining"] + flows["rate"] * (now - flows["since"])
            moved = np.clip(moved, 0.0, flows["on_path"])
            hops = np.concatenate(
                [
                    np.arange(first, first + count)
                    for first, count in zip(flows["first_hop"], flows["hops"], strict=True)
                ]
            )
            taken = np.repeat(moved, flows["hops"]) * tables.hops["coefficient"][hops]
            np.add.at(carried, tables.hops["resource"][hops], taken)
        return carried

    def busy_s(self, now: float) -> NDArray[np.float64]:
        """Return for how long each resource had a flow, shape (resources,) [s]."""
        resources = self.tables.resources
        since = np.where(resources["users"] > 0, now - resources["busy_since"], 0.0)
        return np.asarray(resources["busy"] + since, dtype=np.float64)

    def replay(
        self,
        play: Play,
        first: Beginning,
        joined: Sequence[tuple[float, NDArray[np.int64]]],
        awaited: Iterable[int],
    ) -> None:
        """Take on a play that has begun: play it again from its beginning until now.

        Parameters
        ----------
        play : Play
            On resources and nodes that it has shared with nothing so far.
        first : Beginning
            What is done about connections before the first firing.
        joined : sequence of (float, ndarray of int)
            When which ranks joined, in order of time [s on the kernel's clock].
        awaited : iterable of int
            Ranks that somebody waits for; nobody is told of what was complete before now.
        """
        now = self.now
        self.now = play.begun
        self.begin(play, first)
        self.tables.plays["is_watched"][play.rows["plays"]] = False
        for joined_at, ranks in joined:
            self.advance(joined_at, 0.0)
            self.now = joined_at
            events.open_gates(self.tables, play.rows["gates"] + ranks)
        self.advance(now, 0.0)
        self.now = now
        self.tables.plays["is_watched"][play.rows["plays"]] = True
        self.tables.gates["watched"][play.rows["gates"] + np.array(sorted(awaited), dtype=np.int64)] = True

    def rest(self, passed_s: float) -> None:
        """Set the clock to 0, as nothing plays; overheads of cancelled plays go on.

        Parameters
        ----------
        passed_s : float
            What the clock would show now [s].
        """
        clock, servers = self.tables.clock, self.tables.servers["free_at"]
        clock["now"], clock["events"], clock["queue_size"] = 0.0, 0, 0
        np.maximum(servers - passed_s, 0.0, out=servers)
        self.tables.connections["used_at"] -= passed_s
        self.tables.resources["burst_at"] -= passed_s
        self.tables.resources["heard_at"] -= passed_s
        self._rows.give_back_all()

    def read_log(self, base_s: float) -> None:
        """Hand on the messages that were delivered since the last time."""
        if self._log is not None:
            self._log.read(self.tables, base_s)

    def close(self, base_s: float) -> None:
        """Hand on all messages that were not yet, also those that were never delivered."""
        self.read_log(base_s)
        if self._log is not None:
            self._log.close()

    def _leave_path(self, first_hop: int, used: NDArray[np.int64]) -> None:
        """Take back what a rerouted operation does not use any more."""
        np.subtract.at(self._resource_users, used, 1)
        self._rows.give_back_hops(first_hop, len(used))
