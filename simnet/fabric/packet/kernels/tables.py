"""The state of the network at packet level: tables of records, one row a port, a queue, a packet and so on.

Times are whole picoseconds on the network's own clock, sizes bytes. A directed link is a *port*, with queues and a
rate, and a pipe behind it that only delays.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.tables_type import directory_of, record, register_tables

__all__ = [
    "CLASSES",
    "CLOCK",
    "ENTRY",
    "FLOW",
    "INGRESS",
    "LAYOUT",
    "NODE",
    "NOWHERE",
    "PACKET",
    "PORT",
    "QUEUE",
    "RELEASE",
    "STEP",
    "PacketTables",
    "Table",
    "make_packet_tables",
]

Table = NDArray[Any]

INT, FLOAT, BOOL = np.int64, np.float64, np.bool_

CLASSES = 4
"""Traffic classes of a port; 0 goes first, and is never paused."""

NOWHERE = -1
"""The end of a list, and whatever is not there."""

PORT = record(
    # What it is.
    source=INT,  # node
    target=INT,
    reverse=INT,  # port of the same cable in the other direction, or NOWHERE
    bytes_per_s=INT,
    delay=INT,  # of the pipe, and of the switch behind it [ps]
    limit=INT,  # most bytes that may lie in it; of a switch that shares its buffer the node says
    # Marking (RED; S. Floyd and V. Jacobson 1993): from mark_from bytes on with a probability that grows up to
    # most_marked at mark_all, and above that always.
    mark_from=INT,
    mark_all=INT,
    most_marked=FLOAT,
    marks_at_departure=BOOL,
    loss=FLOAT,  # probability that a packet is lost on the way
    # Where it stands.
    free_at=INT,  # when the packet in service will have left
    carry=INT,  # picoseconds times bytes_per_s that were rounded away
    held=INT,  # bytes of whole packets, until their last bit has left
    waiting=INT,  # packets that no time is fixed for yet
    first_release=INT,
    last_release=INT,
    random=INT,  # state of the generator of random numbers
    # Counters.
    packets=INT,
    bytes=INT,
    dropped=INT,
    marked=INT,
    lost=INT,
    highest=INT,  # most bytes held
    byte_time=FLOAT,  # integral of the bytes held over time [bytes ps]
    counted_at=INT,
    paused_time=INT,
    busy=INT,  # time in which packets were leaving, up to now or the end of the last one [ps]
)

QUEUE = record(  # a class of a port: row port * CLASSES + class
    head=INT,  # packets in order of arrival
    tail=INT,
    bytes=INT,
    first_ready=INT,  # flows that begin at this port and have something to send, in turn
    last_ready=INT,
    is_paused=BOOL,
    eligible_at=INT,  # when it was last resumed
    paused_since=INT,
)

INGRESS = record(  # what came by a port and is still held where it led: row port * CLASSES + class
    bytes=INT,
    headroom=INT,  # of these, above the threshold
    has_paused=BOOL,
)

NODE = record(
    is_switch=BOOL,
    shares_buffer=BOOL,
    buffer=INT,  # bytes that all ports of it share
    shared=INT,  # of these in use
    threshold_shift=INT,  # a queue, or an ingress, may hold what is free / 2^shift
    lossless=INT,  # classes that pause instead of dropping, a bit each
    pause_at=INT,  # bytes of an ingress at which it pauses, where the buffer is not shared
    resume_at=INT,
    headroom=INT,  # bytes of an ingress that may still come after that
    paused=INT,  # ingresses that have paused their port
    first_port=INT,
    ports=INT,
)

RELEASE = record(finish=INT, bytes=INT, ingress=INT, next=INT)  # a packet whose last bit leaves at a time

PACKET = record(
    flow=INT,
    kind=INT,
    number=INT,
    bytes=INT,  # on the wire
    traffic_class=INT,
    path=INT,  # row of `steps` with its first port
    hops=INT,
    hop=INT,  # how many are behind it
    port=INT,  # that it is on
    ingress=INT,  # row of INGRESS that it counts in, or NOWHERE
    arrived_at=INT,  # at the queue it is in
    sent_at=INT,
    is_marked=BOOL,
    may_be_marked=BOOL,
    is_lost=BOOL,
    value=INT,
    next=INT,
)

FLOW = record(
    # What it is.
    port=INT,  # where it begins
    path=INT,
    hops=INT,
    back_path=INT,
    back_hops=INT,
    traffic_class=INT,
    back_class=INT,
    packets=INT,  # in all
    full_bytes=INT,  # on the wire
    last_bytes=INT,
    acknowledgement_bytes=INT,
    may_be_marked=BOOL,
    # The sender.
    next=INT,  # number of the packet that it sends next
    end=INT,  # it may send up to here
    acknowledged=INT,
    progress_at=INT,  # when it was last allowed to send, or more was acknowledged
    window=INT,  # packets beyond what is acknowledged that the kernel lets it send by itself; 0: it is told
    pace=INT,  # bytes/s; 0: as fast as its port
    allowed_at=INT,
    ready_since=INT,
    is_ready=BOOL,
    is_waiting_for_pace=BOOL,
    next_ready=INT,
    # The receiver.
    expected=INT,
    unacknowledged=INT,  # packets since the last acknowledgement
    every=INT,  # acknowledge every so many; 0: the receiver is told of each
    # Counters.
    sent=INT,
    sent_bytes=INT,
)

STEP = record(port=INT)  # of a path

ENTRY = record(key=INT, tie=INT, what=INT)  # of the heap

CLOCK = record(
    now=INT,
    sequence=INT,
    events=INT,  # entries in the heap
    handled=INT,  # events so far
    hops=INT,  # packets that have arrived at the end of a link
    first_free_packet=INT,
    free_packets=INT,
    first_free_release=INT,
    free_releases=INT,
    reported=INT,  # packet that somebody has to be told of, or flow of a timer
)

LAYOUT: dict[str, np.dtype[Any]] = {
    "ports": PORT,
    "queues": QUEUE,
    "ingresses": INGRESS,
    "nodes": NODE,
    "releases": RELEASE,
    "packets": PACKET,
    "flows": FLOW,
    "steps": STEP,
    "events": ENTRY,
    "clock": CLOCK,
}
"""The tables by name, and the records that they consist of."""


@dataclass(frozen=True, eq=False)
class PacketTables:
    """All that the kernels of the packet level know; see `simnet.fabric.kernels.tables_type`."""

    ports: Table
    queues: Table  # shape (ports * CLASSES,)
    ingresses: Table  # shape (ports * CLASSES,)
    nodes: Table
    releases: Table
    packets: Table
    flows: Table
    steps: Table
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


def make_packet_tables(*, ports: int, nodes: int, packets: int, flows: int, steps: int) -> PacketTables:
    """Return empty tables with room for so many rows.

    Parameters
    ----------
    ports, nodes, packets, flows, steps : int
        Rows of each; the other tables follow from these.
    """
    rows = {
        "ports": ports,
        "queues": ports * CLASSES,
        "ingresses": ports * CLASSES,
        "nodes": nodes,
        "releases": packets,
        "packets": packets,
        "flows": flows,
        "steps": steps,
        # A packet has one event; a flow one for its pace and one for its timer; a port one where its node has paused.
        "events": 2 * packets + 4 * flows + ports + 64,
        "clock": 1,
    }
    tables = PacketTables(**{name: np.zeros(rows[name], kind) for name, kind in LAYOUT.items()})
    for column in ("head", "tail", "first_ready", "last_ready"):
        tables.queues[column] = NOWHERE
    for column in ("first_release", "last_release", "reverse"):
        tables.ports[column] = NOWHERE
    for table in (tables.packets, tables.releases):
        table["next"] = np.arange(1, packets + 1)
        table["next"][-1:] = NOWHERE
    tables.clock["free_packets"] = tables.clock["free_releases"] = packets
    return tables
