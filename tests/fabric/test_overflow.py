"""Where a queue would overflow without anybody to simulate it, a run says so: N senders of S bytes leave (N - 1) S."""

from __future__ import annotations

import pytest
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.protocols import resolve
from simnet.topology import star
from simnet.traffic import Partition, ScheduleBuilder

from .links import GIGABIT, KIBIBYTE

BUFFER = 512 * KIBIBYTE
INTO_4 = "switch->host4"


def overflowing(*messages, name="roce-lossy", **overrides):
    """Queues that overflow where hosts send (from, to, bytes) at once."""
    topology = star(hosts=5, bandwidth_bytes_per_s=100 * GIGABIT, latency_s=1e-6, buffer_bytes=BUFFER)
    fabric = FluidFabric(simpy.Environment(), Network(topology, resolve(name, overrides)))
    build = ScheduleBuilder("sends", 5, Partition(1, 1.0))
    for source, target, size in messages:
        build.send(source, target, width=0, fixed_bytes=size)
    fabric.play(fabric.place(build.schedule(), fabric.network.compiled.rank_nodes), "test")
    fabric.env.run()
    return fabric.overflowing


@pytest.mark.parametrize(("share", "links"), [(0.9, []), (1.1, [INTO_4])])
@pytest.mark.parametrize("senders", [2, 4])
def test_what_comes_faster_than_it_goes_has_to_find_room(senders, share, links):
    size = share * BUFFER / (senders - 1) / 1.02  # headers of 82 bytes beside 4096
    assert overflowing(*[(sender, 4, size) for sender in range(senders)]) == links


def test_what_comes_by_one_link_does_not_queue():
    """Two messages of one host share its own link; what others send elsewhere is not in their way."""
    assert overflowing((0, 4, 1e8), (0, 4, 1e8), (1, 2, 1e8)) == []


@pytest.mark.parametrize(("window", "links"), [(0.2, []), (0.5, [INTO_4])])
def test_windows_bound_what_waits(window, links):
    """Of four windows of IRN three wait, at the most, whatever the messages are."""
    messages = [(sender, 4, 1e8) for sender in range(4)]
    assert overflowing(*messages, name="irn", window_bytes=window * BUFFER) == links


@pytest.mark.parametrize("name", ["roce", "infiniband", "tcp", "ideal"])
def test_others_pause_or_are_simulated(name):
    assert overflowing(*[(sender, 4, 1e8) for sender in range(4)], name=name) == []
