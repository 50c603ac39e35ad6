"""What an exchange would have taken if one thing after another were ideal: played again on fabrics of their own.

The order of idealisations is `STEPS`; each is on top of those before it. What one of them saves is what its cause takes
of the exchange, and what is left in the end is what the workers, or servers, compute in it. So the parts add up, and
where two causes overlap the order decides which of them gets what they have in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.experiment.explain.classes import classes_of_resources, faster
from simnet.experiment.simulation import make_fabric
from simnet.fabric.faults import HostSlow, LinkFault, NetworkFault, start_faults
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.interface import Fabric
from simnet.fabric.network import Network
from simnet.fabric.packet.settings import PacketSettings
from simnet.fabric.placement import Placement
from simnet.fabric.play import Play
from simnet.protocols import FlowProtocol, Transport
from simnet.scenario import Scenario
from simnet.traffic import Kind, Schedule
from simnet.training.records import PlayRow

__all__ = ["Piece", "Replays", "without_stack", "without_windows"]

_MANY = 1e9
"""Links are made so many times as fast to see what they take; those that carry packets `_MANY_PACKETS` times."""

_MANY_PACKETS = 1e3

_ENDLESS_BYTES = 1e12

_DRAWN = 8
"""Plays of an exchange that loses packets at random, of which the mean is taken."""


@dataclass(frozen=True)
class Piece:
    """What one cause takes of an exchange.

    Attributes
    ----------
    part : str
    time_s : may be below 0, where an idealisation makes it longer [s]
    about : str
        Which resource, or how much of it.
    """

    part: str
    time_s: float
    about: str = ""


def without_windows(protocol: FlowProtocol) -> FlowProtocol:
    """Return a protocol whose connections send as fast as they can from the first packet on."""
    usual = Transport()
    kept = ("initial_window_packets", "window_bytes", "congestion_control", "slow_start_after_idle")
    marks = ("mark_from_s", "mark_all_s")
    transport = replace(protocol.transport, **{name: getattr(usual, name) for name in (*kept, *marks)})
    return replace(protocol, transport=transport)


def without_stack(protocol: FlowProtocol) -> FlowProtocol:
    """Return a protocol that costs the hosts nothing: what is left are headers, forwarding and latency."""
    ideal = FlowProtocol()
    kept = {
        "name",
        "summary",
        "mtu_bytes",
        "payload_bytes",
        "header_bytes",
        "latency_s",
        "forwarding",
        "divisible",
        "link_kinds",
        "transport",
    }
    free = {each.name: getattr(ideal, each.name) for each in fields(ideal) if each.name not in kept}
    transport = replace(protocol.transport, connections_per_pair=1.0, cache_miss_s=0.0, receive_ring_packets=math.inf)
    return replace(protocol, **free, transport=transport)


@dataclass(frozen=True, eq=False)
class _Exchange:
    """What is played again.

    Attributes
    ----------
    schedule, nodes : what, and where
    joins : for each rank when it takes part, after the beginning; shape (ranks,) [s]
    begin_s : when it began [s]
    idle_s : how long the job had exchanged nothing before; NaN: never had it exchanged anything [s]
    since_s : from when on it is measured, after its beginning [s]
    over_for : until when: the rank that is over; -1: the last one
    """

    schedule: Schedule
    nodes: NDArray[np.int64]
    joins: NDArray[np.float64]
    begin_s: float
    idle_s: float
    since_s: float
    over_for: int

    @property
    def key(self) -> tuple[object, ...]:
        """What makes the same of two of them, wherever in time they are."""
        return (
            id(self.schedule),
            self.nodes.tobytes(),
            np.round(self.joins, 12).tobytes(),
            round(self.since_s, 12),
            round(self.idle_s, 9) if math.isfinite(self.idle_s) else None,
            self.over_for,
        )


@dataclass
class Replays:
    """Plays exchanges of a run again.

    Parameters
    ----------
    scenario : Scenario
    plays : sequence of PlayRow
        All of the run.
    """

    scenario: Scenario
    plays: Sequence[PlayRow]
    _networks: dict[tuple[object, ...], Network] = field(default_factory=dict)
    _found: dict[tuple[object, ...], list[Piece]] = field(default_factory=dict)
    _emptied: dict[int, tuple[Schedule, Schedule]] = field(default_factory=dict)

    def pieces(self, row: PlayRow, since_s: float, until_s: float, over_for: int) -> list[Piece]:
        """Return what each cause takes of an exchange from one instant until it is over, adding up to that.

        The last is called ``computing`` : what remains on a network that takes no time.
        """
        exchange = self._exchange(row, since_s, over_for)
        took_s = until_s - since_s
        acting = [fault for fault in self._faults() if fault.begin_s < until_s and fault.end_s > row.start_s]
        key = exchange.key
        if acting or key not in self._found:
            self._found[key] = self._ideal_pieces(exchange)
        ideal = self._found[key]
        alone_s = math.fsum(piece.time_s for piece in ideal)
        found = []
        if acting:
            disturbed_s = self._time_s(exchange, self._network("as it is"), faults=acting)
            found.append(Piece("contention", took_s - disturbed_s, self._others(row)))
            names = ", ".join(f"{fault.kind} {fault.what}" for fault in acting)
            found.append(Piece("fault", disturbed_s - alone_s, names))
        else:
            found.append(Piece("contention", took_s - alone_s, self._others(row)))
        return [*found, *ideal]

    def computing_s(self, row: PlayRow, since_s: float, over_for: int, schedule: Schedule) -> float:
        """Return what another schedule would take in the place of one, on a network that takes no time [s]."""
        exchange = self._exchange(row, since_s, over_for)
        return self._time_s(replace(exchange, schedule=self._empty(schedule)), self._network("no latency"), flow=True)

    def _ideal_pieces(self, exchange: _Exchange) -> list[Piece]:
        """Idealise one thing after another."""
        found: list[Piece] = []
        scenario = self.scenario
        before_s = self._time_s(exchange, self._network("as it is"))

        def step(part: str, time_s: float, about: str = "") -> None:
            nonlocal before_s
            found.append(Piece(part, before_s - time_s, about))
            before_s = time_s

        if self._loses():
            step("loss recovery", self._time_s(exchange, self._network("no losses")))
        if without_windows(scenario.protocol) != scenario.protocol:
            step("slow start, windows and pacing", self._time_s(exchange, self._network("no windows")))
        if without_stack(scenario.protocol) != scenario.protocol:
            step("host protocol stack", self._time_s(exchange, self._network("no stack")))
        if scenario.reduce_s_per_byte > 0.0:
            step("adding up on receipt", self._time_s(exchange, self._network("no stack"), reduce_s_per_byte=0.0))
        loads = self._loads(exchange)
        fast: frozenset[str] = frozenset()
        for name, (_, busiest) in loads[:-1]:
            fast |= {name}
            step(
                f"serialisation: {name}",
                self._time_s(exchange, self._network("fast", fast), reduce_s_per_byte=0.0),
                busiest,
            )
        empty = replace(exchange, schedule=self._empty(exchange.schedule))
        latency_s = self._time_s(empty, self._network("no stack"), flow=True)
        if loads:
            name, (_, busiest) = loads[-1]
            step(f"serialisation: {name}", latency_s, busiest)
        else:
            step("serialisation", latency_s)
        step("latency", self._time_s(empty, self._network("no latency"), flow=True))
        return [*found, Piece("computing", before_s)]

    def _exchange(self, row: PlayRow, since_s: float, over_for: int) -> _Exchange:
        placement = row.placement
        joins = np.zeros(placement.schedule.ranks)
        if row.joins_late:
            for member, at_s in row.joined:
                joins[member] = max(at_s - row.start_s, 0.0)
        before = [one.end_s for one in self.plays if one.job == row.job and one.start_s < row.start_s]
        idle_s = max(row.start_s - max(before), 0.0) if before else math.nan
        return _Exchange(
            placement.schedule,
            placement.nodes,
            joins,
            row.start_s,
            idle_s if self._keeps_windows() or math.isnan(idle_s) else 0.0,
            since_s - row.start_s,
            over_for,
        )

    def _keeps_windows(self) -> bool:
        return self.scenario.protocol.transport.slow_start_after_idle

    def _time_s(
        self,
        exchange: _Exchange,
        network: Network,
        *,
        faults: Sequence[NetworkFault] = (),
        reduce_s_per_byte: float | None = None,
        flow: bool = False,
    ) -> float:
        """Return what an exchange takes alone on a network, in the mean where chance has a part in it [s]."""
        scenario = self.scenario if reduce_s_per_byte is None else replace(self.scenario, reduce_s_per_byte=0.0)
        if scenario.packet is not None:
            scenario = replace(scenario, packet=None if flow else self._packets(network))
        # Where there was an exchange before, its connections are open; it was over so long ago.
        opened = not math.isnan(exchange.idle_s) and _has_connections(network.protocol)
        begin_s = exchange.begin_s if faults else 0.0
        early_s = 0.0
        if opened and faults:
            early_s = exchange.idle_s + self._time_s(replace(exchange, idle_s=math.nan), network)
            early_s += exchange.since_s
        if faults:
            # A network in which something goes wrong is not the same afterwards.
            network = self._made("as it is", frozenset())
        env = simpy.Environment(initial_time=begin_s - early_s)
        fabric = make_fabric(scenario, env, network, None)
        placement = fabric.place(exchange.schedule, exchange.nodes)
        is_random = bool(getattr(placement, "is_random", False)) and not faults
        times_s = []
        if opened:
            env.run(until=fabric.play(placement, "opening").complete)
        for _ in range(_DRAWN if is_random else 1):
            if opened and exchange.idle_s > 0.0:
                env.run(until=env.now + exchange.idle_s)
            if faults:
                if env.now < begin_s:
                    env.run(until=begin_s)
                start_faults(env, fabric, faults)
            times_s.append(_played_s(env, fabric, placement, exchange))
        return math.fsum(times_s) / len(times_s)

    def _packets(self, network: Network) -> PacketSettings:
        """Return how switches work: with room for everything, where nothing is to be lost."""
        assert self.scenario.packet is not None
        if network is self._networks.get(("as it is", frozenset())):
            return self.scenario.packet
        return replace(self.scenario.packet, buffer_bytes=_ENDLESS_BYTES, shared_buffer_bytes=0.0)

    def _network(self, what: str, fast: frozenset[str] = frozenset()) -> Network:
        """Return the network of a step, with all that is ideal before it."""
        key = what, fast
        if key not in self._networks:
            self._networks[key] = self._made(what, fast)
        return self._networks[key]

    def _made(self, what: str, fast: frozenset[str]) -> Network:
        scenario, protocol, topology = self.scenario, self.scenario.protocol, self.scenario.topology
        if what != "as it is" and self._loses():
            topology = faster(topology, (), 1.0, lossless=True)
        if what not in ("as it is", "no losses"):
            protocol = without_windows(protocol)
            if what != "no windows":
                protocol = without_stack(protocol)
        if what == "fast":
            topology = faster(topology, fast, _MANY if scenario.packet is None else _MANY_PACKETS)
        if what == "no latency":
            topology, protocol = faster(topology, (), 1.0, latency=0.0), replace(protocol, latency_s=0.0)
        return Network(topology, protocol, scenario.run.seed)

    def _loads(self, exchange: _Exchange) -> list[tuple[str, tuple[float, str]]]:
        """Return for how long the busiest resource of each class works, and which it is; the least loaded first."""
        network = self._network("no stack")
        fabric = FluidFabric(simpy.Environment(), network)
        placement = fabric.place(exchange.schedule, exchange.nodes)
        classes = classes_of_resources(network)
        found: dict[str, tuple[float, str]] = {}
        for resource, taken_bytes in sorted(placement.resource_bytes.items()):
            load = taken_bytes / float(network.capacity[resource])
            if load > found.get(classes[resource], (0.0, ""))[0] * (1.0 + 1e-9):
                found[classes[resource]] = load, network.resource_names[resource]
        return sorted(found.items(), key=lambda one: (one[1][0], one[0]))

    def _empty(self, schedule: Schedule) -> Schedule:
        """Return a schedule whose messages have no bytes."""
        if id(schedule) not in self._emptied:
            ops = schedule.operations
            carries = ops.kind != Kind.CALC
            empty = replace(
                ops,
                chunk_width=np.where(carries, 0, ops.chunk_width),
                fixed_bytes=np.where(carries, 0.0, ops.fixed_bytes),
            )
            # The schedule is kept as well, so that no other has its number.
            self._emptied[id(schedule)] = schedule, replace(schedule, operations=empty)
        return self._emptied[id(schedule)][1]

    def _loses(self) -> bool:
        compiled = self.scenario.topology.compiled
        if self.scenario.packet is not None and self.scenario.protocol.transport.link_flow_control == "none":
            return True
        return bool((compiled.link_loss_probability > 0.0).any() or np.isfinite(compiled.link_buffer_bytes).any())

    def _faults(self) -> list[NetworkFault]:
        return [fault for fault in self.scenario.faults if isinstance(fault, (LinkFault, HostSlow))]

    def _others(self, row: PlayRow) -> str:
        """Say what was on the network at the same time."""
        beside = [
            one
            for one in self.plays
            if one.start_s < row.end_s and one.end_s > row.start_s and one.play is not row.play
        ]
        own = sum(one.job == row.job for one in beside)
        found = [f"{own} other exchange{'s' if own > 1 else ''} of the job"] if own else []
        found += sorted({f"job {one.job}" for one in beside if one.job != row.job})
        if self.scenario.background is not None:
            found.append("background traffic")
        if any(job.dataset is not None and job.dataset.storage for job in self.scenario.jobs):
            found.append("reading of samples")
        shared = self._shared_most(row, beside)
        return ", ".join(found) + (f", on {shared}" if shared and found else "")

    def _shared_most(self, row: PlayRow, beside: Sequence[PlayRow]) -> str:
        """Return the resource that an exchange and those beside it keep busy longest; none where they share none."""
        network = self._network("as it is")
        busy_s: dict[int, float] = {}
        mine = _resource_bytes(row)
        for one in beside:
            for resource, taken_bytes in _resource_bytes(one).items():
                if resource in mine:
                    busy_s[resource] = busy_s.get(resource, 0.0) + taken_bytes / float(network.capacity[resource])
        for resource in busy_s:
            busy_s[resource] += mine[resource] / float(network.capacity[resource])
        return network.resource_names[max(sorted(busy_s), key=lambda one: busy_s[one])] if busy_s else ""


def _resource_bytes(row: PlayRow) -> dict[int, float]:
    placement = row.placement
    return placement.resource_bytes if isinstance(placement, Placement) else {}


def _has_connections(protocol: FlowProtocol) -> bool:
    """Tell whether the first exchange differs from later ones."""
    opening = protocol.connection_setup_s > 0.0 or protocol.connection_setup_round_trips > 0.0
    windows = (
        math.isfinite(protocol.transport.initial_window_packets) or protocol.transport.congestion_control != "none"
    )
    return opening or windows


def _played_s(env: simpy.Environment, fabric: Fabric, placement: object, exchange: _Exchange) -> float:
    """Play an exchange now; return how long it takes from when it is measured [s]."""
    joins = exchange.joins
    at_once = bool((joins == 0.0).all())
    play = fabric.play(placement, "again", gates_open=at_once)
    if not at_once:
        play.open(np.flatnonzero(joins == 0.0))
        for delay_s in np.unique(joins[joins > 0.0]).tolist():
            env.timeout(delay_s).callbacks.append(partial(_join, play, np.flatnonzero(joins == delay_s)))
    env.run(until=play.complete)
    over_s = play.duration_s if exchange.over_for < 0 else float(play.rank_duration_s[exchange.over_for])
    return over_s - exchange.since_s


def _join(play: Play, ranks: NDArray[np.int64], _: simpy.Event) -> None:
    play.open(ranks)
