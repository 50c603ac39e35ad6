"""What every run obeys, whatever it simulates (section 8 of the design), on random cases."""

from __future__ import annotations

import random
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import simpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.settings import EngineSettings
from simnet.protocols import FlowProtocol
from simnet.topology import Topology, leaf_spine
from simnet.traffic import ALL_REDUCE, Kind

from .building import begin, sends
from .cases import PLAIN, Case, path_between, play_compiled
from .fair import Flow, unfairness
from .random_cases import cases

SOME = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
CLOSE = {"rel": 1e-9, "abs": 1e-9}


def active_flows(fabric: FluidFabric) -> tuple[list[Flow], list[float]]:
    """The flows that drain at this moment, and their rates."""
    tables = fabric._tables
    flows, rates = [], []
    for row in np.flatnonzero(tables.operations["active"]).tolist():
        operation = tables.operations[row]
        hops = tables.hops[operation.first_hop : operation.first_hop + operation.hops]
        path = zip(hops["resource"].tolist(), hops["coefficient"].tolist(), strict=True)
        flows.append(Flow(tuple(path), float(operation.weight), float(operation.cap)))
        rates.append(float(operation.rate))
    return flows, rates


@given(cases(servers=False, changes=True), st.sampled_from([EngineSettings(), PLAIN]))
@SOME
def test_rates_are_max_min_fair_at_any_time(case, engine):
    """No resource above its capacity, no flow that could have more; also after changes; looked at 40 times."""
    seen = []

    def look(fabric: FluidFabric) -> None:
        flows, rates = active_flows(fabric)
        assert unfairness(flows, fabric._tables.resources["capacity"].tolist(), rates) == []
        now = float(fabric._tables.clock["now"][0]) + fabric._playing.clock.base_s
        # The kernel never goes back, and is never ahead of the actors.
        assert (seen[-1] if seen else 0.0) <= now <= fabric.env.now + 1e-12
        seen.append(now)

    # Never at the instant of a change: an actor that comes before it in that instant sees the rates until then.
    noise = [0.31 * i + 0.0071 for i in range(40)]
    play_compiled(replace(case, noise=noise), engine=engine, look=look)


@given(cases(servers=True, changes=False))
@SOME
def test_every_byte_is_carried_once_over_every_resource_of_its_path(case):
    """Carried = the sum over all messages of size times coefficient; sent = delivered; nothing busy after the end."""
    outcome, fabric = play_compiled(case)
    expected = np.zeros(len(outcome.carried))
    for play in case.plays:
        for resource, amount in fabric.place(play.schedule, play.nodes).resource_bytes.items():
            expected[resource] += amount
    assert outcome.carried == pytest.approx(expected.tolist(), rel=1e-12, abs=1e-9)
    assert outcome.sent == pytest.approx(sum(play.schedule.operation_bytes().sum() for play in case.plays), rel=1e-12)
    assert float(fabric._tables.clock["delivered_bytes"][0]) == pytest.approx(outcome.sent, rel=1e-12)
    assert outcome.messages == sum(play.schedule.messages() for play in case.plays)
    assert outcome.lost == 0.0
    fabric.require_conservation()
    fabric.env.run(until=fabric.env.now + 100.0)
    assert fabric.busy_s().tolist() == outcome.busy


@given(cases(servers=False, changes=True))
@SOME
def test_what_is_not_delivered_is_accounted_for(case):
    """Sent = delivered + lost, where sends are given up and plays cancelled."""
    outcome, fabric = play_compiled(case)
    clock = fabric._tables.clock[0]
    assert outcome.sent == pytest.approx(float(clock["delivered_bytes"]) + outcome.lost, **CLOSE)
    assert not fabric._tables.operations["active"].any()
    assert not fabric._tables.resources["users"].any()
    assert not fabric._tables.devices["active"].any()
    assert (fabric._tables.resources["head"] == -1).all()


def scaled(case: Case, factor: float) -> Case:
    """The same case with all sizes and bandwidths multiplied."""
    graph = case.topology.graph.copy()
    for attributes in [*(d for _, d in graph.nodes(data=True)), *(d for _, _, d in graph.edges(data=True))]:
        for key in set(attributes) & {"bandwidth_bytes_per_s", "memory_bandwidth_bytes_per_s"}:
            attributes[key] *= factor
    plays = []
    for play in case.plays:
        schedule, partition = play.schedule, play.schedule.partition
        operations = replace(schedule.operations, fixed_bytes=schedule.operations.fixed_bytes * factor)
        partition = replace(partition, element_bytes=partition.element_bytes * factor)
        plays.append(replace(play, schedule=replace(schedule, operations=operations, partition=partition)))
    return replace(case, topology=Topology.from_graph(case.topology.name, graph), plays=plays)


@given(cases(servers=False, changes=False), st.sampled_from([1 / 64, 2.0, 3.7, 1e6]))
@SOME
def test_sizes_and_bandwidths_times_a_factor_change_no_time(case, factor):
    """Under ideal: to the last digit for powers of two, within 1e-9 for others."""
    case = replace(case, protocol=FlowProtocol())
    one, other = play_compiled(case)[0], play_compiled(scaled(case, factor))[0]
    tolerance = CLOSE if factor in (3.7, 1e6) else {"rel": 0.0, "abs": 0.0}
    for a, b in zip(one.durations, other.durations, strict=True):
        assert a == pytest.approx(b, **tolerance)
    assert [factor * amount for amount in one.carried] == pytest.approx(other.carried, rel=1e-9, abs=1e-9 * factor)


