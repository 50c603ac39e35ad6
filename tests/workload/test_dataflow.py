"""Dataflow graphs: what moves between devices, how long a step is at least, and what is wrong with them."""

from __future__ import annotations

import json
from typing import Any

import networkx as nx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.shipped import shipped_folder
from simnet.units import MEBIBYTE
from simnet.workload import (
    DataflowGraph,
    DataflowOperation,
    DataflowTransfer,
    dataflow_from_data,
    load_model,
    table_workload,
)


def operation(name: str, device: int, time: str = "1 ms", **others: Any) -> dict[str, Any]:
    return {"name": name, "device": device, "time": time, **others}


DIAMOND = {
    "operations": [
        operation("join", 1, "1 ms", inputs=["left", "right"], gradient=7),
        operation("left", 0, "2 ms", output="1 MiB", inputs=["start"]),
        operation("right", 1, "5 ms", output="2 MiB", inputs=["start"]),
        operation("start", 0, "3 ms", output="4 MiB"),
        operation("other", 1, "1 ms", inputs=["start"]),
    ]
}


def problems(data: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        dataflow_from_data(data, "g")
    return [str(problem) for problem in caught.value.problems]


def test_what_is_read() -> None:
    graph = dataflow_from_data(DIAMOND, "diamond")
    assert graph.name == "diamond"
    assert graph.operations[1] == DataflowOperation("left", 0, 2e-3, 1.0 * MEBIBYTE, 0)
    assert graph.operations[0] == DataflowOperation("join", 1, 1e-3, 0.0, 7)
    assert graph.edges == ((1, 0), (2, 0), (3, 1), (3, 2), (3, 4))
    assert (graph.devices, graph.gradient_elements) == (2, 7)


def test_an_output_moves_to_a_device_once() -> None:
    """`right` and `other` on device 1 both read the 4 MiB of `start` on device 0; `left` sends 1 MiB more."""
    graph = dataflow_from_data(DIAMOND, "diamond")
    assert graph.transfers == (
        DataflowTransfer(1, 0, 1, 1.0 * MEBIBYTE, (0,)),
        DataflowTransfer(3, 0, 1, 4.0 * MEBIBYTE, (2, 4)),
    )
    assert graph.bytes_between_devices == {(0, 1): 5.0 * MEBIBYTE}


def test_order_and_times_by_hand() -> None:
    """start, left, right, join: 3 + 5 + 1 ms. Device 1 has right until 8 ms, then join or other, each 1 ms."""
    graph = dataflow_from_data(DIAMOND, "diamond")
    assert [graph.operations[index].name for index in graph.order] == ["start", "left", "right", "join", "other"]
    assert graph.critical_path_s == pytest.approx(9e-3)
    assert graph.makespan_s == pytest.approx(10e-3)


@st.composite
def graphs(draw: st.DrawFn) -> DataflowGraph:
    count = draw(st.integers(1, 8))
    place = draw(st.permutations(range(count)))
    pairs = [(place[one], place[other]) for one in range(count) for other in range(one + 1, count)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    operations = tuple(
        DataflowOperation(f"op{index}", draw(st.integers(0, 2)), draw(st.integers(0, 9)), draw(st.integers(0, 9)))
        for index in range(count)
    )
    return DataflowGraph("g", operations, tuple(edges))


@given(graph=graphs())
def test_order_times_and_transfers_against_networkx(graph: DataflowGraph) -> None:
    """The order respects every edge; a step takes at least the longest path, each device's work, and is not longer than
    all of it; what moves are the distinct (operation, device) pairs among edges that cross.
    """
    built = graph.to_networkx()
    rank = {graph.operations[index].name: place for place, index in enumerate(graph.order)}
    assert all(rank[before] < rank[after] for before, after in built.edges)
    paths = nx.DiGraph()
    for name, of in built.nodes.items():
        paths.add_edge((name, "begin"), (name, "end"), weight=of["time_s"])
    paths.add_edges_from(((before, "end"), (after, "begin")) for before, after in built.edges)
    assert graph.critical_path_s == nx.dag_longest_path_length(paths, default_weight=0)
    busy_s = [sum(of.time_s for of in graph.operations if of.device == device) for device in range(graph.devices)]
    assert max(graph.critical_path_s, *busy_s, 0) <= graph.makespan_s <= sum(busy_s)
    crossing = {
        (before, built.nodes[after]["device"])
        for before, after in built.edges
        if built.nodes[before]["device"] != built.nodes[after]["device"]
    }
    assert {(graph.operations[t.operation].name, t.target) for t in graph.transfers} == crossing
    moved = sum(built.nodes[before]["output_bytes"] for before, _ in crossing)
    assert sum(graph.bytes_between_devices.values()) == moved


@given(graph=graphs())
def test_what_is_written_is_read_back(graph: DataflowGraph) -> None:
    rows = [
        {
            "name": of.name,
            "device": of.device,
            "time_s": of.time_s,
            "output_bytes": of.output_bytes,
            "inputs": [graph.operations[before].name for before, after in graph.edges if after == index],
        }
        for index, of in enumerate(graph.operations)
    ]
    again = dataflow_from_data(json.loads(json.dumps({"operations": rows})), "g")
    assert again.operations == graph.operations
    assert set(again.edges) == set(graph.edges)


def test_everything_wrong_is_told_with_its_path() -> None:
    data = {
        "operation": 1,
        "operations": [
            operation("a", 0, "1", output="2 ms", inputs=["b", "z", "b", ["c"]]),
            operation("b", -1, "-1 ms", output=3, gradient=1.5),
            operation("b", 0, inputs="a"),
            7,
            {"device": True, "time": "1 ms"},
            {"name": "c"},
            operation("d", 0, time_s=1.0, ouput="1 B"),
            operation("", 0),
            operation("e", "0", output_bytes="4", gradient="9"),
            operation("f", 10**9, "1e99 h", inputs=["f"]),
        ],
    }
    assert problems(data) == [
        "operation: unknown key 'operation', did you mean 'operations'?",
        "operations.0.inputs.3: an input is ['c'], a name is wanted: one line of at most 200 characters",
        "operations.2.inputs: inputs is 'a', a list of names is wanted",
        "operations.3: operation 3 is not a mapping, like {name: conv1, device: 0, time: 1.2 ms, output: 4 MiB, "
        "inputs: [data]}",
        "operations.4: 'name' is missing",
        "operations.7.name: name is '', a name is wanted: one line of at most 200 characters",
        "operations.0.time: time: '1' has no unit, write it like '1 us', '2.5 ms' or '3 s'",
        "operations.0.output: output: '2 ms' is a duration, not a size, write it like '25 MiB', '25 MB' or '4096 B'",
        "operations.1.device: device is -1, a whole number from 0 to 1e+15 is wanted",
        "operations.1.time: time: '-1 ms' is negative, write it like '1 us', '2.5 ms' or '3 s'",
        "operations.1.output: output: 3 has no unit, write it like '25 MiB', '25 MB' or '4096 B'",
        "operations.1.gradient: gradient is 1.5, a whole number from 0 to 1e+15 is wanted",
        "operations.5: operation 'c' has no device, like {name: conv1, device: 0, time: 1.2 ms, output: 4 MiB, "
        "inputs: [data]}",
        "operations.5: operation 'c' has no time, like {name: conv1, device: 0, time: 1.2 ms, output: 4 MiB, "
        "inputs: [data]}",
        "operations.6.ouput: unknown key 'ouput', did you mean 'output'?",
        "operations.6.time_s: time and time_s are both given, leave one out",
        "operations.8.device: device is '0', a whole number from 0 to 1e+15 is wanted, without quotes",
        "operations.8.output_bytes: output_bytes is '4', a number from 0 to 1e+60 is wanted; text with a unit goes "
        "under 'output'",
        "operations.8.gradient: gradient is '9', a whole number from 0 to 1e+15 is wanted, without quotes",
        "operations.9.device: device is 1000000000, devices are counted from 0",
        "operations.9.time: time is '1e99 h', nobody means that much",
        "operations.2: two operations are called 'b'",
        "operations.0.inputs.1: there is no operation 'z', known: a, b, c, d, e, f",
        "operations.0.inputs.2: 'a' has the input 'b' twice, leave one out",
        "operations.9.inputs.0: operations wait for each other in a circle: f -> f, cut it somewhere",
    ]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([], "there is no list of operations"),
        ({}, "there is no list of operations"),
        (None, "there is no list of operations"),
        ({"operations": "a"}, "operations is 'a', a list is wanted"),
        ({"operations": []}, "there are no operations"),
        ({"operations": [{"name": 10**5000, "device": 0, "time": "1 s"}]}, "name is a number of more than 60 digits"),
    ],
)
def test_data_that_is_no_graph(data: Any, told: str) -> None:
    [problem] = problems(data)
    assert told in problem


