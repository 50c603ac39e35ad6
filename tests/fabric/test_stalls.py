"""A run in which nothing can move any more ends and says who waits for whom, and since when."""

from __future__ import annotations

import pytest
import simpy

from simnet.errors import StalledError
from simnet.fabric.network import Network
from simnet.fabric.packet.fabric import PacketFabric
from simnet.protocols import resolve
from simnet.topology import star
from simnet.traffic import ring_all_reduce

from .building import begin, builder, fail, sends


def test_a_link_without_capacity(make_fabric):
    """10 bytes at 1 byte/s, the link fails at 4 s: 6 bytes are left, since then."""
    fabric = make_fabric(2)
    begin(fabric, sends((0, 1, 10.0), name="the transfer"))

    fail(fabric, "switch->host1", at_s=4.0)
    with pytest.raises(StalledError) as stalled:
        fabric.env.run()
    assert str(stalled.value) == (
        "nothing can move any more:\n"
        "  the transfer waits since 0 s\n"
        "    the send of rank 0 to rank 1 (firing 1 of 1) has 6 bytes left since 4 s: switch->host1 has no capacity"
    )


def test_a_cap_of_zero(make_fabric):
    fabric = make_fabric(2, start_s=100.0)
    play = begin(fabric, sends((0, 1, 10.0)))
    fabric.set_flow_cap(play, 0, 0.0)
    with pytest.raises(StalledError, match=r"rank 0 to rank 1 .* has 10 bytes left since 100 s: its cap is 0"):
        fabric.env.run()


def test_a_rank_that_never_joins(make_fabric):
    """Rank 1 of a ring does not join: rank 2 can send once, rank 0 twice, then they wait for their neighbours."""
    fabric = make_fabric(3)
    play = begin(fabric, ring_all_reduce(3, 3, 1.0), gates_open=False)
    play.open([0, 2])
    with pytest.raises(StalledError) as stalled:
        fabric.env.run()
    lines = str(stalled.value).splitlines()
    sends_of = [
        f"the send of rank {rank} to rank {(rank + 1) % 3} (firing {k} of 4)" for rank, k in enumerate((2, 0, 1))
    ]
    assert lines[1:] == [
        "  ring all-reduce waits since 0 s",
        f"    {sends_of[0]} waits since 2 s for {sends_of[2]}",
        f"    {sends_of[1]} waits since 0 s: rank 1 has not joined",
        f"    {sends_of[2]} waits since 1 s for {sends_of[1]}",
    ]


def test_the_time_of_a_wait_is_that_of_the_actors(make_fabric):
    """Also when the clock of the kernel has another base: a play at 1000 s after one at 0 s."""
    fabric = make_fabric(2)
    begin(fabric, sends((0, 1, 1.0)))
    fabric.env.run(until=1000.0)
    build = builder(2, "late")
    first = build.send(0, 1, width=0, fixed_bytes=5.0)
    build.depend(first, build.calc(1, 1.0))
    play = begin(fabric, build.schedule(), gates_open=False)
    play.open([1])
    with pytest.raises(StalledError) as stalled:
        fabric.env.run()
    assert "late waits since 1000 s" in str(stalled.value)
    assert "a calculation of rank 1 (firing 0 of 1) waits since 1000 s for the send of rank 0 to rank 1" in str(
        stalled.value
    )


def test_long_lists_are_cut_short(make_fabric):
    fabric = make_fabric(20)
    begin(fabric, ring_all_reduce(20, 20, 1.0), gates_open=False)
    with pytest.raises(StalledError) as stalled:
        fabric.env.run()
    assert len(str(stalled.value).splitlines()) == 2 + 8 + 1
    assert str(stalled.value).endswith("... and 12 more")


def test_nobody_is_stalled_who_only_waits_for_an_actor(make_fabric):
    """A link without capacity that is repaired at 5 s, a rank that joins at 9 s: 10 bytes from 9 s on."""
    fabric = make_fabric(2)
    play = begin(fabric, sends((0, 1, 10.0)), gates_open=False)
    fabric.conditions.set_capacity(0, 0.0)

    def repair():
        yield fabric.env.timeout(5.0)
        fabric.conditions.set_capacity(0, 1.0)
        yield fabric.env.timeout(4.0)
        play.open([0, 1])

    fabric.env.process(repair())
    fabric.env.run()
    assert play.duration_s == 19.0


def test_a_stalled_play_beside_one_that_goes_on(make_fabric):
    """The run goes on as long as anything does: the other play ends at 50 s."""
    fabric = make_fabric(4)
    begin(fabric, sends((0, 1, 10.0), name="stalled"))
    other = begin(fabric, sends((0, 1, 50.0), name="other"), [2, 3])
    fabric.conditions.set_capacity(fabric.network.resource_names.index("host0->switch"), 0.0)
    with pytest.raises(StalledError) as stalled:
        fabric.env.run()
    assert fabric.env.now == 50.0
    assert other.duration_s == 50.0
    assert "stalled" in str(stalled.value)
    assert "other" not in str(stalled.value)


def test_deadlines_end_what_does_not_move(make_fabric):
    """A send of 10 bytes that is given up after 3 s without capacity: complete at 3 s, 10 bytes lost."""
    fabric = make_fabric(2)
    placement = fabric.place(sends((0, 1, 10.0)), fabric.network.compiled.rank_nodes, deadline_s=3.0)
    play = fabric.play(placement, "given up")
    fabric.conditions.set_capacity(0, 0.0)
    fabric.env.run()
    assert play.duration_s == 3.0
    assert float(fabric._tables.clock["lost_bytes"][0]) == 10.0
    fabric.require_conservation()


def test_packets_that_are_not_cut_off_go_on_to_their_end():
    """Host 2 is down for good, and tried in vain. A calculation of 1 s, and a message after it, are over after 1 s."""
    topology = star(hosts=3, bandwidth_bytes_per_s=1e9, latency_s=0.0)
    fabric = PacketFabric(simpy.Environment(), Network(topology, resolve("tcp")))
    names = fabric.network.resource_names
    down = [names.index(link) for link in ("switch->host2", "host2->switch")]
    for link in down:
        fabric.conditions.set_capacity(link, 0.0)
    fabric.conditions.give_up(down)
    begin(fabric, sends((0, 1, 1e3), name="in vain"), [0, 2])
    build = builder(2, "goes on")
    build.depend(build.calc(0, 1.0), build.send(0, 1, width=0, fixed_bytes=1e3))
    goes_on = begin(fabric, build.schedule(), [0, 1])
    with pytest.raises(StalledError, match="in vain waits since 0 s") as stalled:
        fabric.env.run()
    assert "goes on" not in str(stalled.value)
    assert goes_on.duration_s == pytest.approx(1.0, rel=1e-3)
