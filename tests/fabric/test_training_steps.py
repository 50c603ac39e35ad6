"""Pipelines and dataflow graphs under `ideal`: what theory says of the time they take, and an independent reckoning."""

from __future__ import annotations

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.play import Play
from simnet.protocols import FlowProtocol
from simnet.topology import HostSpec, Topology, full_mesh, star
from simnet.traffic import (
    DataflowEdge,
    DataflowOperation,
    Segment,
    Stage,
    Step,
    dataflow_step,
    pipeline_step,
    repeated,
    ring_all_reduce,
)

B, P = 12.5e9, 2e-6
F_S, B_S = 1e-3, 2e-3
MICRO_BATCHES = [1, 2, 3, 4, 8]


def hosts(count: int, latency_s: float = P / 2, memory: float | None = None) -> Topology:
    host = HostSpec(memory_bandwidth_bytes_per_s=memory)
    return star(hosts=count, host=host, bandwidth_bytes_per_s=B, latency_s=latency_s)


def play(step: Step, topology: Topology | None = None, workers_on: list[int] | None = None) -> Play:
    """Play a step alone, each worker on a host of its own, with its milestones beside it."""
    topology = topology or hosts(step.workers)
    fabric = FluidFabric(simpy.Environment(), Network(topology, FlowProtocol(divisible=True)))
    on = topology.compiled.rank_nodes[: step.workers] if workers_on is None else np.asarray(workers_on)
    one = fabric.play(fabric.place(step.schedule, on[[*range(step.workers), *step.milestone_owner]]), "step")
    fabric.env.run()
    fabric.require_conservation()
    return one


def within(value: float):
    return pytest.approx(value, rel=1e-9)


def stage(forward_bytes: float = 0.0, backward_bytes: float = 0.0) -> Stage:
    return Stage((Segment(F_S),), (Segment(B_S),), forward_bytes, backward_bytes)


# -- pipelines -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["gpipe", "1f1b"])
@pytest.mark.parametrize("micro_batches", MICRO_BATCHES)
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 6])
def test_bubble(stages, micro_batches, order):
    """Equal stages, no bytes, no latency: (m + p - 1)(f + b), of which (p - 1)/(m + p - 1) is idle."""
    topology = hosts(stages, latency_s=0.0)
    took_s = play(pipeline_step([stage()] * stages, micro_batches, order=order), topology).duration_s
    assert took_s == within((micro_batches + stages - 1) * (F_S + B_S))
    idle = 1 - micro_batches * (F_S + B_S) / took_s
    assert idle == pytest.approx((stages - 1) / (micro_batches + stages - 1), abs=1e-12)


@pytest.mark.parametrize("micro_batches", MICRO_BATCHES)
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_gpipe_with_activations(stages, micro_batches):
    """Messages no longer than passes delay the first micro-batch there and the last back: (p - 1)(x_f + x_b + 2 p)."""
    size = 6.25e6
    took_s = play(pipeline_step([stage(size, 2 * size)] * stages, micro_batches)).duration_s
    passes_s = (micro_batches + stages - 1) * (F_S + B_S)
    assert took_s == within(passes_s + (stages - 1) * (3 * size / B + 2 * P))


def reckoned_s(p: int, m: int, order: str, x_f: float, x_b: float) -> float:
    """Go through the passes of all stages in their order, as often as there is one that may begin.

    Independent of schedules: a pass begins when the one before it on its stage is over and its message has come; a
    message takes x and the latency, and follows the one before it.
    """
    orders = []
    for s in range(p):
        w = min(p - s, m) if order == "1f1b" else m
        passes = [("F", k) for k in range(w)]
        for k in range(m):
            passes += [("B", k)] + ([("F", w + k)] if w + k < m else [])
        orders.append(passes)
    come: dict[tuple[str, int, int], float] = {}
    for k in range(m):
        come["F", 0, k] = 0.0
        come["B", p - 1, k] = 0.0
    free, link = [0.0] * p, {}
    while any(orders):
        for s in range(p):
            while orders[s] and (orders[s][0][0], s, orders[s][0][1]) in come:
                way, k = orders[s].pop(0)
                free[s] = max(free[s], come[way, s, k]) + (F_S if way == "F" else B_S)
                beside, x = (s + 1, x_f) if way == "F" else (s - 1, x_b)
                if 0 <= beside < p:
                    link[way, s] = max(link.get((way, s), 0.0), free[s]) + x
                    come[way, beside, k] = link[way, s] + P
    return max(free)