@given(cases(servers=True, changes=False, plays=1), st.randoms(use_true_random=False))
@SOME
def test_permuting_equal_hosts_changes_nothing(case, shuffle):
    """On a star of equal links it does not matter which host is which rank."""
    graph: nx.MultiDiGraph = nx.MultiDiGraph()
    graph.add_node("switch", kind="switch")
    for host in range(6):
        graph.add_node(f"host{host}", kind="host")
        for ends in ((f"host{host}", "switch"), ("switch", f"host{host}")):
            graph.add_edge(*ends, bandwidth_bytes_per_s=2.5, latency_s=0.1, kind="ethernet")
    case = replace(case, topology=Topology.from_graph("star", graph))
    found = []
    for _ in range(2):
        hosts = list(range(1, 7))
        shuffle.shuffle(hosts)
        play = replace(case.plays[0], nodes=hosts[: case.plays[0].schedule.ranks])
        found.append(play_compiled(replace(case, plays=[play]))[0].durations[0])
    assert found[0] == pytest.approx(found[1], **CLOSE)


@pytest.mark.parametrize("name", ALL_REDUCE)
def test_symmetric_ranks_end_together_wherever_they_are(name, make_fabric):
    """Rings, butterflies and meshes are the same for all ranks (of powers of two), trees and stars from run to run."""
    durations = []
    for seed in range(3):
        fabric = make_fabric(8, latency_s=0.1)
        hosts = random.Random(seed).sample(range(8), 8)
        play = begin(fabric, ALL_REDUCE[name](8, 64, 1.0), hosts)
        fabric.env.run()
        durations.append(play.rank_duration_s)
        if name in ("ring", "butterfly", "mesh"):
            assert play.rank_duration_s == pytest.approx([play.duration_s] * 8, **CLOSE)
    assert durations[1] == pytest.approx(durations[0], **CLOSE)
    assert durations[2] == pytest.approx(durations[0], **CLOSE)


@given(cases(servers=True, changes=False, plays=1))
@SOME
def test_no_play_is_faster_than_its_bounds(case):
    """Not faster than the bytes of any resource over its capacity, than any operation alone on its path, firing by
    firing, and than `simnet.fabric.bounds` says."""
    case = replace(case, plays=[replace(case.plays[0], joins={}, weights=[1.0] * len(case.plays[0].weights))])
    play, network = case.plays[0], case.network
    outcome, fabric = play_compiled(case)
    least = max(outcome.durations[0]) * (1 + 1e-9)
    assert all(
        carried / room <= least for carried, room in zip(outcome.carried, network.capacity.tolist(), strict=True)
    )
    ops = play.schedule.operations
    for operation in range(len(ops)):
        if ops.kind[operation] == Kind.CALC:
            assert ops.repeat[operation] * ops.seconds[operation] <= least
            continue
        path = path_between(case, play.nodes[ops.source[operation]], play.nodes[ops.target[operation]])
        rate = min([path.cap, *(network.capacity[resource] / abs(a) for resource, a in path.uses)])
        sizes = [play.schedule.firing_bytes(operation, firing) for firing in range(ops.repeat[operation])]
        assert sum(size / rate for size in sizes) + path.latency_s <= least
    found = fabric.bound(fabric.place(play.schedule, play.nodes))
    assert found.total_s <= least
    assert found.first_rank_s <= min(outcome.durations[0]) * (1 + 1e-9)


@pytest.mark.parametrize("name", ALL_REDUCE)
def test_bounds_of_collectives_on_oversubscribed_racks(name):
    """4 racks of 4 hosts whose uplinks carry a quarter: slower than on a star, and not faster than the cuts allow."""
    topology = leaf_spine(
        leaves=4, hosts_per_leaf=4, spines=1, oversubscription=4.0, bandwidth_bytes_per_s=1.0, latency_s=0.01
    )
    fabric = FluidFabric(simpy.Environment(), Network(topology, FlowProtocol()))
    placement = fabric.place(ALL_REDUCE[name](16, 160, 1.0), topology.compiled.rank_nodes)
    play = fabric.play(placement, name)
    fabric.env.run()
    limits = fabric.bound(placement)
    assert (
        max(placement.resource_bytes[r] / fabric.network.capacity[r] for r in placement.resource_bytes) <= limits.cut_s
    )
    assert limits.total_s <= play.duration_s * (1 + 1e-12)
    assert limits.chain_s <= play.duration_s * (1 + 1e-12)
    fabric.require_conservation()


@pytest.mark.parametrize("engine", [EngineSettings(), PLAIN])
def test_changes_that_cancel_out_on_a_link_still_change_who_gets_what(make_fabric, engine):
    """a, b, c out of host 0 over 10 byte/s; c goes into a host with 2 byte/s: 4, 4, 2.

    At 1 s b is capped at 1 and the link of c gets 5: what is left of the first link, 4 for a, is exactly used up by 1
    and 5. But c now has more than a: 4.5, 1, 4.5. a has 4 + 4.5 * 10 = 49 bytes, so it is over at 11 s.
    """
    fabric = make_fabric(4, bandwidth_bytes_per_s=10.0, engine=engine)
    env = fabric.env
    into_3 = fabric.network.resource_names.index("switch->host3")
    fabric.conditions.set_capacity(into_3, 2.0)
    play = begin(fabric, sends((0, 1, 49.0), (0, 2, 1000.0), (0, 3, 1000.0)))
    env.run(until=1.0)
    assert active_flows(fabric)[1] == pytest.approx([4.0, 4.0, 2.0], rel=1e-12)
    fabric.set_flow_cap(play, 1, 1.0)
    fabric.conditions.set_capacity(into_3, 5.0)
    env.run(until=1.5)
    assert active_flows(fabric)[1] == pytest.approx([4.5, 1.0, 4.5], rel=1e-12)
    env.run(until=11.5)
    assert play.rank_duration_s[1] == pytest.approx(11.0, rel=1e-12)
