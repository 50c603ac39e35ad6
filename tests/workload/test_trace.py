"""Recorded traces: replayed as recorded, read back as written, and refused where they cannot be replayed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.workload import TraceRow, load_model, load_trace, write_trace

HEADER = "iteration,rank,layer,phase,start_s,duration_s,parameters\n"

# One worker. Iteration 0 from 10.0 to 11.7: input until 10.1, a until 10.3, a gap, b until 10.5, the loss, b backward
# 10.6 to 11.0, a backward 11.1 to 11.4, optimizer until 11.7. Iteration 1 the same, but b takes 0.05 s longer backward.
TRACE = HEADER + (
    "0,0,,other,10.0,0.1,\n"
    "0,0,a,forward,10.1,0.2,100\n"
    "0,0,b,forward,10.35,0.15,20\n"
    "0,0,b,backward,10.6,0.4,20\n"
    "0,0,a,backward,11.1,0.3,100\n"
    "0,0,,optimizer,11.4,0.3,\n"
    "1,0,,other,20.0,0.1,\n"
    "1,0,a,forward,20.1,0.2,100\n"
    "1,0,b,forward,20.35,0.15,20\n"
    "1,0,b,backward,20.6,0.45,20\n"
    "1,0,a,backward,21.15,0.3,100\n"
    "1,0,,optimizer,21.45,0.3,\n"
)


def test_a_trace_is_replayed_as_recorded(write: Callable[[str], Path]) -> None:
    """Forward ends at 0.5 s, b's gradient is ready at 1.0 s, a's at 1.4 s, and the iteration takes 1.7 s."""
    trace = load_trace(write(TRACE), batch_size=32, gpu="ours")
    assert (trace.iterations, trace.ranks, trace.batch_size, trace.gpu) == (2, 1, 32, "ours")
    assert [layer.name for layer in trace.model.layers] == ["a", "b"]
    assert [(tensor.name, tensor.elements) for tensor in trace.model.tensors] == [("b", 20), ("a", 100)]
    assert trace.tensor_elements.tolist() == [20, 100]
    assert trace.iteration_time_s.ravel() == pytest.approx([1.7, 1.75], abs=1e-9)
    step = trace.step(0, 0)
    assert (step.total_s, step.forward_s, step.backward_s, step.optimizer_s) == pytest.approx(
        (1.7, 0.5, 0.9, 0.3), abs=1e-9
    )
    assert step.tensor_ready_s == pytest.approx([1.0, 1.4], abs=1e-9)
    assert trace.step(1, 0).tensor_ready_s == pytest.approx([1.05, 1.45], abs=1e-9)
    # The time between ends belongs to the layer that ends: a 0.3 (with input), b 0.2 (with the gap before it).
    assert trace.forward_s[0, 0] == pytest.approx([0.3, 0.2], abs=1e-9)
    assert trace.backward_s[0, 0] == pytest.approx([0.4, 0.5], abs=1e-9)


def test_iterations_may_begin_anywhere_and_ranks_have_clocks_of_their_own(write: Callable[[str], Path]) -> None:
    rows = [line.split(",", 2) for line in TRACE.splitlines()[1:]]
    both = "".join(f"{int(i) + 7},{rank},{rest}\n" for rank in (1, 0) for i, _, rest in rows)
    trace = load_trace(write(HEADER + both), batch_size=32)
    assert trace.iteration_time_s == pytest.approx(np.array([[1.7, 1.7], [1.75, 1.75]]), abs=1e-9)


def test_gradients_in_the_order_in_which_they_became_ready(write: Callable[[str], Path]) -> None:
    """a ends backward before b although it came first forward; an iteration that swaps them waits for the later."""
    trace = load_trace(
        write(
            HEADER + "0,0,a,forward,0,1,1\n0,0,b,forward,1,1,1\n0,0,a,backward,2,1,1\n0,0,b,backward,3,1,1\n"
            "1,0,a,forward,0,1,1\n1,0,b,forward,1,1,1\n1,0,b,backward,2,1,1\n1,0,a,backward,3,1,1\n"
        ),
        batch_size=1,
    )
    assert [tensor.name for tensor in trace.model.tensors] == ["a", "b"]
    assert trace.step(0, 0).tensor_ready_s.tolist() == [3.0, 4.0]
    assert trace.step(1, 0).tensor_ready_s.tolist() == [4.0, 4.0]


times = st.lists(st.floats(0.0, 10.0), min_size=2, max_size=2)


@given(gaps=st.lists(st.lists(times, min_size=7, max_size=7), min_size=1, max_size=4), origin=st.floats(0.0, 1e5))
def test_what_is_written_is_read_back_and_takes_the_recorded_time(
    gaps: list[list[list[float]]], origin: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For any gaps and durations: the spans add up to the last end less the first start, within 1e-9."""
    names = [("", "other"), *[(n, "forward") for n in "ab"], *[(n, "backward") for n in "ba"]]
    names += [("", "optimizer"), ("", "other")]
    rows, recorded = [], []
    clock = origin
    for iteration, stretches in enumerate(gaps):
        first = None
        for (layer, phase), (gap, duration) in zip(names, stretches, strict=True):
            row = TraceRow(iteration, 0, layer, phase, clock + gap, duration, 5 if layer else None)
            first = row.start_s if first is None else first
            clock = row.end_s
            rows.append(row)
        assert first is not None
        recorded.append(clock - first)
    path = tmp_path_factory.mktemp("trace") / "trace.csv"
    write_trace(path, rows)
    trace = load_trace(path, batch_size=1)
    assert trace.iteration_time_s[:, 0] == pytest.approx(recorded, abs=1e-9)
    for iteration in range(trace.iterations):
        step = trace.step(iteration, 0)
        assert step.total_s == pytest.approx(step.forward_s + step.backward_s + step.optimizer_s, abs=1e-9)
        assert step.tensor_ready_s[-1] == pytest.approx(step.forward_s + step.backward_s, abs=1e-9)
        assert trace.forward_s[iteration, 0].sum() == pytest.approx(step.forward_s, abs=1e-9)
        assert trace.backward_s[iteration, 0].sum() == pytest.approx(step.backward_s, abs=1e-9)


