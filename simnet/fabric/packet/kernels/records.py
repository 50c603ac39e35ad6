"""What a row of each table of the packet level is.

Times are whole picoseconds on the network's own clock, sizes bytes. A directed link is a *port*, with queues and a
rate, and a pipe behind it that only delays. A *connection* goes from one node to another and carries messages one after
the other, as numbered packets.
"""

from __future__ import annotations

from typing import get_type_hints

import numpy as np

from simnet.fabric.kernels.tables_type import record
from simnet.protocols.congestion import CONTROLS

__all__ = [
    "CELL",
    "CLASSES",
    "CLOCK",
    "CONNECTION",
    "ENTRY",
    "FLOAT",
    "INGRESS",
    "LANE",
    "LEVELS",
    "MESSAGE",
    "NEVER",
    "NODE",
    "NOWHERE",
    "PACKET",
    "PORT",
    "QUEUE",
    "RELEASE",
    "ROUTE",
    "SECOND",
    "STEP",
]

INT, FLOAT, BOOL = np.int64, np.float64, np.bool_

_KINDS = {int: INT, float: FLOAT, bool: BOOL}

CLASSES = 4
"""Traffic classes of a port; 0 goes first, and is never paused."""

NOWHERE = -1
"""The end of a list, and whatever is not there."""

NEVER = 1 << 62
"""An instant that does not come [ps]."""

SECOND = 1_000_000_000_000
"""[ps]"""

LEVELS = 96
"""Steps into which the bytes held at a port are sorted, two for each power of two."""

PORT = record(
    # What it is.
    source=INT,  # node
    target=INT,
    reverse=INT,  # port of the same cable in the other direction, or NOWHERE
    number=INT,  # among those that leave its source
    entry=INT,  # among those that lead to its target
    bytes_per_s=INT,
    delay=INT,  # of the pipe, and of the switch behind it [ps]
    limit=INT,  # most bytes that may lie in it; of a switch that shares its buffer the node says
    credit=INT,  # bytes that its target has room for, each class; 0: it may always send
    return_delay=INT,  # until it learns that some of this is free again [ps]
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
    served=FLOAT,  # virtual time of its weighted classes
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
    first_lane=INT,  # or, where inputs take turns, the lanes with packets
    last_lane=INT,
    bytes=INT,
    first_ready=INT,  # connections that begin at this port and have something to send, in turn
    last_ready=INT,
    is_paused=BOOL,
    eligible_at=INT,  # when it was last resumed
    paused_since=INT,
    level=INT,  # the least goes first
    weight=FLOAT,  # share among those of its level
    served=FLOAT,  # what it had, in the virtual time of its port
)

LANE = record(head=INT, tail=INT, next=INT)  # packets from one input at one output

INGRESS = record(  # what came by a port and is still held where it led: row port * CLASSES + class
    bytes=INT,
    headroom=INT,  # of these, above the threshold
    leaving=INT,  # bytes of both for which it is fixed when they leave
    has_paused=BOOL,
    # With credits.
    outstanding=INT,  # bytes sent that are not known to have left again
    credit_at=INT,  # since when it is known that the last of them have
    first_return=INT,  # rows of releases: bytes that have left again, by the time at which that is known
    last_return=INT,
    is_blocked=BOOL,
)

NODE = record(
    is_switch=BOOL,
    cuts_through=BOOL,
    has_credits=BOOL,
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
    first_lane=INT,  # NOWHERE: packets leave in the order in which they came
    inputs=INT,
)

RELEASE = record(finish=INT, bytes=INT, ingress=INT, next=INT)  # a packet whose last bit leaves at a time

PACKET = record(
    connection=INT,
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
    complete_at=INT,  # when its last bit was there, where it may leave before; or 0
    sent_at=INT,
    is_marked=BOOL,
    may_be_marked=BOOL,
    is_lost=BOOL,
    is_last=BOOL,  # of its message, for the first time
    value=INT,
    # What the receiver has beyond what it expects, the latest first: numbers from first up to and without end.
    first_a=INT,
    end_a=INT,
    first_b=INT,
    end_b=INT,
    first_c=INT,
    end_c=INT,
    next=INT,
)

