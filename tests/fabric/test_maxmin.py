"""Max-min fair rates: textbook cases, and random ones against the obvious solver in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simnet.fabric.kernels.incidence import UNLIMITED, attach, detach
from simnet.fabric.kernels.maxmin import raise_levels
from simnet.fabric.kernels.records import EDGE
from simnet.fabric.kernels.repair import repair
from simnet.fabric.kernels.tables import Tables, make_tables

from .fair import Flow, fair_rates, unfairness


def tables_of(flows, capacity) -> Tables:
    """The tables of the kernel with these flows, none of them active yet."""
    hops = sum(len(flow.path) for flow in flows)
    sizes = dict.fromkeys(("dependencies", "gates", "plays", "servers", "devices", "costs", "events", "log"), 1)
    tables = make_tables(operations=len(flows), resources=len(capacity), hops=max(hops, 1), **sizes)
    tables.resources["capacity"] = capacity
    tables.resources["head"] = tables.resources["limited"] = -1
    tables.operations["limit"] = UNLIMITED
    first = 0
    for row, flow in enumerate(flows):
        tables.operations["first_hop"][row], tables.operations["hops"][row] = first, len(flow.path)
        tables.operations["weight"][row], tables.operations["cap"][row] = flow.weight, flow.cap
        for resource, coefficient in flow.path:
            tables.hops["resource"][first], tables.hops["coefficient"][first] = resource, coefficient
            tables.hops["flow"][first] = row
            first += 1
    return tables


def attach_all(tables: Tables) -> None:
    for row in range(len(tables.operations)):
        attach(tables.operations, tables.hops, tables.resources, row)


def fill_all(flows, capacity) -> list[float]:
    """Rates by the compiled solver, all flows and resources in one call."""
    tables = tables_of(flows, capacity)
    attach_all(tables)
    members, resources = np.zeros(len(flows), EDGE), np.zeros(len(capacity), EDGE)
    members["row"], resources["row"] = np.arange(len(flows)), np.arange(len(capacity))
    tables.resources["left"] = tables.resources["capacity"]
    raise_levels(
        tables.operations,
        tables.hops,
        tables.resources,
        tables.levels,
        members,
        len(flows),
        resources,
        len(capacity),
    )
    return tables.operations["rate"].tolist()


TEXTBOOK = {
    "two flows on one link have half of it each": ([Flow(((0, 1.0),)), Flow(((0, 1.0),))], [10.0], [5.0, 5.0]),
    # Flow 0 crosses both links: link 0 of 10 is shared with flow 1, link 1 of 4 with flow 2, which fills first at 2.
    "three flows on two links: 2 for the long one, what that leaves for the others": (
        [Flow(((0, 1.0), (1, 1.0))), Flow(((0, 1.0),)), Flow(((1, 1.0),))],
        [10.0, 4.0],
        [2.0, 8.0, 2.0],
    ),
    # Bertsekas and Gallager's line of links of capacity 1: one flow over all, one on each.
    "a flow over three links, one flow on each: half for everybody": (
        [Flow(((0, 1.0), (1, 1.0), (2, 1.0))), *[Flow(((link, 1.0),)) for link in range(3)]],
        [1.0, 1.0, 1.0],
        [0.5, 0.5, 0.5, 0.5],
    ),
    "weights 1 and 3 share 8 as 2 and 6": ([Flow(((0, 1.0),), 1.0), Flow(((0, 1.0),), 3.0)], [8.0], [2.0, 6.0]),
    "a flow capped at 1 leaves 9 to the other": ([Flow(((0, 1.0),), cap=1.0), Flow(((0, 1.0),))], [10.0], [1.0, 9.0]),
    "two capped flows leave a link part empty": (
        [Flow(((0, 1.0),), cap=cap) for cap in (1.0, 2.0)],
        [10.0],
        [1.0, 2.0],
    ),
    "a cap of exactly the fair share changes nothing": (
        [Flow(((0, 1.0),), cap=5.0), Flow(((0, 1.0),))],
        [10.0],
        [5.0, 5.0],
    ),
    "a link without capacity stops its flows, and leaves their share elsewhere to others": (
        [Flow(((0, 1.0), (1, 1.0))), Flow(((0, 1.0),))],
        [10.0, 0.0],
        [0.0, 10.0],
    ),
    "a cap of 0 stops a flow": ([Flow(((0, 1.0),), cap=0.0), Flow(((0, 1.0),))], [10.0], [0.0, 10.0]),
    "a flow that uses the only resource twice gets half of it": ([Flow(((0, 1.0), (0, 1.0)))], [10.0], [5.0]),
    # x + 2x = 9: both have the same level.
    "a flow that uses a resource twice, beside one that does once": (
        [Flow(((0, 1.0), (0, 1.0))), Flow(((0, 1.0),))],
        [9.0],
        [3.0, 3.0],
    ),
    # 1.25 x + x = 9.
    "headers of a quarter count in the sum, not in the level": (
        [Flow(((0, 1.25),)), Flow(((0, 1.0),))],
        [9.0],
        [4.0, 4.0],
    ),
    # Link 0 fills at level 6/(2 + 1) = 2: flow 0 has 4, flow 1 has 2. That leaves 8 of link 1 for flow 2.
    "weights over two links": (
        [Flow(((0, 1.0),), 2.0), Flow(((0, 1.0), (1, 1.0))), Flow(((1, 1.0),), 4.0)],
        [6.0, 10.0],
        [4.0, 2.0, 8.0],
    ),
    "a single flow on a path has its narrowest link": ([Flow(((0, 1.0), (1, 2.0), (2, 1.0)))], [5.0, 8.0, 7.0], [4.0]),
}


@pytest.mark.parametrize("case", TEXTBOOK)
def test_textbook_cases_are_exact(case):
    flows, capacity, expected = TEXTBOOK[case]
    assert fill_all(flows, capacity) == expected
    assert fair_rates(flows, capacity) == expected
    assert unfairness(flows, capacity, expected, 0.0) == []


def test_the_validator_objects_to_what_is_wrong():
    """Too much, above a cap, less than could be, and as much for all although one could have more."""
    flows, capacity, _ = TEXTBOOK["three flows on two links: 2 for the long one, what that leaves for the others"]
    assert unfairness(flows, capacity, [3.0, 8.0, 2.0])
    assert unfairness(flows, capacity, [1.0, 9.0, 3.0])
    assert unfairness(flows, capacity, [2.0, 7.0, 2.0])
    assert unfairness(flows, capacity, [2.0, 8.0, math.nan])
    assert unfairness([Flow(((0, 1.0),), cap=1.0)], [10.0], [2.0])
    assert unfairness([Flow(((0, 1.0),), 1.0), Flow(((0, 1.0),), 3.0)], [8.0], [4.0, 4.0])


# Few different values, so that levels are often equal, and arbitrary ones.
AMOUNTS = st.sampled_from([1.0, 2.0, 3.0, 6.0]) | st.floats(0.5, 10.0)


@st.composite
def sharing(draw, least_flows=1, most_flows=12):
    """Flows with weights, caps and coefficients on a few resources, some of capacity 0; paths may repeat a resource."""
    capacity = draw(st.lists(AMOUNTS | st.just(0.0), min_size=1, max_size=6))
    hop = st.tuples(st.integers(0, len(capacity) - 1), st.sampled_from([1.0, 1.0, 2.0]) | st.floats(1.0, 1.5))
    flow = st.builds(
        Flow,
        st.lists(hop, min_size=1, max_size=4).map(tuple),
        st.just(1.0) | AMOUNTS,
        st.just(math.inf) | AMOUNTS | st.just(0.0),
    )
    return draw(st.lists(flow, min_size=least_flows, max_size=most_flows)), capacity


@given(sharing())
@settings(max_examples=120, deadline=None)
def test_random_cases_match_the_obvious_solver_in_fractions(case):
    """Within 1e-12 of exact arithmetic on the same inputs, relative to the largest thing that a flow has to do with."""
    flows, capacity = case
    exact = [
        Flow(
            tuple((resource, Fraction(a)) for resource, a in flow.path),
            Fraction(flow.weight),
            flow.cap if flow.cap == math.inf else Fraction(flow.cap),
        )
        for flow in flows
    ]
    expected = [float(rate) for rate in fair_rates(exact, [Fraction(room) for room in capacity])]
    rates = fill_all(flows, capacity)
    for rate, wanted, flow in zip(rates, expected, flows, strict=True):
        room = max(capacity[resource] for resource, _ in flow.path)
        assert rate == pytest.approx(wanted, rel=1e-12, abs=1e-12 * room)


@given(sharing())
@settings(max_examples=50, deadline=None)
def test_both_solvers_are_fair_by_the_definition(case):
    """Capacity, caps and a bottleneck for everybody, of either solution."""
    flows, capacity = case
    for rates in (fill_all(flows, capacity), fair_rates(flows, capacity)):
        assert unfairness(flows, capacity, rates) == []


@given(sharing(), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_the_order_of_flows_changes_nothing(case, random):
    flows, capacity = case
    order = list(range(len(flows)))
    random.shuffle(order)
    rates, shuffled = fill_all(flows, capacity), fill_all([flows[i] for i in order], capacity)
    assert [shuffled[order.index(i)] for i in range(len(flows))] == pytest.approx(rates, rel=1e-12, abs=1e-12)


@given(sharing(), st.sampled_from([0.5, 2.0, 1024.0]))
@settings(max_examples=50, deadline=None)
def test_capacities_and_caps_twice_as_large_double_every_rate(case, factor):
    """Exactly, for factors that are powers of two."""
    flows, capacity = case
    scaled = [Flow(flow.path, flow.weight, flow.cap * factor) for flow in flows]
    assert fill_all(scaled, [room * factor for room in capacity]) == [
        rate * factor for rate in fill_all(flows, capacity)
    ]


def test_many_flows_on_a_large_network_are_fair():
    """10,000 flows over 4 of 500 links each: too many for the obvious solver, not for the definition."""
    random = np.random.default_rng(1)
    paths = [random.choice(500, 4, replace=False) for _ in range(10_000)]
    weights, caps = random.uniform(0.5, 2, 10_000), np.where(random.random(10_000) < 0.2, random.random(10_000), np.inf)
    flows = [
        Flow(tuple((r, 1.0) for r in path.tolist()), w, c) for path, w, c in zip(paths, weights, caps, strict=True)
    ]
    capacity = random.uniform(1, 20, 500)
    rates = np.array(fill_all(flows, capacity.tolist()))
    load = np.bincount(np.concatenate(paths), weights=np.repeat(rates, 4), minlength=500)
    highest = np.zeros(500)
    np.maximum.at(highest, np.concatenate(paths), np.repeat(rates / weights, 4))
    bottleneck = (load >= capacity * (1 - 1e-9))[np.array(paths)]
    bottleneck &= (rates / weights)[:, None] >= highest[np.array(paths)] * (1 - 1e-9)
    assert (load <= capacity * (1 + 1e-9)).all()
    assert ((rates >= caps * (1 - 1e-12)) | bottleneck.any(axis=1)).all()


@given(sharing(most_flows=8), st.data())
@settings(max_examples=60, deadline=None)
def test_a_full_solve_takes_the_component_of_the_graph_of_active_flows_and_resources(case, data):
    """In one pass, as nobody is left to join; after flows have come and gone in any order, against networkx."""
    flows, capacity = case
    tables = tables_of(flows, capacity)
    attach_all(tables)
    gone = data.draw(st.lists(st.integers(0, len(flows) - 1), unique=True))
    for row in gone:
        detach(tables.operations, tables.hops, tables.resources, row)
    back = data.draw(st.lists(st.sampled_from(gone), unique=True)) if gone else []
    for row in back:
        attach(tables.operations, tables.hops, tables.resources, row)
    active = (set(range(len(flows))) - set(gone)) | set(back)
    assume(active)
    graph = nx.Graph()
    graph.add_nodes_from(("resource", r) for r in range(len(capacity)))
    graph.add_edges_from((("flow", i), ("resource", r)) for i in active for r, _ in flows[i].path)
    users = [sum(r == q for i in active for r, _ in flows[i].path) for q in range(len(capacity))]
    assert tables.resources["users"].tolist() == users
    start = data.draw(st.sampled_from(sorted(active)))
    members = np.zeros(len(flows), EDGE)
    tables.operations["mark"][start], members["row"][0] = 1, start
    count, passes = repair(
        tables.operations,
        tables.hops,
        tables.resources,
        tables.levels,
        members,
        1,
        1,
        tables.resource_members,
        True,
    )
    component = nx.node_connected_component(graph, ("flow", start))
    assert sorted(members["row"][:count].tolist()) == sorted(i for kind, i in component if kind == "flow")
    assert passes == 1
