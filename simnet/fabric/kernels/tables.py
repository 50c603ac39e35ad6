"""The state of the event kernel: tables of records, one row an operation, a hop, a resource and so on.

A table is a numpy array of records, so that what belongs together lies together and a compiled function is handed a
dozen arrays instead of a hundred. ``table[i].field`` reads and writes alike in plain Python and compiled. Times are
seconds on the kernel's own clock, sizes bytes, rates bytes per second.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.tables_type import directory_of, record, register_tables

__all__ = [
    "CLOCK",
    "CONNECTION",
    "COST",
    "DEPENDENCY",
    "DEVICE",
    "EDGE",
    "ENTRY",
    "GATE",
    "HOP",
    "LAYOUT",
    "LOG",
    "OPERATION",
    "PLAY",
    "RESOURCE",
    "SERVER",
    "SHARING",
    "TRANSPORT",
    "Table",
    "Tables",
    "make_tables",
]

Table = NDArray[Any]


INT, FLOAT, BOOL = np.int64, np.float64, np.bool_

OPERATION = record(
    # What it is; see simnet.traffic.schedule.Operations.
    is_flow=BOOL,  # a send, or what is taken of memory; otherwise a calculation
    is_message=BOOL,  # a send
    is_elsewhere=BOOL,  # how its flow goes is worked out by somebody else, who is told that it has begun
    play=INT,  # row of the play it belongs to
    source=INT,  # gate of the rank that sends or computes
    target=INT,  # gate of the rank that receives; of the computing rank itself
    firings=INT,
    reduce_firings=INT,
    # Size of a firing: chunk_bytes, plus element_bytes for each chunk of it that is one of the `longer` first ones.
    chunk_bytes=FLOAT,
    element_bytes=FLOAT,
    longer=INT,
    chunk_offset=INT,
    chunk_first=INT,
    chunk_step=INT,
    chunk_modulus=INT,
    chunk_width=INT,
    # What it costs.
    seconds=FLOAT,  # length of a calculation
    server=INT,  # send server, or stream of a calculation; -1: none
    receive_server=INT,
    cost=INT,  # row of the costs per message and byte
    latency=FLOAT,
    first_setup=FLOAT,  # connection set-up before the first firing
    each_setup=FLOAT,  # and before each of the others
    forward_per_byte=FLOAT,  # store and forward: sum of 1/rate over the hops after the first
    deadline=FLOAT,  # a firing that has not drained so long after its flow began ends; infinite: never
    more_send=FLOAT,  # work of the sender for each message, beside that of all messages
    more_receive=FLOAT,  # and of the receiver
    # How it takes loss; see simnet.fabric.kernels.stalls.
    reliability=INT,  # what happens to lost packets; RELIABLE where none are lost
    loss=FLOAT,  # share of packets lost on the path
    packet_time=FLOAT,  # of a full packet on the slowest link
    round_trip=FLOAT,  # from the first bit of a packet until its acknowledgement is here
    stall=FLOAT,  # selective repeat: for each lost packet, in packet times
    connection=INT,  # row of the connection, -1: none
    opens=BOOL,  # its first firing is sent from a window that begins anew
    random=INT,  # state of its random numbers
    # Dependencies: rows first_in .. first_in + ins - 1; edges first_out .. first_out + outs - 1.
    first_in=INT,
    ins=INT,
    first_out=INT,
    outs=INT,
    # Where it stands.
    state=INT,  # WAITING, RUNNING or OVER
    stamp=INT,  # raised when events under way become void
    missing=INT,  # what the next firing still waits for: unmet dependencies, and the gate
    fired=INT,  # firings begun
    drained=INT,
    arrived=INT,
    delivered=INT,
    waiting_since=FLOAT,
    last_arrival=FLOAT,
    last_delivery=FLOAT,
    lost_bytes=FLOAT,  # what deadlines and cancelling left undelivered
    began=FLOAT,  # the latest firing, when it waited for nothing more
    flow_began=FLOAT,  # and when its payload began to flow
    # The flow of the firing that drains; see simnet.fabric.kernels.maxmin.
    first_hop=INT,
    hops=INT,
    weight=FLOAT,
    cap=FLOAT,
    most=FLOAT,  # its cap when nothing is lost
    rate=FLOAT,
    old_rate=FLOAT,
    active=BOOL,
    fixed=BOOL,
    fresh=BOOL,  # began, or changed its cap or path, at this instant
    level=FLOAT,  # its rate over its weight
    limit=INT,  # resource that keeps it from more; BY_CAP: its cap does; UNLIMITED: not known yet
    mark=INT,
    firing_bytes=FLOAT,
    resent_bytes=FLOAT,  # of this firing, what flows beside its bytes
    lost_here=FLOAT,  # and what of its bytes is lost and not sent again
    # While its first window and what follows overflow a queue; see simnet.fabric.kernels.bursts.
    phase=INT,
    sends_from=FLOAT,  # time
    window=FLOAT,  # packets
    threshold=FLOAT,  # at which slow start ends [packets]
    heard=FLOAT,  # packets of the last window that have arrived
    left=FLOAT,  # packets that have not
    quick=FLOAT,  # packets that its receiver still acknowledges at once
    is_last_lost=BOOL,
    repairs=BOOL,  # a loss is being made good
    timeouts=INT,  # in a row
    stands_still=FLOAT,  # for so long in all
    on_path=FLOAT,  # what was left when it took its present path
    remaining=FLOAT,
    since=FLOAT,  # `remaining` is as of then
    deadline_at=FLOAT,
    finish=FLOAT,
    heap_position=INT,  # in the heap of drain times, -1 if it is not there
)

DEPENDENCY = record(
    before=INT,
    after=INT,
    offset=INT,
    until_delivered=BOOL,
    delay=FLOAT,
    tokens=INT,  # firings of `before` that have been seen
)

EDGE = record(row=INT)  # a row of another table: dependencies by their `before`, operations by their gate

HOP = record(
    resource=INT,
    coefficient=FLOAT,  # bytes of the resource for a byte of payload
    flow=INT,
    next=INT,  # next active hop on the same resource, -1 at the end
    previous=INT,
)

RESOURCE = record(
    capacity=FLOAT,
    buffer=FLOAT,  # of the queue in front of it, where a switch drops what finds it full; otherwise infinite
    burst=FLOAT,  # what first windows have left in it,
    burst_at=FLOAT,  # as of then
    heard_at=FLOAT,  # until then, those who began to send through it know what they have lost
    sharing=INT,  # first row of what flows that share it leave unused, by their number; -1: nothing
    unused=FLOAT,  # of its capacity
    head=INT,  # first active hop, -1 if there is none
    users=INT,  # number of active hops
    dirty=INT,  # what happened to it at this instant: JOINED, LEFT or CHANGED; 0: nothing
    mark=INT,
    from_switch=BOOL,  # what comes out of it takes turns by the links it came in by; otherwise by flows
    # Scratch of the solver for paused links.
    position=INT,  # on the path of the flow that comes to it latest
    demand=FLOAT,  # of its flows to a congested link
    granted=FLOAT,
    seen=INT,
    # Scratch of the max-min solver.
    left=FLOAT,
    load=FLOAT,
    open=INT,
    level=FLOAT,  # at which it filled, -1 if it did not
    outside=INT,  # flows on it that are not among those that a repair solves for
    outside_takes=FLOAT,  # what these take of it
    # Counters.
    carried=FLOAT,  # bytes that flows which are over have taken of it
    busy=FLOAT,  # time with at least one flow, up to busy_since
    busy_since=FLOAT,
)

GATE = record(  # a rank of a play
    play=INT,
    rank=INT,
    node=INT,
    is_open=BOOL,
    watched=BOOL,
    left=INT,  # what must still happen before the rank is complete
    complete_at=FLOAT,
    first_operation=INT,  # edges to the operations that start behind this gate
    operations=INT,
)

PLAY = record(left=INT, is_watched=BOOL)  # ranks not yet complete

SERVER = record(  # first in, first out: message overheads, and streams of calculations
    free_at=FLOAT,
    slowed=FLOAT,  # by what share of it an overhead takes longer
)

DEVICE = record(active=INT, busy=FLOAT, busy_since=FLOAT)  # transfers under way, and time with at least one

COST = record(
    send=FLOAT,  # per message
    send_per_byte=FLOAT,
    receive=FLOAT,
    receive_per_byte=FLOAT,
    pipeline_bytes=FLOAT,  # only so many bytes of a message pay the cost per byte; the rest overlaps
    reduce_per_byte=FLOAT,
    packet_bytes=FLOAT,  # what a switch stores before it forwards
)

TRANSPORT = record(  # what all messages between hosts have in common; see simnet.protocols.Transport
    payload_bytes=FLOAT,
    packet_bytes=FLOAT,
    first_window=FLOAT,  # of a connection [packets]
    most_window=FLOAT,
    growth=FLOAT,  # packets that a window gains in a round trip
    keeps=FLOAT,  # share of a window that is left after a loss
    is_cubic=BOOL,
    has_marks=BOOL,  # switches say that queues grow, before they overflow
    probe=FLOAT,  # what a sender waits besides two round trips before it probes a lost tail; infinite: it does not
    acknowledge_delay=FLOAT,
    restarts=BOOL,  # with its first window, after a connection has been idle
    timeout=FLOAT,
    first_timeout=FLOAT,  # of a connection that has just been opened
    few_packets=FLOAT,
    few_timeout=FLOAT,
    critical_share=FLOAT,  # of a message, that is sent until it has come
    loss_budget=FLOAT,
)

CONNECTION = record(  # whose packets are lost at random; see simnet.fabric.kernels.windows
    window=FLOAT,  # packets; 0: not used yet
    threshold=FLOAT,  # at which slow start ends
    highest=FLOAT,  # window at the last loss
    since_loss=FLOAT,  # time
    until_loss=FLOAT,  # packets, the lost one included
    used_at=FLOAT,
)

SHARING = record(unused=FLOAT)  # share of a capacity

ENTRY = record(key=FLOAT, tie=INT, what=INT)  # of a heap

LOG = record(  # of messages, where they are recorded
    stamp=INT,  # of the operation, which tells its play
    row=INT,  # operation
    firing=INT,
    is_delivery=BOOL,  # otherwise the firing has drained
    size_bytes=FLOAT,
    began=FLOAT,
    flow_began=FLOAT,
    time=FLOAT,
)

CLOCK = record(
    now=FLOAT,
    sequence=INT,  # events made so far; decides between equal times
    events=INT,  # entries in the heap of events
    drains=INT,  # entries in the heap of drain times
    step=INT,  # how many events and steps a step can add
    queue_head=INT,  # steps that follow at once, a ring
    queue_size=INT,
    dirty=INT,  # resources whose flows or capacity changed at this instant
    fresh=INT,  # flows that began or changed at this instant
    full_solves=BOOL,  # solve whole components instead of repairing what changed
    leaves_unused=BOOL,  # flows that share a resource do not use all of it
    pauses=BOOL,  # a link that is paused holds up all of its flows; then components are solved whole
    mark=INT,
    complete=INT,  # ranks completed and not yet reported
    watched=INT,  # among them such as somebody waits for
    begun=INT,  # flows that have begun and go elsewhere, not yet reported
    messages=INT,  # sends begun
    records=BOOL,  # whether messages are recorded
    logged=INT,  # rows of the log not yet read
    solves=INT,  # times that rates were solved, in a component or around a change
    passes=INT,  # of these
    touched=INT,  # flows whose rates were solved in them
    sent_bytes=FLOAT,
    delivered_bytes=FLOAT,
    lost_bytes=FLOAT,
    resent_bytes=FLOAT,
    timeouts=INT,
)


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
    connections, sharing : int, optional
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
        "transports": 1,
        "clock": 1,
    }
    rows = {"connections": 1, "sharing": 1} | rows | follow
    return Tables(**{name: np.zeros(rows[name], record) for name, record in LAYOUT.items()})
