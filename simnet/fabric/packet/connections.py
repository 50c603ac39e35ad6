"""Connections between nodes: opened when a message finds none that is free, and kept."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np

from simnet.engine.random_streams import random_stream
from simnet.fabric.network import Network
from simnet.fabric.packet.kernels import controls
from simnet.fabric.packet.kernels.records import CELL, CLASSES, NEVER, NOWHERE
from simnet.fabric.packet.kernels.senders import BEST_EFFORT, GO_BACK_N, SACK, SELECTIVE_REPEAT
from simnet.fabric.packet.kernels.tables import PacketTables, enlarged
from simnet.fabric.packet.ports import PICOSECOND, Ports, payload_of
from simnet.fabric.packet.settings import PacketSettings
from simnet.protocols.congestion import CONTROLS, Control
from simnet.protocols.transport import Transport

__all__ = ["Connections"]

_RULES = {"go_back_n": GO_BACK_N, "sack": SACK, "selective_repeat": SELECTIVE_REPEAT, "best_effort": BEST_EFFORT}
_LEAST_CELLS = 64
_FAR = 1 << 40


class Connections:
    """The connections of a network.

    Parameters
    ----------
    network : Network
    settings : PacketSettings
    ports : Ports
    tables : PacketTables
        Grown where there is no room, so that they are others then.
    own_controls : mapping
        Congestion controls that do not come with simnet, by name.
    seed : int
        Of how much later than others a host answers.
    """

    def __init__(
        self,
        network: Network,
        settings: PacketSettings,
        ports: Ports,
        tables: PacketTables,
        own_controls: Mapping[str, type[Control]],
        seed: int,
    ) -> None:
        self._network, self._settings, self._ports = network, settings, ports
        self._stream = random_stream(seed, "answers")
        self._own_controls = own_controls
        self.tables = tables
        self.payload_bytes = payload_of(network, settings)
        self.full_bytes = round(self.payload_bytes + network.protocol.header_bytes)
        self.ends: list[tuple[int, int]] = []
        self.arrived_bytes: list[float] = []
        self.lost_bytes: list[float] = []
        self.controls: dict[int, Control] = {}
        self._of_pair: dict[tuple[int, int], list[int]] = {}
        self._steps: dict[tuple[int, ...], int] = {}
        self._used_steps = self._used_cells = self._used_routes = 0
        self._free_cells: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self.ends)

    def take(self, source: int, target: int, packets: int, pace: float) -> int:
        """Return a connection between two nodes that has sent all that it had to, with room for so many packets more.

        Parameters
        ----------
        source, target : int
            Node indices, in different hosts.
        packets : int
        pace : float
            The most that the hosts can do, of payload; infinite: as much as the link [bytes/s].
        """
        pool = self._of_pair.setdefault((source, target), [])
        table = self.tables.connections
        row = next((row for row in pool if table["next"][row] >= table["end"][row]), NOWHERE)
        if row == NOWHERE:
            row = self._open(source, target)
            pool.append(row)
        connection = self.tables.connections[row]
        connection["limit"] = round(pace * self.full_bytes / self.payload_bytes) if math.isfinite(pace) else 0
        if connection["rules"] != GO_BACK_N:
            needed = int(connection["end"] - connection["acknowledged"]) + packets
            self._make_cells(row, min(needed, int(connection["room"])) + 2)
        return row

    def reroute(self, row: int) -> bool:
        """Have a connection take the paths of now; tell whether these are others than before."""
        source, target = self.ends[row]
        (path, hops), (back_path, back_hops) = self._path(source, target), self._path(target, source)
        connection = self.tables.connections[row]
        if connection["path"] == path and connection["back_path"] == back_path:
            return False
        port = int(self.tables.steps["port"][path])
        if port != connection["port"]:
            self._leave_port(row)
        found = {"port": port, "path": path, "hops": hops, "back_path": back_path, "back_hops": back_hops}
        for name, value in found.items():
            connection[name] = value
        if self._network.protocol.transport.spraying:
            self._describe_routes(row, source, target)
        return True

    def uses(self, row: int, ports: Collection[int]) -> bool:
        """Tell whether a connection has one of some ports on one of its paths."""
        connection, steps = self.tables.connections[row], self.tables.steps["port"]
        there = steps[connection["path"] : connection["path"] + connection["hops"]]
        back = steps[connection["back_path"] : connection["back_path"] + connection["back_hops"]]
        return not set(ports).isdisjoint(there.tolist() + back.tolist())

    def missing(self, row: int, first: int, end: int) -> int:
        """Return how many packets from `first` up to and without `end` have not come, where order does not matter."""
        connection = self.tables.connections[row]
        cells = int(connection["first_cell"]) + (np.arange(first, end) & (int(connection["cells"]) - 1))
        return int((~self.tables.cells["has"][cells]).sum())

    def late_s(self, row: int, packet_bytes: int) -> float:
        """Return for how much longer than its link the hosts of a connection need for a packet [s]."""
        connection = self.tables.connections[row]
        if connection["limit"] == 0:
            return 0.0
        line = int(self.tables.ports["bytes_per_s"][connection["port"]])
        return max(packet_bytes / int(connection["limit"]) - packet_bytes / line, 0.0)

    def enlarge(self, **rows: int) -> None:
        """Make room in the tables; see `enlarged`."""
        self.tables = enlarged(self.tables, **rows)

    def _open(self, source: int, target: int) -> int:
        row = len(self.ends)
        if row == len(self.tables.connections):
            self.enlarge(connections=2 * row)
        self.ends.append((source, target))
        self.arrived_bytes.append(0.0)
        self.lost_bytes.append(0.0)
        transport, settings = self._network.protocol.transport, self._settings
        # Paths may need larger tables.
        (path, hops), (back_path, back_hops) = self._path(source, target), self._path(target, source)
        connection = self.tables.connections[row]
        line = int(self.tables.ports["bytes_per_s"][self.tables.steps["port"][path]])
        # Where nothing is acknowledged, nothing would open a window again.
        is_acknowledged = transport.reliability != "best_effort"
        window = transport.window_bytes / self.payload_bytes if is_acknowledged else math.inf
        notifies = transport.congestion_control in ("dcqcn", "dcqcn_vendor")
        values = {
            "port": self.tables.steps["port"][path],
            "path": path,
            "hops": hops,
            "back_path": back_path,
            "back_hops": back_hops,
            "traffic_class": settings.data_class,
            "back_class": settings.control_class,
            "full_bytes": self.full_bytes,
            "acknowledgement_bytes": round(transport.acknowledgement_bytes),
            "may_be_marked": math.isfinite(transport.mark_from_s),
            "delay": _ps(self._network.protocol.latency_s),
            "random": self._stream.integers(1, 1 << 62),
            "rules": _RULES.get(transport.reliability, GO_BACK_N),
            "is_lossless": transport.link_flow_control != "none",
            "control": controls.NUMBERS.get(transport.congestion_control, controls.OWN),
            "room": max(int(window), 1) if math.isfinite(window) else _FAR,
            "every": max(int(transport.acknowledge_every), 1),
            "acknowledge_delay": _ps(transport.acknowledge_delay_s),
            "timeout": _ps(transport.initial_timeout_s),
            "least_timeout": _ps(transport.minimum_timeout_s),
            "most_timeout": _ps(transport.maximum_timeout_s),
            "few": int(transport.few_packets),
            "few_timeout": _ps(transport.few_packets_timeout_s),
            "retries": int(min(transport.retries, _FAR)),
            "probes": transport.tail_loss_probe,
            "reorder": int(transport.reorder_packets) if transport.reliability == "selective_repeat" else 0,
            "restarts": transport.slow_start_after_idle,
            "notifies": notifies,
            "notifies_loss": notifies and transport.loss_notification,
            "notify_interval": _ps(transport.notification_interval_s),
            "notify_delay": _ps(transport.notification_delay_s),
            "notified_at": -_FAR,
            "heard_at": -NEVER,
            "latest_sent_at": -1,
            "missed": NOWHERE,
        }
        values |= dict.fromkeys(("first_out", "last_out", "first_lost", "last_lost", "next_ready"), NOWHERE)
        values |= dict.fromkeys(("first_message", "last_message", "sending", "receiving"), NOWHERE)
        values |= dict.fromkeys(("block_a", "block_b", "block_c"), NOWHERE)
        values |= dict.fromkeys(("timeout_at", "timeout_event_at", "probe_at", "acknowledge_at"), NEVER)
        if transport.reliability == "go_back_n":
            values["timeout"] = _ps(transport.shortest_timeout_s)
        values["first_timeout"] = values["timeout"]
        for name, value in values.items():
            connection[name] = value
        if self._network.protocol.connection_setup_round_trips > 0:
            # The handshake has measured the path.
            round_trip = _ps(2.0 * self._network.route(source, target).latency_s)
            for name in ("round_trip", "least_round_trip"):
                connection[name] = round_trip
            connection["deviation"] = round_trip // 2
            if transport.reliability == "sack":
                connection["timeout"] = round_trip + max(2 * round_trip, int(connection["least_timeout"]))
        if transport.spraying:
            self._describe_routes(row, source, target)
        self._begin_control(row, transport, line)
        return row

    def _begin_control(self, row: int, transport: Transport, line: int) -> None:
        """Put the control of a connection into the state in which it begins."""
        name = transport.congestion_control
        kind = self._own_controls.get(name) or CONTROLS.get(name, Control)
        control = kind()
        control.line_rate = float(line)
        if name in ("dcqcn", "dcqcn_vendor"):
            control.pace = float(line)
        elif transport.reliability != "best_effort":
            control.window = control.first_window = transport.initial_window_packets
        connection = self.tables.connections[row]
        if name in self._own_controls:
            self.controls[row] = control
        for field in connection.dtype.names:
            if hasattr(control, field):
                setattr(control, field, getattr(transport, field, getattr(control, field)))
                connection[field] = getattr(control, field)

    def _leave_port(self, row: int) -> None:
        """Have a connection that waits for its turn at its port not wait there any more."""
        connections = self.tables.connections
        connection = connections[row]
        if not connection["is_ready"]:
            return
        queue = self.tables.queues[int(connection["port"]) * CLASSES + int(connection["traffic_class"])]
        waiting = []
        following = int(queue["first_ready"])
        while following != NOWHERE:
            waiting.append(following)
            following = int(connections["next_ready"][following])
        waiting.remove(row)
        connections["next_ready"][waiting] = [*waiting[1:], NOWHERE] if waiting else []
        queue["first_ready"] = waiting[0] if waiting else NOWHERE
        queue["last_ready"] = waiting[-1] if waiting else NOWHERE
        connection["is_ready"] = False

    def _describe_routes(self, row: int, source: int, target: int) -> None:
        """Let a connection take all equally short paths in turn."""
        paths = [self._steps_of(source, target, links) for links in self._network.all_paths(source, target)]
        first, end = self._used_routes, self._used_routes + len(paths)
        if end > len(self.tables.routes):
            self.enlarge(routes=2 * end)
        self._used_routes = end
        self.tables.routes["path"][first:end], self.tables.routes["hops"][first:end] = np.array(paths).T
        connection = self.tables.connections[row]
        connection["first_route"], connection["routes"] = first, len(paths)

    def _path(self, source: int, target: int) -> tuple[int, int]:
        return self._steps_of(source, target, self._network.links_between(source, target))

    def _steps_of(self, source: int, target: int, links: tuple[int, ...]) -> tuple[int, int]:
        """Return the row of `steps` and the number of ports of a path, stacks of hosts included where they are slow."""
        hosts = self._network.compiled.host_of_node
        ends = (
            self._network.stack_of(int(hosts[source]), sends=True),
            self._network.stack_of(int(hosts[target]), sends=False),
        )
        resources = [ends[0], *links, ends[1]]
        of_resource = self._ports.of_resource
        used = (int(of_resource[resource]) for resource in resources if resource is not None)
        ports = tuple(port for port in used if port != NOWHERE)
        found = self._steps.get(ports)
        if found is None:
            found = self._steps[ports] = self._used_steps
            self._used_steps += len(ports)
            if self._used_steps > len(self.tables.steps):
                self.enlarge(steps=2 * self._used_steps)
            self.tables.steps["port"][found : found + len(ports)] = ports
        return found, len(ports)

    def _make_cells(self, row: int, needed: int) -> None:
        """See to it that a connection has cells for so many packets."""
        connection = self.tables.connections[row]
        have = int(connection["cells"])
        if have >= needed:
            return
        cells = max(1 << (needed - 1).bit_length(), _LEAST_CELLS)
        free = self._free_cells.setdefault(cells, [])
        first = free.pop() if free else self._used_cells
        if first == self._used_cells:
            self._used_cells += cells
            if self._used_cells > len(self.tables.cells):
                self.enlarge(cells=2 * self._used_cells)
                connection = self.tables.connections[row]
        table = self.tables.cells
        table[first : first + cells] = np.zeros(cells, CELL)
        if have:
            old = int(connection["first_cell"])
            first_kept = int(connection["acknowledged"])
            numbers = np.arange(first_kept, min(int(connection["end"]), first_kept + have))
            table[first + (numbers & (cells - 1))] = table[old + (numbers & (have - 1))]
            self._free_cells.setdefault(have, []).append(old)
        connection["first_cell"], connection["cells"] = first, cells


def _ps(seconds: float) -> int:
    """Return whole picoseconds."""
    return min(round(seconds / PICOSECOND), NEVER) if math.isfinite(seconds) else NEVER
