"""Traffic on a network of packets, and protocols on hosts that take no time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.packet.fabric import PacketFabric, QueueCounts
from simnet.fabric.packet.kernels.ports import look_at
from simnet.fabric.packet.kernels.records import NOWHERE
from simnet.fabric.packet.ports import PICOSECOND
from simnet.fabric.packet.settings import DEFAULT_PACKETS
from simnet.fabric.packet.wire import Wire
from simnet.protocols import FlowProtocol, resolve, with_no_overheads
from simnet.protocols.transport import Transport
from simnet.topology import star
from simnet.topology.building import PLAIN_HOST, Cable, TopologyBuilder
from simnet.traffic import Partition, ScheduleBuilder

GIGABIT = 1e9 / 8  # per second [bytes/s]
B, DELAY = 100 * GIGABIT, 1e-6
PAYLOAD, HEADER = 4096, 82
ACKNOWLEDGEMENT = 86

RAW = replace(FlowProtocol(), name="roce", payload_bytes=PAYLOAD, header_bytes=HEADER, forwarding="store_and_forward")
"""RoCE on hosts that take no time."""


def behaving(**behaviour):
    """RAW with another transport."""
    return replace(RAW, transport=Transport(**behaviour))


def lean(name, **overrides):
    """A protocol by its name, with its framing and behaviour, on hosts that take no time."""
    protocol = resolve(name, overrides)
    kept = ("header_bytes", "forwarding", "transport")
    return replace(with_no_overheads(protocol), **{field: getattr(protocol, field) for field in kept})


def star_of(hosts, round_trip_s, bandwidth=B, **cable):
    """A star in which it takes so long to go from host to host and back, besides what packets take to leave."""
    return star(hosts=hosts, bandwidth_bytes_per_s=bandwidth, latency_s=round_trip_s / 4, **cable)


def into_one(senders, round_trip_s, bandwidth=B, *, faster=2.5, buffer_bytes=None):
    """Hosts around a switch, the last of them on a slower link than the others, so that queues build up there alone."""
    build = TopologyBuilder("into one")
    nics = [nic for number in range(senders + 1) for nic in build.host(f"host{number}", PLAIN_HOST)]
    switch = build.node("switch", "switch")
    for number, nic in enumerate(nics):
        rate = bandwidth if number == senders else faster * bandwidth
        build.cable(nic, switch, Cable(rate, round_trip_s / 4, "ethernet", None, buffer_bytes))
    return build.topology()


def of_each_link(probability):
    """The loss of one of two links that together lose such a share of packets."""
    return 1.0 - (1.0 - probability) ** 0.5


def sends(ranks, *messages):
    build = ScheduleBuilder("sends", ranks, Partition(1, 1.0))
    for source, target, size in messages:
        build.send(source, target, width=0, fixed_bytes=size)
    return build.schedule()


def play(schedule, *, topology=None, protocol=None, packets=True, settings=DEFAULT_PACKETS, seed=0):
    """Play a schedule; return how long it took, and the fabric."""
    topology = topology or star(hosts=schedule.ranks, bandwidth_bytes_per_s=B, latency_s=DELAY)
    network = Network(topology, protocol or RAW)
    env = simpy.Environment()
    fabric = PacketFabric(env, network, settings=settings, seed=seed) if packets else FluidFabric(env, network)
    one = fabric.play(fabric.place(schedule, network.compiled.rank_nodes[: schedule.ranks]), "test")
    env.run(until=one.complete)
    fabric.require_conservation()
    return one.duration_s, fabric


class Traffic:
    """Messages between the hosts of a topology, on the wire alone.

    Attributes
    ----------
    wire : Wire
    over_s : when each message was over, in the order in which they were asked for; NaN before [s]
    lost_bytes : payload that each arrived without [bytes]
    """

    def __init__(self, topology, protocol, settings=DEFAULT_PACKETS, seed=0):
        network = Network(topology, protocol)
        self.wire = Wire(network, settings, seed)
        self.over_s: list[float] = []
        self.lost_bytes: list[float] = []
        self._nodes = network.compiled.rank_nodes
        self._compiled = network.compiled
        self._waiting: list[tuple[int, int, int, int, float, float]] = []

    def send(self, source, target, size, at_s=0.0, pace=float("inf")):
        """Have a host send a message at a time, which has not come yet, so fast at the most."""
        name = len(self.over_s)
        self.over_s.append(np.nan)
        self.lost_bytes.append(0.0)
        ends = int(self._nodes[source]), int(self._nodes[target])
        self._waiting.append((round(at_s / PICOSECOND), name, *ends, size, pace))

    def run(self, until_s):
        """Let time pass."""
        until = round(until_s / PICOSECOND)
        self._waiting.sort()
        while self._waiting and self._waiting[0][0] <= until:
            at, name, *message = self._waiting.pop(0)
            self._pass(at)
            self.wire.start(name, *message)
        self._pass(until)

    def finish(self, step_s=0.1, within_s=1000.0):
        """Let time pass until all messages are over, and nothing else happens; return when the last one was [s]."""
        while np.isnan(self.over_s).any():
            assert self.now_s < within_s, "messages that are never over"
            self.run(self.now_s + step_s)
        self.run(self.now_s + step_s)
        return max(self.over_s)

    def lose(self, source, probability):
        """Have the link from a host to its switch lose such a share of packets from now on; other links do not."""
        row = np.flatnonzero(~self.wire.ports.is_stack)[self.port(source, None)]
        look_at(self.wire.tables, row, self.wire.now)
        self.wire.tables.ports["loss"][row] = probability

    @property
    def now_s(self):
        return self.wire.now * PICOSECOND

    @property
    def connections(self):
        """The rows of the connections that there are, as the table has them."""
        return self.wire.tables.connections[: len(self.wire.connections)]

    @property
    def counts(self):
        for row in range(len(self.wire.tables.ports)):
            look_at(self.wire.tables, row, self.wire.now)
        return QueueCounts(self.wire)

    def port(self, source, target):
        """The row in `counts` of the link from a host to the switch (target None), or back (source None)."""
        node = int(self._nodes[target if source is None else source])
        ends = self._compiled.link_target if source is None else self._compiled.link_source
        return next(row for row, link in enumerate(self.counts.links.tolist()) if ends[link] == node)

    def _pass(self, until):
        while True:
            told = self.wire.run(until)
            if not told:
                return
            for one in told:
                if one.is_over:
                    assert np.isnan(self.over_s[one.message]), "a message that is over twice"
                    self.over_s[one.message] = self.now_s
                    self.lost_bytes[one.message] = one.lost_bytes


def rates(traffic, from_s, to_s):
    """What is acknowledged of each connection between two times [packets/s]."""
    traffic.run(from_s)
    before = traffic.connections["acknowledged"].copy()
    traffic.run(to_s)
    return (traffic.connections["acknowledged"] - before) / (to_s - from_s)


def fairness(shares):
    """Jain's index: 1 if all are the same, 1/n if one has all (R. Jain, D. Chiu and W. Hawe 1984)."""
    shares = np.asarray(shares, dtype=float)
    return shares.sum() ** 2 / (len(shares) * (shares**2).sum())


def is_at_rest(traffic):
    """Tell whether senders have nothing under way, nothing to send again and no packet is left anywhere."""
    rows, tables = traffic.connections, traffic.wire.tables
    lists = all((rows[column] == NOWHERE).all() for column in ("first_out", "last_out", "first_lost", "last_lost"))
    free = int(tables.clock["free_packets"][0]) == len(tables.packets)
    return bool((rows["in_flight"] == 0).all() and lists and free and (tables.ports["held"] == 0).all())
