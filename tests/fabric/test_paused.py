"""Head-of-line blocking: where switches pause links, a congested port serves the links that come in by turns.

Each link that comes in has an equal share of a congested port; all flows of a paused link wait in
one line, so that each, also a victim that goes elsewhere, has the share of a flow to the hot spot. Figures measured are
of a simulation of packets.
"""

from __future__ import annotations

import numpy as np
import pytest
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.settings import EngineSettings
from simnet.protocols import FlowProtocol
from simnet.protocols.transport import Transport
from simnet.topology import star
from simnet.topology.model import Topology

from .building import sends

HEAD_OF_LINE = EngineSettings(recurrence=False, head_of_line=True)


def two_switches(hosts_of_first: int, hosts_of_second: int) -> Topology:
    """Hosts 0 .. at the first switch, the others at the second; all links carry 1 byte/s."""
    nodes: dict[str, dict[str, object]] = {"first": {"kind": "switch"}, "second": {"kind": "switch"}}
    link = {"bandwidth_bytes_per_s": 1.0, "latency_s": 0.0, "kind": "ethernet"}
    pairs = [("first", "second")]
    for host in range(hosts_of_first + hosts_of_second):
        nodes[f"host{host}"] = {"kind": "host"}
        pairs.append((f"host{host}", "first" if host < hosts_of_first else "second"))
    links = [(*ends, dict(link)) for one, other in pairs for ends in ((one, other), (other, one))]
    return Topology("two switches", list(nodes.items()), links)


def rates_of(topology: Topology, *flows: tuple[int, int], engine: EngineSettings = HEAD_OF_LINE, **transport):
    """Begin flows between hosts; return the rates that they have then [bytes/s]."""
    network = Network(topology, FlowProtocol(transport=Transport(**transport)))
    fabric = FluidFabric(simpy.Environment(), network, engine=engine)
    hosts = network.compiled.rank_nodes
    schedule = sends(*[(source, target, 1e6) for source, target in flows], ranks=len(hosts))
    play = fabric.play(fabric.place(schedule, hosts), "flows")
    fabric.env.run(until=1.0)
    first = play.rows["operations"]
    return fabric._tables.operations["rate"][first : first + len(flows)].tolist()


def hot_spot(remote: int, local: int, **options) -> tuple[float, float, float]:
    """Senders at both switches to a receiver at the second, and a victim from the first to a host of its own."""
    topology = two_switches(remote + 1, local + 2)
    receiver, elsewhere = remote + 1 + local, remote + local + 2
    flows = [(host, receiver) for host in range(remote)]
    flows += [(remote + 1 + host, receiver) for host in range(local)]
    rates = rates_of(topology, *flows, (remote, elsewhere), **options)
    return rates[0], rates[remote], rates[-1]


@pytest.mark.parametrize(
    ("remote", "local", "measured"),
    [(3, 3, (0.077, 0.256, 0.077)), (4, 1, (0.118, 0.52, 0.124))],
)
def test_a_victim_has_the_share_of_a_flow_to_the_hot_spot(remote, local, measured):
    """The link between the switches, with n1 flows, is one of 1 + n2: 1 / ((1 + n2) n1) each."""
    found = hot_spot(remote, local)
    share = 1.0 / (1 + local)
    assert found == pytest.approx((share / remote, share, share / remote))
    assert found == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize("control", ["pause", "credit"])
def test_pauses_and_credit_are_alike(control):
    assert hot_spot(3, 3, link_flow_control=control) == pytest.approx((1 / 12, 1 / 4, 1 / 12))


def test_without_either_shares_are_of_flows():
    """Max-min: 6 flows to the hot spot have 1/6 each, and the victim the 1/2 that three of them leave it."""
    fair = (1 / 6, 1 / 6, 1 / 2)
    assert hot_spot(3, 3, link_flow_control="none") == pytest.approx(fair)
    assert hot_spot(3, 3, engine=EngineSettings()) == pytest.approx(fair)


def test_links_have_equal_shares_of_a_port():
    """Host 0 has two flows to host 3, hosts 1 and 2 one each: 1/3 a link, so 1/6 for each of the two."""
    assert rates_of(
        star(hosts=4, bandwidth_bytes_per_s=1.0, latency_s=0.0), (0, 3), (0, 3), (1, 3), (2, 3)
    ) == pytest.approx([1 / 6, 1 / 6, 1 / 3, 1 / 3])


def test_a_paused_host_has_its_other_flows_held_up():
    """Hosts 0, 1 and 2 send to host 3, 1/3 each, and host 0 to host 4 as well: as much for the victim."""
    rates = rates_of(star(hosts=5, bandwidth_bytes_per_s=1.0, latency_s=0.0), (0, 3), (1, 3), (2, 3), (0, 4))
    assert rates == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1 / 3])


def test_who_brings_less_than_its_share_is_not_paused():
    """Host 0 sends to 10 hosts, 1/10 each, one of them host 11, to which host 1 sends what is left, 9/10."""
    flows = [(0, 2 + host) for host in range(10)]
    rates = rates_of(star(hosts=12, bandwidth_bytes_per_s=1.0, latency_s=0.0), *flows, (1, 11))
    assert rates == pytest.approx([0.1] * 10 + [0.9])


def test_what_a_hold_up_leaves_free_is_used():
    """Host 0 sends to hosts 3, as 1 and 2 do, and 4; host 5 sends to 4 and has what the held up flow leaves."""
    flows = [(0, 3), (1, 3), (2, 3), (0, 4), (5, 4)]
    rates = rates_of(star(hosts=6, bandwidth_bytes_per_s=1.0, latency_s=0.0), *flows)
    assert rates == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1 / 3, 2 / 3])


def test_nothing_is_different_where_nothing_is_shared():
    rates = rates_of(star(hosts=6, bandwidth_bytes_per_s=1.0, latency_s=0.0), (0, 1), (2, 3), (4, 5))
    assert rates == pytest.approx([1.0, 1.0, 1.0])


def test_no_link_carries_more_than_it_can():
    """Random traffic: all is delivered, and each link carries no more than its capacity allows."""
    draw = np.random.default_rng(5)
    network = Network(two_switches(6, 6), FlowProtocol())
    fabric = FluidFabric(simpy.Environment(), network, engine=HEAD_OF_LINE)
    hosts = network.compiled.rank_nodes
    for number in range(40):
        source, target = draw.choice(12, 2, replace=False).tolist()
        schedule = sends((source, target, float(draw.integers(1, 50))), ranks=12)
        fabric.play(fabric.place(schedule, hosts), f"flow {number}")
        fabric.env.run(until=fabric.env.now + float(draw.exponential(2.0)))
    fabric.env.run()
    fabric.require_conservation()
