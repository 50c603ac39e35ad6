"""The figures of a topology."""

from __future__ import annotations

import pytest

from simnet.topology import (
    HostSpec,
    bisection_bandwidth,
    fat_tree,
    leaf_spine,
    nvlink_node,
    oversubscription,
    rail_optimised,
    ring,
    star,
    summary_lines,
    topology_summary,
    torus,
)

B = 12.5e9  # bytes/s, 100 Gbit/s


def test_summary_of_a_leaf_spine() -> None:
    """4 racks of 4 below 2 spines at 4 to 1: uplinks of 4 * B / (2 * 4) = B/2; 8 hosts send 8 B / 4 across."""
    found = topology_summary(leaf_spine(leaves=4, hosts_per_leaf=4, spines=2, oversubscription=4.0))
    assert found == {
        "name": "leaf_spine",
        "ranks": 16,
        "rank_kind": "host",
        "first_rank": "host0",
        "last_rank": "host15",
        "nodes": {"host": 16, "switch": 6},
        "links": [
            {"kind": "ethernet", "bandwidth_bytes_per_s": B, "latency_s": 1e-6, "count": 32},
            {"kind": "ethernet", "bandwidth_bytes_per_s": B / 2, "latency_s": 1e-6, "count": 16},
        ],
        "longest_path_links": 4,
        "bisection_bandwidth_bytes_per_s": pytest.approx(2 * B, rel=1e-12),
        "oversubscription": pytest.approx(4.0, rel=1e-12),
    }


def test_lines_for_people() -> None:
    assert summary_lines(star(hosts=4, host=HostSpec(gpus=2, nics=1))) == [
        "topology star: 8 ranks (gpu), host0.gpu0 to host3.gpu1",
        "  nodes: 4 host, 8 gpu, 4 nic, 1 switch",
        "  links: 24 pcie, 104 Gbps, 250 ns (each direction)",
        "  links: 8 ethernet, 100 Gbps, 1 us (each direction)",
        "  longest path between ranks: 6 links",
        "  from the first half of the ranks to the second: 200 Gbps",
    ]


def test_switches_inside_of_hosts_are_counted_apart() -> None:
    assert topology_summary(nvlink_node())["nodes"] == {"host": 1, "gpu": 8, "switch inside of a host": 1}
    assert topology_summary(rail_optimised(hosts=2))["nodes"]["switch"] == 8 + 2


@pytest.mark.parametrize(("hosts", "links"), [(1, 0), (2, 1), (9, 4), (1000, 500)])
def test_longest_path_of_a_ring(hosts: int, links: int) -> None:
    """floor(N / 2), also where only some pairs are looked at."""
    assert topology_summary(ring(hosts=hosts))["longest_path_links"] == links


def test_bisection_of_direct_networks() -> None:
    """A ring is cut in two places; a torus L x L in 2 L; one link each direction."""
    assert bisection_bandwidth(ring(hosts=8, bandwidth_bytes_per_s=B)) == pytest.approx(2 * B)
    assert bisection_bandwidth(torus(dims=[4, 4], bandwidth_bytes_per_s=B)) == pytest.approx(8 * B)
    assert bisection_bandwidth(star(hosts=5, bandwidth_bytes_per_s=B)) == pytest.approx(2 * B)


def test_oversubscription_needs_uplinks() -> None:
    assert oversubscription(star(hosts=4)) is None
    assert oversubscription(ring(hosts=4)) is None
    assert oversubscription(fat_tree(k=4)) == 1.0


def test_large_topologies_are_summed_up_without_their_bisection() -> None:
    found = topology_summary(star(hosts=12_000))
    assert found["bisection_bandwidth_bytes_per_s"] is None
    assert found["longest_path_links"] == 2
