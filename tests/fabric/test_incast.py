"""TCP incast at flow level: N senders of 64 KiB each, a port of 10 Gbit/s with a queue of B bytes, RTT 50 us.

Below the onset everything takes N SRU / C; above it a timeout T0 = RTO + srtt is added, srtt with a full
queue. The figures are of a simulation of packets.
"""

from __future__ import annotations

import pytest

from simnet.protocols.transport import Transport

from .building import begin, sends
from .links import GIGABIT, KIBIBYTE, TCP, fabric_with, time_of

SRU = 64 * KIBIBYTE
ROUND_TRIP_S = 50e-6


def goodput(
    senders: int, buffer_kib: float, timeout_s: float, control: str = "reno", size: float = SRU, **transport
) -> tuple[float, int]:
    """Gigabits of data a second, from the first byte until the last is there, and timeouts."""
    behaviour = Transport(
        reliability="sack",
        congestion_control=control,
        **({"link_flow_control": "none", "initial_window_packets": 10.0, "minimum_timeout_s": timeout_s} | transport),
    )
    fabric = fabric_with(
        behaviour,
        hosts=senders + 1,
        round_trip_s=ROUND_TRIP_S,
        buffer_bytes=buffer_kib * KIBIBYTE,
        connection_setup_round_trips=1.0,
        **TCP,
    )
    passed = time_of(fabric, *[(sender, senders, size) for sender in range(senders)]) - ROUND_TRIP_S
    return senders * size / passed / GIGABIT, fabric.timeouts


@pytest.mark.parametrize(
    ("buffer_kib", "senders", "slow", "fast"),
    [
        (64, 8, 7.71, 7.71),
        (64, 16, 0.04, 1.44),
        (64, 32, 0.08, 2.79),
        (256, 16, 8.77, 8.77),
        (256, 32, 0.08, 2.59),
        (256, 64, 0.17, 4.91),
        (1024, 32, 8.98, 8.98),
        (1024, 64, 0.16, 3.60),
    ],
)
def test_goodput_below_and_above_the_onset(buffer_kib, senders, slow, fast):
    """With timeouts of 200 and of 5 ms; +-20 %."""
    rate, timeouts = goodput(senders, buffer_kib, 0.2)
    assert rate == pytest.approx(slow, rel=0.2)
    assert goodput(senders, buffer_kib, 0.005)[0] == pytest.approx(fast, rel=0.2)
    assert (timeouts > 0) == (slow < 1.0)


def test_the_checks_of_the_page():
    """Below 0.06 Gbit/s at 200 ms, 1.2 to 1.7 at 5 ms, above 8.5 without a timeout where the buffer is large."""
    rate, timeouts = goodput(16, 64, 0.2)
    assert rate < 0.06
    assert timeouts >= 1
    assert 1.2 <= goodput(16, 64, 0.005)[0] <= 1.7
    rate, timeouts = goodput(16, 256, 0.2)
    assert rate > 8.5
    assert timeouts == 0


def test_with_a_timeout_of_a_millisecond():
    """3.9 to 4.9 Gbit/s."""
    assert 3.9 <= goodput(16, 64, 0.001)[0] <= 4.9


def test_marks_prevent_it():
    """DCTCP, 64 senders, 1 MiB: 9.10 Gbit/s, as slow start ends with the first mark."""
    rate, timeouts = goodput(64, 1024, 0.2, "dctcp")
    assert rate == pytest.approx(9.10, rel=0.05)
    assert timeouts == 0


@pytest.mark.parametrize("senders", [2, 8, 32, 64])
def test_lossless_links_prevent_it(senders):
    """With pauses nothing is lost, and goodput is above 0.92 C; 1 MiB each."""
    rate, timeouts = goodput(
        senders, 64, 0.2, size=16 * SRU, link_flow_control="pause", initial_window_packets=float("inf")
    )
    assert timeouts == 0
    assert rate > 9.2


def for_16_senders():
    """Reno with a timeout of 200 ms, and 64 KiB of queue in front of the 17th host."""
    behaviour = Transport(
        reliability="sack",
        congestion_control="reno",
        link_flow_control="none",
        initial_window_packets=10.0,
        minimum_timeout_s=0.2,
    )
    return fabric_with(
        behaviour,
        hosts=17,
        round_trip_s=ROUND_TRIP_S,
        buffer_bytes=64 * KIBIBYTE,
        connection_setup_round_trips=1.0,
        **TCP,
    )


def test_senders_that_come_one_after_the_other_do_not_meet():
    """16 senders, 64 KiB of queue, each 55 us, the time of its own data, after the one before: no timeout."""
    fabric = for_16_senders()

    def sender(number: int):
        yield fabric.env.timeout(number * 55e-6)
        play = begin(fabric, sends((0, 1, SRU), name=f"sender {number}"), [number, 16])
        yield play.complete

    for number in range(16):
        fabric.env.process(sender(number))
    fabric.env.run()
    assert fabric.timeouts == 0
    assert fabric.env.now < 2e-3


def test_another_connection_that_is_open_is_no_part_of_it():
    """The second round of the same senders goes with windows that are open: no timeout."""
    fabric = for_16_senders()
    messages = [(sender, 16, SRU) for sender in range(16)]
    assert time_of(fabric, *messages) > 0.2
    assert time_of(fabric, *messages) < 2e-3
