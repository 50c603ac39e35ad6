"""A sender whose packets nobody answers gives up as the standard of its transport has it."""

from __future__ import annotations

import pytest

from simnet.errors import StalledError
from simnet.topology import star

from .building import GIGABIT, Traffic, lean, play, sends, star_of

ROUND_TRIP_S = 8e-6


def alone(name, loss=1.0, **overrides):
    """A message of a host whose link loses that share of packets."""
    traffic = Traffic(star_of(2, ROUND_TRIP_S), lean(name, **overrides))
    traffic.send(0, 1, 1e6)
    if loss > 0.0:
        traffic.lose(0, loss)
    return traffic


@pytest.mark.parametrize(
    ("name", "retries", "timeout_s"),
    [("roce-lossy", 7, 4.096e-6 * 2**14), ("infiniband", 7, 4.096e-6 * 2**14), ("irn", 7, 320e-6)],
)
def test_adapters_send_again_7_times(name, retries, timeout_s):
    """They wait as long each time, so that it is over after 8 timeouts (retry_cnt of InfiniBand)."""
    traffic = alone(name)
    with pytest.raises(StalledError, match=f"from host0 to host1 since 0 s: sent again {retries} times"):
        traffic.finish()
    assert traffic.now_s == pytest.approx((retries + 1) * timeout_s, rel=0.01)


def test_adaptive_retransmission_is_one_of_7_times():
    """It waits an eighth of the timeout, a quarter and a half, and then 7 timeouts: 7 7/8."""
    timeout_s = 4.096e-6 * 2**14
    traffic = alone("roce-lossy", adaptive_timeout_s=timeout_s / 8)
    with pytest.raises(StalledError, match="sent again 7 times"):
        traffic.finish()
    assert traffic.now_s == pytest.approx(7.875 * timeout_s, rel=0.01)
    assert traffic.connections["timeouts"][0] == 10


def test_tcp_gives_up_after_15_minutes():
    """15 times, each after twice as long up to 2 min: 0.2 (2^10 - 1) + 6 120 = 924.6 s (Linux tcp_retries2)."""
    traffic = alone("tcp", initial_timeout_s=0.2)
    with pytest.raises(StalledError, match="sent again 15 times"):
        traffic.finish()
    assert traffic.now_s == pytest.approx(924.6, rel=1e-3)


def test_what_is_acknowledged_begins_the_count_anew():
    """At a loss of 30 % there are many timeouts, but not 16 in a row: 0.3^16."""
    traffic = alone("roce-lossy", loss=0.3, minimum_timeout_s=1e-4, retries=15.0)
    traffic.finish()
    assert traffic.connections["timeouts"].sum() > 15


def test_the_run_says_which_message_it_was():
    cluster = star(hosts=2, bandwidth_bytes_per_s=GIGABIT, latency_s=1e-6, loss_probability=0.999)
    with pytest.raises(StalledError, match=r"^test does not get through from host0 to host1"):
        play(sends(2, (0, 1, 1e6)), topology=cluster, protocol=lean("roce-lossy"))


def test_a_link_that_is_down_is_waited_for():
    """Two seconds are 30 timeouts, of which none counts when it is up again; a run is there to show what that costs."""
    traffic = alone("roce-lossy", loss=0.0)
    resource = traffic.wire.ports.resources[0].item()
    traffic.wire.set_capacity(resource, 0.0)
    traffic.run(2.0)
    traffic.wire.set_capacity(resource, 100 * GIGABIT)
    assert traffic.finish() == pytest.approx(2.0, abs=0.07)


def test_without_protocol_there_are_no_timeouts():
    """4 senders at 10 Mbit/s: what waits needs longer than the 67 ms of an adapter; ideal sends nothing twice."""
    for name, is_sent_again in (("ideal", False), ("roce", True)):
        traffic = Traffic(star_of(5, ROUND_TRIP_S, 0.01 * GIGABIT), lean(name, retries=float("inf")))
        for sender in range(4):
            traffic.send(sender, 4, 4e5)
        traffic.finish()
        assert (traffic.connections["timeouts"].sum() > 0) == is_sent_again
        assert (traffic.connections["retransmitted"].sum() > 0) == is_sent_again
        assert traffic.counts.dropped.sum() == 0
