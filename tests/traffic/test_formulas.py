"""Volume, steps and transfers of every architecture: counted message by message, and by closed formulas."""

from __future__ import annotations

from math import ceil, floor, log2

import pytest

from simnet.traffic import ALL_REDUCE, FORMULAS, count, parameter_server_push_pull, volume_table

ELEMENTS = 5040
N = ELEMENTS * 4
NODES = [*range(2, 10), 16, 64]
ROWS = {(row.architecture, row.nodes): row for row in volume_table(NODES, ELEMENTS)}


@pytest.mark.parametrize("architecture", FORMULAS)
def test_what_is_counted_is_what_the_formulas_say(architecture):
    for nodes in NODES:
        row = ROWS[architecture, nodes]
        assert row.counted_bytes == pytest.approx(row.formula_bytes, rel=1e-12)
        assert row.counted_steps == row.formula_steps
        assert row.counted_transfers == row.formula_transfers


@pytest.mark.parametrize("nodes", NODES)
def test_the_formulas_that_everybody_knows(nodes):
    """Written out once more: star, trees, butterfly, ring."""
    found = {
        name: (ROWS[name, nodes].counted_bytes, ROWS[name, nodes].counted_steps)
        for name in ("star", "tree, binomial", "tree, binary", "ring", "butterfly")
    }
    volume = 2 * N * (nodes - 1)
    assert found["star"] == (volume, 2)
    assert ROWS["star", nodes].counted_transfers == 2 * (nodes - 1)
    assert found["tree, binomial"] == (volume, 2 * ceil(log2(nodes)))
    assert found["tree, binary"] == (volume, 2 * floor(log2(nodes)))
    assert found["ring"] == (pytest.approx(volume, rel=1e-12), 2 * (nodes - 1))
    if log2(nodes).is_integer():
        assert found["butterfly"] == (N * nodes * log2(nodes), log2(nodes))


def test_every_all_reduce_has_its_formulas():
    assert {name.split(",")[0] for name in FORMULAS} == {*ALL_REDUCE, "parameter_server", "mapreduce"}


@pytest.mark.parametrize("workers", [1, 2, 5, 8])
def test_what_stays_on_its_node_does_not_count(workers):
    """Servers beside workers: the shard for the own server stays, (W - 1)/W of the buffer goes, each way."""
    schedule = parameter_server_push_pull(workers, workers, 840, 4)
    apart = count(schedule)
    beside = count(schedule, [*range(workers), *range(workers)])
    assert apart == (2, 2 * workers**2, 2 * workers * 3360)
    assert beside == (2 if workers > 1 else 0, 2 * workers * (workers - 1), 2 * (workers - 1) * 3360)