CONNECTION = record(
    # What it is.
    port=INT,  # where it begins
    path=INT,
    hops=INT,
    first_route=INT,  # where packets take several paths in turn
    routes=INT,
    route=INT,
    back_path=INT,
    back_hops=INT,
    traffic_class=INT,
    back_class=INT,
    full_bytes=INT,  # on the wire
    acknowledgement_bytes=INT,
    may_be_marked=BOOL,
    delay=INT,  # from the last link to whoever receives [ps]
    random=INT,  # state of the generator of random numbers
    rules=INT,  # what is done about loss
    is_lossless=BOOL,  # links hold packets back rather than lose them
    control=INT,  # what is done about congestion
    limit=INT,  # pace that hosts allow [bytes/s]; 0: as fast as the port
    room=INT,  # packets beyond what is acknowledged in order that may be sent
    first_cell=INT,
    cells=INT,  # a power of two, or 0 where no account of single packets is kept
    first_message=INT,  # not yet acknowledged
    last_message=INT,
    sending=INT,  # message of the packet that was sent last
    receiving=INT,  # message of the packet that is expected
    # The sender; more of it are the fields of congestion controls.
    end=INT,  # packets in all messages so far
    highest=INT,  # packets sent at least once
    limited_until=INT,  # number up to which packets were under way when the window last held it back
    in_flight=INT,
    first_out=INT,  # packets under way, in the order in which they were sent
    last_out=INT,
    first_lost=INT,  # packets to be sent again
    last_lost=INT,
    recovery_end=INT,  # loss is being made good until this is acknowledged
    has_timed_out=BOOL,
    reduced=FLOAT,  # packets that may be under way while loss is made good; 0: as many as the window says
    window_before=FLOAT,  # when the loss was found,
    delivered_since=INT,  # packets known to have arrived since then,
    sent_since=INT,  # and sent
    latest_sent_at=INT,  # of what is known to have arrived
    highest_heard=INT,  # number of a packet beyond all that are known to have arrived
    progress_at=INT,  # when more was acknowledged last, or it had something to send again
    sent_at=INT,  # of the last packet
    allowed_at=INT,
    ready_since=INT,
    is_ready=BOOL,
    is_waiting_for_pace=BOOL,
    next_ready=INT,
    # Round trips and timers [ps].
    round_trip=INT,  # smoothed; 0: none measured
    deviation=INT,
    least_round_trip=INT,
    timeout=INT,
    first_timeout=INT,  # of go-back-N, and again whenever more was acknowledged
    least_timeout=INT,
    most_timeout=INT,
    few=INT,  # packets in flight up to which `few_timeout` holds
    few_timeout=INT,
    timeout_at=INT,
    timeout_event_at=INT,
    retries=INT,  # timeouts in a row that are one too many when exceeded
    vain=INT,  # timeouts since more was acknowledged
    probes=BOOL,  # the tail is probed before a timeout
    probe_at=INT,
    has_probed=BOOL,
    reorder=INT,  # packets, or time [ps], by which a packet may be overtaken
    restarts=BOOL,  # with a small window after it was idle
    control_event_at=INT,
    # The receiver.
    expected=INT,
    missed=INT,  # what was expected when the first packet beyond it came
    unacknowledged=INT,  # packets since the last acknowledgement
    every=INT,  # acknowledge every so many; 0: the receiver is told of each
    acknowledge_delay=INT,  # [ps]; 0: as long as it takes
    acknowledge_at=INT,
    heard_at=INT,  # when a packet came last
    quick=INT,  # packets that are acknowledged at once all the same
    echo=INT,  # when the first packet that is not acknowledged was sent
    marks=INT,  # among those
    was_marked=BOOL,
    block_a=INT,  # where what it has beyond what it expects begins, the latest first
    block_b=INT,
    block_c=INT,
    notifies=BOOL,  # of marks
    notifies_loss=BOOL,  # with each report of what is missing
    notify_interval=INT,
    notify_delay=INT,
    notified_at=INT,
    # Counters.
    sent=INT,
    retransmitted=INT,
    timeouts=INT,
    notified=INT,
    happened=INT,  # what a control that is not compiled has to be told
    happened_packets=INT,
    happened_marked=INT,
    # The state of congestion controls; see `simnet.protocols.congestion.control`.
    **{name: _KINDS[kind] for control in CONTROLS.values() for name, kind in get_type_hints(control).items()},
)

CELL = record(  # of a packet on its way
    state=INT,
    sent_at=INT,
    bytes=INT,
    next=INT,  # in the list that it is in
    previous=INT,
    skip=INT,  # numbers from here up to and without this are known to have arrived
    again=BOOL,  # it was sent more than once
    # At the receiver.
    has=BOOL,
    first=INT,  # of the numbers that it has in a row; only right at both ends of it
    end=INT,
)

MESSAGE = record(
    connection=INT,
    first=INT,  # number of its first packet
    end=INT,
    last_bytes=INT,  # on the wire
    received=INT,  # packets, where order does not matter
    received_bytes=INT,
    wanted=INT,  # so many packets are enough, after more were asked for
    heard_at=INT,
    is_over=BOOL,
    next=INT,
)

STEP = record(port=INT)  # of a path

ROUTE = record(path=INT, hops=INT)

ENTRY = record(key=INT, tie=INT, what=INT)  # of the heap

CLOCK = record(
    now=INT,
    sequence=INT,
    events=INT,  # entries in the heap
    handled=INT,  # events so far
    hops=INT,  # packets that have arrived at the end of a link
    room=INT,  # packets and events that one event can make at the most
    first_free_packet=INT,
    free_packets=INT,
    first_free_release=INT,
    free_releases=INT,
    first_free_message=INT,
    free_messages=INT,
    reported=INT,  # packet, message or connection that somebody has to be told of
)
