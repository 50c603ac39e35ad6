"""The work that benchmarks/compare_simgrid.py gives to both simulators, in simnet alone.

What is asserted does not depend on the machine: how many messages there were, how many of them were worked out one by
one, how often rates were solved, and the time that theory says.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from simnet_workloads import simulate
from works import BANDWIDTH_BYTES_PER_S, BUFFER_ELEMENTS, ELEMENT_BYTES, LATENCY_S, WORKS, Work, read_work, write_work

SEED = 1
PATH_LATENCY_S = 2 * LATENCY_S


def work(name: str, *, hosts: int = 0, flows: int = 0, skew_s: float = 0.0) -> Work:
    return WORKS[name](hosts, flows, skew_s, SEED)


def measure(benchmark, given: Work, without: tuple[str, ...] = ()) -> dict:
    """Simulate a work some times; leave what does not depend on the machine with the measurement."""
    result = benchmark.pedantic(simulate, args=(given,), kwargs={"without": without}, rounds=3, iterations=1)
    benchmark.extra_info |= {name: value for name, value in result.items() if name != "flow_duration_s"}
    return result


def ring_time_s(hosts: int) -> float:
    """2(N - 1) steps of the longest chunk, which is never away from the critical path: it travels all the way."""
    chunk_bytes = math.ceil(BUFFER_ELEMENTS / hosts) * ELEMENT_BYTES
    return 2 * (hosts - 1) * (chunk_bytes / BANDWIDTH_BYTES_PER_S + PATH_LATENCY_S)


RINGS = [64, 256, pytest.param(1024, marks=pytest.mark.slow), pytest.param(4096, marks=pytest.mark.slow)]


@pytest.mark.parametrize("hosts", RINGS)
def test_ring_on_a_star(benchmark, hosts):
    """Nothing is shared, so nothing is solved: 2N(N - 1) messages."""
    result = measure(benchmark, work("W1", hosts=hosts))
    assert result["messages"] == 2 * hosts * (hosts - 1)
    assert result["solves"] == 0
    assert result["simulated_s"] == pytest.approx(ring_time_s(hosts), rel=1e-9)


def test_ring_of_equal_chunks_works_out_one_for_all(benchmark):
    """64 divides the buffer: after the first of 126 firings, one chunk stands for all of them."""
    result = measure(benchmark, work("W1", hosts=64))
    assert result["messages"] == 2 * 64 * 63
    assert result["simulated_messages"] == 64 + 125
    assert result["simulated_s"] == pytest.approx(ring_time_s(64), rel=1e-9)


@pytest.mark.parametrize("hosts", RINGS)
def test_ring_whose_ranks_begin_at_random_times(benchmark, hosts):
    """As the last rank to begin holds up all others, the end is later by its delay at most."""
    given = work("W1", hosts=hosts, skew_s=1e-3)
    result = measure(benchmark, given)
    assert result["messages"] == 2 * hosts * (hosts - 1)
    assert result["solves"] == 0
    assert ring_time_s(hosts) <= result["simulated_s"] <= ring_time_s(hosts) + given.start_s.max() + 1e-12


@pytest.mark.parametrize("hosts", [64, 256, pytest.param(1024, marks=pytest.mark.slow)])
def test_ring_by_events_alone(benchmark, hosts):
    """Every message is alone on its links, and is solved for once."""
    result = measure(benchmark, work("W1", hosts=hosts, skew_s=1e-3), without=("recurrence",))
    messages = 2 * hosts * (hosts - 1)
    assert result["messages"] == result["simulated_messages"] == messages
    assert result["solves"] == result["passes"] == result["touched_flows"] == messages
    by_recurrence = simulate(work("W1", hosts=hosts, skew_s=1e-3))
    assert result["simulated_s"] == pytest.approx(by_recurrence["simulated_s"], rel=1e-9)


@pytest.mark.parametrize("hosts", [64, pytest.param(256, marks=pytest.mark.slow)])
def test_ring_on_leaf_spine_in_order(benchmark, hosts):
    """One flow of the ring leaves each rack, over 4 links; its sender waits for each delivery, and all others for it.

    That flow is on the critical path, with whatever chunk it carries: the longest, or one with an element less.
    """
    result = measure(benchmark, work("W2", hosts=hosts))
    steps = 2 * (hosts - 1)
    assert result["messages"] == steps * hosts
    assert result["solves"] == 0
    most = ring_time_s(hosts) + steps * PATH_LATENCY_S
    least = most - (0 if BUFFER_ELEMENTS % hosts == 0 else steps * ELEMENT_BYTES / BANDWIDTH_BYTES_PER_S)
    assert least * (1 - 1e-9) <= result["simulated_s"] <= most * (1 + 1e-9)


# For the order and the routes that the seed gives: solves, and the most passes and flows touched in all of them.
PERMUTED = {64: (7489, 8459, 13041), 256: (187628, 228220, 413927)}


def require_counts(result: dict, solves: int, most_passes: int, most_touched: int) -> None:
    assert result["solves"] == solves
    assert result["passes"] <= most_passes
    assert result["touched_flows"] <= most_touched


@pytest.mark.parametrize("hosts", [64, pytest.param(256, marks=pytest.mark.slow)])
def test_ring_on_leaf_spine_permuted(benchmark, hosts):
    """Flows share the uplinks of their racks, so the event kernel plays it."""
    result = measure(benchmark, work("W2p", hosts=hosts))
    assert result["messages"] == 2 * hosts * (hosts - 1)
    require_counts(result, *PERMUTED[hosts])
    assert result["simulated_s"] > ring_time_s(hosts)


@pytest.mark.parametrize("hosts", [65, 257, pytest.param(1025, marks=pytest.mark.slow)])
def test_push_and_pull(benchmark, hosts):
    """All W flows at once through the server's link, in and then out: 2(W S/B + p), and two solves."""
    result = measure(benchmark, work("W3", hosts=hosts))
    workers = hosts - 1
    assert result["messages"] == 2 * workers
    assert (result["solves"], result["touched_flows"]) == (2, 2 * workers)
    one_way_s = workers * BUFFER_ELEMENTS * ELEMENT_BYTES / BANDWIDTH_BYTES_PER_S + PATH_LATENCY_S
    assert result["simulated_s"] == pytest.approx(2 * one_way_s, rel=1e-9)