def test_names_with_commas_and_quotes_survive(tmp_path: Path) -> None:
    rows = [TraceRow(0, 0, 'a,"b"', phase, start, 1.0, 3) for start, phase in enumerate(("forward", "backward"))]
    write_trace(tmp_path / "t.csv", rows)
    assert load_trace(tmp_path / "t.csv", batch_size=1).model.layers[0].name == 'a,"b"'


def test_gradients_from_a_shipped_model(write: Callable[[str], Path]) -> None:
    """A recording by blocks: each gradient lies in the block whose name its layer begins with."""
    blocks = ["conv1", "bn1", "layer1", "layer2", "layer3", "layer4", "fc"]
    lines = [f"0,0,{name},forward,{time},1" for time, name in enumerate(blocks)]
    lines += [f"0,0,{name},backward,{10 + time},1" for time, name in enumerate(reversed(blocks))]
    text = "iteration,rank,layer,phase,start_s,duration_s\n" + "\n".join(lines)
    trace = load_trace(write(text), batch_size=64, model="resnet50")
    model = load_model("resnet50")
    assert trace.model.tensor_elements.tolist() == model.tensor_elements.tolist()
    assert trace.model.name == "resnet50"
    ready = dict(zip((tensor.name for tensor in model.tensors), trace.step(0, 0).tensor_ready_s, strict=True))
    assert (ready["fc.weight"], ready["layer4.0.conv1.weight"], ready["conv1.weight"]) == (11.0, 12.0, 17.0)
    with pytest.raises(InputError, match="no backward row for layers of resnet50: 'fc'"):
        load_trace(write(text.replace(",fc,", ",fully,")), batch_size=64, model="resnet50")
    with pytest.raises(
        InputError, match="the trace does not say how large its gradients are, add a column 'parameters'"
    ):
        load_trace(write(text), batch_size=64)
    with pytest.raises(InputError, match="did you mean 'resnet50'"):
        load_trace(write(text), batch_size=64, model="resnet5")


