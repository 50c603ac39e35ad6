"""Switches that all wait for each other's buffers, and so for ever.

A queue that may not send waits until its far end has room; that has room again when what came over this link leaves it,
from queues that may have to wait themselves. Where all of these wait, in a circle, nothing will ever move (cyclic
buffer dependency; W. Dally and C. Seitz 1987; S. Hu et al., "Deadlocks in datacenter networks", HotNets 2016).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simnet.fabric.packet.kernels.records import CLASSES, NOWHERE
from simnet.fabric.packet.kernels.tables import PacketTables

__all__ = ["find_deadlock"]


def find_deadlock(tables: PacketTables) -> list[int]:
    """Return ports that wait for each other in a circle, each for the next; none if all can still move.

    Parameters
    ----------
    tables : PacketTables
    """
    ports = tables.ports
    in_service = {int(row) for port in range(len(ports)) for row in _leaving(tables, port)}
    waits_for: dict[int, set[int]] = {}
    for queue in np.flatnonzero(tables.queues["is_paused"] | tables.ingresses["is_blocked"]).tolist():
        if queue in in_service:
            continue
        node = int(ports["target"][queue // CLASSES])
        first, count = int(tables.nodes["first_port"][node]), int(tables.nodes["ports"][node])
        holding = {
            row
            for row in range(first * CLASSES, (first + count) * CLASSES)
            if any(tables.packets["ingress"][packet] == queue for packet in _waiting(tables, row))
        }
        if holding:
            waits_for[queue] = holding
    # Whoever waits for a queue that can move can move as well, after a while.
    while movable := [queue for queue, others in waits_for.items() if not others <= waits_for.keys()]:
        for queue in movable:
            del waits_for[queue]
    if not waits_for:
        return []
    way = [min(waits_for)]
    while (following := min(waits_for[way[-1]])) not in way:
        way.append(following)
    return [queue // CLASSES for queue in way[way.index(following) :]]


def _leaving(tables: PacketTables, port: int) -> Iterator[int]:
    """Yield by which ports what is leaving one has come."""
    row = int(tables.ports["first_release"][port])
    now = int(tables.clock["now"][0])
    while row != NOWHERE:
        release = tables.releases[row]
        if release["finish"] > now and release["ingress"] != NOWHERE:
            yield int(release["ingress"])
        row = int(release["next"])


def _waiting(tables: PacketTables, queue: int) -> Iterator[int]:
    """Yield the packets that wait in a queue."""
    heads = [int(tables.queues["head"][queue])]
    lane = int(tables.queues["first_lane"][queue])
    while lane != NOWHERE:
        heads.append(int(tables.lanes["head"][lane]))
        lane = int(tables.lanes["next"][lane])
    for head in heads:
        packet = head
        while packet != NOWHERE:
            yield packet
            packet = int(tables.packets["next"][packet])
