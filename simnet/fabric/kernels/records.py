"""What a row of each table of the event kernel is.

Times are seconds on the kernel's own clock, sizes bytes, rates bytes per second.
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.tables_type import record

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
    "LOCAL",
    "LOG",
    "OPERATION",
    "PACKET",
    "PLAY",
    "REMOTE",
    "RESOURCE",
    "SENDER",
    "SERVER",
    "SHARING",
    "TRANSPORT",
    "TURN",
]

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
    turn=INT,  # row of the turns of messages that go one after the other, -1: it waits for no other
    next_turn=INT,  # who has its turn after it, -1 at the end
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
    next_limited=INT,  # the next flow that the same resource limits, -1 at the end
    previous_limited=INT,
    mark=INT,
    firing_bytes=FLOAT,
    resent_bytes=FLOAT,  # of this firing, what flows beside its bytes
    lost_here=FLOAT,  # and what of its bytes is lost and not sent again
    stands_still=FLOAT,  # while what is lost of its first window, and what follows, is made good
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
    next_member=INT,  # of those that are solved for
)

RESOURCE = record(
    capacity=FLOAT,
    buffer=FLOAT,  # of the queue in front of it, where a switch drops what finds it full; otherwise infinite
    room=FLOAT,  # of a queue whose overflow is only noticed; otherwise infinite
    overflows=BOOL,
    burst=FLOAT,  # what first windows have left in it,
    burst_at=FLOAT,  # as of then
    heard_at=FLOAT,  # until then, those who began to send through it know what they have lost
    sharing=INT,  # first row of what flows that share it leave unused, by their number; -1: nothing
    unused=FLOAT,  # of its capacity
    head=INT,  # first active hop, -1 if there is none
    users=INT,  # number of active hops
    takes=FLOAT,  # what their flows take of it together,
    takes_error=FLOAT,  # and by how much rounding has made that too large
    limited=INT,  # first flow that it limits, -1 if there is none
    ceiling=FLOAT,  # no flow on it that it does not limit has a higher level
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
    first_member=INT,  # hop of those that are solved for
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

DEVICE = record(active=INT, busy=FLOAT, busy_since=FLOAT)  # transfers under way, and time with at least one up to then

LOCAL, REMOTE = 0, 1
"""Rows of the costs per message: within a host, and through the protocol."""

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

TURN = record(  # of messages that go one after the other; see simnet.fabric.kernels.turns
    is_taken=BOOL,
    holder=INT,  # operation whose message is being sent
    first=INT,  # operations that wait, from the one that waits longest
    last=INT,
    waiting=INT,  # how many
)

SENDER = record(  # while first windows overflow a queue; see simnet.fabric.kernels.bursts. In packets.
    operation=INT,
    following=INT,  # who sends after it at an instant
    unsent=INT,
    missing=INT,  # not known to have arrived
    last_bytes=FLOAT,  # of its last packet, which may be a short one
    in_flight=INT,
    window=FLOAT,
    threshold=FLOAT,  # at which slow start ends
    cuts_from=INT,  # `missing` from which on marks may make the window smaller again
    # Sent before the loss that is being made good was known, and since:
    again=INT,  # known to be lost, and to be sent again
    again_new=INT,
    gap=INT,  # lost since the last one that got through
    gap_new=INT,
    gap_again=INT,  # of these, such as were sent again
    repairing=INT,  # not acknowledged of what was sent before it was known; 0: no loss is being made good
    repairs=INT,  # how many times one was
    before_hole=INT,  # packets before the first that was lost again; until then no more is acknowledged in order
    has_timed_out=BOOL,
    most=FLOAT,  # that may be under way meanwhile; 0: as many as the window says
    window_before=FLOAT,  # and since then,
    arrived_since=INT,
    sent_since=INT,
    next_at=FLOAT,  # when its host can send the next one
    smoothed=FLOAT,  # round trip
    timeout=FLOAT,
    timer_at=FLOAT,
    is_probe=BOOL,  # it is not a timeout that the timer is for
    has_probed=BOOL,
    is_probing=BOOL,  # what it sends next is its last packet
    stands_still=FLOAT,  # for so long in all
    # Its receiver.
    expected=INT,  # that have not arrived
    has_last=BOOL,  # the end of the message has
    holes=INT,
    unseen=INT,  # packets that are missing beyond all that has arrived
    quick=INT,  # that are acknowledged at once all the same
    waiting=INT,  # not acknowledged yet,
    waiting_old=INT,  # and of these sent before the loss was known
    echo=FLOAT,  # when the first of them was sent
    is_marked=BOOL,
    arrived_at=FLOAT,
    late_at=FLOAT,  # when they are acknowledged if nothing follows,
    back_at=FLOAT,  # and when that is heard
    back_old=INT,
    back_echo=FLOAT,
    back_marked=BOOL,
)

PACKET = record(  # in a queue that overflows, or behind it
    sender=INT,
    sent_at=FLOAT,
    bytes=FLOAT,
    is_last=BOOL,  # of its message
    is_again=BOOL,  # it was lost before, and others that were sent later were not
    repair=INT,  # number of the loss that was being made good when it was first sent, beyond that; -1: none
    gap=INT,  # packets of the same sender, old and new, that were lost since the one before it
    gap_new=INT,
    gap_again=INT,
    is_marked=BOOL,
    # What its acknowledgement says; see `burst_senders.take_in`.
    back_at=FLOAT,
    packets=INT,
    old=INT,
    echo=FLOAT,
    progress=BOOL,
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
    notices_overflow=BOOL,
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
