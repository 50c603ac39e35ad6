"""A schedule laid out on a network: what it takes of what, before anything moves."""

from __future__ import annotations

import numpy as np
import pytest

from simnet.errors import DeadlockError
from simnet.traffic import Partition, ScheduleBuilder, ring_all_reduce

from .building import builder, sends


def test_it_is_laid_out_once_for_the_same_schedule_and_nodes(make_fabric):
    fabric, schedule = make_fabric(4), sends((0, 1, 1.0))
    first = fabric.place(schedule, [1, 2])
    assert fabric.place(schedule, np.array([1, 2])) is first
    assert fabric.place(schedule, [2, 1]) is not first
    assert fabric.place(sends((0, 1, 1.0)), [1, 2]) is not first


def test_each_rank_needs_a_node(make_fabric):
    with pytest.raises(ValueError, match="sends has 2 ranks, but 3 nodes are given"):
        make_fabric(4).place(sends((0, 1, 1.0)), [0, 1, 2])


def test_firings_that_wait_for_each_other_are_refused_before_anything_runs(make_fabric):
    build = builder(2, "stuck")
    there, back = build.send([0, 1], [1, 0], width=0, fixed_bytes=1.0)
    build.depend(there, back)
    build.depend(back, there)
    with pytest.raises(DeadlockError, match="stuck: these firings wait for each other"):
        make_fabric(2).place(build.schedule(), [0, 1])


def test_what_a_playing_takes_of_each_resource(make_fabric):
    """Ring of 3 over 6 elements of 2 bytes, packets of 4 bytes with 1 byte of header: 4 messages of 4 bytes a rank.

    16 bytes of payload and 20 on every link; 20 bytes that each rank puts on the wire.
    """
    fabric = make_fabric(3, payload_bytes=4.0, header_bytes=1.0, host_send_capacity_bytes_per_s=7.0)
    placement = fabric.place(ring_all_reduce(3, 6, 2.0), fabric.network.compiled.rank_nodes)
    taken = {fabric.network.resource_names[row]: amount for row, amount in placement.resource_bytes.items()}
    assert taken == {
        **{f"host{rank}->switch": 20.0 for rank in range(3)},
        **{f"switch->host{rank}": 20.0 for rank in range(3)},
        **{f"host{rank}: send stack": 16.0 for rank in range(3)},
    }
    assert placement.wire_bytes_sent.tolist() == [20.0] * 3


def test_headers_of_short_messages_weigh_more(make_fabric):
    """Packets of 4 bytes with 1 of header: 1 byte is 2 on the wire, 5 bytes are 7, nothing is nothing."""
    fabric = make_fabric(2, payload_bytes=4.0, header_bytes=1.0)
    placement = fabric.place(sends((0, 1, 1.0), (0, 1, 5.0), (0, 1, 0.0)), fabric.network.compiled.rank_nodes)
    assert placement.wire_factor[:2].tolist() == [2.0, 7.0 / 5.0]
    assert placement.wire_bytes_sent.tolist() == pytest.approx([9.0, 0.0])


def test_a_schedule_without_operations_takes_nothing(make_fabric):
    fabric = make_fabric(2)
    placement = fabric.place(ScheduleBuilder("nothing", 2, Partition(1, 1.0)).schedule(), [0, 1])
    assert placement.resource_bytes == {}
    assert placement.wire_bytes_sent.tolist() == [0.0, 0.0]
