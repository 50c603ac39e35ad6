"""Transports that put up with loss, on a network of packets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simnet.traffic import Partition, ScheduleBuilder

from .building import HEADER, PAYLOAD, B, Traffic, behaving, play, star_of

FULL = PAYLOAD + HEADER
PACKET_S = FULL / B
ROUND_TRIP_S = 4e-6


def best_effort(**behaviour):
    chosen = {"reliability": "best_effort", "link_flow_control": "none", "quiet_s": 100e-6, "loss_budget": 0.1}
    return behaving(**(chosen | behaviour))


def message(protocol, packets, loss, seed=1):
    """Send one; return how long it took, what of it did not come, and the traffic."""
    traffic = Traffic(star_of(2, ROUND_TRIP_S), protocol, seed=seed)
    traffic.lose(0, loss)
    traffic.send(0, 1, packets * PAYLOAD)
    over_s = traffic.finish(1e-2)
    return over_s, traffic.lost_bytes[0] / (packets * PAYLOAD), traffic


def test_what_is_lost_within_the_budget_costs_no_time():
    """At 1 % of loss 0.99 arrives, within 0.002, nothing is sent again, and it takes as long as without loss."""
    packets = 100_000
    over_s, lost, traffic = message(best_effort(), packets, 0.01)
    assert lost == pytest.approx(0.01, abs=0.002)
    assert lost * packets == pytest.approx(traffic.counts.lost.sum(), abs=1e-6)
    assert traffic.connections["retransmitted"][0] == 0
    assert over_s == pytest.approx((packets + 1) * PACKET_S + ROUND_TRIP_S / 2, rel=1e-6)


def test_the_loss_of_the_last_packet_costs_a_while_of_quiet():
    """Nothing says that nothing more comes: the message is over when nothing has come for 100 us."""
    packets = 1000
    traffic = Traffic(star_of(2, ROUND_TRIP_S), best_effort())
    traffic.send(0, 1, packets * PAYLOAD)
    traffic.run((packets - 1.5) * PACKET_S)
    traffic.lose(0, 1.0)
    over_s = traffic.finish(1e-3)
    assert over_s == pytest.approx(packets * PACKET_S + ROUND_TRIP_S / 2 + 100e-6, abs=2 * PACKET_S)
    assert traffic.lost_bytes[0] == PAYLOAD


def test_a_deadline_cuts_off_what_comes_later():
    """At 0.9 of the time that all of it takes, 0.90 has come, within 0.01, and it is over at that very instant."""
    packets = 10_000
    deadline_s = 0.9 * packets * PACKET_S
    over_s, lost, traffic = message(best_effort(deadline_s=deadline_s, loss_budget=0.0), packets, 0.0)
    assert over_s == pytest.approx(deadline_s, rel=1e-9)
    assert 1 - lost == pytest.approx(0.90, abs=0.01)
    assert traffic.connections["retransmitted"][0] == 0


def test_a_play_goes_on_when_a_message_is_over_before_all_of_it_has_left():
    """At its deadline, 0.9 of the time that it takes; then the next is sent, and again 0.10 is missing, within 0.01."""
    packets = 10_000
    deadline_s = 0.9 * packets * PACKET_S
    build = ScheduleBuilder("in turn", 2, Partition(1, 1.0))
    first, second = (build.send(0, 1, width=0, fixed_bytes=packets * PAYLOAD) for _ in range(2))
    build.depend(first, second)
    duration, fabric = play(build.schedule(), protocol=best_effort(deadline_s=deadline_s, loss_budget=0.0))
    assert duration == pytest.approx(2 * deadline_s, rel=1e-3)
    assert fabric.connection_counts()["lost_bytes"].sum() / (2 * packets * PAYLOAD) == pytest.approx(0.1, abs=0.01)


def test_what_exceeds_the_budget_is_sent_again():
    """With a budget of 10 %: nothing at 5 % of loss; at 20 % what is missing of 90 %, and of that again 20 %.

    So 0.10 / (1 - 0.2) = 12.5 % of the message is sent again, and 10 % stays missing.
    """
    packets = 20_000
    _, lost, traffic = message(best_effort(), packets, 0.05)
    assert traffic.connections["retransmitted"][0] == 0
    assert lost == pytest.approx(0.05, abs=0.005)
    _, lost, traffic = message(best_effort(), packets, 0.20)
    assert traffic.connections["retransmitted"][0] == pytest.approx(0.125 * packets, rel=0.05)
    assert 0.099 <= lost <= 0.10


def test_a_stage_with_deadlines_is_shorter_than_its_slowest_flow():
    """Eight flows, each as slow as a lognormal number says, p99/p50 = 3: the slowest of them makes the stage.

    With a deadline at the 95th percentile no stage takes longer than that, so that the mean stage is shorter than the
    mean of the slowest, and less than 1 % of the bytes are missing: the mean of (1 - deadline/time)+.
    """
    stream = np.random.default_rng(0)
    packets, flows, stages = 300, 8, 40
    spread = math.log(3) / 2.326
    slower = np.maximum(3 * np.exp(stream.normal(0, spread, (stages, flows))), 1.0)
    deadline_s = 3 * packets * PACKET_S * math.exp(1.645 * spread)

    def play(protocol):
        took_s, lost = [], []
        for stage in range(stages):
            traffic = Traffic(star_of(2 * flows, ROUND_TRIP_S), protocol)
            for flow in range(flows):
                pace = B * PAYLOAD / FULL / slower[stage, flow]
                traffic.send(flow, flows + flow, packets * PAYLOAD, pace=pace)
            took_s.append(traffic.finish(1e-3))
            lost.append(sum(traffic.lost_bytes) / (flows * packets * PAYLOAD))
        return np.mean(took_s), np.mean(lost)

    slowest_s, nothing = play(best_effort(loss_budget=0.0))
    mean_s, lost = play(best_effort(loss_budget=0.0, deadline_s=deadline_s))
    assert nothing == 0.0
    assert mean_s < 0.95 * slowest_s
    assert lost == pytest.approx(np.mean(np.maximum(1 - deadline_s / (slower * packets * PACKET_S), 0)), rel=0.15)
    assert 0 < lost < 0.01


@pytest.mark.parametrize("deadline", [math.inf, 0.5])
def test_what_is_critical_comes_in_any_case(deadline):
    """The first 20 % of a message, at 30 % of loss: sent again until all of it is there; of the rest 30 % is missing.

    So 0.8 x 0.3 = 24 % is lost. A deadline after half of the time is waited beyond, as critical packets are missing.
    """
    packets = 10_000
    behaviour = {"critical_share": 0.2, "loss_budget": 0.5, "deadline_s": deadline * packets * PACKET_S}
    _, lost, traffic = message(best_effort(**behaviour), packets, 0.30)
    assert lost == pytest.approx(0.8 * 0.3, abs=0.02)
    resent = traffic.connections["retransmitted"][0]
    # Each loss is made good with probability 0.7 at a time.
    assert resent == pytest.approx(0.2 * packets * 0.3 / 0.7, rel=0.15)
