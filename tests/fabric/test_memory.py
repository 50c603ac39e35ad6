"""What takes memory of a host shares its bandwidth, and is no message."""

from __future__ import annotations

import pytest
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.protocols import resolve
from simnet.topology import HostSpec, star

from .building import builder

BANDWIDTH = 100e9


def play(schedule, *, hosts=4, memory=BANDWIDTH, nodes=None):
    """Play a schedule on a star whose hosts have so much memory bandwidth; return the fabric and the play."""
    topology = star(hosts=hosts, host=HostSpec(memory_bandwidth_bytes_per_s=memory))
    fabric = FluidFabric(simpy.Environment(), Network(topology, resolve("ideal", {})))
    ranks = fabric.network.compiled.rank_nodes[: schedule.ranks] if nodes is None else nodes
    one = fabric.play(fabric.place(schedule, ranks), "memory")
    fabric.env.run(until=one.complete)
    fabric.require_conservation()
    return fabric, one


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_ranks_on_one_host_share_its_bandwidth(ranks):
    """P ranks that take S bytes each of one memory are over after P S/B; on hosts of their own after S/B."""
    build = builder(ranks)
    build.memory(range(ranks), 1e9)
    schedule = build.schedule()
    _, together = play(schedule, hosts=ranks, nodes=[0] * ranks)
    assert together.duration_s == pytest.approx(ranks * 1e9 / BANDWIDTH, rel=1e-12)
    _, apart = play(schedule, hosts=ranks)
    assert apart.duration_s == pytest.approx(1e9 / BANDWIDTH, rel=1e-12)


def test_it_is_no_message():
    """No message, no bytes sent, no transfer of the node; the memory has carried 3 firings of 1e6 bytes."""
    build = builder(1)
    build.memory(0, 1e6, repeat=3)
    fabric, one = play(build.schedule())
    assert one.placement.schedule.messages() == 0
    assert one.placement.schedule.bytes_sent().sum() == 0
    assert fabric.counts.messages == 0
    assert fabric.transfer_s(int(one.placement.nodes[0])) == 0.0
    carried = dict(zip(fabric.network.resource_names, fabric.carried_bytes(), strict=True))
    assert {name: size for name, size in carried.items() if size} == {"host0: memory": pytest.approx(3e6)}


def test_without_a_bandwidth_it_takes_no_time():
    build = builder(1)
    build.memory(0, 1e12)
    assert play(build.schedule(), memory=None)[1].duration_s == 0.0


def test_it_waits_and_is_waited_for():
    """A calculation of 1 ms, then 1e8 bytes of memory, then a send of 12.5 MB over 12.5 GB/s: 1 + 1 + 1 ms + path."""
    build = builder(2)
    first, second = build.calc(0, 1e-3), build.memory(0, 1e8)
    third = build.send(0, 1, width=0, fixed_bytes=12.5e6)
    build.depend(first, second)
    build.depend(second, third)
    fabric, one = play(build.schedule())
    path_s = fabric.network.route(*one.placement.nodes.tolist()).latency_s
    assert one.duration_s == pytest.approx(3e-3 + path_s, rel=1e-12)
