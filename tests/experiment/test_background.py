"""Traffic of others: how much of it there is, and that it is drawn from the seed."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd
import pytest

import simnet

from .building import B, layers, scenario, star, within

HOSTS, LOAD, MEAN_SIZE = 6, 0.3, 1e6
MEASURED_S = 3.0


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    """A workload that computes for long and exchanges next to nothing."""
    row = {"parameters": 1, "forward_s": 0.1, "backward_s": 0.2}
    return layers(tmp_path_factory.mktemp("workload"), [row])


def run(file, background, *, topology=None, seed=0, iterations=10):
    sections = {"run": {"iterations": iterations, "warmup": 2, "seed": seed}}
    if background is not None:
        sections["background"] = {"mean_size": f"{MEAN_SIZE} B", **background}
    return simnet.run(scenario(file, topology or star(HOSTS), {"workers": 2}, **sections))


def link_bytes(result, pattern):
    return result.links.set_index("resource")["wire_bytes"].filter(regex=pattern)


@pytest.mark.parametrize(
    ("sizes", "squares"), [("fixed", 1.0), ("exponential", 2.0), ("pareto", 4 / 3)], ids=lambda value: str(value)
)
@pytest.mark.parametrize("pairs", ["random", "permutation"])
def test_hosts_send_as_much_as_the_load_says(idle, sizes, squares, pairs):
    """load * B in the mean, of each host and of all, within four standard errors.

    In T seconds n = load B T/m flows of m bytes begin at a host, as a Poisson process: the standard deviation of their
    bytes is sqrt(n E[size²]), with E[size²] = m² (fixed), 2 m² (exponential), or for Pareto with shape a
    m² (a - 1)²/(a (a - 2)) = 4/3 m² for a = 3. What is under way at both ends counts for less than a flow a host.
    """
    result = run(idle, {"load": LOAD, "sizes": sizes, "pairs": pairs} | ({"shape": 3.0} if sizes == "pareto" else {}))
    sent = link_bytes(result, "^host")
    flows = LOAD * B * MEASURED_S / MEAN_SIZE
    error = MEAN_SIZE * sqrt(flows * squares)
    assert sent.to_numpy() == pytest.approx([LOAD * B * MEASURED_S] * HOSTS, abs=4 * error + 3 * MEAN_SIZE)
    assert sent.sum() == pytest.approx(HOSTS * LOAD * B * MEASURED_S, abs=4 * sqrt(HOSTS) * error + 3 * MEAN_SIZE)
    assert link_bytes(result, "^switch").sum() == pytest.approx(sent.sum(), rel=1e-9)


def test_a_permutation_has_one_partner_for_each_host(idle):
    """On a full mesh of hosts as many links carry anything as there are hosts, one into each and one out of each."""
    mesh = {"full_mesh": {"hosts": HOSTS, "bandwidth": "10 Gbps"}}
    links = run(idle, {"load": LOAD, "pairs": "permutation"}, topology=mesh, iterations=1).links
    used = links[links["wire_bytes"] > 1e6]["resource"].str.split("->", expand=True)
    assert sorted(used[0]) == sorted(used[1]) == [f"host{number}" for number in range(HOSTS)]
    links = run(idle, {"load": LOAD, "pairs": "random"}, topology=mesh, iterations=1).links
    assert (links["wire_bytes"] > 1e6).sum() == HOSTS * (HOSTS - 1)


def test_the_seed_decides_all_of_it(idle):
    """Same seed, same bytes on each link; another seed, others; the order of other random streams does not matter."""
    runs = [run(idle, {"load": LOAD}, seed=seed, iterations=3) for seed in (1, 1, 2)]
    one, same, other = (result.links["wire_bytes"].to_numpy() for result in runs)
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()


def test_no_load_is_none(idle):
    """All tables as without the section."""
    none, without = run(idle, {"load": 0}), run(idle, None)
    for table in ("iterations", "workers", "collectives", "links"):
        pd.testing.assert_frame_equal(getattr(none, table), getattr(without, table), check_exact=True)


def test_training_goes_on_more_slowly_the_more_others_send(tmp_path):
    """Exposed communication grows with the load; bytes that workers send stay."""
    file, found = layers(tmp_path, [{"parameters": 2_400_000}]), []
    for load in (0.0, 0.2, 0.5, 0.8):
        sections = {"background": {"load": load, "mean_size": "1 MB"}, "run": {"iterations": 10, "warmup": 1}}
        found.append(simnet.run(scenario(file, star(4), {"workers": 4}, **sections)).summary.iloc[0])
    exposed_s = [summary.exposed_communication_time_s for summary in found]
    assert exposed_s == sorted(exposed_s)
    assert exposed_s[0] == within(2 * 3 * (9.6e6 / (4 * B) + 4e-6))
    assert len({summary.bytes_sent_per_worker for summary in found}) == 1
    # A ring steps on when its slowest message is there: four links, each with at least a share of 1 - load.
    assert exposed_s[1] > exposed_s[0] / (1 - 0.2)


def test_more_than_the_network_can_carry_waits(idle):
    """Load 1 of all hosts, and a tenth of that between their racks: the trunk is full, and the run comes to an end."""
    topology = {
        "leaf_spine": {"leaves": 2, "hosts_per_leaf": 3, "spines": 1, "bandwidth": "10 Gbps", "oversubscription": 10}
    }
    result = run(idle, {"load": 1.0, "mean_size": "10 MB"}, topology=topology, iterations=2)
    trunk = result.links.set_index("resource").loc["leaf0->spine0"]
    assert trunk.utilisation == pytest.approx(1.0, abs=0.05)
    assert result.summary.iteration_time_s[0] < 0.6