@pytest.mark.parametrize("order", ["gpipe", "1f1b"])
@pytest.mark.parametrize("micro_batches", MICRO_BATCHES)
@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_pipelines_as_reckoned_pass_by_pass(stages, micro_batches, order):
    """On a full mesh, whose links nobody shares, of one cable with the latency P; messages shorter and longer."""
    topology = full_mesh(hosts=max(stages, 2), bandwidth_bytes_per_s=B, latency_s=P)
    for size in (0.0, 5e6, 30e6):
        step = pipeline_step([stage(size, 2 * size)] * stages, micro_batches, order=order)
        expected_s = reckoned_s(stages, micro_batches, order, size / B, 2 * size / B)
        assert play(step, topology).duration_s == within(expected_s)


@pytest.mark.parametrize("order", ["gpipe", "1f1b"])
@pytest.mark.parametrize("tensor", [2, 4])
@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 1), (1, 3), (2, 4), (3, 5)])
def test_within_layers_each_segment_takes_its_all_reduce_longer(stages, micro_batches, tensor, order):
    """A ring 2(t - 1)(a/(t B) + p) after each of 2 segments forward and 1 of 2 backward. Messages between stages have
    no bytes, but their latency: with GPipe once there and once back, with 1F1B not more often than for each
    micro-batch."""
    size = 4e6
    ring_s = 2 * (tensor - 1) * (size / (tensor * B) + P)
    one = Stage((Segment(F_S, size),) * 2, (Segment(B_S, size), Segment(B_S)))
    step = pipeline_step([one] * stages, micro_batches, order=order, tensor=tensor, divisible=True)
    pass_s = 2 * (F_S + ring_s) + 2 * B_S + ring_s
    if stages == 1:
        assert play(step).duration_s == within(micro_batches * pass_s)
    else:
        latency_s = 2 * (stages - 1) * P
        took_s = play(step).duration_s
        least_s = (micro_batches + stages - 1) * pass_s
        if order == "gpipe":
            assert took_s == within(least_s + latency_s)
        else:
            assert least_s * (1 - 1e-9) <= took_s <= (least_s + micro_batches * latency_s) * (1 + 1e-9)


@pytest.mark.parametrize("order", ["gpipe", "1f1b"])
def test_milestones_come_when_the_last_micro_batch_has_been_through_a_segment(order):
    """2 stages, no bytes, no latency; the last pass back ends b earlier on the last stage than on the first, and its
    two halves b/2 apart."""
    m = 4
    one = Stage((Segment(F_S),), (Segment(B_S / 2), Segment(B_S / 2)))
    step = pipeline_step([one] * 2, m, order=order)
    played = play(step, hosts(2, latency_s=0.0))
    end_s = (m + 1) * (F_S + B_S)
    found = played.rank_duration_s[step.ready]
    assert found == pytest.approx(np.array([[end_s - B_S / 2, end_s], [end_s - 3 * B_S / 2, end_s - B_S]]), rel=1e-9)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_of_one_host_share_its_memory(ranks):
    """Each needs 1e8 bytes of 100e9 bytes/s for each of 3 segments of 0.5 ms: max(0.5 ms, P 1 ms) a segment."""
    segment = Segment(0.5e-3, memory_bytes=1e8)
    step = pipeline_step([Stage((segment,), (segment, segment))], 1, tensor=ranks)
    topology = hosts(2, memory=100e9)
    on = [int(topology.compiled.rank_nodes[0])] * ranks
    assert play(step, hosts(ranks)).duration_s == within(3 * 0.5e-3)
    assert play(step, topology, on).duration_s == within(3 * max(0.5e-3, ranks * 1e-3))


