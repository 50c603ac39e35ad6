"""Messages on a network of packets: from routes to ports, and from packets back to messages."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simnet.engine.random_streams import random_stream
from simnet.fabric.network import INSIDE_KINDS, Network
from simnet.fabric.packet.go_back_n import GoBackN, Message
from simnet.fabric.packet.kernels import engine
from simnet.fabric.packet.kernels.packets import give_back
from simnet.fabric.packet.kernels.tables import NOWHERE, make_packet_tables
from simnet.fabric.packet.settings import PacketSettings

__all__ = ["Wire", "WireEvent"]

PICOSECOND = 1e-12
_FAR = 1 << 62
_PACKETS, _FLOWS, _STEPS = 1 << 14, 1 << 10, 1 << 14


@dataclass(frozen=True)
class WireEvent:
    """What has become of a message.

    Attributes
    ----------
    message : int
        As whoever started it calls it.
    is_over : bool
        It has arrived; otherwise its last bit has left.
    """

    message: int
    is_over: bool


class Wire:
    """The network of a topology at packet level, on a clock of whole picoseconds.

    Parameters
    ----------
    network : Network
    settings : PacketSettings
    seed : int
        Of losses and marks.
    """

    def __init__(self, network: Network, settings: PacketSettings, seed: int) -> None:
        self._network, self._settings = network, settings
        compiled = network.compiled
        wires = [link for link, kind in enumerate(compiled.link_kind) if kind not in INSIDE_KINDS]
        # The ports of a node stand together.
        wires.sort(key=lambda link: (int(compiled.link_source[link]), link))
        self.port_of_link = np.full(len(compiled.link_kind), NOWHERE)
        self.port_of_link[wires] = np.arange(len(wires))
        self.links = np.array(wires, dtype=np.int64)
        self.tables = make_packet_tables(
            ports=len(wires), nodes=len(compiled.node_names), packets=_PACKETS, flows=_FLOWS, steps=_STEPS
        )
        self._describe_ports(seed)
        self._steps: dict[tuple[int, ...], int] = {}
        self._used_steps = 0
        self._free_flows = list(range(_FLOWS - 1, -1, -1))
        self._messages: dict[int, Message] = {}
        self._transport = GoBackN(settings)
        self._timers: list[tuple[int, int, int, int]] = []
        self._timer_number = 0

    @property
    def now(self) -> int:
        """Time on the clock of the network [ps]."""
        return int(self.tables.clock["now"][0])

    def next_instant(self) -> int:
        """Return when something happens next, far away if never [ps]."""
        events = int(self.tables.clock["events"][0])
        following = int(self.tables.events["key"][0]) if events else _FAR
        return min(following, self._timers[0][0]) if self._timers else following

    def wait_until(self, time: int) -> None:
        """Move the clock on to a time before which nothing happens any more."""
        self.tables.clock["now"] = max(self.now, time)

    def start(self, name: int, source: int, target: int, size_bytes: float, pace: float) -> None:
        """Send a message.

        Parameters
        ----------
        name : int
            How it is called in what is told of it.
        source, target : int
            Node indices, in different hosts.
        size_bytes : float
            Payload [bytes].
        pace : float
            The most that its hosts can do; infinite: as much as the link [bytes/s].
        """
        settings, protocol = self._settings, self._network.protocol
        there, back = (self._path(a, b) for a, b in ((source, target), (target, source)))
        payload = protocol.payload_bytes if math.isfinite(protocol.payload_bytes) else settings.packet_bytes
        packets = max(1, math.ceil(size_bytes / payload))
        last = max(size_bytes - (packets - 1) * payload, 1.0)
        row = self._flow_row()
        flow = self.tables.flows[row]
        for column in flow.dtype.names:
            flow[column] = 0
        flow["port"] = self.tables.steps["port"][there[0]]
        flow["path"], flow["hops"] = there
        flow["back_path"], flow["back_hops"] = back
        flow["traffic_class"], flow["back_class"] = settings.data_class, settings.control_class
        flow["packets"] = packets
        flow["full_bytes"] = round(payload + protocol.header_bytes)
        flow["last_bytes"] = max(round(last + protocol.header_bytes), 1)
        flow["acknowledgement_bytes"] = settings.acknowledgement_bytes
        flow["may_be_marked"] = settings.marks
        flow["window"] = settings.window_packets
        flow["every"] = settings.acknowledge_every
        flow["next_ready"] = NOWHERE
        rate = round(pace * (payload + protocol.header_bytes) / payload) if math.isfinite(pace) else 0
        message = Message(name, row, packets, rate)
        self._messages[row] = message
        self._carry_out(self._transport.begin(message))

    def run(self, until: int) -> list[WireEvent]:
        """Let time pass up to and including an instant, or to the first at which something becomes of a message."""
        while True:
            stop = min(until, self._timers[0][0]) if self._timers else until
            why = engine.run(self.tables, stop)
            if why == engine.FULL:
                self._enlarge()
                continue
            if why == engine.QUIET:
                if not self._timers or self._timers[0][0] > until:
                    return []
                _, _, row, stamp = heapq.heappop(self._timers)
                message = self._messages.get(row)
                if message is not None and message.timer == stamp:
                    flow = self.tables.flows[row]
                    since = self.now - int(flow["progress_at"])
                    self._carry_out(self._transport.on_timeout(message, int(flow["acknowledged"]), since))
                continue
            row = int(self.tables.clock["reported"][0])
            told = list(self._sent(row) if why == engine.ALL_SENT else self._told(row))
            if told:
                return told

    def _sent(self, row: int) -> Iterator[WireEvent]:
        message = self._messages.get(row)
        if message is None:
            return
        if not message.is_sent:
            message.is_sent = True
            yield WireEvent(message.name, is_over=False)

    def _told(self, packet_row: int) -> Iterator[WireEvent]:
        """Hand a packet to the transport."""
        packet = self.tables.packets[packet_row]
        row, kind, number = int(packet["flow"]), int(packet["kind"]), int(packet["number"])
        give_back(self.tables, packet_row)
        message = self._messages.get(row)
        if message is None:
            return
        flow = self.tables.flows[row]
        if kind == engine.DATA:
            if flow["expected"] == flow["packets"] and not message.has_arrived:
                message.has_arrived = True
                yield WireEvent(message.name, is_over=True)
                return
            self._carry_out(self._transport.on_data(message, number, int(flow["expected"])))
            return
        if kind == engine.ACKNOWLEDGEMENT and number >= message.packets:
            del self._messages[row]
            self._free_flows.append(row)
            return
        self._carry_out(self._transport.on_control(message, kind, number))

    def _carry_out(self, instructions: list[tuple[str, Message, int, int]]) -> None:
        """Do what a transport wants: send packets, send something back, set a timer."""
        for what, message, first, second in instructions:
            if what == "send":
                engine.allow(self.tables, message.row, first, second, message.pace)
            elif what == "back":
                size = self._settings.acknowledgement_bytes
                engine.send_back(self.tables, message.row, first, second, 0, size, 0)
            else:
                self._timer_number += 1
                message.timer = self._timer_number
                heapq.heappush(self._timers, (self.now + first, self._timer_number, message.row, message.timer))

    def _path(self, source: int, target: int) -> tuple[int, int]:
        """Return the row of `steps` and the number of ports of a path."""
        links = self._network.links_between(source, target)
        ports = tuple(int(self.port_of_link[link]) for link in links if self.port_of_link[link] != NOWHERE)
        found = self._steps.get(ports)
        if found is None:
            found = self._steps[ports] = self._used_steps
            self._used_steps += len(ports)
            if self._used_steps > len(self.tables.steps):
                self._enlarge(steps=2 * self._used_steps)
            self.tables.steps["port"][found : found + len(ports)] = ports
        return found, len(ports)

    def _flow_row(self) -> int:
        if not self._free_flows:
            have = len(self.tables.flows)
            self._enlarge(flows=2 * have)
            self._free_flows = list(range(2 * have - 1, have - 1, -1))
        return self._free_flows.pop()

    def _enlarge(self, flows: int = 0, steps: int = 0) -> None:
        """Make room: for twice as many packets, or for so many flows or steps."""
        old = self.tables
        packets = len(old.packets) * (1 if flows or steps else 2)
        larger = make_packet_tables(
            ports=len(old.ports),
            nodes=len(old.nodes),
            packets=packets,
            flows=max(flows, len(old.flows)),
            steps=max(steps, len(old.steps)),
        )
        for name in ("ports", "queues", "ingresses", "nodes", "flows", "steps", "events", "clock"):
            table = getattr(old, name)
            getattr(larger, name)[: len(table)] = table
        for name in ("packets", "releases"):
            table, new = getattr(old, name), getattr(larger, name)
            new[: len(table)] = table
            added = len(new) - len(table)
            if added:
                free = f"first_free_{name[:-1]}"
                new["next"][-1] = larger.clock[free][0] if larger.clock[f"free_{name}"][0] else NOWHERE
                larger.clock[free] = len(table)
                larger.clock[f"free_{name}"] += added
        self.tables = larger

    def _describe_ports(self, seed: int) -> None:
        compiled, settings, tables = self._network.compiled, self._settings, self.tables
        ends: dict[tuple[int, int], list[int]] = {}
        for row, link in enumerate(self.links.tolist()):
            ends.setdefault((int(compiled.link_source[link]), int(compiled.link_target[link])), []).append(row)
        ports = tables.ports
        ports["source"], ports["target"] = compiled.link_source[self.links], compiled.link_target[self.links]
        for (source, target), rows in ends.items():
            for row, reverse in zip(rows, ends.get((target, source), []), strict=False):
                ports["reverse"][row] = reverse
        ports["bytes_per_s"] = np.round(compiled.link_bandwidth[self.links]).astype(np.int64)
        ports["delay"] = np.round(compiled.link_latency[self.links] / PICOSECOND).astype(np.int64)
        ports["loss"] = compiled.link_loss_probability[self.links]
        buffers = compiled.link_buffer_bytes[self.links]
        ports["limit"] = np.where(np.isfinite(buffers), buffers, settings.buffer_bytes)
        ports["mark_from"], ports["mark_all"] = settings.mark_from_bytes, settings.mark_all_bytes
        ports["most_marked"], ports["marks_at_departure"] = settings.most_marked, settings.marks_at_departure
        ports["random"] = random_stream(seed, "packets").integers(1, 1 << 62, len(ports))
        nodes = tables.nodes
        nodes["is_switch"] = [kind == "switch" for kind in compiled.node_kind]
        nodes["first_port"] = np.searchsorted(ports["source"], np.arange(len(nodes)))
        nodes["ports"] = np.bincount(ports["source"], minlength=len(nodes))
        ports["limit"][~nodes["is_switch"][ports["source"]]] = 1 << 60
        if settings.lossless:
            nodes["lossless"] = np.where(nodes["is_switch"], 1 << settings.data_class, 0)
            nodes["pause_at"], nodes["resume_at"] = settings.pause_at_bytes, settings.resume_at_bytes
            nodes["headroom"] = self._headroom()

    def _headroom(self) -> np.ndarray:
        """Return what still comes after a pause, for the longest cable of each node, shape (nodes,) [bytes].

        What is on the way there and back, a packet that has begun on either side, and the pause itself (page on PFC of
        IEEE 802.1Q, annex N).
        """
        ports, nodes = self.tables.ports, self.tables.nodes
        largest = round(self._settings.largest_packet_bytes)
        needed = np.zeros(len(nodes), dtype=np.int64)
        on_the_way = 2 * ports["delay"] * PICOSECOND * ports["bytes_per_s"]
        np.maximum.at(needed, ports["target"], np.ceil(on_the_way).astype(np.int64) + 3 * largest + 2 * 84)
        return needed
