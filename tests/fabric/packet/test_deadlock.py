"""Switches in a ring whose buffers are full of what each other has paused: found, and named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simnet.errors import StalledError
from simnet.fabric.packet.settings import PacketSettings
from simnet.protocols import resolve
from simnet.topology.building import Cable, TopologyBuilder

from .building import play, sends

SWITCHES = 5


def ring_of_switches():
    build = TopologyBuilder("ring")
    hosts = [build.node(f"host{number}", "host") for number in range(SWITCHES)]
    switches = [build.node(f"switch{number}", "switch") for number in range(SWITCHES)]
    cable = Cable(12.5e9, 1e-6)
    for host, switch in zip(hosts, switches, strict=True):
        build.cable(host, switch, cable)
    for number, switch in enumerate(switches):
        build.cable(switch, switches[(number + 1) % SWITCHES], cable)
    return build.topology()


@pytest.mark.parametrize("name", ["roce", "infiniband"])
def test_a_circle_of_full_buffers_is_named(name):
    """Each host sends to the one two switches on: every link between switches has twice what it can carry.

    So every switch holds back the one before it, round the ring, and with nobody to make room it stays like that.
    """
    schedule = sends(SWITCHES, *((host, (host + 2) % SWITCHES, 3e6) for host in range(SWITCHES)))
    settings = PacketSettings(pause_at_bytes=20e3, resume_at_bytes=12e3, credit_bytes=20e3)
    protocol = replace(resolve(name), connection_setup_s=0.0)
    with pytest.raises(StalledError, match=r"buffers are full in a circle: .*switch\d->switch\d, which waits for"):
        play(schedule, topology=ring_of_switches(), protocol=protocol, settings=settings)


def test_the_same_ring_with_less_to_carry_is_not_taken_for_one():
    """One switch on: each link carries one message, and nobody waits."""
    schedule = sends(SWITCHES, *((host, (host + 1) % SWITCHES, 3e6) for host in range(SWITCHES)))
    protocol = replace(resolve("roce"), connection_setup_s=0.0)
    duration, fabric = play(schedule, topology=ring_of_switches(), protocol=protocol)
    assert duration < 1.1 * 3e6 / 12.5e9
    assert fabric.queue_counts().paused_s.sum() == 0
