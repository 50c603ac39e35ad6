"""A connection begins with a small window, which opens once.

With s the time of a packet and R = RTT + s, W doubles from IW on. FCT = idle + n s + RTT/2, where
each round that the wire is not busy for all of adds R - W s to `idle`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from simnet.fabric.settings import EngineSettings
from simnet.fabric.startup import start_up_idle_s
from simnet.protocols.transport import Transport

from .links import GIGABIT, TCP, fabric_with, time_of

SLOW_START = Transport(reliability="sack", congestion_control="reno", initial_window_packets=10.0)
S = 1538 / (10 * GIGABIT)
LONG = (1e6 + 691 * 90) / (10 * GIGABIT) + 50e-6
"""What 1 MB takes when nothing idles [s]."""


@pytest.mark.parametrize(
    ("size", "round_trip_s", "expected_us"),
    [(1e6, 100e-6, 1120.6), (1e6, 20e-6, 869.1), (1e6, 1e-3, 6582.4), (1e5, 100e-6, 301.7)],
)
def test_the_first_message_waits_for_its_window(size, round_trip_s, expected_us):
    """10 Gbit/s, IW 10: what a packet-level sketch gives, which agrees with the formula to 0.01 us."""
    fabric = fabric_with(SLOW_START, round_trip_s=round_trip_s, **TCP)
    assert time_of(fabric, (0, 1, size)) == pytest.approx(expected_us * 1e-6, rel=0.005)


def test_a_window_that_is_open_stays_so():
    """1 MB, 691 packets: 220.48 us of idle the first time, none after that."""
    fabric = fabric_with(SLOW_START, **TCP)
    first = time_of(fabric, (0, 1, 1e6))
    second = time_of(fabric, (0, 1, 1e6))
    idle = sum(100e-6 + S - window * S for window in (10, 20, 40, 80) if window * S < 100e-6 + S)
    assert first - second == pytest.approx(idle)
    assert second == pytest.approx(LONG)


def test_a_window_goes_on_where_it_was():
    """Messages of 10 packets, each after the one before: windows of 10, 20, 40, 80 hold them all, so nothing idles."""
    fabric = fabric_with(SLOW_START, **TCP)
    assert time_of(fabric, (0, 1, 14480.0), repeat=5) == pytest.approx(50 * S + 50e-6)
    # 50 packets were acknowledged, so the window is 60: 40 packets fit, and 100 need one more round.
    assert time_of(fabric, (0, 1, 40 * 1448.0)) == pytest.approx(40 * S + 50e-6)


def test_each_message_of_a_new_connection_starts_anew():
    """`connection: per_message`: all three messages idle 1 x (R - 10 s) for their second window of 20."""
    fabric = fabric_with(SLOW_START, connection="per_message", **TCP)
    idle = 100e-6 + S - 10 * S
    assert time_of(fabric, (0, 1, 30 * 1448.0), repeat=3) == pytest.approx(3 * (30 * S + idle) + 50e-6)


def test_by_events_as_well_as_foreseen():
    times = [
        time_of(
            fabric_with(SLOW_START, hosts=3, engine=EngineSettings(recurrence=recurrence), **TCP),
            (0, 1, 1e6),
            (1, 2, 3e5),
        )
        for recurrence in (True, False)
    ]
    assert times[0] == pytest.approx(times[1], rel=1e-12)


def test_after_an_idle_timeout_it_begins_again():
    """`slow_start_after_idle`: a pause of 0.3 s is longer than the timeout of 0.2 s, one of 0.1 s is not."""
    transport = replace(SLOW_START, slow_start_after_idle=True, minimum_timeout_s=0.2)
    fabric = fabric_with(transport, **TCP)
    first = time_of(fabric, (0, 1, 1e6))
    fabric.env.run(until=fabric.env.now + 0.1)
    second = time_of(fabric, (0, 1, 1e6))
    fabric.env.run(until=fabric.env.now + 0.3)
    third = time_of(fabric, (0, 1, 1e6))
    assert third == pytest.approx(first)
    assert second < 0.85 * first


def test_a_window_limits_the_rate():
    """8 KiB each 20 us (TAS): 3.3 Gbit/s at most, less the time of the packet itself in the round trip."""
    fabric = fabric_with(
        replace(SLOW_START, initial_window_packets=math.inf, window_bytes=8192.0), round_trip_s=20e-6, **TCP
    )
    rate = 10e6 / time_of(fabric, (0, 1, 10e6))
    assert rate == pytest.approx(8192 / (20e-6 + S), rel=1e-3)
    assert rate <= 3.3 * GIGABIT


def test_without_a_first_window_nothing_waits():
    fabric = fabric_with(Transport(), **TCP)
    assert time_of(fabric, (0, 1, 1e6)) == pytest.approx(LONG)


def test_no_round_idles_where_a_window_takes_as_long_as_a_round_trip():
    assert start_up_idle_s(1000.0, 10.0, 1e-6, 10e-6) == (0.0, math.inf)
    assert start_up_idle_s(10.0, 10.0, 1e-6, 100e-6) == (0.0, 20.0)