def test_everything_wrong_with_cells_is_told_at_once(write: Callable[[str], Path]) -> None:
    path = write(
        "iteration,rank,layer,phase,start_s,duration_s,parameters\n"
        "0,x,a,forward,0,1,\n"
        "0.5,0,a,forwards,0,-1,\n"
        "0,0,,backward,nan,1,many\n"
    )
    with pytest.raises(InputError) as caught:
        load_trace(path, batch_size=32, precision="fp31")
    assert [(problem.line, problem.column) for problem in caught.value.problems] == [
        (0, 0),
        (2, 3),
        (3, 1),
        (3, 9),
        (3, 20),
        (4, 5),
        (4, 15),
        (4, 21),
    ]
    assert f"{path}:3:9: unknown phase 'forwards', did you mean 'forward'?" in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "line", "column", "message"),
    [
        ("", 0, 0, "there are no rows below the header"),
        (
            "0,0,a,forward,0,1,1\n0,0,a,backward,0.5,1,1\n",
            3,
            16,
            "backward of 'a' starts 0.5 s before forward of 'a' is over",
        ),
        (
            "0,0,a,forward,0,1,1\n0,0,b,backward,1,1,1\n0,0,b,forward,2,1,1\n",
            4,
            7,
            "forward of 'b' comes after backward",
        ),
        ("0,0,a,forward,0,1,1\n0,0,a,forward,1,1,1\n0,0,a,backward,2,1,1\n", 3, 5, "forward of 'a' stands twice"),
        ("0,0,a,forward,0,1,1\n", 2, 7, "iteration 0 of rank 0 has no backward rows"),
        ("0,0,a,forward,0,1,1\n0,0,a,backward,1,1,1\n2,0,a,forward,0,1,1\n2,0,a,backward,1,1,1\n", 0, 0, "no rows for"),
        ("0,1,a,forward,0,1,1\n0,1,a,backward,1,1,1\n", 0, 0, "no rows for (iteration, rank) (0, 0)"),
        ("999999999,9999999,a,forward,0,1,1\n", 0, 0, "no rows for (iteration, rank) (999999999, 0), (999999999, 1)"),
        ("0,0,a,forward,0,1,1\n0,0,a,backward,1,1,2\n", 3, 20, "'a' has 2 parameters here and 1 on line 2"),
        ("0,0,a,forward,0,1,0\n0,0,a,backward,1,1,0\n", 0, 0, "the trace does not say how large its gradients are"),
        ("0,0,a,forward,0,1,1\n0,0,b,backward,1,1,\n", 0, 0, "layers with parameters, but no backward: 'a'"),
    ],
)
def test_recordings_that_cannot_be_replayed(
    rows: str, line: int, column: int, message: str, write: Callable[[str], Path]
) -> None:
    with pytest.raises(InputError) as caught:
        load_trace(write(HEADER + rows), batch_size=1)
    problem = caught.value.problems[0]
    assert (problem.line, problem.column) == (line, column)
    assert problem.message.startswith(message)


def test_iterations_with_other_layers_are_refused(write: Callable[[str], Path]) -> None:
    path = write(
        HEADER + "0,0,a,forward,0,1,1\n0,0,a,backward,1,1,1\n"
        "1,0,a,forward,0,1,1\n1,0,c,forward,1,1,1\n1,0,c,backward,2,1,1\n"
    )
    with pytest.raises(InputError) as caught:
        load_trace(path, batch_size=1)
    assert [problem.message for problem in caught.value.problems] == [
        "iteration 1 of rank 0 has no backward of 'a'",
        "iteration 1 of rank 0 has a backward of 'c', forward of 'c'",
    ]


def test_large_clocks_may_overlap_by_their_own_rounding(write: Callable[[str], Path]) -> None:
    """Seconds since 1970 resolve 0.24 us, so ends and starts that were equal may differ by that."""
    start = 1.79e9
    rows = f"0,0,a,forward,{start!r},0.1,1\n0,0,a,backward,{start + 0.1 - 2.4e-7!r},0.1,1\n"
    trace = load_trace(write(HEADER + rows), batch_size=1)
    assert trace.iteration_time_s[0, 0] == pytest.approx(0.2, abs=1e-6)


def test_a_wrong_setting_does_not_hide_what_is_wrong_with_the_rows(write: Callable[[str], Path]) -> None:
    path = write(HEADER + "0,0,a,forward,0,1,1\n0,0,a,backward,0.5,1,2\n")
    with pytest.raises(InputError) as caught:
        load_trace(path, batch_size=0, model="resnet51")
    assert [(problem.line, problem.path) for problem in caught.value.problems] == [
        (0, ("batch_size",)),
        (0, ("model",)),
        (3, ()),
    ]
