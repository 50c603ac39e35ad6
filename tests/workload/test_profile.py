"""Traces out of PyTorch profiles: two of a CPU as PyTorch 2.13 writes them, and one made by hand as on a GPU.

``profile_modules.json`` is a convolution, batch normalisation, ReLU and linear layer with ``with_stack=True``;
``profile_operators.json.gz`` two residual blocks and a transformer layer without. Both hold two steps and shapes.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from simnet.errors import InputError
from simnet.workload import TraceRow, from_profile, load_trace, write_trace

DATA = Path(__file__).parent / "data"


def _names(rows: tuple[TraceRow, ...], phase: str, iteration: int = 0) -> list[str]:
    return [row.layer for row in rows if (row.phase, row.iteration) == (phase, iteration)]


def test_layers_are_the_innermost_modules() -> None:
    """conv 8 * 3 * 3 * 3 = 216, batch norm 2 * 8, linear 10 * 512 + 10 parameters; flattening is outside of them."""
    rows = from_profile(DATA / "profile_modules.json")
    layers = ["Conv2d_0", "BatchNorm2d_0", "ReLU_0", "flatten", "Linear_0", "CrossEntropyLoss_0"]
    for iteration in (0, 1):
        assert _names(rows, "forward", iteration) == layers
        assert _names(rows, "backward", iteration) == layers[::-1]
        assert _names(rows, "optimizer", iteration) == [""]
    parameters = {row.layer: row.parameters for row in rows if row.phase == "forward"}
    assert parameters == {**dict.fromkeys(layers, 0), "Conv2d_0": 216, "BatchNorm2d_0": 16, "Linear_0": 5130}


def test_a_profile_becomes_a_trace_that_takes_as_long_as_its_steps(tmp_path: Path) -> None:
    """ProfilerStep#2 took 2459.061 us and ProfilerStep#3 1693.606 us."""
    path = tmp_path / "trace.csv"
    write_trace(path, from_profile(DATA / "profile_modules.json"))
    trace = load_trace(path, batch_size=16)
    assert trace.iteration_time_s[:, 0] == pytest.approx([2459.061e-6, 1693.606e-6], abs=1e-9)
    assert [(tensor.name, tensor.elements) for tensor in trace.model.tensors] == [
        ("Linear_0", 5130),
        ("BatchNorm2d_0", 16),
        ("Conv2d_0", 216),
    ]


def test_without_modules_layers_are_operators_and_own_ranges(tmp_path: Path) -> None:
    """All 39,328 parameters are found, in the order in which the gradient hooks of that run were called."""
    rows = from_profile(DATA / "profile_operators.json.gz", rank=3)
    assert {row.rank for row in rows} == {3}
    parameters = {row.layer: row.parameters for row in rows if row.phase == "backward" and row.iteration == 0}
    assert [(name, count) for name, count in parameters.items() if count] == [
        ("mul", 64),
        ("layer_norm#2", 128),
        ("linear#4", 8256),
        ("linear#3", 8320),
        ("layer_norm", 128),
        ("linear#2", 4160),
        ("linear", 12480),
        ("embedding", 3200),
        ("batch_norm#4", 16),
        ("conv2d#4", 576),
        ("batch_norm#3", 16),
        ("conv2d#3", 576),
        ("batch_norm#2", 16),
        ("conv2d#2", 576),
        ("batch_norm", 16),
        ("conv2d", 576),
        ("stem_range", 224),
    ]
    path = tmp_path / "trace.csv"
    write_trace(path, from_profile(DATA / "profile_operators.json.gz"))
    assert load_trace(path, batch_size=4).model.parameters == 39_328


def _event(name: str, category: str, start: float, duration: float, thread: int = 1, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "ts": start,
        "dur": duration,
        "pid": 1,
        "tid": thread,
        "args": args,
    }


