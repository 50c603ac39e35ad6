"""Messages on a network of packets: handed to connections, and told of when they have left and arrived."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.errors import StalledError
from simnet.fabric.network import Network
from simnet.fabric.packet.connections import Connections
from simnet.fabric.packet.deadlock import find_deadlock
from simnet.fabric.packet.giving_up import GaveUpError, reason_to_give_up
from simnet.fabric.packet.kernels import engine
from simnet.fabric.packet.kernels.packets import ARRIVAL, give_back
from simnet.fabric.packet.kernels.ports import look_at
from simnet.fabric.packet.kernels.receivers import DATA
from simnet.fabric.packet.kernels.records import NOWHERE
from simnet.fabric.packet.kernels.tables import PacketTables
from simnet.fabric.packet.own_control import tell
from simnet.fabric.packet.ports import PICOSECOND, lay_out
from simnet.fabric.packet.settings import PacketSettings
from simnet.protocols.congestion import Control
from simnet.protocols.transports import (
    RULES,
    FinishMessage,
    GoBack,
    Instruction,
    Progress,
    Reply,
    Rules,
    SendAgain,
    SetTimer,
)

__all__ = ["Wire", "WireEvent"]

_FAR = 1 << 62
_PACKETS, _CONNECTIONS, _MESSAGES, _STEPS, _CELLS = 1 << 14, 1 << 8, 1 << 10, 1 << 12, 1 << 14
_SPLIT_FROM = 64 * 1024
"""NCCL cuts what it sends over several sockets in parts of at least so many bytes (net_socket.cc, MIN_CHUNKSIZE)."""


@dataclass(frozen=True)
class WireEvent:
    """What has become of a message.

    Attributes
    ----------
    message : int
        As whoever started it calls it.
    is_over : bool
        It has arrived; otherwise its last bit has left.
    lost_bytes : float
        Payload that it arrived without [bytes].
    late_s : float
        For how long hosts still work on its last packet [s].
    """

    message: int
    is_over: bool
    lost_bytes: float = 0.0
    late_s: float = 0.0


@dataclass
class _Part:
    """A message, or the part of it that goes over one connection."""

    name: int
    payload_bytes: float
    packets: int
    late_s: float
    has_left: bool = False


class Wire:
    """The network of a topology at packet level, on a clock of whole picoseconds.

    Parameters
    ----------
    network : Network
    settings : PacketSettings
    seed : int
        Of losses, marks and how much later than others hosts answer.
    own_controls, own_rules : mapping
        Congestion controls and rules of transports that do not come with simnet, by name.
    slow_hosts : collection of int
        Hosts whose protocol stacks may be slower than usual for a while.
    """

    def __init__(
        self,
        network: Network,
        settings: PacketSettings,
        seed: int,
        own_controls: Mapping[str, type[Control]] | None = None,
        own_rules: Mapping[str, type[Rules]] | None = None,
        slow_hosts: Collection[int] = (),
    ) -> None:
        self._network = network
        self._transport = network.protocol.transport
        self._has_packets = math.isfinite(network.protocol.payload_bytes)
        # Only links that are down lose what has no packets, and when they are back it is sent again at once.
        self._needs_no_timer = not self._has_packets and self._transport.link_flow_control != "none"
        self._rules_class = (own_rules or {}).get(self._transport.reliability) or RULES[self._transport.reliability]
        rows = {
            "packets": _PACKETS,
            "connections": _CONNECTIONS,
            "messages": _MESSAGES,
            "steps": _STEPS,
            "cells": _CELLS,
        }
        self.ports, tables = lay_out(network, settings, seed, slow_hosts, **rows)
        self._line_rate: NDArray[np.int64] = tables.ports["bytes_per_s"].copy()
        self._loss: NDArray[np.float64] = tables.ports["loss"].copy()
        self._down: set[int] = set()
        self.connections = Connections(network, settings, self.ports, tables, own_controls or {}, seed)
        self._rules: dict[int, Rules] = {}
        self._parts: dict[int, _Part] = {}
        # Of messages that are cut into parts: parts that have not left, and not arrived, and what these lack.
        self._open_parts: dict[int, list[float]] = {}
        self._timers: list[tuple[int, int, int]] = []
        self._timer_number = 0
        self._told: list[WireEvent] = []

    @property
    def tables(self) -> PacketTables:
        """Tables of the kernels; others when they had to grow."""
        return self.connections.tables

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
            The most that its hosts can do for one connection; infinite: as much as the link [bytes/s].
        """
        parts = int(min(self._transport.connections_per_pair, max(size_bytes // _SPLIT_FROM, 1)))
        if parts > 1:
            self._open_parts[name] = [parts, parts, 0.0]
            pace /= parts
        for _ in range(parts):
            self._start_part(name, source, target, size_bytes / parts, pace)

    def waiting_pairs(self) -> set[tuple[int, int]]:
        """Return the nodes between which messages are under way."""
        connection, ends = self.tables.messages["connection"], self.connections.ends
        return {ends[int(connection[message])] for message, part in self._parts.items() if part.name != NOWHERE}

    def forget(self, names: Collection[int]) -> None:
        """Send no more of some messages, and tell nothing of them any more; what was sent goes on to nobody."""
        self._told = [told for told in self._told if told.message not in names]
        for name in names:
            self._open_parts.pop(name, None)
        for message, part in list(self._parts.items()):
            if part.name in names:
                part.name = NOWHERE
                self._cut_short(message)

    def set_capacity(self, resource: int, bytes_per_s: float) -> None:
        """Change the rate of a port, for packets that have not begun; without any it loses them, and those behind it.

        Parameters
        ----------
        resource : int
            A link or the protocol stack of a host; one that is inside of hosts is no port.
        bytes_per_s : float
        """
        port = int(self.ports.of_resource[resource])
        if port == NOWHERE:
            return
        look_at(self.tables, port, self.now)
        if bytes_per_s > 0.0:
            share = bytes_per_s / float(self._network.capacity[resource])
            self.tables.ports["bytes_per_s"][port] = max(round(share * int(self._line_rate[port])), 1)
            was_down = port in self._down
            self._down.discard(port)
            self.tables.ports["loss"][port] = self._loss[port]
            if was_down:
                rows = [row for row in range(len(self.connections)) if self.connections.uses(row, [port])]
                self._try_again(rows)
        elif port not in self._down:
            self._down.add(port)
            self.tables.ports["loss"][port] = 1.0
            self._lose_under_way(port)

    def set_loss(self, loss: Mapping[int, float]) -> None:
        """Have links lose other shares of packets than they usually do; see `Fabric.set_loss`."""
        links = np.flatnonzero(~self.ports.is_stack)
        usual = self._network.compiled.link_loss_probability
        for port, link in zip(links.tolist(), self.ports.resources[links].tolist(), strict=True):
            share = loss.get(link, float(usual[link])) if self._has_packets else 0.0
            if share != self._loss[port]:
                look_at(self.tables, port, self.now)
                self._loss[port] = share
                self.tables.ports["loss"][port] = 1.0 if port in self._down else share

    def reroute(self) -> None:
        """Have connections take the paths of now; packets that are on their way keep theirs."""
        for row in range(len(self.connections)):
            look_at(self.tables, int(self.tables.connections["port"][row]), self.now)
            was_dead = self.connections.uses(row, self._down)
            if self.connections.reroute(row):
                connection = self.tables.connections[row]
                engine.set_window(self.tables, row, float(connection["window"]), float(connection["pace"]))
                if was_dead:
                    self._try_again([row])

    def run(self, until: int) -> list[WireEvent]:
        """Let time pass up to and including an instant, or to the first at which something becomes of a message."""
        while True:
            if self._told:
                told, self._told = self._told, []
                return told
            stop = min(until, self._timers[0][0]) if self._timers else until
            why = engine.run(self.tables, stop)
            if why == engine.FULL:
                self.connections.enlarge(packets=2 * len(self.tables.packets))
                continue
            if why == engine.QUIET:
                if not self._timers or self._timers[0][0] > until:
                    return []
                _, _, row = heapq.heappop(self._timers)
                self._on_timer(row)
                continue
            row = int(self.tables.clock["reported"][0])
            if why == engine.ALL_SENT:
                self._sent(row)
            elif why == engine.ARRIVED:
                self._arrived(row)
            elif why == engine.LATE:
                self._look_for_deadlock()
            elif why == engine.GAVE_UP:
                self._think_of_giving_up(row)
            elif why == engine.TIMED_OUT:
                self._look_for_deadlock()
                self._timed_out(row)
            elif why == engine.HAPPENED:
                self._happened(row)
            else:
                self._hand_over(row)

    def _timed_out(self, row: int) -> None:
        """Ask the rules of a connection what to do, as nothing was heard for too long."""
        if self._needs_no_timer:
            engine.wait_longer(self.tables, row)
            return
        connection = self.tables.connections[row]
        connection["timeouts"] += 1
        if connection["timeout"] < connection["least_timeout"]:
            connection["timeout"] = min(2 * connection["timeout"], connection["least_timeout"])
            connection["vain"] = 1
        else:
            connection["vain"] += 1
        self._think_of_giving_up(row)
        self._carry_out(row, self._rules[row].on_timeout(int(connection["acknowledged"]), self.now * PICOSECOND))

    def _think_of_giving_up(self, row: int) -> None:
        """Stop where a connection has sent again in vain too often."""
        connection = self.tables.connections[row]
        is_cut = self.connections.uses(row, self._down)
        reason = reason_to_give_up(connection, self.now, is_cut=is_cut)
        if is_cut:
            connection["vain"] = 0
        waited_for = [message for message in self._receiving(row) if self._parts[message].name != NOWHERE]
        if reason and waited_for:
            names = self._network.compiled.node_names
            source, target = (names[node] for node in self.connections.ends[row])
            raise GaveUpError(self._parts[waited_for[0]].name, f"from {source} to {target} {reason}")

    def _look_for_deadlock(self) -> None:
        """Stop where switches wait for each other for ever."""
        if self._transport.link_flow_control == "none":
            return
        stuck = find_deadlock(self.tables)
        if stuck:
            names = [self._network.resource_names[self.ports.resources[port]] for port in stuck]
            way = ", which waits for ".join([*names, names[0]])
            raise StalledError(f"deadlock at {self.now * PICOSECOND:.9g} s: buffers are full in a circle: {way}")

    def _start_part(self, name: int, source: int, target: int, size_bytes: float, pace: float) -> None:
        connections = self.connections
        packets = max(1, math.ceil(size_bytes / connections.payload_bytes))
        last = max(size_bytes - (packets - 1) * connections.payload_bytes, 0.0)
        last_bytes = max(round(last) + connections.full_bytes - round(connections.payload_bytes), 1)
        row = connections.take(source, target, packets, pace)
        if row not in self._rules:
            self._rules[row] = self._rules_class(self._transport)
        if not int(self.tables.clock["free_messages"][0]):
            connections.enlarge(messages=2 * len(self.tables.messages))
        message = engine.begin_message(self.tables, row, packets, last_bytes)
        self._parts[message] = _Part(name, size_bytes, packets, connections.late_s(row, last_bytes))
        if self.tables.connections["happened"][row]:
            self._happened(row)
        self._carry_out(row, self._rules[row].on_message(self._progress(message), self.now * PICOSECOND))

    def _cut_short(self, message: int) -> None:
        """Have a message that nobody waits for end with what was sent of it, unless others follow it."""
        row = int(self.tables.messages["connection"][message])
        if self._transport.reliability == "best_effort":
            self._finish(message, self._lacking(message))
            return
        record, connection = self.tables.messages[message], self.tables.connections[row]
        look_at(self.tables, int(connection["port"]), self.now)
        if record["next"] != NOWHERE:
            return
        end = max(int(connection["highest"]), int(record["first"]))
        if end < record["end"]:
            record["end"] = connection["end"] = end
            part = self._parts[message]
            part.packets = end - int(record["first"])
            part.payload_bytes = min(part.payload_bytes, part.packets * self.connections.payload_bytes)
            if connection["expected"] >= end:
                self._finish(message, 0.0)

    def _lose_under_way(self, port: int) -> None:
        """Lose the packets that are behind a port; frames of the link itself are not counted."""
        packets = self.tables.packets
        entries = self.tables.events["what"][: int(self.tables.clock["events"][0])]
        rows = entries[(entries & 7) == ARRIVAL] >> 3
        rows = rows[(packets["port"][rows] == port) & (packets["connection"][rows] != NOWHERE)]
        rows = rows[~packets["is_lost"][rows]]
        packets["is_lost"][rows] = True
        self.tables.ports["lost"][port] += len(rows)

    def _try_again(self, rows: Iterable[int]) -> None:
        """Have connections that a link was in the way of go on: at once where messages are not made of packets.

        Otherwise their timers say when, and what was in vain until now does not count.
        """
        if self._has_packets:
            self.tables.connections["vain"][list(rows)] = 0
            return
        for row in rows:
            acknowledged = int(self.tables.connections["acknowledged"][row])
            if self.tables.connections["next"][row] > acknowledged:
                engine.go_back(self.tables, row, acknowledged)

    def _sent(self, message: int) -> None:
        part = self._parts.get(message)
        if part is None or part.has_left or part.name == NOWHERE:
            return
        part.has_left = True
        parts = self._open_parts.get(part.name)
        if parts is not None:
            parts[0] -= 1
        if parts is None or parts[0] == 0:
            self._told.append(WireEvent(part.name, is_over=False))

    def _arrived(self, row: int) -> None:
        """Tell of all messages that a connection has received."""
        for message in self._receiving(row):
            if self.tables.messages["end"][message] > self.tables.connections["expected"][row]:
                break
            self._finish(message, 0.0)

    def _finish(self, message: int, lost_bytes: float) -> None:
        # A receiver that has enough of it does not wait for the rest to leave.
        self._sent(message)
        part = self._parts.pop(message)
        row = int(self.tables.messages["connection"][message])
        self.connections.arrived_bytes[row] += part.payload_bytes - lost_bytes
        self.connections.lost_bytes[row] += lost_bytes
        engine.end_message(self.tables, message)
        if part.name == NOWHERE:
            return
        parts = self._open_parts.get(part.name)
        if parts is not None:
            parts[1] -= 1
            parts[2] += lost_bytes
            if parts[1]:
                return
            lost_bytes = parts[2]
            del self._open_parts[part.name]
        self._told.append(WireEvent(part.name, is_over=True, lost_bytes=lost_bytes, late_s=part.late_s))

    def _receiving(self, row: int) -> Iterator[int]:
        """Yield the messages of a connection that are not yet over, in order."""
        message = int(self.tables.connections["receiving"][row])
        while message != NOWHERE:
            following = int(self.tables.messages["next"][message])
            yield message
            message = following

    def _progress(self, message: int) -> Progress:
        record = self.tables.messages[message]
        first, end, received = int(record["first"]), int(record["end"]), int(record["received"])
        critical = math.ceil(self._transport.critical_share * (end - first))
        missing = self.connections.missing(int(record["connection"]), first, first + critical) if critical else 0
        return Progress(message, first, end, received, int(record["heard_at"]) * PICOSECOND, missing)

    def _hand_over(self, packet_row: int) -> None:
        """Tell the rules of its connection of a packet."""
        packet = self.tables.packets[packet_row]
        row, kind, number, count = (int(packet[column]) for column in ("connection", "kind", "number", "value"))
        give_back(self.tables, packet_row)
        rules, now_s = self._rules[row], self.now * PICOSECOND
        if kind != DATA:
            self._carry_out(row, rules.on_reply(kind, number, count, now_s))
            return
        progress = None
        for message in self._receiving(row):
            if number < self.tables.messages["end"][message]:
                progress = self._progress(message) if number >= self.tables.messages["first"][message] else None
                break
        expected = int(self.tables.connections["expected"][row])
        self._carry_out(row, rules.on_data(number, expected, progress, now_s))

    def _on_timer(self, message: int) -> None:
        if message in self._parts:
            row = int(self.tables.messages["connection"][message])
            self._carry_out(row, self._rules[row].on_timer(self._progress(message), self.now * PICOSECOND))

    def _happened(self, row: int) -> None:
        """Tell a congestion control that is not compiled what has happened, and do what it wants."""
        tell(self.connections.controls[row], self.tables.connections[row], self.now * PICOSECOND)
        control = self.connections.controls[row]
        engine.set_window(self.tables, row, control.window, control.pace)

    def _carry_out(self, row: int, instructions: Iterable[Instruction]) -> None:
        """Do what the rules of a connection want."""
        for instruction in instructions:
            match instruction:
                case Reply(kind, number, count):
                    engine.send_back(self.tables, row, kind, number, count)
                case GoBack(number):
                    engine.go_back(self.tables, row, number)
                case SendAgain(message, packets):
                    if message in self._parts:
                        engine.send_again(self.tables, message, packets)
                case FinishMessage(message):
                    self._finish(message, self._lacking(message))
                case SetTimer(message, delay_s):
                    self._timer_number += 1
                    at = self.now + max(round(delay_s / PICOSECOND), 1)
                    heapq.heappush(self._timers, (at, self._timer_number, message))

    def _lacking(self, message: int) -> float:
        """Return what has not come of the payload of a message [bytes]."""
        record, part = self.tables.messages[message], self._parts[message]
        if record["received"] == part.packets:
            return 0.0
        headers = self.connections.full_bytes - self.connections.payload_bytes
        come = float(record["received_bytes"]) - float(record["received"]) * headers
        return max(part.payload_bytes - come, 0.0)
