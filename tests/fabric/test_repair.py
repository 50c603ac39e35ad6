"""Local repair against full solves: the same rates after hundreds of changes of every kind."""

from __future__ import annotations

import numpy as np
import pytest
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.settings import EngineSettings
from simnet.protocols import FlowProtocol
from simnet.topology import leaf_spine

from .building import sends

CHANGES = 400


def require_sums(tables):
    """Check what is kept of each resource: the sum of coefficient x rate of its flows, and the flows that it limits."""
    flows, hops = tables.operations, tables.hops
    takes, limited = np.zeros(len(tables.resources)), [set() for _ in tables.resources]
    for row in np.flatnonzero(flows["active"]).tolist():
        own = slice(int(flows["first_hop"][row]), int(flows["first_hop"][row] + flows["hops"][row]))
        np.add.at(takes, hops["resource"][own], hops["coefficient"][own] * flows["rate"][row])
        if flows["limit"][row] >= 0:
            limited[flows["limit"][row]].add(row)
        for resource in hops["resource"][own].tolist():
            if resource != flows["limit"][row]:
                assert flows["level"][row] <= tables.resources["ceiling"][resource]
    assert tables.resources["takes"] == pytest.approx(takes, rel=1e-12, abs=1e-12 * 2e3)
    for resource, wanted in enumerate(limited):
        found, row = [], int(tables.resources["limited"][resource])
        while row >= 0:
            found.append(row)
            row = int(flows["next_limited"][row])
        assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("seed", range(5))
def test_rates_are_those_of_full_solves(seed):
    """Flows with weights, caps and headers (coefficients above 1) come and go; caps and capacities change.

    Some of the flows end by themselves. After each of 400 changes every rate is within 1e-12 of that of a fabric that
    solves whole components.
    """
    random = np.random.default_rng(seed)
    topology = leaf_spine(leaves=4, hosts_per_leaf=4, spines=2, oversubscription=2.0, bandwidth_bytes_per_s=1e3)
    protocol = FlowProtocol(mtu_bytes=100.0, payload_bytes=80.0, header_bytes=20.0)
    fabrics = [
        FluidFabric(simpy.Environment(), Network(topology, protocol), engine=EngineSettings(False, False, repairs))
        for repairs in (True, False)
    ]
    nodes = topology.compiled.rank_nodes
    playing: list[list] = []
    for number in range(CHANGES):
        what = random.choice(["come", "come", "go", "cap", "capacity"])
        if what == "come" or not playing:
            ends = random.choice(len(nodes), 2, replace=False)
            weight, size = random.choice([0.5, 1.0, 3.0]), random.choice([3e3, 1e9, 2e9])
            plays = []
            for fabric in fabrics:
                placement = fabric.place(sends((0, 1, size)), nodes[ends], weight=np.array([weight]), deadline_s=1e12)
                plays.append(fabric.play(placement, f"flow {number}"))
            playing.append(plays)
        elif what == "go":
            plays = playing.pop(int(random.integers(len(playing))))
            for fabric, play in zip(fabrics, plays, strict=True):
                fabric.cancel(play)
        elif what == "cap":
            plays, cap = playing[int(random.integers(len(playing)))], random.choice([np.inf, 50.0, 200.0])
            for fabric, play in zip(fabrics, plays, strict=True):
                fabric.set_flow_cap(play, 0, cap)
        else:
            resource, capacity = (
                int(random.integers(len(topology.compiled.link_name))),
                random.choice([300.0, 1e3, 2e3]),
            )
            for fabric in fabrics:
                fabric.conditions.set_capacity(resource, capacity)
        for fabric in fabrics:
            fabric.env.run(until=number + 1.0)
        playing = [plays for plays in playing if fabrics[0].is_playing(plays[0])]
        rates = [
            [fabric._tables.operations["rate"][play[number_of].rows["operations"]] for play in playing]
            for number_of, fabric in enumerate(fabrics)
        ]
        assert rates[0] == pytest.approx(rates[1], rel=1e-12)
        for fabric in fabrics:
            require_sums(fabric._tables)
    local, full = (fabric.counts for fabric in fabrics)
    assert local.touched_flows < full.touched_flows