# For the flows and the routes that the seed gives: solves, and the most passes and flows touched in all of them.
# With 10,000 flows, of which 360 are active at once, that is 1.6 passes and 33 flows a solve.
FLOWS = {
    ("W4", 1000): (1693, 2418, 10275),
    ("W4w", 1000): (1704, 2527, 11294),
    ("W4", 10_000): (18415, 30240, 609550),
    ("W4w", 10_000): (18502, 30649, 627030),
}


@pytest.mark.parametrize("name", ["W4", "W4w"])
@pytest.mark.parametrize("flows", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_flows_on_a_fat_tree(benchmark, name, flows):
    """Each flow begins and drains; around each of these changes rates are solved for few of those that are active."""
    result = measure(benchmark, work(name, flows=flows))
    assert result["messages"] == flows
    assert result["solves"] <= 2 * flows
    require_counts(result, *FLOWS[name, flows])


@pytest.mark.parametrize("name", ["W4", "W4w"])
def test_flows_by_full_solves(benchmark, name):
    """The same end of every flow, but every flow of the component is touched each time."""
    given = work(name, flows=1000)
    result = measure(benchmark, given, without=("local_repair",))
    repaired = simulate(given)
    assert result["touched_flows"] > repaired["touched_flows"]
    assert result["flow_duration_s"] == pytest.approx(repaired["flow_duration_s"], rel=1e-9)


@pytest.mark.parametrize("name", list(WORKS))
def test_work_is_the_same_after_writing_and_reading(name, tmp_path):
    """What SimGrid reads is what simnet reads, to the last bit."""
    given = work(name, hosts=32, flows=50, skew_s=1e-3)
    write_work(given, tmp_path / "work.txt")
    found = read_work(tmp_path / "work.txt")
    assert (found.topology, found.options, found.collective) == (given.topology, given.options, given.collective)
    assert np.array_equal(found.hosts, given.hosts)
    assert np.array_equal(found.start_s, given.start_s)
    assert (found.flows is None) == (given.flows is None)
    if given.flows is not None and found.flows is not None:
        for column in ("start_s", "source", "target", "size_bytes"):
            assert np.array_equal(getattr(found.flows, column), getattr(given.flows, column))