def _gpu_step(number: int, at: float, *, communicate: bool) -> list[dict[str, Any]]:
    """Two operators forward, their nodes on the autograd thread, one optimizer; the GPU lags 100 us behind.

    Kernels after the step begins: 100-140 and 150-190 forward, 200-260 and 260-300 backward, 320-350 optimizer.
    """
    correlation = 10 * number
    node = "autograd::engine::evaluate_function: "
    events = [
        _event(f"ProfilerStep#{number}", "user_annotation", at, 120),
        _event("aten::linear", "cpu_op", at + 10, 10, **{"Sequence number": 2 * number, "Fwd thread id": 0}),
        _event("aten::linear", "cpu_op", at + 30, 10, **{"Sequence number": 2 * number + 1, "Fwd thread id": 0}),
        _event(
            f"{node}AddmmBackward0", "cpu_op", at + 50, 10, 2, **{"Sequence number": 2 * number + 1, "Fwd thread id": 1}
        ),
        _event(f"{node}torch::autograd::AccumulateGrad", "cpu_op", at + 62, 4, 2),
        _event("torch::autograd::AccumulateGrad", "cpu_op", at + 63, 2, 2, **{"Input Dims": [[4, 5]]}),
        _event(
            f"{node}AddmmBackward0", "cpu_op", at + 70, 10, 2, **{"Sequence number": 2 * number, "Fwd thread id": 1}
        ),
        _event(f"{node}torch::autograd::AccumulateGrad", "cpu_op", at + 82, 4, 2),
        _event("torch::autograd::AccumulateGrad", "cpu_op", at + 83, 2, 2, **{"Input Dims": [[3]]}),
        _event("Optimizer.step#SGD.step", "user_annotation", at + 100, 15),
    ]
    launches = [(12, 1, 100, 40), (32, 1, 150, 40), (52, 2, 200, 60), (72, 2, 260, 40), (105, 1, 320, 30)]
    for place, (launched, thread, start, duration) in enumerate(launches):
        link = {"correlation": correlation + place}
        events.append(_event("cudaLaunchKernel", "cuda_runtime", at + launched, 2, thread, **link))
        events.append(_event("kernel", "kernel", at + start, duration, 7, **link))
    if communicate:
        events.append(_event("cudaLaunchKernel", "cuda_runtime", at + 65, 1, 2, correlation=correlation + 9))
        events.append(_event("ncclDevKernel_AllReduce", "kernel", at + 262, 1000, 8, correlation=correlation + 9))
    return events


def _written(tmp_path: Path, document: object) -> Path:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize("communicate", [False, True])
def test_on_a_gpu_times_are_those_of_the_kernels(tmp_path: Path, communicate: bool) -> None:
    """Steps 400 us apart: 250 us of kernels, then nothing until the next, which counts unless it may be waiting."""
    events = [event for number in (5, 6) for event in _gpu_step(number, 1000 + 400 * number, communicate=communicate)]
    path = _written(tmp_path, {"distributedInfo": {"rank": 2}, "traceEvents": events})
    rows = [row for row in from_profile(path) if row.iteration == 0]
    start = rows[0].start_s
    assert [(row.layer, row.phase, row.parameters) for row in rows[:5]] == [
        ("linear", "forward", 3),
        ("linear#2", "forward", 20),
        ("linear#2", "backward", 20),
        ("linear", "backward", 3),
        ("", "optimizer", None),
    ]
    assert [(row.start_s - start) * 1e6 for row in rows[:5]] == pytest.approx([0, 50, 100, 160, 220])
    assert [row.duration_s * 1e6 for row in rows[:5]] == pytest.approx([40, 40, 60, 40, 30])
    assert {row.rank for row in rows} == {2}
    rest = [row.duration_s * 1e6 for row in rows[5:]]
    assert rest == ([] if communicate else pytest.approx([150]))


