"""Many senders to one receiver at once, again and again (TCP incast; A. Phanishayee et al., FAST 2008)."""

from __future__ import annotations

import numpy as np
import pytest

from .building import GIGABIT, Traffic, lean, star_of

RATE, ROUND_TRIP_S = 10 * GIGABIT, 50e-6
EACH, FULL = 65536, 1538
SPREAD_S = 20e-6  # within which senders begin; with no spread at all their packets take turns, and none loses all


class Incast:
    """Rounds of so many bytes from each, one after the other, on connections that know their round trip.

    What is compared is the median of them, as in a few one sender waits a second time; or, for `mean_goodput`, all that
    was sent in all of them.
    """

    def __init__(self, senders, buffer_bytes, timeout_s=0.2, name="tcp", rounds=5, each=EACH, seed=0, **behaviour):
        behaviour = {"initial_timeout_s": timeout_s, "minimum_timeout_s": timeout_s, **behaviour}
        topology = star_of(senders + 1, ROUND_TRIP_S, RATE, buffer_bytes=buffer_bytes)
        traffic = Traffic(topology, lean(name, **behaviour), seed=seed)
        for sender in range(senders):
            traffic.send(sender, senders, 1448, at_s=1e-4 * sender)
        traffic.finish(1e-3)
        stream = np.random.default_rng(seed)
        took_s = []
        for _ in range(rounds):
            begun_s = traffic.now_s
            for sender in range(senders):
                traffic.send(sender, senders, each, at_s=begun_s + stream.uniform(0, SPREAD_S))
            took_s.append(traffic.finish(1e-4) - begun_s)
        self.round_s = float(np.median(took_s))
        self.goodput = senders * each / self.round_s
        self.mean_goodput = senders * each / float(np.mean(took_s))
        self.timeouts = int(traffic.connections["timeouts"].sum())
        self.dropped = int(traffic.counts.dropped.sum())


def round_s(senders):
    """What the link needs for a round."""
    return senders * EACH * FULL / 1448 / RATE


@pytest.mark.parametrize(
    ("senders", "buffer_bytes", "timeout_s", "tolerance"),
    [
        (16, 64e3, 0.2, 0.05),
        (16, 64e3, 0.005, 0.15),
        (32, 64e3, 0.2, 0.05),
        (32, 64e3, 0.005, 0.15),
        (64, 256e3, 0.2, 0.05),
    ],
)
def test_goodput_collapses_where_first_windows_are_twice_the_buffer(senders, buffer_bytes, timeout_s, tolerance):
    """Some flow loses all that it sent, and all wait for its timeout: n S / (n S / (eta C) + timeout).

    So 16 senders have 0.04 Gbit/s at 200 ms, and 1.4 at 5 ms. A round can be faster than that, as the link works while
    the timeout runs, but by no more than the time it works.
    """
    assert senders * 10 * FULL > 2 * buffer_bytes
    incast = Incast(senders, buffer_bytes, timeout_s, tail_loss_probe=False)
    formula_s = round_s(senders) + timeout_s + ROUND_TRIP_S
    assert incast.round_s == pytest.approx(formula_s, rel=tolerance)
    assert timeout_s < incast.round_s
    assert incast.timeouts >= 5


def test_goodput_of_16_senders_is_next_to_nothing():
    """Less than 0.06 Gbit/s at a timeout of 200 ms, and 1.2 to 1.7 at 5 ms, with a buffer of 64 kB at 10 Gbit/s."""
    assert Incast(16, 64e3, 0.2, tail_loss_probe=False).goodput < 0.06 * GIGABIT
    assert 1.2 * GIGABIT < Incast(16, 64e3, 0.005, tail_loss_probe=False).goodput < 1.7 * GIGABIT


def test_a_probe_of_the_tail_takes_the_place_of_the_timeout():
    """Two round trips and 2 ms after it sent last, a flow that lost all sends its last packet again (RFC 8985).

    The answer shows what is lost. So a round takes as long as with a timeout of 2 ms, not of 200.
    """
    incast = Incast(16, 64e3, 0.2)
    assert 2e-3 < incast.round_s < 2e-3 + round_s(16) + 8 * ROUND_TRIP_S
    assert incast.timeouts == 0


def test_a_short_timeout_costs_less_than_the_sum():
    """User-space TCP waits 1 ms: a round takes more than that, and less than that and what the link needs, 0.89 ms."""
    incast = Incast(16, 64e3, 1e-3, "dpdk")
    assert 1e-3 < incast.round_s < 1e-3 + round_s(16) + 2 * ROUND_TRIP_S
    assert incast.timeouts >= 5


@pytest.mark.parametrize("name", ["tcp", "tcp-reno"])
def test_a_buffer_for_all_first_windows_is_enough(name):
    """16 senders and 256 kB: no timeout, and more than 8.5 of 10 Gbit/s, over 21 rounds of 8 seeds.

    The first round has 9.0. Later ones begin with the windows that those before have left, from 10 packets to 20: who
    has the least comes last, and its window does not fill the link. So they have 8.0 to 9.1, and no timeout either.
    """
    several = [Incast(16, 256e3, name=name, rounds=21, seed=seed) for seed in range(8)]
    assert sum(incast.timeouts for incast in several) == 0
    assert np.mean([incast.mean_goodput for incast in several]) > 8.5 * GIGABIT


def test_dctcp_keeps_64_senders_in_a_buffer_of_1_megabyte():
    """Their first windows fill it to the brim, from then on they have 2 packets each: no loss, more than 9 Gbit/s."""
    mark_s = 20 * FULL / RATE
    incast = Incast(64, 1e6, name="dctcp", mark_from_s=mark_s, mark_all_s=mark_s)
    assert incast.dropped == incast.timeouts == 0
    assert incast.goodput > 9.0 * GIGABIT


@pytest.mark.parametrize("senders", [2, 8, 64])
def test_pauses_prevent_the_collapse(senders):
    """Nothing is dropped, and all have more than 0.92 of the link together, start-up of 1 % included."""
    incast = Incast(senders, 64e3, link_flow_control="pause", rounds=2, each=8e6 / senders)
    assert incast.dropped == incast.timeouts == 0
    assert incast.goodput > 0.92 * RATE
