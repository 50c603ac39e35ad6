"""Pictures of one result: times add up, the busiest link is named, and what is not there is said."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import simnet
from simnet.experiment.plot.layout import lay_out
from simnet.experiment.plot.topology import draw_topology
from simnet.scenario import topology_from_text

from .examples import star_scenario

TOPOLOGIES = (
    *("{star: {hosts: 5}}", "{star: {hosts: 700}}", "{ring: {hosts: 6}}", "{full_mesh: {hosts: 4}}"),
    *(
        "{torus: {dims: [3, 4]}}",
        "{torus: {dims: [3, 3, 3]}}",
        "{leaf_spine: {leaves: 3, spines: 2, hosts_per_leaf: 4}}",
    ),
    *("fat_tree_k8", "leaf_spine_256", "nvlink_node_8", "v100_8x4_100g", "v100_25x4_100g", "v100_cube_mesh_8"),
    *("two_sites_wan", "edge_20_mobile"),
    "{dragonfly: {groups: 3, routers_per_group: 2, hosts_per_router: 2, global_links_per_router: 1}}",
)


@pytest.fixture(scope="module")
def result():
    jitter = {"distribution": "lognormal", "sigma": 0.2}
    return simnet.run(star_scenario(4, jitter=jitter), timeline=True)


def _widths(figure) -> dict[str, float]:
    """Return how long each worker does what, as drawn."""
    found = {}
    for drawn in figure.axes[0].collections:
        assert isinstance(drawn, PolyCollection)
        spans = [np.ptp(path.vertices[:, 0]) for path in drawn.get_paths()]
        found[str(drawn.get_gid())] = float(sum(spans))
    return found


def test_what_a_timeline_shows_of_a_worker_adds_up_to_its_iteration(result):
    """In milliseconds: compute + exposed communication + waiting = iteration, for each worker and iteration."""
    table = result.iterations
    for iteration in (0, 1, 2):
        widths = _widths(result.plot.timeline(iteration=iteration))
        for row in table[table["iteration"] == iteration].itertuples():
            start = f"worker {row.rank}: "
            own = {name.removeprefix(start): value for name, value in widths.items() if name.startswith(start)}
            assert sum(own.values()) == pytest.approx(row.iteration_time_s * 1e3, rel=1e-9)
            assert own["compute"] == pytest.approx(row.compute_time_s * 1e3, rel=1e-9)


def test_exchanges_stand_below_in_lines_of_their_buckets(result):
    figure = result.plot.timeline()
    buckets = sorted(result.collectives["bucket"].unique())
    assert [text.get_text() for text in figure.axes[1].get_yticklabels()] == [f"bucket {bucket}" for bucket in buckets]
    assert figure.axes[1].get_xlabel() == "time since it began [ms]"


def test_many_workers_are_some_of_them():
    figure = simnet.run(star_scenario(20), timeline=True).plot.timeline()
    assert len(figure.axes[0].get_yticklabels()) == 8
    assert figure.axes[0].get_title() == "iteration 2 of 8 out of 20 workers"


@pytest.mark.parametrize("sync", ["asp", {"ssp": {"staleness": 2}}])
def test_workers_that_go_on_by_themselves_can_be_drawn(sync):
    scenario = star_scenario(3, architecture="parameter_server", sync=sync) | {"topology": {"star": {"hosts": 4}}}
    figure = simnet.run(scenario, timeline=True).plot.timeline()
    figure.draw_without_rendering()
    assert max(_widths(figure).values()) > 0


def test_load_is_as_high_as_in_the_table(result):
    figure = result.plot.utilisation()
    names = list(dict.fromkeys(result.load["resource"]))[: len(figure.axes)]
    for axes, name in zip(figure.axes, names, strict=True):
        drawn = axes.patches[0].get_data().values
        assert drawn.tolist() == result.load.loc[result.load["resource"] == name, "utilisation"].tolist()
        assert axes.get_ylim() == (0, 1)


def test_without_a_timeline_there_is_none():
    result = simnet.run(star_scenario(2))
    for draw in (result.plot.timeline, result.plot.utilisation):
        with pytest.raises(ValueError, match="timeline=True"):
            draw()
    assert result.plot.breakdown().axes
    with pytest.raises(ValueError, match="no job 'other'"):
        simnet.run(star_scenario(2), timeline=True).plot.timeline(job="other")


def test_the_hottest_link_is_named(result):
    links = result.links[result.links["resource"].str.contains("->")]
    hottest = links.loc[links["utilisation"].idxmax()]
    title = result.plot.topology().axes[0].get_title()
    assert f"{hottest['resource']}, {100 * hottest['utilisation']:.3g} % of 100 Gbps" in title


@pytest.mark.parametrize("text", TOPOLOGIES)
def test_any_topology_can_be_drawn(text):
    """Every node stands somewhere or has one that stands for it, no two in the same place."""
    topology = topology_from_text(text)
    layout = lay_out(topology)
    assert set(layout.drawn.tolist()) == set(layout.place)
    assert len({(round(x, 6), round(y, 6)) for x, y in layout.place.values()}) == len(layout.place)
    links = simnet.run(star_scenario(2)).links.head(1)
    name = topology.compiled.link_name[-1]
    figure = draw_topology(topology, links.assign(resource=name, utilisation=0.5))
    assert f"hottest link, ringed: {name}, 50 % of" in figure.axes[0].get_title()
    figure.draw_without_rendering()


def test_hundreds_of_hosts_are_drawn_as_bundles():
    """A bundle is of hosts at the same switch, and it is as busy as the busiest of them."""
    topology = topology_from_text("{leaf_spine: {leaves: 10, spines: 2, hosts_per_leaf: 100}}")
    layout = lay_out(topology)
    assert layout.bundle == 4
    arrays = topology.compiled
    hosts = [node for node in layout.place if arrays.node_kind[node] == "host"]
    assert len(hosts) == 250
