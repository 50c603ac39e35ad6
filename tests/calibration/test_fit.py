"""Alpha and beta come back from logs that are made of them, exactly or within their standard errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simnet.errors import InputError

from .writing import iperf3_json, iperf3_text, nccl_log, osu_bandwidth_log, osu_log, perftest_log

SIZES = [8.0 * 4**n for n in range(14)]  # 8 B to 512 MiB


def line(alpha_us, rate_gigabytes, steps=1.0, share=1.0, sizes=SIZES):
    """Return rows of the model: steps alpha + share size / rate [us]."""
    return [(size, steps * alpha_us + share * size / (1e3 * rate_gigabytes)) for size in sizes]


@pytest.mark.parametrize("ranks", [2, 3, 8, 64])
def test_ring_all_reduce(calibrated, ranks):
    """Of n ranks: 2(n - 1) alpha + 2(n - 1)/n S beta."""
    rows = line(7.5, 11.0, 2 * (ranks - 1), 2 * (ranks - 1) / ranks)
    found = calibrated(nccl_log(rows, ranks))
    assert (found.log.collective, found.log.ranks, found.log.hosts) == ("all_reduce", ranks, ranks)
    assert found.fit.alpha.value == pytest.approx(7.5e-6, rel=1e-6)
    assert found.fit.beta.value == pytest.approx(1 / 11e9, rel=1e-6)
    assert np.abs(found.fit.relative_errors).max() < 1e-6


@pytest.mark.parametrize(
    ("collective", "program", "steps", "share"),
    [
        ("all_gather", "all_gather_perf", 5, 5 / 6),
        ("reduce_scatter", "reduce_scatter_perf", 5, 5 / 6),
        ("all_to_all", "alltoall_perf", 1, 5 / 6),
        ("send_recv", "sendrecv_perf", 1, 1),
        ("broadcast", "broadcast_perf", 5, 1),
        ("reduce", "reduce_perf", 5, 1),
    ],
)
def test_other_collectives(calibrated, collective, program, steps, share):
    found = calibrated(nccl_log(line(4.0, 20.0, steps, share), 6, program))
    assert found.log.collective == collective
    assert found.fit.alpha.value == pytest.approx(4e-6, rel=1e-6)
    assert found.fit.beta.value == pytest.approx(1 / 20e9, rel=1e-6)


@pytest.mark.parametrize(
    ("log", "measures"),
    [
        (osu_log(line(1.7, 3.0)), "ping_pong"),
        (osu_bandwidth_log(line(1.7, 3.0)), "stream"),
        (perftest_log(line(1.7, 3.0), "RDMA_Write Latency Test"), "ping_pong"),
        (perftest_log(line(1.7, 3.0), "Send Latency Test"), "ping_pong"),
        (perftest_log(line(1.7, 3.0), "RDMA_Read Latency Test"), "read"),
        (perftest_log(line(1.7, 3.0), "RDMA_Write BW Test"), "stream"),
    ],
    ids=["osu_latency", "osu_bw", "ib_write_lat", "ib_send_lat", "ib_read_lat", "ib_write_bw"],
)
def test_point_to_point(calibrated, log, measures):
    """A message takes alpha + S beta; messages of a stream are that far apart."""
    found = calibrated(log)
    assert found.log.measures == measures
    assert found.fit.alpha.value == pytest.approx(1.7e-6, rel=1e-4)
    assert found.fit.beta.value == pytest.approx(1 / 3e9, rel=1e-4)


def test_osu_allreduce_needs_ranks(calibrated):
    found = calibrated(osu_log(line(9.0, 1.0, 6, 1.5), "Allreduce Latency", "Avg Latency(us)"), ranks=4)
    assert found.fit.alpha.value == pytest.approx(9e-6, rel=1e-6)
    assert found.fit.beta.value == pytest.approx(1e-9, rel=1e-6)


def test_both_directions_count_half(calibrated):
    """Where both send at once, each has half of the bandwidth that is printed."""
    rows = [(size, 2 * size / time) for size, time in line(1.0, 4.0)]
    found = calibrated(osu_log(rows, "Bi-Directional Bandwidth", "Bandwidth (MB/s)"))
    assert found.fit.beta.value == pytest.approx(1 / 4e9, rel=1e-5)


@pytest.mark.parametrize("written", [iperf3_text, iperf3_json])
@pytest.mark.parametrize("streams", [1, 4])
def test_iperf3(calibrated, written, streams):
    """The rate is that at the end; its error that of the mean of n intervals, their deviation / sqrt(n)."""
    intervals = [9.0, 9.2, 9.4, 9.6]
    found = calibrated(written(10.0, 9.3, intervals, streams))
    assert 1 / found.fit.beta.value == pytest.approx(9.3e9 / 8, rel=1e-6)
    relative = found.fit.beta.error / found.fit.beta.value
    assert relative == pytest.approx(np.std(intervals, ddof=1) / math.sqrt(4) / np.mean(intervals), rel=1e-5)
    assert found.log.connections == streams
    assert not found.fit.alpha.fitted
    assert any("no latency" in note for note in found.notes)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(alpha=st.floats(0.05, 5e4), rate=st.floats(0.001, 500.0), ranks=st.integers(2, 512))
def test_any_alpha_and_rate(calibrated, alpha, rate, ranks):
    """Whatever both are: sizes reach from where only alpha counts to where only the rate does."""
    half = max(1e3 * alpha * ranks * rate, 4.0)  # where both count alike
    sizes = [round(half * 4.0**n) for n in range(-4, 5) if half * 4.0**n >= 1]
    found = calibrated(nccl_log(line(alpha, rate, 2 * (ranks - 1), 2 * (ranks - 1) / ranks, sizes), ranks))
    assert found.fit.alpha.value == pytest.approx(1e-6 * alpha, rel=1e-4)
    assert found.fit.beta.value == pytest.approx(1 / (1e9 * rate), rel=1e-4)


def test_noise_within_standard_errors(calibrated):
    """Of 300 logs with 5 % of noise the errors over standard errors have mean about 0 and deviation about 1.

    The mean of 300 has a deviation of 0.06, the deviation one of 0.04; that errors are relative to what was measured,
    and not to the line, moves alpha and 1/beta by a multiple of 0.05², which is below a standard error of some 0.015.
    """
    rng = np.random.default_rng(7)
    off = []
    for _ in range(300):
        noise = rng.normal(1.0, 0.05, len(SIZES))
        rows = [(size, time * factor) for (size, time), factor in zip(line(7.5, 11.0), noise, strict=True)]
        fit = calibrated(osu_log(rows)).fit
        off.append(((fit.alpha.value - 7.5e-6) / fit.alpha.error, (fit.beta.value - 1 / 11e9) / fit.beta.error))
    assert np.abs(np.mean(off, axis=0)).max() < 0.45
    assert np.std(off, axis=0) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("rows", [[(8, 10.0), (64, 9.9), (512, 9.8), (4096, 9.7)], [(8, 30.0), (1048576, 10.0)]])
def test_times_that_fall_with_the_size(calibrated, rows):
    """The best line that does not fall is flat, and its rate endless.

    A rate of 42 Gbit/s, as of the base, would make 4 KiB 0.8 us longer, which the first log excludes.
    """
    with pytest.raises(InputError, match=r"times do not grow with the size.*: (10|30) us at 8 B and "):
        calibrated(osu_log(rows))


def test_small_sizes_tell_no_rate(calibrated):
    """2 to 32 B at 0.8 us and 2 % of noise: S beta of any network is far below, and the rate of the base stays."""
    rows = [(2, 0.79), (4, 0.81), (8, 0.80), (16, 0.79), (32, 0.81)]
    found = calibrated(perftest_log(rows, "Send Latency Test"))
    assert found.fit.alpha.value == pytest.approx(0.8e-6, rel=0.01)
    assert not found.fit.beta.fitted
    assert "connection_cap" not in found.text


def test_large_sizes_tell_no_latency(calibrated):
    """From 1 GiB on at 10 GB/s, 0.1 s: what a message takes besides, 10 us, is a tenth of the noise of 0.1 %."""
    rows = [(2.0**30 * n, 2.0**30 * n / 1e4 * (1 + 0.001 * (-1) ** n)) for n in range(1, 7)]
    found = calibrated(osu_log(rows))
    assert not found.fit.alpha.fitted
    assert 1 / found.fit.beta.value == pytest.approx(1e10, rel=2e-3)
    assert "latency" not in found.text.replace("osu_latency", "")


def test_one_size_of_a_ping_pong_is_latency(calibrated):
    found = calibrated(perftest_log([(2, 1.87)], "RDMA_Write Latency Test", link="IB"))
    assert found.fit.alpha.value == pytest.approx(1.87e-6, rel=1e-3)
    assert math.isnan(found.fit.alpha.error)
    assert (found.base, found.fit.beta.fitted) == ("infiniband", False)


def test_efficiency_needs_the_link(calibrated):
    """Rate over bandwidth of the link: 11 GB/s of 100 Gbit/s are 88 %."""
    quantities = calibrated(osu_log(line(7.5, 11.0)), link="100 Gbps").quantities
    assert {one.quantity: one.value for one in quantities}["efficiency"] == pytest.approx(0.88, rel=1e-6)
    assert "efficiency" not in {one.quantity for one in calibrated(osu_log(line(7.5, 11.0))).quantities}


def test_one_large_size_of_a_ping_pong_is_rate(calibrated):
    """8 MiB at 11 GB/s: what RoCE takes besides, 1 us, is little of 763 us."""
    found = calibrated(perftest_log([(2.0**23, 2.0**23 / 11e3)], "Send Latency Test"))
    assert not found.fit.alpha.fitted
    assert 1 / found.fit.beta.value == pytest.approx(11e9, rel=0.01)


def test_one_size_that_is_faster_than_the_base(calibrated):
    """A stream of 64 B in 0.1 us, where TCP has 2.5 for a message: all of it is rate."""
    stream = calibrated(perftest_log([(64, 0.1)], "Send BW Test"), base="tcp")
    assert stream.fit.beta.value == pytest.approx(0.1e-6 / 64, rel=1e-3)
    assert "send_overhead: 0 s" in stream.text
