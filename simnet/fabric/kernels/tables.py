"""The state of the event kernel: tables of records, one row an operation, a hop, a resource and so on.

A table is a numpy array of records, so that what belongs together lies together and a compiled function is handed a
dozen arrays instead of a hundred. ``table[i].field`` reads and writes alike in plain Python and compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.records import (
    CLOCK,
    CONNECTION,
    COST,
    DEPENDENCY,
    DEVICE,
    EDGE,
    ENTRY,
    GATE,
    HOP,
    LOG,
    OPERATION,
    PACKET,
    PLAY,
    RESOURCE,
    SENDER,
    SERVER,
    SHARING,
    TRANSPORT,
    TURN,
)
from simnet.fabric.kernels.tables_type import directory_of, register_tables

__all__ = ["LAYOUT", "Table", "Tables", "make_tables"]

Table = NDArray[Any]

LAYOUT: dict[str, np.dtype[Any]] = {
    "operations": OPERATION,
    "dependencies": DEPENDENCY,
    "outgoing": EDGE,
    "behind_gate": EDGE,
    "hops": HOP,
    "resources": RESOURCE,
    "gates": GATE,
    "plays": PLAY,
    "servers": SERVER,
    "devices": DEVICE,
    "costs": COST,
    "connections": CONNECTION,
    "transports": TRANSPORT,
    "turns": TURN,
    "senders": SENDER,
    "transit": PACKET,
    "sharing": SHARING,
    "events": ENTRY,
    "drains": EDGE,
    "levels": ENTRY,
    "queue": EDGE,
    "dirty": EDGE,
    "fresh": EDGE,
    "flow_members": EDGE,
    "resource_members": EDGE,
    "complete": EDGE,
    "begun": EDGE,
    "log": LOG,
    "clock": CLOCK,
}
"""The tables by name, and the records that they consist of."""


@dataclass(frozen=True, eq=False)
class Tables:
    """All that the event kernel knows.

    Compiled functions are handed the address of `directory`; see `simnet.fabric.kernels.tables_type`.
    """

    operations: Table
    dependencies: Table
    outgoing: Table  # shape (dependencies,)
    behind_gate: Table  # shape (operations,)
    hops: Table
    resources: Table
    gates: Table
    plays: Table
    servers: Table
    devices: Table
    costs: Table
    connections: Table
    transports: Table  # shape (1,)
    turns: Table
    senders: Table  # shape (operations,)
    transit: Table  # a ring of packets
    sharing: Table
    events: Table  # a heap
    drains: Table  # a heap of operations by `finish`
    levels: Table  # a heap
    queue: Table  # a ring of steps that follow at once
    dirty: Table  # resources
    fresh: Table  # operations
    flow_members: Table  # operations
    resource_members: Table  # resources
    complete: Table  # gates
    begun: Table  # operations
    log: Table
    clock: Table  # shape (1,)
    directory: NDArray[np.int64] = field(init=False)
    """Address and number of rows of each table, shape (tables, 2)."""
    address: int = field(init=False)
    """Of the directory."""

    def __post_init__(self) -> None:
        directory = directory_of(self, LAYOUT)
        object.__setattr__(self, "directory", directory)
        object.__setattr__(self, "address", directory.ctypes.data)


register_tables("Tables", Tables, LAYOUT)


def make_tables(**rows: int) -> Tables:
    """Return empty tables with the given numbers of rows.

    Parameters
    ----------
    operations, dependencies, hops, resources, gates, plays, servers, devices, costs, events, log : int
        Rows of each; the other tables follow from these.
    connections, turns, sharing, transit : int, optional
    """
    operations, resources = rows["operations"], rows["resources"]
    follow = {
        "outgoing": rows["dependencies"],
        "behind_gate": operations,
        "drains": operations,
        "levels": operations + resources,
        "queue": rows["events"],
        "dirty": resources,
        "fresh": operations,
        "flow_members": operations,
        "resource_members": resources,
        "complete": rows["gates"],
        "begun": operations,
        "senders": operations,
        "transports": 1,
        "clock": 1,
    }
    rows = {"connections": 1, "turns": 1, "sharing": 1, "transit": 1} | rows | follow
    return Tables(**{name: np.zeros(rows[name], record) for name, record in LAYOUT.items()})
