"""TCP on a network of packets: headers, slow start, what windows come to at a share of losses, fair shares."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simnet.protocols import resolve

from .building import GIGABIT, Traffic, fairness, into_one, lean, of_each_link, play, rates, sends, star_of

PAYLOAD, FULL = 1448, 1538
RATE = 10 * GIGABIT
FOREVER = 1e12  # a message that is not over before the test is [bytes]


@pytest.mark.parametrize("name", ["tcp-reno", "tcp"])
def test_a_flow_has_the_link_but_for_headers(name):
    """Of 1538 bytes on the wire 1448 are payload: 9.415 of 10 Gbit/s; within 0.1 %."""
    traffic = Traffic(star_of(2, 20e-6, RATE), lean(name))
    traffic.send(0, 1, FOREVER)
    (rate,) = rates(traffic, 0.01, 0.11)
    assert rate * PAYLOAD == pytest.approx(RATE * 1448 / 1538, rel=1e-3)
    assert traffic.counts.dropped.sum() == 0


def slow_start_s(packets, packet_s, round_trip_s, first_window=10):
    """Time of a message on a path that nobody else uses, with an acknowledgement for each packet.

    Rounds in which the window is not enough to keep the link busy leave it idle for the rest of a round trip; then all
    its packets, and the way there.
    """
    window, sent, idle = first_window, 0, 0.0
    while window * packet_s < round_trip_s + packet_s and sent + window < packets:
        idle += round_trip_s + packet_s - window * packet_s
        sent += window
        window *= 2
    return idle + packets * packet_s + round_trip_s / 2


@pytest.mark.parametrize(
    ("size", "round_trip_s", "expected_s"),
    [(1e6, 100e-6, 1120.6e-6), (1e6, 20e-6, 869.1e-6), (1e6, 1e-3, 6582.4e-6), (1e5, 100e-6, 301.7e-6)],
)
def test_slow_start_doubles_each_round_trip(size, round_trip_s, expected_s):
    """`slow_start_s` gives these times with a first window of 10; within 0.5 %."""
    assert slow_start_s(math.ceil(size / PAYLOAD), FULL / RATE, round_trip_s) == pytest.approx(expected_s, rel=1e-3)
    traffic = Traffic(star_of(2, round_trip_s, RATE), lean("tcp-reno", acknowledge_every=1.0))
    traffic.send(0, 1, size)
    assert traffic.finish() == pytest.approx(expected_s, rel=5e-3)


def mean_window(name, loss, round_trip_s, losses, bandwidth=100 * GIGABIT, seeds=1):
    """Packets in a round trip where each is lost with a probability, after 20 losses to begin with."""
    windows = []
    for seed in range(seeds):
        topology = star_of(2, round_trip_s, bandwidth, loss_probability=of_each_link(loss))
        traffic = Traffic(topology, lean(name, acknowledge_every=1.0, window_bytes=8e6), seed=seed + 1)
        traffic.send(0, 1, FOREVER)
        step_s = round_trip_s * max(1.0, 2 / loss**0.5 / 10)

        def run_until(packets, traffic=traffic, step_s=step_s):
            traffic.run(traffic.now_s + step_s)
            while traffic.connections["acknowledged"][0] < packets:
                traffic.run(traffic.now_s + step_s)
            return int(traffic.connections["acknowledged"][0]), traffic.now_s

        (first, since_s), (last, until_s) = run_until(20 / loss), run_until((20 + losses) / loss)
        windows.append((last - first) / (until_s - since_s) * round_trip_s)
    return float(np.mean(windows))


@pytest.mark.parametrize("loss", [3e-4, 1e-3, 3e-3, 1e-2])
def test_the_window_of_reno_at_random_loss(loss):
    """1.2247/sqrt(p) packets (M. Mathis et al., CCR 1997); within 15 %, at 300 losses or more."""
    assert mean_window("tcp-reno", loss, 100e-6, 300) == pytest.approx(1.2247 / loss**0.5, rel=0.15)


@pytest.mark.slow
def test_the_window_of_reno_at_rare_random_loss():
    """The same at one in 10,000, within 15 %: for each of 3 seeds, 150 losses and 20 before are 1.7 million packets.

    Losses at random and not in equal steps give 1.31/sqrt(p), 7 % more (T. Ott, J. Kemperman and M. Mathis 1996).
    """
    assert mean_window("tcp-reno", 1e-4, 100e-6, 150, seeds=3) == pytest.approx(1.2247 / 1e-4**0.5, rel=0.15)


@pytest.mark.parametrize("round_trip_s", [100e-6, 1e-3])
def test_the_window_of_cubic_at_random_loss_in_a_data_centre(round_trip_s):
    """1.17 times that of Reno, whatever the round trip, as it does what Reno does (RFC 9438); within 15 %."""
    assert mean_window("tcp", 1e-3, round_trip_s, 400) == pytest.approx(1.17 * 1.2247 / 1e-3**0.5, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "round_trip_s", "least", "most", "losses"), [(1e-5, 0.1, 0.95, 1.25, 40), (1e-4, 0.02, 1.0, 1.5, 150)]
)
def test_the_window_of_cubic_at_random_loss_far_away(loss, round_trip_s, least, most, losses):
    """1.054 (T / p)^0.75 packets with a round trip of T seconds, where that is more than of Reno (RFC 9438).

    Near where both have the same the window is higher, as it is the larger of both at any time.
    """
    expected = max(1.054 * (round_trip_s / loss) ** 0.75, 1.2247 / loss**0.5)
    window = mean_window("tcp", loss, round_trip_s, losses, seeds=3)
    assert least * expected <= window <= most * expected


@pytest.mark.parametrize("name", ["tcp-reno", "tcp"])
@pytest.mark.parametrize("senders", [2, 4, 8])
def test_flows_on_a_link_have_fair_shares_of_it(name, senders):
    """Each has 1/n, and all together all of the link but for headers; Jain's index is 0.95 or more.

    Links of senders are faster than the one that they share: where they are as fast, a flow alone keeps a full buffer
    full, and others lose all they send; in real networks jitter prevents that (S. Floyd and V. Jacobson 1992).
    """
    traffic = Traffic(into_one(senders, 100e-6, RATE, buffer_bytes=250e3), lean(name))
    stream = np.random.default_rng(senders)
    for sender in range(senders):
        traffic.send(sender, senders, FOREVER, at_s=stream.uniform(0, 5e-3))
    shares = rates(traffic, 0.15, 0.35)
    assert shares.sum() * PAYLOAD == pytest.approx(RATE * 1448 / 1538, rel=2e-3)
    assert fairness(shares) >= 0.95


@pytest.mark.parametrize(("name", "senders"), [("tcp-reno", 16), ("tcp", 16), ("dctcp", 40)])
def test_a_core_that_is_faster_than_its_link_changes_nothing(name, senders):
    """With packets handed over at 4.2 times the rate of its link or without limit, each leaves at the same instant.

    So none leaves before what allows it was heard; buffers overflow here, so that windows open and close.
    """
    over_s = []
    for pace in (4.2 * 10 * GIGABIT, float("inf")):
        topology = star_of(senders + 1, 50e-6, 10 * GIGABIT, buffer_bytes=262144)
        traffic = Traffic(topology, lean(name, tail_loss_probe=False))
        for sender in range(senders):
            traffic.send(sender, senders, 65536, at_s=1.37e-6 * sender, pace=pace)
        traffic.finish(1e-3)
        assert traffic.counts.dropped.sum() > 0
        over_s.append(traffic.over_s)
    assert over_s[0] == over_s[1]


def test_a_window_that_is_not_used_does_not_grow():
    """Messages of 8 packets one after the other never have the first window of 10 be what holds them back."""
    traffic = Traffic(star_of(2, 100e-6, RATE), lean("tcp-reno", slow_start_after_idle=False))
    for number in range(100):
        traffic.send(0, 1, 8 * PAYLOAD, at_s=number * 1e-3)
    traffic.finish()
    assert traffic.connections["window"].tolist() == [10.0]


def with_losses(*which, packets=10, round_trip_s=100e-6):
    """Send a first window of which the packets of some numbers are lost; return when it is over, and the traffic."""
    traffic = Traffic(star_of(2, round_trip_s, RATE), lean("tcp-reno"))
    traffic.send(0, 1, packets * PAYLOAD)
    for number in range(packets):
        traffic.lose(0, float(number in which))
        traffic.run((number + 0.99) * FULL / RATE)
    traffic.lose(0, 0.0)
    return traffic.finish(1e-3), traffic


def test_the_first_lost_packet_is_sent_again_whatever_is_under_way():
    """RFC 6675, section 5, step 4.3: of ten packets 2, 3 and 4 arrive, five are taken to be under way, the window is 5.

    The answer to the one that is sent again shows that those five are lost; without it only the timeout would help.
    """
    over_s, traffic = with_losses(0, 1, 5, 6, 7, 8, 9)
    assert over_s < 10 * 100e-6
    assert traffic.connections["timeouts"].tolist() == [0]


def test_what_is_lost_comes_back_as_in_slow_start():
    """RFC 6937, section 3: nine of ten are lost, and sent again in windows of 1, 2, 4 and the last 2, not 5 and 4.

    The loss is known a round trip after the first window; then three round trips, and the way there.
    """
    over_s, traffic = with_losses(*range(9))
    assert traffic.connections["timeouts"].tolist() == [0]
    assert traffic.connections["retransmitted"].tolist() == [9]
    rounds = (over_s - 10 * FULL / RATE) / (100e-6 + FULL / RATE)
    assert rounds == pytest.approx(1 + 3 + 0.5, abs=0.15)


@pytest.mark.parametrize("packets", [False, True], ids=["flow", "packet"])
def test_a_small_message_and_its_answer_over_dpdk(packets):
    """64 B there and back between two hosts: 1.6 to 2.6 us; a switch of 250 ns each way adds 0.5 us, within 1 %."""
    protocol = resolve("dpdk", {"connection_setup_s": 0.0, "connection_setup_round_trips": 0.0})
    round_trips_s = []
    for between_s in (0.0, 0.5e-6):
        duration, _ = play(sends(2, (0, 1, 64)), topology=star_of(2, between_s), protocol=protocol, packets=packets)
        round_trips_s.append(2 * duration)
    assert 1.6e-6 <= round_trips_s[0] <= 2.6e-6
    assert round_trips_s[1] - round_trips_s[0] == pytest.approx(0.5e-6, rel=0.01)
