"""Equal paths: flows are shared out evenly, the same way in every process, and where there is a choice is known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from simnet.topology import HostSpec, Router, Topology, ecmp_hash, fat_tree, leaf_spine, ring, star, torus


def chi_square(counts: Counter[str], of: int) -> float:
    expected = sum(counts.values()) / of
    return sum((counts.get(name, 0) - expected) ** 2 / expected for name in counts) + (of - len(counts)) * expected


def test_flows_spread_evenly_over_spines() -> None:
    """8 spines, 4000 flows: chi-square of 7 degrees of freedom is below 29.9 with probability 0.9999."""
    topology = leaf_spine(leaves=2, hosts_per_leaf=1, spines=8)
    router, compiled = Router(topology), topology.compiled
    used = Counter(compiled.node_names[compiled.link_target[router.path(0, 1, key)[1]]] for key in range(4000))
    assert len(used) == 8
    assert chi_square(used, 8) < 29.9


def test_flows_spread_evenly_over_parallel_cables() -> None:
    """4 cables, 2000 flows: 3 degrees of freedom, below 21.1 with probability 0.9999."""
    topology = leaf_spine(leaves=2, hosts_per_leaf=1, spines=1, uplinks=4)
    router, compiled = Router(topology), topology.compiled
    used = Counter(compiled.link_name[router.path(0, 1, key)[1]] for key in range(2000))
    assert sorted(used) == ["leaf0->spine0", "leaf0->spine0#1", "leaf0->spine0#2", "leaf0->spine0#3"]
    assert chi_square(used, 4) < 21.1


def test_choices_at_successive_switches_are_independent() -> None:
    """k = 8: 4 ways at the edge and 4 at the aggregation give 16 cores; 15 degrees of freedom, below 44.3 at 0.9999.

    With the same choice at both, as a hash without the switch in it makes, only 4 cores would be used.
    """
    topology = fat_tree(k=8)
    router, compiled = Router(topology, seed=1), topology.compiled
    target = compiled.node_index["host127"]
    used = Counter(compiled.node_names[compiled.link_target[router.path(0, target, key)[2]]] for key in range(4000))
    assert len(used) == 16
    assert chi_square(used, 16) < 44.3


def test_flows_spread_evenly_over_the_nics_of_a_plain_host() -> None:
    topology = star(hosts=2, host=HostSpec(nics=4))
    router, compiled = Router(topology), topology.compiled
    paths = [router.path(0, 1, key) for key in range(2000)]
    for hop in (0, 1):
        assert chi_square(Counter(compiled.link_name[path[hop]] for path in paths), 4) < 21.1


def test_another_seed_makes_other_choices() -> None:
    """With 8 ways a choice stays the same by chance in one of eight; 1000 flows, 5 standard deviations: 125 +- 52."""
    topology = leaf_spine(leaves=2, hosts_per_leaf=1, spines=8)
    one, other = Router(topology, seed=0), Router(topology, seed=1)
    same = sum(one.path(0, 1, key) == other.path(0, 1, key) for key in range(1000))
    assert 73 <= same <= 177


def test_hash_bits_are_balanced() -> None:
    """Each of the 64 bits is set in half of 4000 hashes, give or take five standard deviations of 31.6."""
    values = np.array([ecmp_hash(0, key, key % 7) for key in range(4000)], dtype=np.uint64)
    for bit in range(64):
        assert abs(int((values >> np.uint64(bit) & np.uint64(1)).sum()) - 2000) < 158


SCRIPT = """
import json
from simnet.topology import Router, fat_tree
router = Router(fat_tree(k=4), seed=5)
print(json.dumps([router.path(a, b, 17 * a + b) for a in range(16) for b in range(16)]))
"""


def test_paths_are_the_same_in_other_processes() -> None:
    router = Router(fat_tree(k=4), seed=5)
    here = [list(router.path(a, b, 17 * a + b)) for a in range(16) for b in range(16)]
    for hash_seed in ("1", "random"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        printed = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        assert json.loads(printed.stdout) == here


def test_the_order_of_questions_does_not_matter() -> None:
    topology = fat_tree(k=4)
    forward, backward = Router(topology), Router(topology)
    pairs = list(permutations(range(16), 2))
    found = {pair: forward.path(*pair) for pair in pairs}
    assert {pair: backward.path(*pair) for pair in reversed(pairs)} == found


def test_forgotten_tables_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = torus(dims=[5, 5])
    pairs = list(permutations(range(25), 2))
    kept = Router(topology)
    expected = [kept.path(*pair) for pair in pairs]
    monkeypatch.setattr("simnet.topology.routing._KEPT_DISTANCES", 1)
    forgetful = Router(topology)
    assert [forgetful.path(*pair) for pair in pairs] == expected


@pytest.mark.parametrize(
    "topology",
    [
        leaf_spine(leaves=2, hosts_per_leaf=2, spines=2),
        leaf_spine(leaves=2, hosts_per_leaf=1, spines=1, uplinks=2),
        star(hosts=2, host=HostSpec(gpus=1, nics=2)),
        star(hosts=2, host=HostSpec(gpus=2, nics=2, intra="nvlink")),
        ring(hosts=4),
    ],
    ids=lambda topology: topology.name,
)
def test_the_only_path_is_that_of_all_flows(topology: Topology) -> None:
    """Of 64 flows over two or more equal ways all take the same with a chance of at most 2^-63."""
    router = Router(topology)
    nodes = range(len(topology.compiled.node_names))
    choices = 0
    for source, target in permutations(nodes, 2):
        only = router.only_path(source, target)
        found = {router.path(source, target, key) for key in range(64)}
        choices += only is None
        assert (found == {only}) if only is not None else (len(found) > 1)
    assert choices
    assert router.only_path(0, 0) == ()