def test_a_layer_that_is_called_again_is_another_layer(tmp_path: Path) -> None:
    events = [
        _event("ProfilerStep#1", "user_annotation", 0, 100),
        _event("nn.Module: Net_0", "python_function", 5, 40),
        _event("nn.Module: ReLU_0", "python_function", 10, 10),
        _event("aten::relu", "cpu_op", 12, 5, **{"Sequence number": 1, "Fwd thread id": 0}),
        _event("nn.Module: ReLU_0", "python_function", 20, 10),
        _event("aten::relu", "cpu_op", 22, 5, **{"Sequence number": 2, "Fwd thread id": 0}),
        _event("autograd::engine::evaluate_function: ReluBackward0", "cpu_op", 50, 5, **{"Sequence number": 2}),
        _event("autograd::engine::evaluate_function: ReluBackward0", "cpu_op", 60, 5, **{"Sequence number": 1}),
    ]
    rows = from_profile(_written(tmp_path, events))
    assert _names(rows, "forward") == ["ReLU_0", "ReLU_0#2"]
    assert _names(rows, "backward") == ["ReLU_0#2", "ReLU_0"]
    assert {row.parameters for row in rows} == {None}
    assert sum(row.duration_s for row in rows if row.phase in ("forward", "backward")) == pytest.approx(30e-6)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b'{"traceEvents": [\n  {"ph": "X",}\n]}', 2, "this is not JSON: "),
        (b'{"events": []}', 0, "the file has no list 'traceEvents'"),
        (b"3", 0, "the file has no list 'traceEvents'"),
        (b'{"traceEvents": []}', 0, "the profile has no ProfilerStep#n ranges"),
        (b"[" * 100_000, 1, "this JSON is nested too deeply"),
        (b'{"traceEvents": [\n{"ph": "X", "ts": ' + b"9" * 6000 + b"}]}", 2, "a number of 6000 digits is too long"),
        (b'{"a":\n"\xff"}', 2, "is not UTF-8 text (byte 0xff)"),
        (gzip.compress(b"{}" * 100, mtime=0)[:-8], 0, "the compressed file is damaged"),
        (
            json.dumps([_event("ProfilerStep#1", "user_annotation", 0, 9)]).encode(),
            1,
            "no forward and no backward pass in ProfilerStep#1",
        ),
    ],
)
def test_files_that_are_no_profiles(tmp_path: Path, content: bytes, line: int, message: str) -> None:
    path = tmp_path / "profile.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        from_profile(path)
    (problem,) = caught.value.problems
    assert (problem.source, problem.line) == (str(path), line)
    assert problem.message.startswith(message)


def _cpu_step(number: int, at: float, **changes: Any) -> list[dict[str, Any]]:
    """One operator forward, its node backward, and the gradient of a parameter with 20 elements."""
    node = "autograd::engine::evaluate_function: "
    return [
        _event(f"ProfilerStep#{number}", "user_annotation", at, 100),
        _event(changes.get("name", "aten::linear"), "cpu_op", at + 10, 10, **{"Sequence number": number}),
        _event(f"{node}AddmmBackward0", "cpu_op", at + 30, 10, **{"Sequence number": number}),
        _event(f"{node}torch::autograd::AccumulateGrad", "cpu_op", at + 50, 10),
        _event(
            "torch::autograd::AccumulateGrad", "cpu_op", at + 52, 5, **{"Input Dims": changes.get("dims", [[4, 5]])}
        ),
    ]


