"""Random loss at flow level: drawn for each message, with the means that formulas and simulation of packets give.

R is what a wire carries in a round trip, in packets of time s.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from simnet.fabric.loss import go_back_n_efficiency, loss_window, selective_repeat_efficiency
from simnet.protocols.transport import Transport

from .links import GIGABIT, ROCE, TCP, fabric_with, time_of, times_of

S = 1082 / (100 * GIGABIT)


def lossy(transport: Transport, packets: int, loss: float, seed: int = 0):
    """100 Gbit/s, packets of 1000 bytes and 82 of headers, a path that holds so many of them."""
    return fabric_with(transport, rate=100 * GIGABIT, round_trip_s=(packets - 1) * S, loss=loss, seed=seed, **ROCE)


def efficiency(transport: Transport, packets: int, loss: float, messages: int = 8, losses: float = 500.0) -> float:
    """Share of the line rate that a lone flow keeps, over seeds."""
    count = losses / loss
    spent = [time_of(lossy(transport, packets, loss, seed), (0, 1, 1000.0 * count)) for seed in range(messages)]
    return count * S / float(np.mean(spent))


@pytest.mark.parametrize("constant", [(1.2247, "reno"), (1.2247, "dctcp"), (1.40, "cubic")])
@pytest.mark.parametrize("loss", [1e-4, 3e-4, 1e-3, 3e-3, 1e-2])
def test_tcp_keeps_the_window_of_the_formula(loss, constant):
    """W = 1.2247 / sqrt p for Reno, 1.40 / sqrt p for CUBIC, +-15 %, on a fast link."""
    number, control = constant
    transport = Transport(
        reliability="sack",
        congestion_control=control,
        initial_window_packets=10.0,
        tail_loss_probe=True,
        minimum_timeout_s=0.2,
    )
    windows = []
    for seed in range(4):
        fabric = fabric_with(transport, rate=1000 * GIGABIT, loss=loss, seed=seed, **TCP)
        packets = 400 / loss
        time_of(fabric, (0, 1, 20 / loss * 1448))
        windows.append(packets * 100e-6 / time_of(fabric, (0, 1, packets * 1448)))
    assert np.mean(windows) == pytest.approx(number / math.sqrt(loss), rel=0.15)


@pytest.mark.parametrize(("loss", "round_trip_s", "low", "high"), [(1e-5, 0.1, 0.95, 1.25), (1e-4, 0.02, 1.0, 1.5)])
def test_cubic_on_long_paths(loss, round_trip_s, low, high):
    """1054 packets at 100 ms and 1e-5, -5 .. +25 %; up to half more than 122 at 20 ms and 1e-4."""
    transport = Transport(
        reliability="sack",
        congestion_control="cubic",
        initial_window_packets=10.0,
        tail_loss_probe=True,
        minimum_timeout_s=0.2,
    )
    packets, spent = 400 / loss, []
    for seed in range(4):
        fabric = fabric_with(transport, rate=1000 * GIGABIT, round_trip_s=round_trip_s, loss=loss, seed=seed, **TCP)
        time_of(fabric, (0, 1, 20 / loss * 1448))
        spent.append(time_of(fabric, (0, 1, packets * 1448)))
    window = packets * round_trip_s / np.mean(spent)
    expected = max(1.2247 / math.sqrt(loss), 1.054 * (round_trip_s / loss) ** 0.75)
    assert low <= window / expected <= high


@pytest.mark.parametrize(
    ("packets", "loss"), [(32, 1e-3), (32, 1e-2), (32, 3e-2), (128, 1e-4), (128, 1e-3), (128, 1e-2)]
)
@pytest.mark.parametrize("timeout", ["short", "long"])
def test_go_back_n_keeps_the_share_of_the_formula(packets, loss, timeout):
    """(1 - p) / (1 + p R + 2 p^2 R_to), as answers are lost as often as packets, +-15 %.

    9,000 losses at 1 %, as timeouts are rare and long.
    """
    timeout_packets = packets if timeout == "short" else 20000
    transport = Transport(minimum_timeout_s=timeout_packets * S)
    kept = efficiency(transport, packets, loss, messages=10, losses=max(9e4 * loss, 200.0) * 2)
    assert kept == pytest.approx(go_back_n_efficiency(loss, packets, timeout_packets, loss), rel=0.15)


def test_what_go_back_n_sends_again_loads_the_wire():
    """p R = 0.32: of 1 + 0.32 packets on the wire one arrives for the first time."""
    fabric = lossy(Transport(minimum_timeout_s=32 * S), 32, 1e-2)
    time_of(fabric, (0, 1, 1e8))
    link = fabric.network.resource_names.index("host0->switch")
    assert fabric.carried_bytes()[link] / (1e8 * 1.082) == pytest.approx(1.32, rel=0.1)


def test_a_single_loss_costs_a_round_trip():
    """Later by R packet times, whichever packet but the last it is."""
    ideal = 1000 * S + 31 * S / 2
    times = times_of(lossy(Transport(minimum_timeout_s=20000 * S), 32, 1e-3).network, 1e6, 400)
    found = {round((time_s - ideal) / S) for time_s in times}
    assert {0, 32, 64} <= found
    assert all(extra % 32 == 0 or extra >= 20000 for extra in found)


def test_the_last_packet_costs_a_timeout():
    """A message of one packet waits for its timeout once in 1 / p, which is its 99th percentile."""
    fabric = lossy(Transport(minimum_timeout_s=67e-3), 32, 0.02)
    times = np.array(times_of(fabric.network, 1000.0, 3000))
    late = times > 60e-3
    assert late.mean() == pytest.approx(0.02, rel=0.25)
    assert np.percentile(times, 99) == pytest.approx(67e-3, rel=0.01)
    assert np.median(times) == pytest.approx(S + 31 * S / 2)


@pytest.mark.parametrize("probe", [False, True])
def test_a_lost_tail_costs_tcp_a_timeout_or_a_probe(probe):
    """10 packets, p = 2 %: the last is lost once in 50 messages, which is what the 99th percentile sees.

    It costs RTO and RTT; a probe (RFC 8985) comes after 2 ms and two round trips of 100 us, and takes another.
    """
    transport = Transport(
        reliability="sack",
        congestion_control="reno",
        initial_window_packets=10.0,
        tail_loss_probe=probe,
        minimum_timeout_s=0.2,
    )
    fabric = fabric_with(transport, rate=100 * GIGABIT, loss=0.02, **TCP)
    times = np.array(times_of(fabric.network, 14480.0, 2000))
    extra = times - times.min()
    assert np.median(extra) <= 100e-6
    if probe:
        assert 2e-3 <= np.percentile(extra, 99) <= 2e-3 + 600e-6
    else:
        assert (extra > 0.2).mean() == pytest.approx(0.02, rel=0.3)
        assert np.percentile(extra, 99) == pytest.approx(0.2 + 100e-6, rel=0.01)


@pytest.mark.parametrize("cap", [1, 2])
@pytest.mark.parametrize("loss", [1e-3, 1e-2])
def test_selective_repeat_keeps_the_share_of_the_table(cap, loss):
    """R = 32, timeouts of 4 round trips; +-10 %."""
    transport = Transport(reliability="selective_repeat", window_bytes=cap * 32 * 1000.0, minimum_timeout_s=128 * S)
    table = {(1, 1e-3): 0.969, (1, 1e-2): 0.765, (2, 1e-3): 0.999, (2, 1e-2): 0.973}[cap, loss]
    assert selective_repeat_efficiency(loss, 32, cap * 32) == pytest.approx(table)
    assert efficiency(transport, 32, loss) == pytest.approx(table, rel=0.1)


def test_selective_repeat_sends_again_what_is_lost_and_no_more():
    """Retransmissions are losses, +-2 %, if each of 20,000 is drawn."""
    fabric = lossy(Transport(reliability="selective_repeat", window_bytes=64e3), 32, 0.02)
    time_of(fabric, (0, 1, 1e9))
    assert fabric.resent_bytes / 1e9 == pytest.approx(0.02 / 0.98, rel=0.03)


@pytest.mark.parametrize(("packets", "timeout_s"), [(3, 100e-6), (4, 320e-6)])
def test_the_tail_of_a_short_message_has_a_short_timeout(packets, timeout_s):
    """RTO_low with at most 3 packets under way, else RTO_high."""
    transport = Transport(
        reliability="selective_repeat", minimum_timeout_s=320e-6, few_packets=3.0, few_packets_timeout_s=100e-6
    )
    times = np.array(times_of(lossy(transport, 32, 0.01).network, 1000.0 * packets, 2000))
    extra = np.round((times - times.min()) * 1e6).astype(int)
    long = extra[extra > 50]
    assert len(long)
    assert np.median(long) == pytest.approx(timeout_s * 1e6, abs=2)


def test_what_nobody_sends_again_is_lost():
    """P = 1 %, 100,000 packets: 0.99 +-0.002 of the bytes arrive, in the time of a lossless path."""
    fabric = lossy(Transport(reliability="best_effort"), 32, 0.01)
    assert time_of(fabric, (0, 1, 1e8)) == pytest.approx(1e5 * S + 31 * S / 2)
    assert 1.0 - fabric.lost_bytes / 1e8 == pytest.approx(0.99, abs=0.002)
    assert fabric.resent_bytes == 0.0


def test_a_deadline_cuts_a_message_off():
    """A deadline of 0.9 of the time: 0.90 of the bytes arrive, and it takes the deadline."""
    whole = 1e5 * S
    fabric = lossy(Transport(reliability="best_effort", deadline_s=0.9 * whole), 32, 0.0)
    assert time_of(fabric, (0, 1, 1e8)) == pytest.approx(0.9 * whole + 31 * S / 2)
    assert 1.0 - fabric.lost_bytes / 1e8 == pytest.approx(0.9, abs=0.01)


def test_more_loss_than_the_budget_is_asked_for_again():
    """A budget of 10 %: nothing again at 5 %; at 20 % 10 to 15 % of the bytes, and 90 % arrive."""
    transport = Transport(reliability="best_effort", loss_budget=0.1)
    fabric = lossy(transport, 32, 0.05)
    time_of(fabric, (0, 1, 1e7))
    assert fabric.resent_bytes == 0.0
    fabric = lossy(transport, 32, 0.2)
    time_of(fabric, (0, 1, 1e7))
    assert 0.10 <= fabric.resent_bytes / 1e7 <= 0.15
    assert fabric.lost_bytes / 1e7 == pytest.approx(0.1, abs=1e-3)


def test_the_same_seed_draws_the_same():
    transport = Transport(minimum_timeout_s=1e-3)
    one, same, other = (times_of(lossy(transport, 32, 0.01, seed).network, 1e6, 20) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_links_that_lose_nothing_are_foreseen_as_before():
    """With a recurrence: no message is worked out event by event."""
    fabric = lossy(Transport(), 32, 0.0)
    time_of(fabric, (0, 1, 1e6))
    assert int(fabric._tables.clock["messages"][0]) == 0


def test_formulas():
    """Mathis: 1.2247 / sqrt p; what go-back-N keeps of a link at p R = 0.32."""
    assert loss_window(1e-4, 100e-6) == pytest.approx(122.47, rel=1e-4)
    assert loss_window(1e-5, 0.1, cubic=True) == pytest.approx(1054.0, rel=1e-3)
    assert go_back_n_efficiency(1e-2, 32, 20000) == pytest.approx(0.298, abs=1e-3)
