"""``simnet topology``: a file that was made is the topology that it was made from."""

from __future__ import annotations

import json

import networkx as nx
import pytest

SPECS = {
    "star": "{star: {hosts: 4, bandwidth: 25 Gbps, latency: 2 us}}",
    "gpus": "{star: {hosts: 2, host: {gpus: 2, nics: 2, memory_bandwidth: 100 GB/s}, kind: infiniband}}",
    "paths": "{leaf_spine: {leaves: 2, hosts_per_leaf: 2, spines: 2, uplinks: 2, buffer: 1 MiB}}",
    "no_switch": "{torus: {dims: [2, 2], loss_probability: 0.001}}",
    "shipped": "v100_8x4_10g",
}


@pytest.mark.parametrize("suffix", ["json", "graphml", "gml"])
@pytest.mark.parametrize("spec", list(SPECS))
def test_a_file_that_was_made_is_the_same_topology(command, here, spec, suffix):
    """`show` prints the same, and a run on it gives the same numbers."""
    file = f"cluster.{suffix}"
    assert command("topology", "make", SPECS[spec], "-o", file) == (0, "", "")
    shown = command("topology", "show", SPECS[spec])
    again = command("topology", "show", file)
    assert shown.status == again.status == 0
    assert shown.out.splitlines()[1:] == again.out.splitlines()[1:]

    rows = []
    for topology in (SPECS[spec], file):
        done = command("run", "own_workload", "--topology", topology, "--set", "training.workers=4", "--json", "-q")
        row = json.loads(done.out)
        rows.append({key: value for key, value in row.items() if key != "wall_time_s"})
    assert rows[0] == rows[1]


def test_a_file_that_was_made_can_be_read_by_networkx(command, here):
    command("topology", "make", SPECS["star"], "-o", "cluster.graphml")
    command("topology", "make", SPECS["star"], "-o", "cluster.json")
    graph = nx.read_graphml(here / "cluster.graphml", force_multigraph=True)
    assert set(graph.nodes) == {"host0", "host1", "host2", "host3", "switch"}
    assert json.loads((here / "cluster.json").read_text())["multigraph"] is True


def test_show(command):
    status, out, err = command("topology", "show", "v100_8x4_100g")
    assert (status, err) == (0, "")
    assert out.startswith("topology v100_8x4_100g: 32 ranks (gpu), host0.gpu0 to host7.gpu3\n")


def test_check_says_what_a_topology_is(command, here):
    command("topology", "make", SPECS["paths"], "-o", "cluster.gml")
    assert command("check", "cluster.gml").out == command("topology", "show", "cluster.gml").out