def test_circles_are_named_one_by_one() -> None:
    """a -> b -> c -> a and x -> y -> x; d hangs behind, e lies between both."""
    wanted = {"a": ["c"], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["b"], "x": ["y", "e"], "y": ["x"]}
    rows = [operation(name, 0, inputs=inputs) for name, inputs in wanted.items()]
    assert problems({"operations": rows}) == [
        "operations.0.inputs.0: operations wait for each other in a circle: a -> b -> c -> a, cut it somewhere",
        "operations.5.inputs.0: operations wait for each other in a circle: x -> y -> x, cut it somewhere",
    ]


def test_a_long_circle_is_shortened() -> None:
    rows = [operation(f"{index}", 0, inputs=[f"{(index - 1) % 500}"]) for index in range(500)]
    [problem] = problems({"operations": rows})
    assert "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8 -> … -> 499 -> 0" in problem


def test_a_circle_is_refused_without_a_file_too() -> None:
    operations = tuple(DataflowOperation(name, 0, 1.0) for name in "ab")
    with pytest.raises(ValueError, match="in a circle"):
        DataflowGraph("g", operations, ((0, 1), (1, 0)))


def test_numbers_are_names_too() -> None:
    graph = dataflow_from_data({"operations": [operation(1, 0), operation("2", 0, inputs=[1])]}, "g")  # type: ignore[arg-type]
    assert [of.name for of in graph.operations] == ["1", "2"]
    assert graph.edges == ((0, 1),)


