"""Plays schedules on a network of packets: the event kernel for what ranks do, the wire for what goes between hosts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from simnet.errors import StalledError
from simnet.fabric.connections import Beginning
from simnet.fabric.event_player import EventPlayer
from simnet.fabric.kernels import events
from simnet.fabric.kernels.records import REMOTE
from simnet.fabric.messages import TakeMessages
from simnet.fabric.network import Condition, Network
from simnet.fabric.packet.giving_up import GaveUpError
from simnet.fabric.packet.kernels.records import NOWHERE
from simnet.fabric.packet.ports import PICOSECOND
from simnet.fabric.packet.wire import Wire
from simnet.fabric.play import Play
from simnet.fabric.settings import EngineSettings

__all__ = ["PacketPlayer"]

_FAR = 1 << 62
_LOOK_S = 1.0
"""How often it is looked whether there is any hope, where links are down for good [s]."""


class PacketPlayer(EventPlayer):
    """An event player whose messages between hosts go as packets.

    Parameters
    ----------
    network, reduce_s_per_byte, engine, record
        See `EventPlayer`.
    wire : Wire
    """

    def __init__(
        self,
        network: Network,
        reduce_s_per_byte: float,
        engine: EngineSettings,
        record: TakeMessages | None,
        wire: Wire,
    ) -> None:
        super().__init__(network, reduce_s_per_byte, engine, record)
        self._wire = wire
        self._network = network
        self._origin = 0  # time of the wire at which the kernel's clock was 0 [ps]
        self._nodes: dict[int, tuple[int, int]] = {}

    def begin(self, play: Play, first: Beginning) -> None:
        """Take on a play; its messages between hosts go elsewhere."""
        super().begin(play, first)
        first_row = play.rows["operations"]
        placement = play.placement
        ops = placement.schedule.operations
        remote = np.flatnonzero((placement.operations["cost"] == REMOTE) & placement.operations["is_message"])
        rows = self.tables.operations[first_row : first_row + len(placement.operations)]
        rows["is_elsewhere"][remote] = True
        for row in remote.tolist():
            self._nodes[first_row + row] = (
                int(placement.nodes[ops.source[row]]),
                int(placement.nodes[ops.target[row]]),
            )

    def cancel(self, play: Play) -> None:
        """End a play where it stands; packets of it that are on their way go on to nobody."""
        first = play.rows["operations"]
        self.catch_up()
        self._wire.forget(range(first, first + len(play.placement.operations)))
        super().cancel(play)

    def set_capacity(self, resource: int, bytes_per_s: float) -> None:
        """Change the capacity of a resource, for flows inside of hosts and for packets."""
        super().set_capacity(resource, bytes_per_s)
        self.catch_up()
        self._wire.set_capacity(resource, bytes_per_s)

    def follow(self, condition: Condition) -> None:
        """Have packets lost, and connections routed, as the condition of the network is now."""
        self.catch_up()
        self._wire.set_loss(dict(condition.loss))
        self._wire.reroute()

    def catch_up(self) -> None:
        """Bring the clock of the wire to now; nothing happens on it before."""
        self._wire.wait_until(self._origin + round(self.now / PICOSECOND))

    def waiting_pairs(self) -> set[tuple[int, int]]:
        """Return between which nodes a flow stands still, or packets are under way."""
        return super().waiting_pairs() | self._wire.waiting_pairs()

    def rest(self, passed_s: float) -> None:
        """Set the clock to 0, as nothing plays; the wire's clock goes on."""
        self._wire.run(self._origin + round(passed_s / PICOSECOND))
        self._origin += round(passed_s / PICOSECOND)
        super().rest(passed_s)

    def advance(self, until: float, base_s: float) -> int:
        """Let time pass, on the wire and in the kernel by turns; see `EventPlayer.advance`."""
        while True:
            on_wire = self._wire.next_instant()
            wire_at = (on_wire - self._origin) * PICOSECOND if on_wire < _FAR else math.inf
            why = super().advance(min(until, wire_at), base_s)
            if why == events.BEGUN:
                self._send_begun()
                continue
            if why != events.QUIET or wire_at >= until:
                return why
            if until == math.inf and self._is_hopeless():
                return why
            limit = min(until, events.next_instant(self.tables))
            if self._network.lost:
                limit = min(limit, wire_at + _LOOK_S)
            last = self._origin + (math.ceil(limit / PICOSECOND) - 1 if limit < math.inf else _FAR - self._origin)
            try:
                what_became = self._wire.run(max(last, on_wire))
            except GaveUpError as error:
                play = self._playing[int(self.tables.operations["play"][error.message])]
                raise StalledError(f"{play.name} does not get through {error.reason}") from None
            for told in what_became:
                self.now = max(self.now, (self._wire.now - self._origin) * PICOSECOND)
                if told.is_over:
                    delay = self._inside_s(told.message) + told.late_s
                    events.arrive_elsewhere(self.tables, told.message, delay, told.lost_bytes)
                else:
                    events.end_elsewhere(self.tables, told.message)

    def carried_bytes(self, now: float) -> NDArray[np.float64]:
        """Return what has gone over each resource until now, shape (resources,) [bytes]."""
        carried = super().carried_bytes(now)
        ports, connections = self._wire.ports, self._wire.connections
        # A protocol stack works on payload.
        share = np.where(ports.is_stack, connections.payload_bytes / connections.full_bytes, 1.0)
        table = self._wire.tables.ports
        in_service = np.maximum(table["free_at"] - self._wire.now, 0) * PICOSECOND * table["bytes_per_s"]
        carried[ports.resources] += (table["bytes"] - np.minimum(in_service, table["bytes"])) * share
        return carried

    def busy_s(self, now: float) -> NDArray[np.float64]:
        """Return for how long each resource was used, shape (resources,) [s]."""
        busy = super().busy_s(now)
        table = self._wire.tables.ports
        # What was rounded away of the last packet is made up for by the next.
        busy[self._wire.ports.resources] += (table["busy"] + table["carry"] / table["bytes_per_s"]) * PICOSECOND
        return busy

    def _is_hopeless(self) -> bool:
        """Tell whether all that is under way is tried again and again on links that are down for good."""
        lost, cut = self._network.lost, self._network.is_cut
        return (
            bool(lost)
            and not self.moves_on()
            and all(cut(source, target, lost) for source, target in self._wire.waiting_pairs())
        )

    def _inside_s(self, row: int) -> float:
        """Return what of the latency of a route is not on the wire, but inside of hosts [s]."""
        source, target = self._nodes[row]
        latency = self._network.compiled.link_latency
        of_resource = self._wire.ports.of_resource
        links = self._network.links_between(source, target)
        return sum(float(latency[link]) for link in links if of_resource[link] == NOWHERE)

    def _send_begun(self) -> None:
        clock = self.tables.clock
        rows = self.tables.begun["row"][: int(clock["begun"][0])].tolist()
        clock["begun"] = 0
        self.catch_up()
        for row in rows:
            source, target = self._nodes[row]
            operation = self.tables.operations[row]
            self._wire.start(row, source, target, float(operation["firing_bytes"]), float(operation["cap"]))
