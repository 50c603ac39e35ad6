"""Own workloads: measured times are kept, FLOPs and bytes go through the roofline, everything wrong is told at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simnet.errors import InputError
from simnet.workload import load_workload_csv, workload_from_rows

MEASURED = """\
# measured on our own machine
layer,parameters,dtype,forward_s,backward_s
embed,1000,fp32,0.001,0.002
"mix, fused",0,,0.002,0.003
head,500,fp16,0.004,0.010
"""

COUNTED = """\
layer,parameters,forward_flops,memory_bytes
a,10,1e9,0
b,20,3e9,0
"""


def test_measured_times_are_used_as_they_are(write: Callable[[str], Path]) -> None:
    """Forward 1 + 2 + 4 ms, backward 2 + 3 + 10 ms; gradients are ready after 10 ms (head) and 15 ms (embedding)."""
    path = write(MEASURED)
    workload = load_workload_csv(path, batch_size=32)
    assert workload.compute_time_s == pytest.approx(0.022, rel=1e-15)
    assert [layer.name for layer in workload.model.layers] == ["embed", "mix, fused", "head"]
    assert [(tensor.name, tensor.elements, tensor.layer, tensor.dtype) for tensor in workload.model.tensors] == [
        ("head", 500, 2, "fp16"),
        ("embed", 1000, 0, "fp32"),
    ]
    assert workload.tensor_ready_s == pytest.approx([0.010, 0.015])
    assert workload.model.name == "input"
    assert workload.source == f"measured: {path}"
    assert workload.samples_per_s == pytest.approx(32 / 0.022)


def test_a_rate_scales_measured_times(write: Callable[[str], Path]) -> None:
    workload = load_workload_csv(write(MEASURED), batch_size=32, samples_per_s=1000.0, gpu="our own")
    assert workload.compute_time_s == pytest.approx(0.032, rel=1e-12)
    assert workload.tensor_ready_s == pytest.approx([0.010 * 32 / 22, 0.015 * 32 / 22])
    assert workload.gpu == "our own"


def test_flops_and_bytes_through_the_roofline(write: Callable[[str], Path]) -> None:
    """8 samples of 1 and 3 GFLOP at 15.7 TFLOP/s; backward twice that, when nothing else is said."""
    workload = load_workload_csv(write(COUNTED), batch_size=8, gpu="v100")
    assert workload.forward_s == pytest.approx([8e9 / 15.7e12, 24e9 / 15.7e12])
    assert workload.backward_s == pytest.approx([16e9 / 15.7e12, 48e9 / 15.7e12])
    assert "roofline of v100_sxm2_16gb" in workload.source
    # Scaled to 100 samples/s: 80 ms in proportion 1 : 3, a third of it forward.
    scaled = load_workload_csv(write(COUNTED), batch_size=8, samples_per_s=100.0)
    assert scaled.forward_s == pytest.approx([0.08 / 3 / 4, 0.08 / 4])
    assert scaled.compute_time_s == pytest.approx(0.08, rel=1e-12)


def test_rows_of_plain_data_give_the_same(write: Callable[[str], Path]) -> None:
    rows: list[dict[str, Any]] = [
        {"layer": "embed", "parameters": 1000, "forward_s": 0.001, "backward_s": 0.002},
        {"layer": "mix, fused", "parameters": 0, "dtype": None, "forward_s": 0.002, "backward_s": 0.003},
        {"layer": "head", "parameters": 500, "dtype": "fp16", "forward_s": 0.004, "backward_s": 0.010},
    ]
    from_rows = workload_from_rows(rows, name="mine", batch_size=32)
    from_file = load_workload_csv(write(MEASURED), batch_size=32)
    assert from_rows.model.layers == from_file.model.layers
    assert from_rows.model.tensors == from_file.model.tensors
    assert from_rows.backward_s.tolist() == from_file.backward_s.tolist()


def test_everything_wrong_with_a_file_is_told_at_once_by_line_and_column(write: Callable[[str], Path]) -> None:
    path = write(
        "layer,parameters,dtype,forward_s,backward_s\n"
        "a,ten,fp32,0.1,0.2\n"
        "b,10,fp23,nan,0.2\n"
        "\n"
        ",10,fp32,0.1,-0.2\n"
        "c,1.5,fp32,,inf\n"
        "d,1,fp32,0.1\n"
        "e,1,fp32,1_0,0.1\n"
    )
    with pytest.raises(InputError) as caught:
        load_workload_csv(path, batch_size=0)
    told = [(problem.line, problem.column, problem.message) for problem in caught.value.problems]
    assert told == [
        (0, 0, "batch size 0 is not positive"),
        (2, 3, "parameters is 'ten'"),
        (3, 6, "unknown dtype is 'fp23'"),
        (3, 11, "forward_s is 'nan'"),
        (5, 1, "the layer has no name"),
        (5, 14, "backward_s is '-0.2'"),
        (6, 3, "parameters is '1.5'"),
        (6, 13, "backward_s is 'inf'"),
        (7, 13, "4 cells where the header has 5"),
        (8, 10, "forward_s is '1_0'"),
    ]
    assert f"{path}:3:6: unknown dtype is 'fp23', did you mean 'fp32'?\n    b,10,fp23,nan,0.2\n         ^" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 0, 0, "the file is empty"),
        ("# only a comment\n", 0, 0, "the file is empty"),
        ("layer,parameters,forward_s,backward_s\n", 0, 0, "there are no layers below the header"),
        ("layer,parameter,forward_s,backward_s\na,1,1,1\n", 1, 7, "unknown column 'parameter'"),
        ("layer,parameters,layer\na,1,a\n", 1, 18, "column 'layer' stands twice"),
        ("layer,,parameters\na,1,1\n", 1, 7, "a column has no name"),
        ("layer;parameters\na;1\n", 1, 1, "columns are separated by semicolons"),
        ("layer,forward_s,backward_s\na,1,1\n", 1, 27, "missing columns: parameters"),
        ("layer,parameters,forward_s,backward_s\na,0,1,1\n", 2, 3, "no layer has parameters"),
        ("layer,parameters,forward_s,backward_s\na,1,0,0\n", 2, 5, "forward_s and backward_s are 0 in every layer"),
        ("layer,parameters,forward_s,backward_s\na,1,1,1\nb,1,,1\n", 3, 5, "layer 'b' has no forward_s"),
        ("layer,parameters,forward_s\na,1,1\n", 2, 1, "layer 'a' has no backward_s"),
        ("layer,parameters\na,1\n", 2, 1, "layer 'a' has no forward_flops and no memory_bytes"),
        (COUNTED, 0, 0, "gpu is missing: layers have FLOPs and bytes, but no times"),
    ],
)
def test_wrong_files(text: str, line: int, column: int, message: str, write: Callable[[str], Path]) -> None:
    with pytest.raises(InputError) as caught:
        load_workload_csv(write(text), batch_size=32)
    problem = caught.value.problems[0]
    assert (problem.line, problem.column, problem.message) == (line, column, message)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_workload_csv(tmp_path / "none.csv", batch_size=1)
    with pytest.raises(InputError, match="is a directory"):
        load_workload_csv(tmp_path, batch_size=1)
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00layer")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        load_workload_csv(binary, batch_size=1)


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "excel.csv"
    path.write_bytes(b"\xef\xbb\xbf" + MEASURED.replace("\n", "\r\n").encode())
    assert load_workload_csv(path, batch_size=1).compute_time_s == pytest.approx(0.022)


def test_limits_are_named(write: Callable[[str], Path]) -> None:
    path = write(f"layer,parameters,forward_s,backward_s\na,1e16,1e300,\u0663\nb,{'9' * 5000},1,1\n")
    with pytest.raises(InputError) as caught:
        load_workload_csv(path, batch_size=1)
    assert [f"{problem.message}, {problem.hint}" for problem in caught.value.problems] == [
        "parameters is '1e16', a whole number from 0 to 1e+15 is wanted",
        "forward_s is '1e300', a number from 0 to 1e+60 is wanted",
        "backward_s is '\u0663', a number from 0 to 1e+60 is wanted",
        f"parameters is '{'9' * 59}…, a whole number from 0 to 1e+15 is wanted",
    ]


def test_numbers_in_rows_are_no_text() -> None:
    """As in scenarios; only in CSV files all is text."""
    row = {"layer": "a", "parameters": "9408", "forward_s": "1", "backward_s": 1e-3, "dtype": "fp16"}
    with pytest.raises(InputError) as caught:
        workload_from_rows([row], name="mine", batch_size=1)
    assert [f"{problem.message}, {problem.hint}" for problem in caught.value.problems] == [
        "parameters is '9408', a whole number from 0 to 1e+15 is wanted, without quotes",
        "forward_s is '1', a number from 0 to 1e+60 is wanted, without quotes",
    ]


def test_rows_of_anything() -> None:
    row = {
        "layer": ["a"],
        "parameters": {},
        "forward_s": [],
        "backward_s": True,
        "dtype": ["fp16"],
        "memory_bytes": 10**5000,
    }
    with pytest.raises(InputError) as caught:
        workload_from_rows([row, 3, {"layer": "b"}], name="mine", batch_size=0, precision="fp1")  # type: ignore[list-item]
    assert [problem.path for problem in caught.value.problems] == [
        *((1,), (2,)),
        *((0, key) for key in ("layer", "dtype", "parameters", "forward_s", "backward_s", "memory_bytes")),
        *(("batch_size",), ("precision",)),
    ]


@pytest.mark.parametrize("wrong", ["parameters", "forward_flops"])
def test_a_wrong_cell_does_not_hide_a_wrong_gpu(wrong: str, write: Callable[[str], Path]) -> None:
    row = {"layer": "a", "parameters": "10", "forward_flops": "1e9", "memory_bytes": "0"} | {wrong: "x"}
    with pytest.raises(InputError) as caught:
        load_workload_csv(write(f"{','.join(row)}\n{','.join(row.values())}\n"), batch_size=1, gpu="q")
    assert [problem.message for problem in caught.value.problems] == ["unknown GPU 'q'", f"{wrong} is 'x'"]


def test_everything_wrong_with_rows_is_told_by_their_path() -> None:
    with pytest.raises(InputError) as caught:
        workload_from_rows(
            [{"layer": "a", "parameters": 1, "forwards_s": 1.0}, {"layer": "b"}, 3],  # type: ignore[list-item]
            name="mine",
            batch_size=1,
        )
    assert [(problem.path, problem.message) for problem in caught.value.problems] == [
        ((0, "forwards_s"), "unknown key 'forwards_s'"),
        ((1,), "'parameters' is missing"),
        ((2,), "layer 2 is not a mapping"),
    ]
    assert "did you mean 'forward_s'?" in str(caught.value)
    with pytest.raises(InputError) as caught:
        workload_from_rows(
            [{"layer": "a", "parameters": True, "forward_s": "1 ms", "backward_s": -1}], name="mine", batch_size=1
        )
    assert [problem.path for problem in caught.value.problems] == [
        (0, "parameters"),
        (0, "forward_s"),
        (0, "backward_s"),
    ]
    with pytest.raises(InputError, match="there are no layers"):
        workload_from_rows([], name="mine", batch_size=1)