def test_the_shipped_step_of_alexnet() -> None:
    """Its times add up to those of the measured workload, its gradients to the model, and what moves are the outputs at
    the cuts: forward and, as gradients, back.
    """
    text = (shipped_folder("workloads") / "dataflow" / "alexnet_4_devices.yaml").read_text(encoding="utf-8")
    graph = dataflow_from_data(yaml.safe_load(text), "alexnet_4_devices")
    workload = table_workload(model="alexnet", gpu="p100", batch_size=512)
    model = load_model("alexnet")
    assert sum(of.time_s for of in graph.operations) == pytest.approx(workload.compute_time_s, rel=1e-3)
    assert graph.gradient_elements == model.parameters
    at_cut = [512 * model.layers[last].activation_bytes for last in (2, 5, 13)]
    assert graph.bytes_between_devices == {
        **{(device, device + 1): size for device, size in enumerate(at_cut)},
        **{(device + 1, device): size for device, size in enumerate(at_cut)},
    }
    # Forward, loss, back to the first block; the gradients of the second block end later, after its backward pass.
    chain_ms = 9.667 + 25.91 + 11.06 + 6.554 + 0.007105 + 8.038 + 13.25 + 31.46
    assert graph.critical_path_s == pytest.approx((chain_ms + 12.72) * 1e-3)
    assert graph.makespan_s == pytest.approx((chain_ms + 31.46) * 1e-3)
