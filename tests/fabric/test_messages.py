"""What one message costs: overheads, connections, latency, store and forward, receivers; against formulas."""

from __future__ import annotations

import pytest

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.protocols import PROTOCOLS, message_time_s, resolve, wire_bytes
from simnet.topology import leaf_spine, star
from simnet.traffic import Partition, ScheduleBuilder, Until

from .building import begin, builder, sends


def test_overheads_of_a_sender_queue(make_fabric):
    """3 messages of 2 bytes from host 0 to others, send overhead 1 s, receive overhead 0.5 s, latency 4 s.

    They start to flow at 1, 2 and 3 s and share 1 byte/s. From 1 to 2 s the first alone: 1 left. From 2 to 3 s two: the
    first 0.5, the second 1.5 left. Then three: the first is over at 4.5 s (1 and 1.5 left), then two: the second at
    6.5 s, the third at 7 s. Delivered 4.5 s later each.
    """
    fabric = make_fabric(4, latency_s=4.0, send_overhead_s=1.0, receive_overhead_s=0.5)
    play = begin(fabric, sends((0, 1, 2.0), (0, 2, 2.0), (0, 3, 2.0)))
    fabric.env.run()
    assert play.rank_duration_s == pytest.approx([7.0, 9.0, 11.0, 11.5], rel=1e-12)


def test_overheads_of_a_receiver_queue(make_fabric):
    """Messages of 1 byte from 3 hosts into host 0, receive overhead 2 s, all arriving at 3 s: the last is in at 9 s."""
    fabric = make_fabric(4, receive_overhead_s=2.0)
    play = begin(fabric, sends((1, 0, 1.0), (2, 0, 1.0), (3, 0, 1.0)))
    fabric.env.run()
    assert play.duration_s == pytest.approx(3.0 + 3 * 2.0, rel=1e-12)


def test_overheads_per_byte_end_at_the_pipeline(make_fabric):
    """10 bytes, of which 4 are worked on before and after at 0.5 and 0.25 s a byte: 2 + 10 + 1 s."""
    fabric = make_fabric(2, send_overhead_s_per_byte=0.5, receive_overhead_s_per_byte=0.25, pipeline_bytes=4.0)
    play = begin(fabric, sends((0, 1, 10.0)))
    fabric.env.run()
    assert play.rank_duration_s == pytest.approx([12.0, 13.0], rel=1e-12)


def test_only_what_is_reduced_is_reduced(make_fabric):
    """Two messages of 4 bytes, the first is added at 2 s a byte: delivered at 4 + 8 and at 12, not before."""
    fabric = make_fabric(2, reduce_s_per_byte=2.0)
    build = ScheduleBuilder("reduce", 2, Partition(4, 1.0))
    build.depend(build.send(0, 1, repeat=2, reduce=1), build.calc(1, 1.0, repeat=2))
    play = begin(fabric, build.schedule())
    fabric.env.run()
    assert play.rank_duration_s == pytest.approx([8.0, 14.0], rel=1e-12)


def test_deliveries_of_one_operation_never_overtake(make_fabric):
    """8 bytes, reduced for 16 s, then 4 empty messages that need no work, one after the other.

    The first message is drained at 8 s and reduced at 24 s; the others have arrived by then and are delivered with it.
    A calculation of 1 s after the first message is over at 25 s.
    """
    fabric = make_fabric(2, reduce_s_per_byte=2.0)
    build = ScheduleBuilder("overtaking", 2, Partition(8, 1.0, chunks=9))
    # Chunks 7 and 8 of 9: the last is empty.
    sent = build.send(0, 1, repeat=5, chunk=0, step=0, modulus=1, width=1, reduce=1)
    build.depend(sent, build.calc(1, 1.0), offset=0)
    first = begin(fabric, build.schedule())
    fabric.env.run()
    assert first.rank_duration_s == pytest.approx([5.0, 5.0], rel=1e-12)
    build = builder(2)
    long = build.send(0, 1, width=0, fixed_bytes=8.0, reduce=1, repeat=5)
    build.depend(long, build.calc(1, 1.0))
    second = begin(fabric, build.schedule())
    fabric.env.run()
    assert second.rank_duration_s == pytest.approx([40.0, 40.0], rel=1e-12)


def test_a_message_without_work_waits_for_those_before_it(make_fabric):
    """Two messages of 1 byte; only the first is reduced, for 10 s, so it is delivered at 11 s and the second with it.

    Two calculations of 1 s, one for each message, one after the other: the first begins at 11 s.
    """
    fabric = make_fabric(2, reduce_s_per_byte=10.0)
    build = builder(2)
    sent = build.send(0, 1, width=0, fixed_bytes=1.0, repeat=2, reduce=1)
    build.depend(sent, build.calc(1, 1.0, repeat=2))
    play = begin(fabric, build.schedule())
    fabric.env.run()
    assert play.rank_duration_s == pytest.approx([2.0, 13.0], rel=1e-12)