def test_a_repeated_all_reduce_that_waits_takes_as_long_each_time():
    """One stage, whose segments take no time: T all-reduces one after the other, T 2(N - 1)(x/N + p)."""
    size, n = 4e6, 4
    alone = repeated(ring_all_reduce(n, int(size) // 4, 4.0, divisible=True), 1)
    empty = Step(alone, n, np.full((n, 1), -1), np.empty(0, dtype=np.int64))
    once_s = 2 * (n - 1) * (size / (n * B) + P)
    assert play(empty).duration_s == within(once_s)
    step = pipeline_step([Stage((Segment(0.0, size),), (Segment(0.0),))], 5, tensor=n, divisible=True)
    assert play(step).duration_s == within(5 * once_s)


# -- dataflow graphs -------------------------------------------------------------------------------------------

DIAMOND = [
    DataflowOperation("a", 0, 1e-3),
    DataflowOperation("b", 1, 2e-3),
    DataflowOperation("c", 2, 4e-3, milestone=True),
    DataflowOperation("d", 3, 1e-3, milestone=True),
]
DIAMOND_EDGES = [
    DataflowEdge("a", "b", 12.5e6, "left"),
    DataflowEdge("a", "c", 6.25e6, "right"),
    DataflowEdge("b", "d", 12.5e6),
    DataflowEdge("c", "d", 6.25e6),
]


def test_a_diamond_worked_out_by_hand():
    """The link out of a: two messages share it until the smaller has gone, 1 ms for 6.25 + 6.25 MB, and 6.25 MB more in
    0.5 ms. b begins at 2.5 ms + p and ends at 4.5 ms + p; c begins at 2 ms + p and ends at 6 ms + p. That of b has
    reached d at 5.5 ms + 2 p, that of c at 6.5 ms + 2 p; d ends at 7.5 ms + 2 p."""
    step = dataflow_step(DIAMOND, DIAMOND_EDGES)
    played = play(step)
    assert played.duration_s == within(7.5e-3 + 2 * P)
    assert played.rank_duration_s[step.ready[2, 2]] == within(6e-3 + P)
    assert played.rank_duration_s[step.ready[3, 3]] == within(7.5e-3 + 2 * P)


def test_a_diamond_on_one_device_takes_all_its_operations_one_after_the_other():
    """1 + 2 + 4 + 1 ms, and no message."""
    step = dataflow_step([DataflowOperation(o.name, 0, o.seconds) for o in DIAMOND], DIAMOND_EDGES)
    assert step.schedule.messages() == 0
    assert play(step).duration_s == within(8e-3)


@given(
    seconds=st.lists(st.floats(0, 1e-3), min_size=1, max_size=7),
    chosen=st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=15),
)
@settings(max_examples=25, deadline=None)
def test_with_a_device_each_a_graph_takes_as_long_as_its_longest_path(seconds, chosen):
    """A full mesh gives each edge a link of its own: i S_0/B + P for the i-th operation's tensor of i S_0 bytes."""
    size, unit = len(seconds), 1e6
    edges = [(i, j) for i, j in sorted(chosen) if i < j < size]
    over = list(seconds)
    for j in range(size):
        begun = max((over[i] + i * unit / B + P for i, k in edges if k == j), default=0.0)
        over[j] = begun + seconds[j]
    step = dataflow_step(
        [DataflowOperation(str(i), i, length) for i, length in enumerate(seconds)],
        [DataflowEdge(str(i), str(j), i * unit) for i, j in edges],
    )
    topology = full_mesh(hosts=max(size, 2), bandwidth_bytes_per_s=B, latency_s=P)
    assert play(step, topology).duration_s == pytest.approx(max(over), rel=1e-9, abs=1e-15)
