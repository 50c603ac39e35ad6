"""Go-back-N on a network of packets that loses some: what a loss costs, and when there is nothing but a timeout."""

from __future__ import annotations

import math

import pytest

from .building import ACKNOWLEDGEMENT, HEADER, PAYLOAD, B, Traffic, behaving, lean, star_of

FULL = PAYLOAD + HEADER
PACKET_S = FULL / B


def round_trip_of(packets):
    """The round trip of an empty path for which so many packets leave from a loss until it has an effect.

    The next packet has to come, over two links, and the complaint has to go back; half a packet before the last of them
    has left.
    """
    return (packets - 0.5 - 3) * PACKET_S - 2 * ACKNOWLEDGEMENT / B


def efficiency(loss, outstanding, in_timeout, delivered, seed=1, **behaviour):
    """Share of the link that a flow of so many packets makes use of, which loses some on its first link alone."""
    timeout_s = in_timeout * PACKET_S
    traffic = Traffic(
        star_of(2, round_trip_of(outstanding)),
        behaving(minimum_timeout_s=timeout_s, acknowledge_every=1.0, **behaviour),
        seed=seed,
    )
    traffic.lose(0, loss)
    packets = round(delivered)
    traffic.send(0, 1, packets * PAYLOAD)
    return packets * PACKET_S / traffic.finish()


@pytest.mark.parametrize(
    ("outstanding", "loss"), [(32, 1e-3), (32, 1e-2), (32, 3e-2), (128, 3e-4), (128, 1e-3), (128, 1e-2)]
)
@pytest.mark.parametrize("in_timeout", ["two round trips", 20000])
def test_efficiency_at_random_loss(outstanding, loss, in_timeout):
    """(1 - p)/(1 + p R + p^2 T), with R packets sent in vain for a loss, and T in a timeout; within 15 %.

    There is a timeout where what is sent again is lost again, as the receiver complains but once. So many packets are
    sent that there are 200 losses, and 40 timeouts where these count.
    """
    in_timeout = 2 * outstanding if in_timeout == "two round trips" else in_timeout
    expected = (1 - loss) / (1 + loss * outstanding + loss**2 * in_timeout)
    delivered = max(200 / loss, 40 / loss**2 if loss**2 * in_timeout > 0.1 else 0)
    assert efficiency(loss, outstanding, in_timeout, delivered) == pytest.approx(expected, rel=0.15)


def test_efficiency_of_adaptive_retransmission():
    """The same with T of the first wait, as whatever comes through ends the doubling; there are 40 timeouts.

    The second wait is twice as long: p^2 T becomes p^2 (T + 2 p T), within the same 15 %.
    """
    loss = 3e-2
    expected = (1 - loss) / (1 + loss * 32 + loss**2 * 64)
    found = efficiency(loss, 32, 20000, 40 / loss**2, adaptive_timeout_s=64 * PACKET_S)
    assert found == pytest.approx(expected, rel=0.15)


def with_lost_ones(packets, windows, outstanding=32, timeout_s=1e-3, **behaviour):
    """Return when a message is over if what begins within these times is lost [s], the traffic, and complaints."""
    traffic = Traffic(
        star_of(2, round_trip_of(outstanding)),
        behaving(minimum_timeout_s=timeout_s, acknowledge_every=1.0, **behaviour),
    )
    traffic.send(0, 1, packets * PAYLOAD)
    traffic.run(0.0)
    complaints = count_complaints(traffic)
    for begin, end in windows:
        traffic.run(begin)
        traffic.lose(0, 1.0)
        traffic.run(end)
        traffic.lose(0, 0.0)
    over_s = traffic.finish(1e-3)
    return over_s, traffic, len(complaints)


def count_complaints(traffic):
    """Return a list that gets an entry for each complaint that reaches the sender of the only connection."""
    (rules,) = traffic.wire._rules.values()
    heard, complaints = rules.on_reply, []

    def on_reply(kind, number, count, now_s):
        complaints.append(number)
        return heard(kind, number, count, now_s)

    rules.on_reply = on_reply
    return complaints


def packet_window(number):
    return (number - 0.5) * PACKET_S, (number + 0.5) * PACKET_S


@pytest.mark.parametrize("number", [1, 50, 100])
def test_one_loss_costs_what_was_on_its_way(number):
    """The message is over R packets later, within one."""
    alone, _, _ = with_lost_ones(200, [])
    late, traffic, complaints = with_lost_ones(200, [packet_window(number)])
    assert traffic.counts.lost.sum() == complaints == 1
    assert (late - alone) / PACKET_S == pytest.approx(32, abs=1)
    assert traffic.connections["timeouts"][0] == 0


def test_the_loss_of_the_last_packet_costs_a_timeout():
    """Nothing comes behind it that would show that it is missing; the timer ran from the last acknowledgement on."""
    alone, _, _ = with_lost_ones(200, [])
    late, traffic, complaints = with_lost_ones(200, [packet_window(199)], timeout_s=1e-3)
    assert complaints == 0
    assert traffic.connections["timeouts"][0] == 1
    assert late - alone == pytest.approx(1e-3 + 32 * PACKET_S, abs=33 * PACKET_S)


@pytest.mark.parametrize(("adaptive_s", "wait_s"), [(math.inf, 1e-3), (1e-4, 1e-4)])
def test_the_second_loss_of_a_packet_costs_a_timeout(adaptive_s, wait_s):
    """The receiver complains once, so that nobody notices before the timer runs out; then all is sent from there on."""
    number = 50
    again = math.ceil(number + 32)
    windows = [packet_window(number), ((again - 0.5) * PACKET_S, (again + 1.0) * PACKET_S)]
    late, traffic, complaints = with_lost_ones(200, windows, adaptive_timeout_s=adaptive_s)
    assert complaints == 1
    alone, _, _ = with_lost_ones(200, [])
    assert traffic.counts.lost.sum() >= 2
    assert traffic.connections["timeouts"][0] == 1
    assert late - alone == pytest.approx(wait_s + 32 * PACKET_S, abs=33 * PACKET_S)


@pytest.mark.parametrize(
    ("control", "interval_s", "expected"), [("dcqcn", 0.0, 0), ("dcqcn_vendor", 0.0, 2), ("dcqcn_vendor", 1.0, 1)]
)
def test_complaints_and_notifications(control, interval_s, expected):
    """With the vendor's DCQCN one comes along with each complaint, but so often at most; with that of the paper none.

    Nothing is marked. The first notification cuts the rate by alpha / 2, so by half.
    """
    marks = {"mark_from_s": math.inf, "mark_all_s": math.inf}
    its = {"congestion_control": control, "notification_interval_s": interval_s, **marks}
    traffic = Traffic(star_of(2, round_trip_of(32)), lean("roce-lossy", **its))
    traffic.send(0, 1, 1000 * PAYLOAD)
    for begin, end in (packet_window(50), packet_window(200)):
        traffic.run(begin)
        traffic.lose(0, 1.0)
        traffic.run(end)
        traffic.lose(0, 0.0)
        if begin < 100 * PACKET_S:
            traffic.run(100 * PACKET_S)
            assert traffic.connections["pace"][0] == pytest.approx(B / 2 if expected else B)
    traffic.finish(1e-3)
    assert traffic.counts.lost.sum() >= 2
    assert traffic.connections["notified"][0] == expected