def test_a_persistent_connection_is_opened_once(make_fabric):
    """Set-up 2 s and two round trips of 2 x 0.5 s: 4 s before the first message of 1 byte, nothing later, in any play.

    3 messages: 4 + 3 * 1 + 0.5 s; then 3.5 s. The way back is another connection.
    """
    fabric = make_fabric(2, latency_s=0.5, connection_setup_s=2.0, connection_setup_round_trips=2.0)
    durations = []
    there = sends((0, 1, 1.0), repeat=3)
    for schedule in (there, there, sends((0, 1, 1.0), repeat=3), sends((1, 0, 1.0), repeat=3)):
        play = begin(fabric, schedule)
        fabric.env.run()
        durations.append(play.duration_s)
    assert durations == pytest.approx([7.5, 3.5, 3.5, 7.5], rel=1e-12)


def test_a_connection_for_each_message_is_opened_for_each(make_fabric):
    """The same with a connection for each: 3 * (4 + 1) + 0.5 s, every time."""
    fabric = make_fabric(
        2, latency_s=0.5, connection_setup_s=2.0, connection_setup_round_trips=2.0, connection="per_message"
    )
    for _ in range(2):
        play = begin(fabric, sends((0, 1, 1.0), repeat=3))
        fabric.env.run()
        assert play.duration_s == pytest.approx(15.5, rel=1e-12)


@pytest.mark.parametrize("switches", [1, 2])
def test_store_and_forward_takes_a_packet_longer_for_each_switch(switches):
    """Packets of 2 bytes of payload and 1 of header over links of 1 and 0.5 byte/s, latency 0.25 s a link.

    On a star 10 bytes (15 on the wire) take 15 s + 0.5 s, and a packet of 3 bytes on the second link 3 s more. Between
    racks there are 4 links, the middle ones half as fast: 30 s for the flow, 1 s for latency, and 3 / 0.5 + 3 / 0.5 +
    3 / 1 s for the packet on the links after the first.
    """
    protocol = resolve("ideal", {"payload_bytes": 2.0, "header_bytes": 1.0, "forwarding": "store_and_forward"})
    if switches == 1:
        topology, expected_s = star(hosts=2, bandwidth_bytes_per_s=1.0, latency_s=0.25), 15.0 + 0.5 + 3.0
    else:
        topology = leaf_spine(
            leaves=2,
            hosts_per_leaf=1,
            spines=1,
            bandwidth_bytes_per_s=1.0,
            uplink_bandwidth_bytes_per_s=0.5,
            latency_s=0.25,
        )
        expected_s = 30.0 + 1.0 + 15.0
    import simpy

    fabric = FluidFabric(simpy.Environment(), Network(topology, protocol))
    play = begin(fabric, sends((0, 1, 10.0)))
    fabric.env.run()
    assert play.duration_s == pytest.approx(expected_s, rel=1e-12)


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("size", [1.0, 1000.0, 1e6, 1e9])
def test_one_message_takes_what_the_protocol_says(name, size, make_fabric):
    """On an idle star, over an open connection: `simnet.protocols.message_time_s`."""
    import simpy

    topology = star(hosts=2, bandwidth_bytes_per_s=12.5e9, latency_s=1e-6)
    protocol = resolve(name)
    fabric = FluidFabric(simpy.Environment(), Network(topology, protocol))
    for _ in range(2):
        play = begin(fabric, sends((0, 1, size)))
        fabric.env.run()
    assert play.duration_s == pytest.approx(float(message_time_s(protocol, size, 12.5e9, 2e-6, hops=2)), rel=1e-9)
    on_wire = float(wire_bytes(protocol, size))
    assert fabric.carried_bytes()[:4].max() == pytest.approx(2 * on_wire, rel=1e-9)


def test_headers_slow_a_flow_down_and_count_on_wires_only(make_fabric):
    """Packets of 4 bytes with 1 byte of header: 8 bytes are 10 on the wire and take 10 s."""
    fabric = make_fabric(2, payload_bytes=4.0, header_bytes=1.0, host_send_capacity_bytes_per_s=5.0)
    play = begin(fabric, sends((0, 1, 8.0)))
    fabric.env.run()
    assert play.duration_s == pytest.approx(10.0, rel=1e-12)
    carried = dict(zip(fabric.network.resource_names, fabric.carried_bytes().tolist(), strict=True))
    assert carried["host0->switch"] == pytest.approx(10.0, rel=1e-12)
    assert carried["host0: send stack"] == pytest.approx(8.0, rel=1e-12)


