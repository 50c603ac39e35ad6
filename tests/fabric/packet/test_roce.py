"""RoCE on a network of packets: pauses keep it lossless and make victims; DCQCN."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from simnet.fabric.packet.settings import DEFAULT_PACKETS
from simnet.topology import star
from simnet.topology.building import PLAIN_HOST, Cable, TopologyBuilder

from .building import DELAY, GIGABIT, HEADER, PAYLOAD, B, Traffic, fairness, lean, play, rates, sends, star_of

FULL = PAYLOAD + HEADER
FOREVER = 1e12


@pytest.mark.parametrize("mtu_bytes", [1024, 4096])
def test_a_flow_has_the_link_but_for_headers(mtu_bytes):
    """mtu / (mtu + 82), 0.9259 and 0.9804; within 0.1 %."""
    traffic = Traffic(star_of(2, 4e-6), lean("roce", mtu_bytes=float(mtu_bytes)))
    traffic.send(0, 1, FOREVER)
    (rate,) = rates(traffic, 0.002, 0.012)
    assert rate * mtu_bytes == pytest.approx(mtu_bytes / (mtu_bytes + 82) * B, rel=1e-3)


@pytest.mark.parametrize("senders", [2, 8, 32, 64])
def test_pauses_keep_what_is_lossless_from_being_dropped(senders):
    """However many send at once; no ingress holds more than what it pauses at and what may still come."""
    schedule = sends(senders + 1, *((sender, senders, 3e5) for sender in range(senders)))
    _, fabric = play(schedule)
    counts = fabric.queue_counts()
    assert counts.dropped.sum() == counts.lost.sum() == 0
    headroom = 2 * DELAY * B + 3 * FULL + 2 * 84
    assert counts.highest_bytes.max() <= senders * (DEFAULT_PACKETS.pause_at_bytes + headroom) + FULL


def test_acknowledgements_have_room_beside_what_is_held_back():
    """16 hosts send and the 17th sends back: with a buffer larger than that of a port nothing is dropped."""
    messages = [(sender, 16, 1e6) for sender in range(16)] + [(16, sender, 1e6) for sender in range(16)]
    _, fabric = play(sends(17, *messages), settings=replace(DEFAULT_PACKETS, buffer_bytes=256 * 1024.0))
    counts = fabric.queue_counts()
    assert counts.highest_bytes.max() > 256 * 1024
    assert counts.dropped.sum() == 0


def test_half_of_the_headroom_is_not_enough():
    """After a pause comes what is on a cable of 100 m there and back: with room for half, some is lost."""
    latency_s = 0.5e-6
    needed = 2 * latency_s * B + 3 * FULL + 2 * 84
    for headroom, drops in ((needed, False), (needed / 2, True)):
        settings = replace(DEFAULT_PACKETS, headroom_bytes=headroom)
        traffic = Traffic(star(hosts=9, bandwidth_bytes_per_s=B, latency_s=latency_s), lean("roce"), settings)
        for sender in range(8):
            traffic.send(sender, 8, FOREVER)
        traffic.run(1e-3)
        assert (traffic.counts.dropped.sum() > 0) == drops


class Victim:
    """Two switches; hot flows from both to a host of the second, and a victim from the first to another host there.

    Rates are shares of a link, in packets.
    """

    def __init__(self, remote, local, data_class=1, victim_class=1):
        hosts = remote + local + 3
        build = TopologyBuilder("victim")
        nics = [nic for number in range(hosts) for nic in build.host(f"host{number}", PLAIN_HOST)]
        switches = [build.node(f"switch{number}", "switch") for number in range(2)]
        cable = Cable(B, 0.5e-6, "ethernet", None, None)
        for number, nic in enumerate(nics):
            build.cable(nic, switches[0] if number <= remote else switches[1], cable)
        build.cable(*switches, cable)
        settings = replace(DEFAULT_PACKETS, data_class=data_class)
        traffic = Traffic(build.topology(), lean("roce"), settings)
        hot, other = hosts - 2, hosts - 1
        # A connection takes its class with it from its first message.
        traffic.send(0, other, 1.0)
        traffic.finish(1e-5)
        traffic.wire.tables.connections["traffic_class"][0] = victim_class
        traffic.send(0, other, FOREVER, at_s=traffic.now_s)
        for sender in range(1, remote + local + 1):
            traffic.send(sender, hot, FOREVER, at_s=traffic.now_s)
        shares = rates(traffic, 0.002, 0.012) * FULL / B
        self.victim = shares[0]
        self.remote, self.local = shares[1 : remote + 1], shares[remote + 1 :]
        self.dropped = traffic.counts.dropped.sum()


@pytest.mark.parametrize(("remote", "local"), [(3, 3), (4, 1)])
def test_a_victim_has_the_share_of_those_that_it_is_behind(remote, local):
    """Each link into the hot switch has 1/(local + 1) of the hot host's; a paused trunk serves its flows in turn.

    So locals have that each, and the others 1/remote of it, the victim like them, though nobody else uses its host's
    link: max-min shares would leave it 1/2 or more. Within 15 %.
    """
    shares = Victim(remote, local)
    each = 1 / (local + 1)
    assert shares.local == pytest.approx(np.full(local, each), rel=0.15)
    assert shares.remote == pytest.approx(np.full(remote, each / remote), rel=0.15)
    assert shares.victim == pytest.approx(each / remote, rel=0.15)
    assert shares.dropped == 0


def test_a_victim_of_another_class_is_none():
    """It has all of the trunk if its class goes first, and what hot flows leave of it if it goes last: 1 - 1/4."""
    assert Victim(3, 3, data_class=2, victim_class=1).victim == pytest.approx(1.0, rel=0.02)
    assert Victim(3, 3, data_class=1, victim_class=2).victim == pytest.approx(0.75, rel=0.05)


class Dcqcn:
    """DCQCN with the numbers of its paper, at 40 Gbit/s with packets of 1000 bytes."""

    rate, packet = 40 * GIGABIT, 1000.0
    mark_from, mark_all, most_marked = 5e3, 200e3, 0.01

    def __init__(self, flows, from_s, until_s):
        protocol = lean(
            "roce",
            payload_bytes=self.packet - HEADER,
            congestion_control="dcqcn",
            mark_from_s=self.mark_from / self.rate,
            mark_all_s=self.mark_all / self.rate,
            most_marked=self.most_marked,
        )
        traffic = Traffic(star_of(flows + 1, 8e-6, self.rate), protocol, seed=1)
        for sender in range(flows):
            traffic.send(sender, flows, FOREVER)
        traffic.run(from_s)
        link = traffic.port(None, flows)
        held = traffic.counts.mean_bytes[link] * traffic.now_s
        shares = rates(traffic, from_s, until_s)
        self.mean_queue = (traffic.counts.mean_bytes[link] * until_s - held) / (until_s - from_s)
        self.fairness = fairness(shares)
        self.used = shares.sum() * self.packet / self.rate

    def steady_queue(self, flows):
        """Where marks and recovery balance (Y. Zhu et al., CoNEXT 2016): rates in packets/s, bytes in packets.

        p = cbrt(R_AI N^2 / (tau' C^2) (1/B + N/(T C))^2).
        """
        rate, increase = self.rate / self.packet, 40e6 / 8 / self.packet
        period_s = timer_s = 55e-6
        counter = 10e6 / self.packet
        marked = math.cbrt(increase * flows**2 / (period_s * rate**2) * (1 / counter + flows / (timer_s * rate)) ** 2)
        return self.mark_from + (self.mark_all - self.mark_from) * marked / self.most_marked


def test_two_flows_under_dcqcn():
    """The queue is in the mean where the fluid model has it, 23 kB, within 25 %; fair, and the link is busy."""
    measured = Dcqcn(2, 0.1, 0.3)
    assert measured.steady_queue(2) == pytest.approx(23e3, rel=0.01)
    assert measured.mean_queue == pytest.approx(measured.steady_queue(2), rel=0.25)
    assert measured.fairness >= 0.99
    assert measured.used >= 0.99


def test_twenty_flows_under_dcqcn():
    """Beyond what the fluid model covers: more than 0.93 of the link, and fair shares."""
    measured = Dcqcn(20, 0.1, 0.3)
    assert measured.used >= 0.93
    assert measured.fairness >= 0.99
