"""Where workers are: what they send is the same, what crosses trunks and NICs is what the order of the ring says."""

from __future__ import annotations

from itertools import pairwise

import pytest

import simnet

from .building import S, layers, scenario, within

RACKS = {
    "leaf_spine": {
        "leaves": 2,
        "hosts_per_leaf": 2,
        "spines": 1,
        "bandwidth": "10 Gbps",
        "latency": "1 us",
        "host": {"gpus": 2},
    }
}
"""8 GPUs: two each in hosts 0 and 1 of the first rack, 2 and 3 of the second."""

LISTED = [f"host{host}.gpu{gpu}" for pair in ((0, 2), (1, 3)) for gpu in (0, 1) for host in pair]
PLACEMENTS = {"in_order": (2, 4), "by_host": (4, 8), "random": None, "listed": (8, 8)}
"""How often a ring goes from one rack to the other, and from one host to another.

In order 00 01 10 11 | 20 21 30 31; round robin 00 10 | 20 30 | 01 11 | 21 31 |; listed from rack to rack each time.
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return the result for each placement."""
    file = layers(tmp_path_factory.mktemp("workload"))
    places = {name: LISTED if name == "listed" else name for name in PLACEMENTS}
    run = {"iterations": 2, "warmup": 1, "seed": 3}
    return {name: simnet.run(scenario(file, RACKS, {"placement": place}, run=run)) for name, place in places.items()}


def crossings(result):
    """Return how often the ring of workers goes from rack to rack, and from host to host."""
    hosts = [int(host.removeprefix("host")) for host in result.workers["host"]]
    steps = list(pairwise([*hosts, hosts[0]]))
    return sum(a // 2 != b // 2 for a, b in steps), sum(a != b for a, b in steps)


@pytest.mark.parametrize("name", PLACEMENTS)
def test_trunks_carry_what_crosses_from_rack_to_rack(results, name):
    """Each step of the ring from rack to rack takes 2(N - 1)/N S up from a leaf to the spine, and as much down; each
    from host to host as much over a NIC."""
    result = results[name]
    racks, hosts = crossings(result)
    if PLACEMENTS[name] is not None:
        assert (racks, hosts) == PLACEMENTS[name]
    carried = result.links.set_index("resource")["wire_bytes"] / 2
    each = 2 * 7 / 8 * S
    assert carried.filter(regex="^leaf.->spine").sum() == within(racks * each)
    assert carried.filter(regex="^spine.->leaf").sum() == within(racks * each)
    assert carried.filter(regex="nic.->leaf").sum() == within(hosts * each)


@pytest.mark.parametrize("name", PLACEMENTS)
def test_workers_send_the_same(results, name):
    """2(N - 1)/N S each, wherever they are; what is on the wire is what leaves the host."""
    result = results[name]
    assert result.workers["bytes_sent"].to_numpy() == within([2 * 7 / 8 * S] * 8)
    assert result.summary.messages[0] == results["in_order"].summary.messages[0]


def test_the_more_flows_a_link_has_the_longer_it_takes(results):
    """Steps take as long as their fullest link: a NIC with 1 flow in order, 2 by host, the trunk with 4 as listed."""
    communicated = {name: result.summary.communication_time_s[0] for name, result in results.items()}
    assert communicated["by_host"] == pytest.approx(2 * communicated["in_order"], rel=0.02)
    assert communicated["listed"] == pytest.approx(4 * communicated["in_order"], rel=0.02)
    assert communicated["in_order"] <= communicated["random"] <= communicated["listed"] * (1 + 1e-9)


def test_random_is_the_same_nodes_in_an_order_of_the_seed(results):
    nodes = {name: result.workers["node"].tolist() for name, result in results.items()}
    assert nodes["listed"] == LISTED
    assert sorted(nodes["random"]) == sorted(nodes["in_order"])
    assert nodes["random"] not in (nodes["in_order"], nodes["by_host"])
    assert nodes["by_host"] == [f"host{host}.gpu{gpu}" for gpu in range(2) for host in range(4)]