def _said(tmp_path: Path, document: object) -> list[str]:
    """Return what is said of a profile; each event stands on a line of its own, event 0 on line 2."""
    events = ",\n".join(json.dumps(event) for event in document) if isinstance(document, list) else ""
    path = tmp_path / "profile.json"
    path.write_text(f"[\n{events}]" if events else json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        from_profile(path)
    return [str(problem).removeprefix(f"{path}:").split("\n")[0] for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dur": float("inf")}, "dur is inf, microseconds from 0 to 1e+18 are wanted"),
        ({"dur": float("nan")}, "dur is nan, microseconds from 0"),
        ({"dur": -1}, "dur is -1, microseconds from 0"),
        ({"dur": 10**400}, "dur is a number of more than 60 digits"),
        ({"dur": "9"}, "dur is '9'"),
        ({"dur": True}, "dur is True"),
        ({"ts": None}, "ts is missing, microseconds from -1e+18 to 1e+18 are wanted"),
        ({"ts": float("-inf")}, "ts is -inf"),
        ({"ts": 1e300}, "ts is 1e+300"),
        ({"tid": [1]}, "'tid' is [1], a number is wanted"),
        ({"args": {"Sequence number": {}}}, "'Sequence number' is {}, a number is wanted"),
        ({"args": {"correlation": [2]}}, "'correlation' is [2], a number is wanted"),
    ],
)
def test_an_event_that_is_wrong_is_told_by_name_and_number(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    events = _cpu_step(1, 0)
    events[1] |= change
    [found] = _said(tmp_path, events)
    line, _, rest = found.split(":", 2)
    assert line == "3"
    assert rest.startswith(f" event 1 ('aten::linear'): {said}")


@pytest.mark.parametrize(
    "dims",
    [[[-3, 2]], [[10**30, 10**30]], [[10**8, 10**8]], 5, {"a": 1}, [3], "x"],
)
def test_gradients_of_shapes_that_cannot_be(tmp_path: Path, dims: object) -> None:
    [found] = _said(tmp_path, _cpu_step(1, 0, dims=dims))
    assert found.startswith("6:")
    assert "event 4 ('torch::autograd::AccumulateGrad'): " in found
    assert "shape" in found


def test_everything_wrong_with_a_profile_is_told_at_once(tmp_path: Path) -> None:
    events = [*_cpu_step(1, 0), *_cpu_step(2, 200, dims=[[-1]])]
    events[2]["dur"] = -1
    events[6]["ts"] = "x"
    assert [line.split(":")[0] for line in _said(tmp_path, events)] == ["4", "8", "11"]


def test_a_step_that_stands_twice(tmp_path: Path) -> None:
    [found] = _said(tmp_path, [*_cpu_step(2, 0), *_cpu_step(2, 200)])
    assert found == "7:1: event 5: ProfilerStep#2 was event 0 already, one profile of one process a file is wanted"


def test_steps_that_overlap(tmp_path: Path) -> None:
    [found] = _said(tmp_path, [*_cpu_step(1, 0), *_cpu_step(2, 70)])
    assert (
        found == "7:1: event 5: ProfilerStep#2 begins before ProfilerStep#1 (event 0) is over, steps follow each other"
    )


@pytest.mark.parametrize("rank", [-1, True, 1.5, "0", [], 10**30])
def test_a_rank_that_cannot_be(tmp_path: Path, rank: object) -> None:
    document = {"distributedInfo": {"rank": rank}, "traceEvents": _cpu_step(1, 0)}
    [found] = _said(tmp_path, document)
    assert "rank is " in found
    assert [row.rank for row in from_profile(_written(tmp_path, document), rank=3)] == [3] * 4


def test_a_profile_whose_steps_have_other_layers_gives_no_trace(tmp_path: Path) -> None:
    [no, _] = _said(tmp_path, [*_cpu_step(1, 0), *_cpu_step(2, 200, name="aten::conv2d")])
    assert "the trace of this profile could not be replayed: iteration 1 of rank 0 has no backward of 'linear'" in no


@pytest.mark.parametrize("name", [' a,\n"b"\u2028', "", "\ud800", "\x85", "x#2"])
def test_whatever_layers_are_called_the_trace_can_be_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "trace.csv"
    events = _cpu_step(1, 0, name=name)
    for place, sequence in ((60, 7), (80, 8)):
        events.insert(2, _event("x", "cpu_op", 20 + place / 20, 1, **{"Sequence number": sequence}))
        events.append(
            _event("autograd::engine::evaluate_function: X", "cpu_op", place, 5, **{"Sequence number": sequence})
        )
    write_trace(path, from_profile(_written(tmp_path, events)))
    trace = load_trace(path, batch_size=1)
    assert (len(trace.model.layers), trace.model.parameters) == (3, 20)


def test_a_missing_profile(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        from_profile(tmp_path / "none.json")
