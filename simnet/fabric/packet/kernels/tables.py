"""The state of the network at packet level: tables of records, one row a port, a queue, a packet and so on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.tables_type import directory_of, record, register_tables
from simnet.fabric.packet.kernels.records import (
    CELL,
    CLASSES,
    CLOCK,
    CONNECTION,
    ENTRY,
    FLOAT,
    INGRESS,
    LANE,
    LEVELS,
    MESSAGE,
    NODE,
    NOWHERE,
    PACKET,
    PORT,
    QUEUE,
    RELEASE,
    ROUTE,
    STEP,
)

__all__ = ["LAYOUT", "PacketTables", "Table", "enlarged", "make_packet_tables"]

Table = NDArray[Any]

LAYOUT: dict[str, np.dtype[Any]] = {
    "ports": PORT,
    "queues": QUEUE,
    "lanes": LANE,
    "ingresses": INGRESS,
    "nodes": NODE,
    "levels": record(time=FLOAT),
    "releases": RELEASE,
    "packets": PACKET,
    "connections": CONNECTION,
    "cells": CELL,
    "messages": MESSAGE,
    "steps": STEP,
    "routes": ROUTE,
    "events": ENTRY,
    "clock": CLOCK,
}
"""The tables by name, and the records that they consist of."""

_FREE_LISTS = {"packets": "packet", "releases": "release", "messages": "message"}


@dataclass(frozen=True, eq=False)
class PacketTables:
    """All that the kernels of the packet level know; see `simnet.fabric.kernels.tables_type`."""

    ports: Table
    queues: Table  # shape (ports * CLASSES,)
    lanes: Table
    ingresses: Table  # shape (ports * CLASSES,)
    nodes: Table
    levels: Table  # for how long each port held so much, shape (ports * LEVELS,) [ps]
    releases: Table
    packets: Table
    connections: Table
    cells: Table
    messages: Table
    steps: Table
    routes: Table
    events: Table  # a heap
    clock: Table  # shape (1,)
    directory: NDArray[np.int64] = field(init=False)
    """Address and number of rows of each table, shape (tables, 2)."""
    address: int = field(init=False)
    """Of the directory."""

    def __post_init__(self) -> None:
        directory = directory_of(self, LAYOUT)
        object.__setattr__(self, "directory", directory)
        object.__setattr__(self, "address", directory.ctypes.data)


register_tables("PacketTables", PacketTables, LAYOUT)


def make_packet_tables(
    *,
    ports: int,
    nodes: int,
    packets: int,
    connections: int,
    messages: int,
    steps: int,
    lanes: int = 0,
    cells: int = 0,
    routes: int = 0,
) -> PacketTables:
    """Return empty tables with room for so many rows.

    Parameters
    ----------
    ports, nodes, packets, connections, messages, steps, lanes, cells, routes : int
        Rows of each; the other tables follow from these.
    """
    rows = {
        "ports": ports,
        "queues": ports * CLASSES,
        "lanes": lanes,
        "ingresses": ports * CLASSES,
        "nodes": nodes,
        "levels": ports * LEVELS,
        "releases": packets,
        "packets": packets,
        "connections": connections,
        "cells": cells,
        "messages": messages,
        "steps": steps,
        "routes": routes,
        # A packet has one event; a connection some for its pace and its timers; a port one where its node pauses.
        "events": 3 * packets + 8 * connections + 2 * ports + 64,
        "clock": 1,
    }
    tables = PacketTables(**{name: np.zeros(rows[name], kind) for name, kind in LAYOUT.items()})
    for column in ("head", "tail", "first_lane", "last_lane", "first_ready", "last_ready"):
        tables.queues[column] = NOWHERE
    tables.queues["level"] = np.tile(np.arange(CLASSES), ports)
    tables.queues["weight"] = 1.0
    for column in ("first_release", "last_release", "reverse"):
        tables.ports[column] = NOWHERE
    for column in ("head", "tail", "next"):
        tables.lanes[column] = NOWHERE
    tables.ingresses["first_return"] = tables.ingresses["last_return"] = NOWHERE
    tables.nodes["first_lane"] = NOWHERE
    for table, name in _FREE_LISTS.items():
        make_free(tables, table, name, 0)
    return tables


def make_free(tables: PacketTables, table: str, name: str, first: int) -> None:
    """Put the rows of a table from `first` on before those that are free already."""
    records, clock = getattr(tables, table), tables.clock
    added = len(records) - first
    if added == 0:
        return
    records["next"][first:] = np.arange(first + 1, len(records) + 1)
    records["next"][-1] = clock[f"first_free_{name}"][0] if clock[f"free_{table}"][0] else NOWHERE
    clock[f"first_free_{name}"] = first
    clock[f"free_{table}"] += added


def enlarged(old: PacketTables, **rows: int) -> PacketTables:
    """Return the same tables with room for more rows.

    Parameters
    ----------
    old : PacketTables
    **rows : int
        Of packets, connections, messages, cells, routes or steps.
    """
    kept = ("ports", "nodes", "packets", "connections", "messages", "steps", "lanes", "cells", "routes")
    counts = {name: max(rows.get(name, 0), len(getattr(old, name))) for name in kept}
    larger = make_packet_tables(**counts)
    for name in LAYOUT:
        table = getattr(old, name)
        getattr(larger, name)[: len(table)] = table
    for table, name in _FREE_LISTS.items():
        make_free(larger, table, name, len(getattr(old, table)))
    return larger
