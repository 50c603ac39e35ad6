"""What NCCL chooses, from its own formulas."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.traffic.nccl import NcclCluster, nccl_choice, nccl_estimates, nccl_latency_s


def cluster(hosts: int, each: int, inside: str = "nvlink") -> NcclCluster:
    return NcclCluster(hosts * each, hosts, inside, 120e9, 12e9)


@pytest.mark.parametrize(
    ("hosts", "each", "ring_us", "tree_us"),
    [
        (1, 8, (15.0, 40.6, 56.0), (15.2, 31.5, 64.4)),
        (2, 8, (40.0, 75.2, 131.6), (25.2, 48.5, 92.4)),
        (4, 8, (78.8, 144.4, 282.8), (35.2, 65.5, 120.4)),
        (16, 8, (311.6, 559.6, 1190.0), (55.2, 99.5, 176.4)),
        (64, 1, (636.6, 1085.0, 1772.4), (66.8, 116.0, 176.4)),
    ],
)
def test_latencies_worked_out_by_hand(hosts, each, ring_us, tree_us):
    """On NVLink and Intel, LL, LL128 and Simple; for 8 in a host the ring takes 6.6 + 14 * 0.6 = 15.0 us with LL."""
    for algorithm, expected_us in (("ring", ring_us), ("tree", tree_us)):
        got = [
            nccl_latency_s(cluster(hosts, each), algorithm, protocol) * 1e6 for protocol in ("LL", "LL128", "Simple")
        ]
        assert got == pytest.approx(expected_us, abs=0.1)


@pytest.mark.parametrize("hosts", [2, 4, 16, 64])
def test_small_buffers_between_hosts_go_along_a_tree_and_large_ones_around_a_ring(hosts):
    assert nccl_choice(cluster(hosts, 8), 1e3)[:2] == ("tree", "LL")
    assert nccl_choice(cluster(hosts, 8), 4e9)[:2] == ("ring", "Simple")


@given(
    st.sampled_from([1, 2, 3, 8, 64]),
    st.sampled_from([1, 2, 4, 8]),
    st.floats(4, 1e10),
    st.sampled_from(["nvlink", "pcie"]),
)
def test_the_choice_is_the_shortest_and_times_grow_with_the_size(hosts, each, size, inside):
    one = cluster(hosts, each, inside)
    estimates = list(nccl_estimates(one, size))
    assert nccl_choice(one, size).time_s == min(estimate.time_s for estimate in estimates)
    assert all(math.isfinite(estimate.time_s) and estimate.time_s > 0 for estimate in estimates)
    rings = [estimate.time_s for estimate in estimates if estimate.algorithm == "ring"]
    larger = [estimate.time_s for estimate in nccl_estimates(one, 2 * size) if estimate.algorithm == "ring"]
    assert all(small < large for small, large in zip(rings, larger, strict=True))


def test_the_bandwidth_of_a_ring_is_what_its_bus_bandwidth_says():
    """Large buffers: busbw = S 2(n - 1)/n / t comes to the slower of both links, 12 GB/s between hosts."""
    size, ranks = 1e12, 16
    ring = next(one for one in nccl_estimates(cluster(2, 8), size) if one[:2] == ("ring", "Simple"))
    assert size * 2 * (ranks - 1) / ranks / ring.time_s == pytest.approx(12e9, rel=1e-4)
