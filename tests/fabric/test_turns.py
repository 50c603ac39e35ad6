"""Messages that go in order: those between two nodes one after the other, also those of several schedules."""

from __future__ import annotations

from dataclasses import replace

import pytest
import simpy

from simnet.errors import StalledError
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.packet.fabric import PacketFabric
from simnet.protocols import FlowProtocol
from simnet.topology import HostSpec, star
from simnet.topology.building import Cable, TopologyBuilder
from simnet.traffic import Turns, Until, parameter_server_push_pull

from .building import begin, builder, fail, sends


def in_order(*messages: tuple[int, int, float], ranks: int = 0):
    return replace(sends(*messages, ranks=ranks), turns=Turns.NODES)


def within(value: float):
    return pytest.approx(value, rel=1e-12)


def test_the_second_of_two_has_the_link_when_the_first_has_left(make_fabric):
    """3 and 5 bytes at 1 byte/s, 0.5 s on the way: 3.5 and 8.5 s. At once they share: 6.5 and 8.5 s."""
    for make, expected_s in ((in_order, (3.5, 8.5)), (sends, (6.5, 8.5))):
        fabric = make_fabric(2, latency_s=0.5)
        plays = [begin(fabric, make((0, 1, size))) for size in (3.0, 5.0)]
        fabric.env.run()
        fabric.require_conservation()
        assert [play.duration_s for play in plays] == [within(s) for s in expected_s]


def test_messages_of_one_schedule_take_turns_too(make_fabric):
    """Three of 2 bytes: each is there 2 s after the one before."""
    fabric = make_fabric(2)
    schedule = in_order(*[(0, 1, 2.0)] * 3)
    play = begin(fabric, schedule)
    fabric.env.run()
    assert play.duration_s == within(6.0)
    assert fabric.counts.solves == 3


def test_those_to_other_nodes_do_not_wait(make_fabric):
    """4 bytes each to two nodes share the link of the sender: 8 s. A third, behind the first, comes 4 s later."""
    fabric = make_fabric(3)
    plays = [begin(fabric, in_order((0, 1, 4.0)), [0, target]) for target in (1, 2, 1)]
    fabric.env.run()
    assert [play.duration_s for play in plays] == [within(8.0), within(8.0), within(12.0)]


def test_a_connection_is_as_fast_as_its_core_however_much_waits(make_fabric):
    """A cap of 1 byte/s on links of 4: two in order take 2 and 4 s, two connections of their own 2 s each."""
    for make, expected_s in ((in_order, (2.0, 4.0)), (sends, (2.0, 2.0))):
        fabric = make_fabric(2, bandwidth_bytes_per_s=4.0, connection_cap_bytes_per_s=1.0)
        plays = [begin(fabric, make((0, 1, 2.0))) for _ in range(2)]
        fabric.env.run()
        assert [play.duration_s for play in plays] == [within(s) for s in expected_s]


def test_setting_up_is_part_of_a_turn(make_fabric):
    """A connection for each message takes 1 s to open: 2 bytes are there after 3 s, 2 more after 6."""
    fabric = make_fabric(2, connection="per_message", connection_setup_s=1.0)
    plays = [begin(fabric, in_order((0, 1, 2.0))) for _ in range(2)]
    fabric.env.run()
    assert [play.duration_s for play in plays] == [within(3.0), within(6.0)]


@pytest.mark.parametrize(
    ("cancelled", "expected_s"), [(0, {1: 5.0, 2: 9.0}), (1, {0: 4.0, 2: 8.0}), (2, {0: 4.0, 1: 8.0})]
)
def test_what_is_cancelled_waits_no_longer_and_nobody_waits_for_it(make_fabric, cancelled, expected_s):
    """Three of 4 bytes; one is given up after 1 s, while the first is being sent and the others wait."""
    fabric = make_fabric(2)
    plays = [begin(fabric, in_order((0, 1, 4.0))) for _ in range(3)]

    def give_up():
        yield fabric.env.timeout(1.0)
        fabric.cancel(plays[cancelled])

    fabric.env.process(give_up())
    fabric.env.run()
    fabric.require_conservation()
    assert {number: plays[number].duration_s for number in expected_s} == {k: within(s) for k, s in expected_s.items()}


def twice(first, second, size: float):
    """A send, and another one when it has been delivered."""
    build = builder(2)
    one, other = (
        build.send(first, second, width=0, fixed_bytes=size),
        build.send(first, second, width=0, fixed_bytes=size),
    )
    build.depend(one, other, until=Until.DELIVERED)
    return build.schedule(turns=Turns.NODES)