def test_a_stack_is_shared_by_the_connections_of_a_host(make_fabric):
    """Stack of 0.5 byte/s at the receiver, links of 1: two messages of 1 byte from two hosts take 4 s."""
    fabric = make_fabric(3, host_receive_capacity_bytes_per_s=0.5)
    play = begin(fabric, sends((0, 2, 1.0), (1, 2, 1.0)))
    fabric.env.run()
    assert play.duration_s == pytest.approx(4.0, rel=1e-12)


def test_a_connection_cap_holds_for_each_connection(make_fabric):
    """Cap 0.25 byte/s: one message of 1 byte takes 4 s, four of them over one link as well, eight of them 8 s."""
    for count, expected_s in ((1, 4.0), (4, 4.0), (8, 8.0)):
        fabric = make_fabric(9, connection_cap_bytes_per_s=0.25)
        play = begin(fabric, sends(*[(0, 1 + target, 1.0) for target in range(count)]))
        fabric.env.run()
        assert play.duration_s == pytest.approx(expected_s, rel=1e-12)


def test_the_same_node_twice_takes_no_time(make_fabric):
    """A rank that sends to another on the same node, or to itself, is not held up by anything."""
    fabric = make_fabric(2, latency_s=1.0, send_overhead_s=1.0)
    play = begin(fabric, sends((0, 1, 1e9), (1, 1, 1e9)), [0, 0])
    fabric.env.run()
    assert play.duration_s == 0.0
    assert fabric.carried_bytes().sum() == 0.0


def test_rerouting_onto_nothing_and_back(make_fabric):
    """10 bytes at 1 byte/s; at 2 s the send gets a path of its own without a resource and a cap of 4 byte/s, at 3 s its
    old link of 1 byte/s back: 2 + 4 bytes by then, 4 s more."""
    fabric = make_fabric(2)
    play = begin(fabric, sends((0, 1, 10.0)))

    def actor():
        yield fabric.env.timeout(2.0)
        fabric.set_flow_cap(play, 0, 4.0)
        fabric.reroute(play, 0, [], 0.0)
        yield fabric.env.timeout(1.0)
        fabric.reroute(play, 0, [0], 0.5)

    fabric.env.process(actor())
    fabric.env.run()
    assert play.rank_duration_s == pytest.approx([7.0, 7.5], rel=1e-12)


def test_rerouting_onto_nothing_without_a_cap_drains_at_once(make_fabric):
    fabric = make_fabric(2)
    play = begin(fabric, sends((0, 1, 10.0), repeat=3))

    def actor():
        yield fabric.env.timeout(2.0)
        fabric.reroute(play, 0, [], 0.25)

    fabric.env.process(actor())
    fabric.env.run()
    assert play.rank_duration_s == pytest.approx([2.0, 2.25], rel=1e-12)


def test_a_send_that_waits_until_drained_does_not_wait_for_latency(make_fabric):
    """1 byte, latency 5 s: what waits until it is drained starts at 1 s, what waits for its delivery at 6 s."""
    fabric = make_fabric(2, latency_s=5.0)
    build = builder(2)
    sent = build.send(0, 1, width=0, fixed_bytes=1.0)
    build.depend(sent, build.calc(0, 1.0), until=Until.DRAINED)
    build.depend(sent, build.calc(1, 1.0), until=Until.DELIVERED)
    play = begin(fabric, build.schedule())
    fabric.env.run()
    assert play.rank_duration_s == pytest.approx([2.0, 7.0], rel=1e-12)


def test_a_message_on_a_shorter_way_does_not_overtake(make_fabric):
    """Two messages of 1 byte, latency 10 s; at 1.5 s the send gets a path without latency. The first is on its way
    until 11 s; the second has drained at 2 s and is delivered right after the first, at 11 s."""
    fabric = make_fabric(2, latency_s=10.0)
    build = builder(2)
    sent = build.send(0, 1, width=0, fixed_bytes=1.0, repeat=2)
    build.depend(sent, build.calc(1, 1.0, repeat=2))
    play = begin(fabric, build.schedule())

    def actor():
        yield fabric.env.timeout(1.5)
        fabric.reroute(play, 0, [0], 0.0)

    fabric.env.process(actor())
    fabric.env.run()
    assert play.rank_duration_s == pytest.approx([2.0, 13.0], rel=1e-12)
