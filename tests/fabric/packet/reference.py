"""A network of packets in the usual way: two events for each packet and hop, its departure and its arrival.

Slow, and with nothing decided late: the oracle for the kernels. Same rules: departures come before arrivals at the same
instant, the lowest class goes first, what is lossless is counted where it came in and pauses there.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from dataclasses import dataclass, field

SECOND = 1_000_000_000_000
PAUSE_BYTES = 84
CLASSES = 4


@dataclass
class Packet:
    name: int
    bytes: int
    traffic_class: int
    path: list[int]
    hop: int = 0
    ingress: tuple[int, int] | None = None
    is_marked: bool = False
    pauses: tuple[int, int, bool] | None = None  # port, class, whether it pauses


@dataclass
class Port:
    source: int
    target: int
    reverse: int
    bytes_per_s: int
    delay: int
    limit: int
    mark_at: int = 1 << 60
    queues: list[deque[Packet]] = field(default_factory=lambda: [deque() for _ in range(CLASSES)])
    paused: list[bool] = field(default_factory=lambda: [False] * CLASSES)
    held: int = 0
    carry: int = 0
    is_busy: bool = False
    highest: int = 0
    sent: int = 0
    pauses: int = 0


@dataclass
class Node:
    lossless: int = 0
    pause_at: int = 0
    resume_at: int = 0
    headroom: int = 0


class Reference:
    """Plays packets that are put in at given times; `delivered`, `dropped` and `marked` say what became of them."""

    def __init__(self, ports: list[Port], nodes: list[Node]) -> None:
        self.ports, self.nodes = ports, nodes
        self.counted: dict[tuple[int, int], list[int]] = {}  # ingress -> bytes, headroom, has paused
        self.delivered: dict[int, int] = {}
        self.dropped: set[int] = set()
        self.marked: set[int] = set()
        self._events: list[tuple[int, int, int, str, object]] = []
        self._order = itertools.count()

    def put(self, time: int, packet: Packet) -> None:
        self._at(time, 1, "enter", packet)

    def run(self) -> None:
        while self._events:
            now, _, _, what, thing = heapq.heappop(self._events)
            if what == "departs":
                port_row, packet = thing
                self._departs(now, port_row, packet)
            elif what == "arrives":
                self._arrives(now, thing)
            else:
                self._join(now, thing.path[0], thing)

    def _at(self, time: int, priority: int, what: str, thing: object) -> None:
        heapq.heappush(self._events, (time, priority, next(self._order), what, thing))

    def _join(self, now: int, port_row: int, packet: Packet) -> None:
        port = self.ports[port_row]
        node = self.nodes[port.source]
        if packet.ingress is not None and node.lossless >> packet.traffic_class & 1:
            count = self.counted.setdefault(packet.ingress, [0, 0, 0])
            if count[0] + packet.bytes > node.pause_at or count[1] > 0:
                if count[1] + packet.bytes > node.headroom:
                    self.dropped.add(packet.name)
                    return
                count[1] += packet.bytes
                if not count[2]:
                    count[2] = 1
                    self._tell(now, packet.ingress, True)
            else:
                count[0] += packet.bytes
        elif packet.pauses is None and packet.ingress is not None and self._beside(port, packet) > port.limit:
            self.dropped.add(packet.name)
            return
        else:
            packet.ingress = None
        if packet.pauses is None and packet.hop > 0 and port.held > port.mark_at:
            self.marked.add(packet.name)
        port.held += packet.bytes
        port.highest = max(port.highest, port.held)
        port.queues[packet.traffic_class].append(packet)
        self._next(now, port_row)

    def _beside(self, port: Port, packet: Packet) -> int:
        """With a packet that may be dropped, what of a port's buffer is taken; what is lossless takes none of it."""
        if self.nodes[port.source].lossless == 0:
            return port.held + packet.bytes
        return sum(one.bytes for one in port.queues[packet.traffic_class]) + packet.bytes

    def _tell(self, now: int, ingress: tuple[int, int], pauses: bool) -> None:
        port_row, traffic_class = ingress
        self.ports[port_row].pauses += pauses
        back = self.ports[port_row].reverse
        frame = Packet(-1, PAUSE_BYTES, 0, [back], pauses=(port_row, traffic_class, pauses))
        self._join(now, back, frame)

    def _next(self, now: int, port_row: int) -> None:
        port = self.ports[port_row]
        if port.is_busy:
            return
        for traffic_class in range(CLASSES):
            if port.queues[traffic_class] and not port.paused[traffic_class]:
                packet = port.queues[traffic_class].popleft()
                work = packet.bytes * SECOND + port.carry
                time, port.carry = divmod(work, port.bytes_per_s)
                port.is_busy = True
                port.sent += 1
                self._at(now + time, 0, "departs", (port_row, packet))
                return

    def _departs(self, now: int, port_row: int, packet: Packet) -> None:
        port = self.ports[port_row]
        port.held -= packet.bytes
        if packet.ingress is not None:
            count, node = self.counted[packet.ingress], self.nodes[port.source]
            above = min(count[1], packet.bytes)
            count[1] -= above
            count[0] -= packet.bytes - above
            if count[2] and count[1] == 0 and count[0] <= node.resume_at:
                count[2] = 0
                self._tell(now, packet.ingress, False)
        port.is_busy = False
        self._at(now + port.delay, 1, "arrives", (port_row, packet))
        self._next(now, port_row)

    def _arrives(self, now: int, thing: tuple[int, Packet]) -> None:
        port_row, packet = thing
        if packet.pauses is not None:
            paused, traffic_class, is_pause = packet.pauses
            self.ports[paused].paused[traffic_class] = is_pause
            self._next(now, paused)
            return
        packet.hop += 1
        if packet.hop == len(packet.path):
            self.delivered[packet.name] = now
            return
        packet.ingress = (port_row, packet.traffic_class)
        self._join(now, packet.path[packet.hop], packet)