@pytest.mark.parametrize(("kind", "expected_s"), [("pcie", (3.2, 2.2, 4.2)), ("ethernet", (4.2, 2.2, 3.2))])
def test_inside_of_a_host_what_began_earlier_goes_first(kind, expected_s):
    """Bytes of 1 s, 0.2 s on the way; the second of the first schedule is ready at 1.2 s, when two others wait.

    On a wire it is behind both; inside of a host only behind the one that is being copied.
    """
    build = TopologyBuilder("pair")
    host = {"host": "host0"} if kind == "pcie" else {}
    build.node("host0", "host")
    nodes = [build.node(name, "gpu" if kind == "pcie" else "host", **host) for name in ("a", "b")]
    build.cable(*nodes, Cable(1.0, 0.2, kind))
    topology = build.topology()
    ids = [topology.compiled.node_names.index(name) for name in nodes]
    fabric = FluidFabric(simpy.Environment(), Network(topology, FlowProtocol()))
    schedules = twice(0, 1, 1.0), in_order((0, 1, 1.0)), in_order((0, 1, 1.0))
    plays = [fabric.play(fabric.place(schedule, ids), "one") for schedule in schedules]
    fabric.env.run()
    assert [play.duration_s for play in plays] == [within(s) for s in expected_s]


def test_packets_go_in_order_too():
    """10 and 10 packets of 1,000 bytes at 1 MB/s: 10 and 20 ms, where both at once take nearly 20 ms."""
    found = {}
    for make in (in_order, sends):
        topology = star(hosts=2, bandwidth_bytes_per_s=1e6, latency_s=0.0)
        network = Network(topology, FlowProtocol(payload_bytes=1000.0))
        fabric = PacketFabric(simpy.Environment(), network)
        plays = [begin(fabric, make((0, 1, 10e3))) for _ in range(2)]
        fabric.env.run()
        found[make] = [play.duration_s for play in plays]
    assert found[in_order][1] - found[in_order][0] == pytest.approx(10e-3, abs=1.1e-3)
    assert found[sends][1] - found[sends][0] < 3e-3


def test_a_request_is_behind_what_was_pushed_before_it(make_fabric):
    """Two parts of 6 bytes, 1 s on the way. Unasked the first is back after 6 + 6 s and twice the way, 14 s.

    Its worker hears at 8 s that it has arrived, and asks when the second has left, at 12 s: 1 s later the server
    sends it, and it is there at 12 + 1 + 6 + 1 = 20 s.
    """
    for pull_requests, expected_s in (("never", 14.0), ("after_push", 20.0)):
        fabric = make_fabric(2, latency_s=1.0)
        parts = [parameter_server_push_pull(1, 1, 6, 1.0, pull_requests=pull_requests) for _ in range(2)]
        first, _ = [begin(fabric, part) for part in parts]
        fabric.env.run()
        assert first.duration_s == within(expected_s)


def test_one_process_of_a_host_sends_for_all_its_gpus():
    """Two GPUs push 2 bytes each at the 1 byte/s of a core: each over its own connection 2 s, over one 2 and 4 s."""
    topology = star(hosts=2, host=HostSpec(gpus=2), bandwidth_bytes_per_s=100.0, latency_s=0.0)
    gpus = topology.compiled.rank_nodes
    server = topology.compiled.node_names.index("host1")
    for turns, expected_s in ((Turns.NODES, [2.0, 2.0]), (Turns.HOSTS, [2.0, 4.0])):
        network = Network(topology, FlowProtocol(connection_cap_bytes_per_s=1.0))
        fabric = FluidFabric(simpy.Environment(), network)
        push = replace(sends((0, 1, 2.0)), turns=turns)
        plays = [fabric.play(fabric.place(push, [gpu, server]), "push") for gpu in gpus[:2]]
        fabric.env.run()
        assert [play.duration_s for play in plays] == pytest.approx(expected_s, abs=1e-5)


def test_of_a_stall_it_is_said_who_waits_for_its_turn(make_fabric):
    """4 bytes on a link that fails at 1 s: 3 are left. What was ready at 0 s, and is behind them, waits since then."""
    fabric = make_fabric(2)
    for name in ("first", "second"):
        begin(fabric, replace(in_order((0, 1, 4.0)), name=name))

    fail(fabric, "switch->host1", at_s=1.0)
    with pytest.raises(StalledError) as stalled:
        fabric.env.run()
    send = "    the send of rank 0 to rank 1 (firing 1 of 1)"
    assert str(stalled.value).splitlines()[1:] == [
        "  first waits since 0 s",
        f"{send} has 3 bytes left since 1 s: switch->host1 has no capacity",
        "  second waits since 0 s",
        f"{send} waits since 0 s behind the send of rank 0 to rank 1 (firing 1 of 1) of first",
    ]


def test_each_job_has_connections_of_its_own(make_fabric):
    """2 bytes of each of two jobs share 1 byte/s: both take 4 s. As one after the other, the first would take 2 s."""
    fabric = make_fabric(2)
    push, nodes = in_order((0, 1, 2.0)), fabric.network.compiled.rank_nodes[:2]
    plays = [fabric.play(fabric.place(push, nodes, owner=job), job) for job in ("one job", "another job")]
    fabric.env.run()
    assert [play.duration_s for play in plays] == [within(4.0), within(4.0)]
