"""InfiniBand on a network of packets: credits keep it lossless, and their round trip limits what a link carries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simnet.fabric.packet.settings import DEFAULT_PACKETS
from simnet.protocols import resolve
from simnet.topology import star

from .building import GIGABIT, Traffic, fairness, lean, play, rates, sends, star_of

RATE = 100 * GIGABIT
FULL = 4096 + 26


@pytest.mark.parametrize("mtu_bytes", [2048, 4096])
def test_a_flow_has_the_link_but_for_headers(mtu_bytes):
    """mtu / (mtu + 26), 0.9875 and 0.9937; within 0.1 %."""
    traffic = Traffic(star_of(2, 4e-6, RATE), lean("infiniband", mtu_bytes=float(mtu_bytes)))
    traffic.send(0, 1, 1e12)
    (rate,) = rates(traffic, 0.005, 0.015)
    assert rate * mtu_bytes == pytest.approx(mtu_bytes / (mtu_bytes + 26) * RATE, rel=1e-3)


@pytest.mark.parametrize("credit_bytes", [16384, 32768, 65536])
def test_credits_limit_a_long_link(credit_bytes):
    """As many whole packets as there is room for in each round trip of credits, or the link's own rate.

    A round trip of credits is the way there, a packet, the way back and 50 ns: 4.18 us on a link of 1.9 us. With 16 KiB
    that is 3 packets, 23.5 Gbit/s of payload; within a packet of 16 KiB / 4 us, 32.8.
    """
    latency_s = 1.9e-6
    traffic = Traffic(
        star(hosts=2, bandwidth_bytes_per_s=RATE, latency_s=latency_s),
        lean("infiniband"),
        replace(DEFAULT_PACKETS, credit_bytes=float(credit_bytes)),
    )
    traffic.send(0, 1, 1e12)
    (rate,) = rates(traffic, 0.001, 0.011)
    round_trip_s = 2 * latency_s + 50e-9 + FULL / RATE
    expected = min(credit_bytes // FULL / round_trip_s, RATE / FULL)
    assert rate == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("senders", [2, 8, 32])
def test_all_to_one_lose_nothing_and_share_alike(senders):
    """Nothing is dropped or sent again; no input holds more than the credit of its link; shares are 1/n within 2 %."""
    traffic = Traffic(star_of(senders + 1, 4e-6, RATE), lean("infiniband"))
    for sender in range(senders):
        traffic.send(sender, senders, 1e12)
    traffic.run(0.001)
    before = traffic.connections["expected"].copy()
    traffic.run(0.006)
    shares = traffic.connections["expected"] - before
    assert traffic.counts.dropped.sum() == 0
    assert (traffic.connections["retransmitted"] == 0).all()
    assert (traffic.connections["timeouts"] == 0).all()
    assert traffic.counts.highest_bytes.max() <= senders * DEFAULT_PACKETS.credit_bytes
    assert shares == pytest.approx(np.full(senders, shares.mean()), rel=0.02)
    assert fairness(shares) > 0.999
    assert shares.sum() * FULL / 0.005 == pytest.approx(RATE, rel=1e-3)


@pytest.mark.parametrize(("size", "measured_s"), [(32, 0.82e-6), (1024, 1.58e-6), (4096, 2.26e-6), (32768, 4.57e-6)])
def test_the_latency_of_small_messages(size, measured_s):
    """As ib_send_lat shows between two hosts (D. Potter's thesis, mtu_performance.tex), within 15 %."""
    protocol = resolve("infiniband", {"connection_setup_s": 0.0, "connection_setup_round_trips": 0.0})
    topology = star_of(2, 0.0, RATE, kind="infiniband")
    assert play(sends(2, (0, 1, size)), topology=topology, protocol=protocol)[0] == pytest.approx(measured_s, rel=0.15)
