"""A topology is the same as parts, as a networkx graph and as arrays, with nodes and links in one order."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from simnet.topology import (
    HostSpec,
    Topology,
    dragonfly,
    fat_tree,
    full_mesh,
    leaf_spine,
    rail_optimised,
    ring,
    star,
    torus,
)

GPUS = HostSpec(gpus=4, nics=2)
MADE = [
    star(hosts=5),
    star(hosts=3, host=GPUS),
    leaf_spine(leaves=3, hosts_per_leaf=2, spines=2, uplinks=3),  # parallel cables
    fat_tree(k=4),
    ring(hosts=2),
    ring(hosts=5),
    torus(dims=[3, 2]),
    full_mesh(hosts=4),
    dragonfly(routers_per_group=2, hosts_per_router=2, global_links_per_router=1),
    rail_optimised(hosts=4, spines=2),
]


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.name)
def test_parts_and_graph_have_the_same_arrays(made):
    again = Topology.from_graph(made.name, made.graph)
    for field in dataclasses.fields(made.compiled):
        one, other = getattr(made.compiled, field.name), getattr(again.compiled, field.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
        else:
            assert one == other
    assert again.graph is made.graph
    assert [tuple(link[:2]) for link in made.links] == list(made.graph.edges())
