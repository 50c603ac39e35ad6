"""Workers at the edge of the internet: a server in the cloud behind lines that differ by direction, and peers."""

from __future__ import annotations

import pytest

import simnet

from .building import GBPS, C, S, layers, scenario, within

LINE_S, BACKBONE_S, CABLE_S, SITE_S = 20e-3, 5e-3, 1e-6, 6e-6
WAY_S = LINE_S + BACKBONE_S + CABLE_S
"""From a site that is one host to a host in the cloud."""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return layers(tmp_path_factory.mktemp("workload"))


def edge(sites, **options):
    return {
        "edge_cloud": {
            "sites": sites,
            "uplink": "10 Mbps",
            "downlink": "40 Mbps",
            "latency": "20 ms",
            "cloud_bandwidth": "100 Mbps",
            "cloud_latency": "1 us",
            "backbone_latency": "5 ms",
            **options,
        }
    }


def exposed_s(file, topology, workers, architecture):
    training = {"workers": workers, "architecture": architecture}
    return simnet.run(scenario(file, topology, training)).summary.exposed_communication_time_s[0]


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 12, 20])
def test_one_round_with_a_server_in_the_cloud(file, workers):
    """max(S/up, W S/cloud) + max(S/down, W S/cloud) + 2 latencies of line, backbone and cable.

    Up, each worker has a line of 10 Mbit/s of its own, and all share the 100 Mbit/s of the server: from 10 workers on
    these are full. Down, with 40 Mbit/s each, they are from 3 workers on.
    """
    up, down, cloud = 0.01 * GBPS, 0.04 * GBPS, 0.1 * GBPS
    expected = max(S / up, workers * S / cloud) + max(S / down, workers * S / cloud) + 2 * WAY_S
    assert exposed_s(file, edge(workers), workers, {"parameter_server": {"placement": "dedicated"}}) == within(expected)


@pytest.mark.parametrize("servers", [1, 2, 4])
def test_servers_in_the_cloud_share_what_comes(file, servers):
    """12 workers, M hosts in the cloud with a cable of 100 Mbit/s each: 12 S/(M cloud) where that is the longer one."""
    up, down, cloud = 0.01 * GBPS, 0.04 * GBPS, 0.1 * GBPS
    topology = edge(12, cloud_hosts=servers)
    found = exposed_s(file, topology, 12, {"parameter_server": {"servers": servers, "placement": "dedicated"}})
    both = sum(max(S / line, 12 * S / (servers * cloud)) for line in (up, down))
    assert found == within(both + 2 * WAY_S)


@pytest.mark.parametrize("sites", [2, 3, 8])
def test_peers_at_the_edge_do_without_the_cloud(file, sites):
    """A ring of sites: in each of 2(N - 1) steps S/N goes up one line and down another: S/(N up) and both latencies."""
    step_s = S / (sites * 0.01 * GBPS) + 2 * LINE_S
    assert exposed_s(file, edge(sites, cloud_hosts=0), sites, "ring") == within(2 * (sites - 1) * step_s)


def test_a_ring_in_order_enters_and_leaves_each_site_once(file):
    """4 sites of 2: lines carry 2 7/8 S each way, in 14 pieces of S/8, one after the other without a pause.

    The ranks that share a site pass a piece on in next to no time, so that of two steps one takes S/(8 up) and both
    latencies, and the other nothing: less than 2 S/(8 up). In all 14 S/(8 up), and the latencies of the last piece.
    """
    topology = edge(4, hosts_per_site=2, site_bandwidth="1000 Gbps", site_latency="6 us", cloud_hosts=0)
    result = simnet.run(scenario(file, topology, {"workers": 8, "architecture": "ring"}))
    piece_s = S / (8 * 0.01 * GBPS)
    assert piece_s > 2 * LINE_S
    assert result.summary.iteration_time_s[0] == within(C + 14 * piece_s + 2 * LINE_S + 2 * SITE_S, rel=1e-5)
    lines = result.links.set_index("resource")["wire_bytes"].filter(regex="internet") / 2
    assert lines.to_numpy() == within([2 * 7 / 8 * S] * 8)


def test_peers_or_cloud_is_a_matter_of_the_lines(file):
    """8 workers: by the cloud S/up + 8 S/cloud + 50 ms; by peers 14 (S/(8 up) + 40 ms) = 1.75 S/up + 560 ms, slower."""
    cloud = exposed_s(file, edge(8), 8, {"parameter_server": {"placement": "dedicated"}})
    peers = exposed_s(file, edge(8), 8, "ring")
    assert cloud < peers
    # With one line of 10 Mbit/s to the cloud for all of them it is the other way round.
    slow = edge(8, cloud_bandwidth="10 Mbps")
    assert exposed_s(file, slow, 8, {"parameter_server": {"placement": "dedicated"}}) == within(
        2 * 8 * S / (0.01 * GBPS) + 2 * WAY_S
    )
    assert exposed_s(file, slow, 8, "ring") == within(peers)
    assert peers < 2 * 8 * S / (0.01 * GBPS)
