"""Workers at the edge: lines that differ by direction, ways through the internet, and the order of ranks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.scenario import load_topology
from simnet.shipped import shipped_folder
from simnet.topology import Router, Topology, edge_cloud
from simnet.units import parse_bandwidth, parse_duration

UP, DOWN, LATENCY = 1e6, 4e6, 20e-3
LINE: dict[str, Any] = {"uplink_bytes_per_s": UP, "downlink_bytes_per_s": DOWN, "latency_s": LATENCY}


def way(topology: Topology, source: str, target: str) -> tuple[list[str], list[float], float]:
    """Nodes passed to the target, bandwidth of each link, and latency of all of them."""
    arrays = topology.compiled
    links = list(Router(topology).path(arrays.node_index[source], arrays.node_index[target]))
    names = [arrays.node_names[node] for node in arrays.link_target[links]]
    return names, arrays.link_bandwidth[links].tolist(), float(arrays.link_latency[links].sum())


def test_lines_differ_by_direction() -> None:
    """Edge to cloud at the uplink's rate, back at the downlink's; the latency is that of line, backbone and cable."""
    topology = edge_cloud(sites=3, cloud_hosts=2, cloud_bandwidth_bytes_per_s=1e9, backbone_latency_s=5e-3, **LINE)
    there, back = way(topology, "edge1", "cloud0"), way(topology, "cloud0", "edge1")
    assert there[0] == ["internet", "data_centre", "cloud0"]
    assert there[1] == [UP, 2e9, 1e9]
    assert back[0] == ["data_centre", "internet", "edge1"]
    assert back[1] == [1e9, 2e9, DOWN]
    assert there[2] == back[2] == pytest.approx(LATENCY + 5e-3 + 1e-6)


def test_peers_meet_in_the_internet() -> None:
    """Up and down a line of each, without the data centre; the slower is the uplink."""
    topology = edge_cloud(sites=3, **LINE)
    assert way(topology, "edge0", "edge2") == (["internet", "edge2"], [UP, DOWN], pytest.approx(2 * LATENCY))
    alone = edge_cloud(sites=2, cloud_hosts=0, **LINE)
    assert alone.compiled.node_names == ("edge0", "edge1", "internet")


def test_hosts_of_a_site_share_its_line() -> None:
    topology = edge_cloud(sites=2, hosts_per_site=3, site_bandwidth_bytes_per_s=1e8, site_latency_s=1e-5, **LINE)
    assert way(topology, "edge3", "edge5") == (["site1", "edge5"], [1e8, 1e8], pytest.approx(2e-5))
    names, rates, latency_s = way(topology, "edge0", "edge5")
    assert (names, rates) == (["site0", "internet", "site1", "edge5"], [1e8, UP, DOWN, 1e8])
    assert latency_s == pytest.approx(2 * LATENCY + 2e-5)


@given(sites=st.integers(1, 6), hosts=st.integers(1, 4), cloud=st.integers(0, 4))
def test_counts_and_order_of_ranks(sites: int, hosts: int, cloud: int) -> None:
    """Edges first. A cable for each host behind a switch, one for each site, and one for the data centre."""
    topology = edge_cloud(sites=sites, hosts_per_site=hosts, cloud_hosts=cloud, kind="wireless", **LINE)
    arrays = topology.compiled
    assert arrays.ranks == (
        *(f"edge{number}" for number in range(sites * hosts)),
        *(f"cloud{number}" for number in range(cloud)),
    )
    assert nx.is_strongly_connected(topology.graph)
    cables = (sites * hosts if hosts > 1 else 0) + sites + (cloud + 1 if cloud else 0)
    assert len(arrays.link_kind) == 2 * cables
    assert Counter(arrays.link_kind)["wireless"] == 2 * sites
    assert Counter(arrays.link_kind)["wan"] == (2 if cloud else 0)


def test_loss_and_buffers_are_those_of_the_lines() -> None:
    arrays = edge_cloud(sites=2, hosts_per_site=2, loss_probability=1e-3, buffer_bytes=5e5, **LINE).compiled
    lossy = {name for name, loss in zip(arrays.link_name, arrays.link_loss_probability, strict=True) if loss}
    assert lossy == {"site0->internet", "internet->site0", "site1->internet", "internet->site1"}
    assert {name for name, size in zip(arrays.link_name, arrays.link_buffer_bytes, strict=True) if size == 5e5} == lossy


def test_the_backbone_may_be_narrow() -> None:
    topology = edge_cloud(sites=1, cloud_hosts=4, backbone_bandwidth_bytes_per_s=3e6, **LINE)
    assert way(topology, "cloud3", "edge0")[1][1] == 3e6


def test_wrong_arguments_are_all_named() -> None:
    with pytest.raises(InputError) as caught:
        edge_cloud(
            sites=0,
            hosts_per_site=0,
            uplink_bytes_per_s=0.0,
            downlink_bytes_per_s=float("inf"),
            latency_s=-1.0,
            kind="wirelss",
            loss_probability=1.0,
            buffer_bytes=0.0,
            site_bandwidth_bytes_per_s=0.0,
            site_latency_s=-1.0,
            cloud_hosts=-1,
            cloud_bandwidth_bytes_per_s=0.0,
            cloud_latency_s=-1.0,
            backbone_bandwidth_bytes_per_s=0.0,
            backbone_latency_s=-1.0,
        )
    assert [".".join(map(str, problem.path)) for problem in caught.value.problems] == [
        *("sites", "hosts_per_site", "cloud_hosts", "uplink", "downlink"),
        *("latency", "buffer", "loss_probability", "kind"),
        *("site_bandwidth", "site_latency", "cloud_bandwidth", "cloud_latency"),
        *("backbone_bandwidth", "backbone_latency"),
    ]


@pytest.mark.parametrize(
    ("name", "edges", "clouds", "up", "down", "one_way"),
    [
        ("edge_20_mobile", 20, 2, "11.22 Mbps", "35.96 Mbps", "20 ms"),
        ("edge_wan_8", 16, 1, "45.74 Mbps", "85.73 Mbps", "10.5 ms"),
    ],
)
def test_shipped(name: str, edges: int, clouds: int, up: str, down: str, one_way: str) -> None:
    """What their comments say; servers come last, so that they are those of a parameter server."""
    topology = load_topology(shipped_folder("topologies") / f"{name}.yaml")
    ranks = topology.compiled.ranks
    assert (len(ranks), ranks[edges]) == (edges + clouds, "cloud0")
    names, rates, latency_s = way(topology, ranks[0], "cloud0")
    assert min(rates) == parse_bandwidth(up)
    assert min(way(topology, "cloud0", ranks[0])[1]) == parse_bandwidth(down)
    assert latency_s == pytest.approx(parse_duration(one_way) + 5e-3, rel=1e-3)
    assert names[-3:] == ["internet", "data_centre", "cloud0"]
