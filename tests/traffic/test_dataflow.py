"""Dataflow graphs: what crosses devices, and what is refused; times are in the tests of the fabric."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.traffic import (
    DataflowEdge,
    DataflowOperation,
    Kind,
    Step,
    check_deadlock,
    dataflow_step,
    validate_schedule,
)


def pair_bytes(step: Step) -> dict[tuple[int, int], float]:
    """What goes from each device to each other."""
    ops, sent = step.schedule.operations, step.schedule.operation_bytes()
    found: dict[tuple[int, int], float] = defaultdict(float)
    for i in np.flatnonzero(ops.kind == Kind.SEND).tolist():
        found[int(ops.source[i]), int(ops.target[i])] += float(sent[i])
    return dict(found)


def operations(*devices: int) -> list[DataflowOperation]:
    return [DataflowOperation("abcdefgh"[i], device, 1.0) for i, device in enumerate(devices)]


def test_only_edges_that_cross_send():
    """a and b on device 0, c on 1: a -> b stays, a -> c and b -> c go."""
    step = dataflow_step(operations(0, 0, 1), [DataflowEdge(*"ab", 5), DataflowEdge(*"ac", 5), DataflowEdge(*"bc", 7)])
    assert pair_bytes(step) == {(0, 1): 12.0}
    assert step.schedule.messages() == 2


def test_a_tensor_travels_once_to_each_device():
    """a makes one tensor, which b and c on device 1 and d on device 2 need: 5 bytes to each of the two."""
    edges = [DataflowEdge("a", other, 5) for other in "bcd"]
    step = dataflow_step(operations(0, 1, 1, 2), edges)
    assert pair_bytes(step) == {(0, 1): 5.0, (0, 2): 5.0}


def test_different_outputs_travel_each():
    edges = [DataflowEdge("a", "b", 5, "mean"), DataflowEdge("a", "c", 7, "variance")]
    assert pair_bytes(dataflow_step(operations(0, 1, 1), edges)) == {(0, 1): 12.0}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[DataflowOperation], list[DataflowEdge]]:
    size, devices = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    made = [
        DataflowOperation(f"op{i}", draw(st.integers(0, devices - 1)), 1.0, draw(st.booleans())) for i in range(size)
    ]
    edges = [
        DataflowEdge(f"op{i}", f"op{j}", float(10**i), "") for j in range(size) for i in range(j) if draw(st.booleans())
    ]
    return made, draw(st.permutations(edges))


@given(graph=graphs())
@settings(max_examples=60, deadline=None)
def test_bytes_between_devices_are_the_cut_edges(graph):
    """One tensor an operation, 10^i bytes for the i-th, counted once for each device that needs it elsewhere."""
    made, edges = graph
    step = dataflow_step(made, edges)
    validate_schedule(step.schedule)
    check_deadlock(step.schedule)
    device = {operation.name: operation.device for operation in made}
    cut = {(edge.before, device[edge.after]): edge.size_bytes for edge in edges}
    expected: dict[tuple[int, int], float] = defaultdict(float)
    for (before, target), size in cut.items():
        if device[before] != target:
            expected[device[before], target] += size
    assert pair_bytes(step) == expected
    wanted = [i for i, operation in enumerate(made) if operation.milestone]
    assert step.milestone_owner.tolist() == [made[i].device for i in wanted]
    assert [int(step.ready[made[i].device, i]) for i in wanted] == [step.workers + k for k in range(len(wanted))]
    assert (step.ready >= 0).sum() == len(wanted)


def test_nothing_to_do():
    assert len(dataflow_step([], []).schedule.operations) == 0


def test_a_circle_is_refused_by_name():
    edges = [DataflowEdge(*pair) for pair in ("ab", "bc", "cd", "db", "de")]
    with pytest.raises(InputError, match="operations wait for each other: ") as refused:
        dataflow_step(operations(0, 0, 1, 1, 0), edges)
    assert any(circle in str(refused.value) for circle in ("b -> c -> d -> b", "c -> d -> b -> c", "d -> b -> c -> d"))
    with pytest.raises(InputError, match="a -> a"):
        dataflow_step(operations(0), [DataflowEdge("a", "a")])


def test_a_long_circle_is_cut_short():
    made = [DataflowOperation(f"op{i}", 0, 1.0) for i in range(30)]
    edges = [DataflowEdge(f"op{i}", f"op{(i + 1) % 30}") for i in range(30)]
    with pytest.raises(InputError, match=r"\.\.\."):
        dataflow_step(made, edges)


def test_everything_that_is_wrong_is_told_at_once():
    made = [
        DataflowOperation("conv1", 0, 1.0),
        DataflowOperation("conv1", 5, -1.0),
        DataflowOperation("loss", 1, float("nan")),
    ]
    edges = [DataflowEdge("conv", "loss", 1), DataflowEdge("conv1", "loss", 4), DataflowEdge("conv1", "loss", -3)]
    with pytest.raises(InputError) as refused:
        dataflow_step(made, edges, devices=2)
    told = str(refused.value)
    for part in (
        "operation 'conv1' is there twice",
        "operation 'conv1' is on device 5",
        "operation 'conv1': seconds -1.0",
        "operation 'loss': seconds nan",
        "there is no operation 'conv'",
        "did you mean 'conv1'?",
        "size_bytes -3",
        "-3 bytes, elsewhere 4",
    ):
        assert part in told
