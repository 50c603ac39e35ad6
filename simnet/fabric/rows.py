"""The rows of the kernel's tables, lent to plays and given back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from simnet.engine.random_streams import random_stream
from simnet.fabric.behaviour import describe_transport
from simnet.fabric.connections import Beginning
from simnet.fabric.dcqcn import unused_shares
from simnet.fabric.kernels.draws import DRAWS
from simnet.fabric.kernels.rates import MOST_SHARING
from simnet.fabric.kernels.records import LOCAL, REMOTE
from simnet.fabric.kernels.tables import LAYOUT, Table, Tables, make_tables
from simnet.fabric.network import INSIDE_KINDS, Network
from simnet.fabric.placement import Placement

_GROWING = (
    *("operations", "dependencies", "hops", "resources", "gates", "plays", "servers", "devices", "costs"),
    *("connections", "turns", "sharing", "transit"),
)

__all__ = ["Rows", "Slots", "enlarge", "enlarge_events"]


@dataclass
class Slots:
    """Runs of rows of one table.

    A run that was given back serves the next that has exactly its length, as the same schedules come again and again.

    Attributes
    ----------
    used : int
        Rows 0 .. used - 1 have been lent at some time.
    """

    used: int = 0
    _free: dict[int, list[int]] = field(default_factory=dict)

    def take(self, length: int) -> int:
        """Return the first of `length` rows."""
        free = self._free.get(length)
        if free:
            return free.pop()
        start = self.used
        self.used += length
        return start

    def give_back(self, start: int, length: int) -> None:
        """Take rows back."""
        self._free.setdefault(length, []).append(start)

    def reset(self) -> None:
        """Take all rows back."""
        self.used = 0
        self._free.clear()


def enlarge(tables: Tables, **rows: int) -> Tables:
    """Return the same tables with room for at least so many rows, or the tables themselves where they have it.

    Parameters
    ----------
    tables : Tables
    **rows : int
        Rows needed, by name of the table.
    """
    have = {name: len(getattr(tables, name)) for name in _GROWING}
    if all(have[name] >= needed for name, needed in rows.items()):
        return tables
    room = {name: max(have[name], 2 * rows[name] if rows.get(name, 0) > have[name] else 0) for name in have}
    larger = make_tables(**room, events=max(len(tables.events), 2 * room["operations"]), log=len(tables.log))
    for name in LAYOUT:
        old = getattr(tables, name)
        getattr(larger, name)[: len(old)] = old
    larger.operations["heap_position"][have["operations"] :] = -1
    _unroll(tables, larger.queue)
    larger.clock["queue_head"] = 0
    return larger


def enlarge_events(tables: Tables) -> Tables:
    """Return the same tables with at least twice the room for events and for steps that follow at once."""
    room = 2 * len(tables.events) + int(tables.clock["step"][0])
    events, queue = np.zeros(room, tables.events.dtype), np.zeros(room, tables.queue.dtype)
    events[: len(tables.events)] = tables.events
    _unroll(tables, queue)
    return replace(tables, events=events, queue=queue)


def _unroll(tables: Tables, queue: Table) -> None:
    """Copy the queue, a ring, into a larger one from its beginning on."""
    queue[: len(tables.queue)] = np.roll(tables.queue, -int(tables.clock["queue_head"][0]))
    tables.clock["queue_head"] = 0


class Rows:
    """The kernel's tables, and which of their rows are whose.

    Parameters
    ----------
    network : Network
    reduce_s_per_byte : float
        Time that a receiver needs to add a byte to what it holds [s/byte].
    log : int
        Room for so many records of messages.

    Attributes
    ----------
    tables : Tables
        Replaced by larger ones when more room is needed.
    """

    def __init__(self, network: Network, reduce_s_per_byte: float, log: int) -> None:
        self._nodes = len(network.compiled.node_names)
        self.tables: Tables = make_tables(
            operations=64,
            dependencies=64,
            hops=256,
            resources=len(network.capacity),
            gates=64,
            plays=8,
            servers=2 * self._nodes,
            devices=self._nodes,
            costs=2,
            connections=1,
            sharing=1,
            transit=1,
            events=256,
            log=log,
        )
        self.tables.operations["heap_position"] = -1
        self.tables.resources["capacity"] = network.capacity
        self.tables.resources["head"] = self.tables.resources["limited"] = -1
        self.tables.resources["buffer"] = network.buffer_bytes
        self.tables.resources["room"] = network.unplayed_buffer_bytes
        self.tables.clock["notices_overflow"] = bool((network.unplayed_buffer_bytes < math.inf).any())
        self.tables.resources["heard_at"] = -math.inf
        self.tables.resources["sharing"] = -1
        self.tables.resources["from_switch"] = network.from_switch
        self._network = network
        self._shares = network.protocol.transport.congestion_control in ("dcqcn", "dcqcn_vendor")
        self._set_costs(network, reduce_s_per_byte)
        self._slots = {name: Slots() for name in ("operations", "dependencies", "hops", "gates", "plays")}
        self._streams: dict[tuple[int, int], int] = {}
        self._begun = 0

    def lend(self, placement: Placement, first: Beginning) -> dict[str, int]:
        """Copy a placement into rows of its own.

        Parameters
        ----------
        placement : Placement
        first : Beginning
            What is done about connections before the first firing.

        Returns
        -------
        dict
            The first of its rows, by table.
        """
        if self._shares and (placement.operations["packet_time"] > 0.0).any():
            self._shares = False
            self._set_sharing()
        rows = self._take(placement)
        if first.opens.any() and (self.tables.resources["buffer"] < math.inf).any():
            self._make_room_for_bursts(placement)
        self._fill(placement, rows, first)
        return rows

    def lend_hops(self, count: int) -> int:
        """Return the first of so many rows of hops."""
        first = self._slots["hops"].take(count)
        self.tables = enlarge(self.tables, hops=self._slots["hops"].used)
        return first

    def give_back_hops(self, first: int, count: int) -> None:
        """Take rows of hops back."""
        self._slots["hops"].give_back(first, count)

    def give_back(self, placement: Placement, rows: dict[str, int]) -> None:
        """Take the rows of a placement back."""
        for name, length in _lengths(placement).items():
            self._slots[name].give_back(rows[name], length)

    def give_back_all(self) -> None:
        """Take all rows back."""
        for slots in self._slots.values():
            slots.reset()

    def prepare_losses(self, placement: Placement, first: int) -> None:
        """Have the operations of a placement, whose rows begin at `first`, draw what they lose from now on."""
        connections = int(placement.operations["connection"].max(initial=-1)) + 1
        self.tables = enlarge(self.tables, connections=connections)
        operations = self.tables.operations[first : first + len(placement.operations)]
        draws = random_stream(self._network.seed, "stalls", int(operations["stamp"][0]) // 2, "later")
        states = draws.integers(1, DRAWS, len(operations))
        operations["random"] = np.where(operations["random"] == 0, states, operations["random"])

    def make_room_for_events(self) -> None:
        """Make room for at least twice as many events."""
        self.tables = enlarge_events(self.tables)

    def _set_costs(self, network: Network, reduce_s_per_byte: float) -> None:
        protocol, costs = network.protocol, self.tables.costs
        costs["reduce_per_byte"] = reduce_s_per_byte
        costs["pipeline_bytes"][REMOTE] = protocol.pipeline_bytes
        costs["packet_bytes"][REMOTE] = protocol.payload_bytes + protocol.header_bytes
        costs["packet_bytes"][LOCAL] = math.inf
        costs["send"][REMOTE] = protocol.send_overhead_s
        costs["send_per_byte"][REMOTE] = protocol.send_overhead_s_per_byte
        costs["receive"][REMOTE] = protocol.receive_overhead_s
        costs["receive_per_byte"][REMOTE] = protocol.receive_overhead_s_per_byte
        describe_transport(self.tables.transports[0], protocol)

    def _set_sharing(self) -> None:
        """Work out what flows that share a link leave of it, once for all links that are alike."""
        compiled, protocol = self._network.compiled, self._network.protocol
        wires = [kind not in INSIDE_KINDS for kind in compiled.link_kind]
        links = np.flatnonzero(wires)
        alike, which = np.unique(
            np.stack([compiled.link_bandwidth[links], compiled.link_latency[links]]), axis=1, return_inverse=True
        )
        self.tables = enlarge(self.tables, sharing=(MOST_SHARING + 1) * alike.shape[1])
        for number, (capacity, latency_s) in enumerate(alike.T.tolist()):
            # Of a path of two such links, both ways.
            round_trip_s = 4.0 * latency_s + 2.0 * protocol.latency_s
            packet_bytes = protocol.payload_bytes + protocol.header_bytes
            first = number * (MOST_SHARING + 1)
            self.tables.sharing["unused"][first : first + MOST_SHARING + 1] = unused_shares(
                protocol.transport, capacity, packet_bytes, round_trip_s
            )
        self.tables.clock["leaves_unused"] = True
        self.tables.resources["sharing"][links] = which.reshape(-1) * (MOST_SHARING + 1)

    def _make_room_for_bursts(self, placement: Placement) -> None:
        """Make room for all packets that a queue that can overflow, and the way back from it, can hold."""
        resources, packet_bytes = self.tables.resources, float(self.tables.transports["packet_bytes"][0])
        may_overflow = resources["buffer"] < math.inf
        held = resources["buffer"][may_overflow] + resources["capacity"][may_overflow] * float(
            placement.operations["round_trip"].max(initial=0.0)
        )
        if math.isfinite(packet_bytes):
            self.tables = enlarge(self.tables, transit=math.ceil(float(held.max()) / packet_bytes) + 8)

    def _take(self, placement: Placement) -> dict[str, int]:
        lengths = _lengths(placement)
        rows = {name: self._slots[name].take(length) for name, length in lengths.items()}
        servers = self._number_streams(placement)
        connections = int(placement.operations["connection"].max(initial=-1)) + 1 if placement.is_random else 0
        self.tables = enlarge(
            self.tables,
            servers=servers,
            connections=connections,
            turns=int(placement.operations["turn"].max(initial=-1)) + 1,
            **{name: self._slots[name].used for name in lengths},
        )
        return rows

    def _fill(self, placement: Placement, rows: dict[str, int], first: Beginning) -> None:
        """Copy a placement into its rows, renumbered."""
        tables, at = self.tables, {name: slice(rows[name], rows[name] + n) for name, n in _lengths(placement).items()}
        self._begun += 1
        operations = tables.operations[at["operations"]]
        # A cancelled play may have left its rows among those to be looked at.
        fresh = operations["fresh"].copy()
        operations[:] = placement.operations
        operations["fresh"] = fresh
        # What is left of an earlier play in these rows, and of this one should it be cancelled, is not of this play.
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
        operations["first_setup"] += first.setup_s
        operations["opens"] = first.opens
        if placement.is_random or (first.opens.any() and (tables.resources["buffer"] < math.inf).any()):
            draws = random_stream(self._network.seed, "stalls", self._begun)
            operations["random"] = draws.integers(1, DRAWS, len(operations))
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
        tables.plays["left"][rows["plays"]] = placement.schedule.ranks
        tables.plays["is_watched"][rows["plays"]] = True

    def _number_streams(self, placement: Placement) -> int:
        """Give each stream of calculations, which exclude each other, a server; return how many servers there are."""
        first = 2 * self._nodes
        for _, stream in placement.streams:
            self._streams.setdefault(stream, first + len(self._streams))
        return first + len(self._streams)


def _lengths(placement: Placement) -> dict[str, int]:
    """Return how many rows of each table a play needs."""
    return {
        "operations": len(placement.operations),
        "dependencies": len(placement.dependencies),
        "hops": len(placement.hops),
        "gates": placement.schedule.ranks,
        "plays": 1,
    }
