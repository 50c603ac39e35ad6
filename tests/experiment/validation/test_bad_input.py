"""Everything that is wrong with measurements and descriptions, each with its place."""

from __future__ import annotations

import pytest

from simnet.errors import InputError
from simnet.experiment.validation import load_data_set, read_measurements, validate

from .conftest import HEADER, ROWS, SMALL, TIMES


def problems_of(made) -> list[str]:
    with pytest.raises(InputError) as refused:
        made()
    return [f"{one.line}:{one.column} {one.message}" for one in refused.value.problems]


def test_cells_that_are_wrong(folder):
    first = ROWS.splitlines()[0]
    lines = [first, first.replace("1,small,input", "1,small,inputt"), first.replace("320,images/s", "-1,miles/s")]
    (folder / "measurements.csv").write_text("\n".join([HEADER, *lines]))
    found = problems_of(lambda: read_measurements(folder / "measurements.csv"))
    assert any(one.startswith("3:") and "'inputt'" in one for one in found)
    assert any(one.startswith("4:") and "value is '-1'" in one for one in found)
    assert any(one.startswith("4:") and "'miles/s'" in one for one in found)
    assert sum("is there twice" in one for one in found) == 2


def test_a_column_that_is_missing(folder):
    (folder / "measurements.csv").write_text("row,data_set\n1,small\n")
    assert "use" in problems_of(lambda: read_measurements(folder / "measurements.csv"))[0]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("play: training", "play: gambling", "'gambling'"),
        ("network: fast", "netwrk: fast", "'netwrk'"),
        ("about: Made up.", "abut: Made up.", "abut"),
        ("rules:", "one_gpu: [colour]\nrules:", "'colour'"),
        ("set: {topology", "sett: {topology", "sett"),
        ("network: fast", 'workers: "< abc"', "'< abc' for workers"),
        ("network: fast", "workers: many", "'many' for workers"),
        ("network: fast", "workers: []", "no pattern for workers"),
    ],
)
def test_a_description_that_is_wrong(folder, before, after, said):
    (folder / "small.yaml").write_text(SMALL.replace(before, after, 1))
    found = problems_of(lambda: load_data_set(folder / "small.yaml"))
    assert any(said in one and not one.startswith("0:") for one in found)


@pytest.mark.parametrize(
    ("data_set", "before", "after", "place", "said"),
    [
        ("small", "training.overlap: false", "training.overlapp: false", "10:74", "'overlapp'"),
        ("small", "{model: resnet50}", "{model: resnet5}", "5:21", "'resnet5'"),
        (
            "small",
            "topology: {star: {hosts: 2, bandwidth: 100",
            "topology: {start: {hosts: 2, bandwidth: 100",
            "8:22",
            "'start'",
        ),
        ("times", "topology: {star", "topology: {start", "6:43", "'start'"),
        ("times", "launch: 2 us", "launch: 2 xs", "6:19", "'xs'"),
    ],
)
def test_what_a_rule_sets_is_checked_as_in_a_scenario(folder, data_set, before, after, place, said):
    """With its place in the description."""
    path = folder / f"{data_set}.yaml"
    path.write_text({"small": SMALL, "times": TIMES}[data_set].replace(before, after, 1))
    with pytest.raises(InputError) as refused:
        validate(folder, [data_set])
    assert any(str(one).startswith(f"{path}:{place}: ") and said in str(one) for one in refused.value.problems)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("fp32,2,,throughput,,640", "fp32,0,,throughput,,640", "3:"),
        ("fp32,2,,throughput,,640", "fp32,2,,thruput,,640", "metric is 'thruput'"),
        ("1002,us", "1002,GB/s", "unit is 'GB/s'"),
    ],
)
def test_rows_that_mean_nothing(folder, before, after, said):
    (folder / "measurements.csv").write_text(f"{HEADER}\n{ROWS.replace(before, after)}")
    assert any(said in one for one in problems_of(lambda: read_measurements(folder / "measurements.csv")))


def test_rows_that_say_too_little_are_left_out(folder):
    """No workers, nothing that training has, no description; data sets that nobody asked for are not missed."""
    rows = ROWS.replace("fp32,2,,throughput,,640", "fp32,,,throughput,,640")
    before, after = (
        "8,times,calibration,two hosts,fast,ideal,ring,,,",
        "8,small,validation,,fast,,,ResNet-50,32,fp32",
    )
    rows = rows.replace(before, after)
    rows += ROWS.splitlines()[-1].replace("8,times", "9,elsewhere")
    (folder / "measurements.csv").write_text(f"{HEADER}\n{rows}")
    left_out = validate(folder).left_out
    why = dict(zip(left_out.row, left_out.why, strict=True))
    assert why[2] == "how many workers there were is not said"
    assert why[8] == "allreduce_time in ms is nothing that is predicted of a training"
    assert why[9] == "nothing says how it is simulated: there is no elsewhere.yaml"
    assert 9 not in set(validate(folder, ["times"]).left_out.row)


def test_data_sets_that_are_not_there(folder, tmp_path_factory):
    assert "'smal'" in problems_of(lambda: validate(folder, ["smal"]))[0]
    empty = tmp_path_factory.mktemp("empty")
    (empty / "measurements.csv").write_text(f"{HEADER}\n{ROWS}")
    assert "no data set" in problems_of(lambda: validate(empty))[0]


def test_what_is_set_for_a_collective_is_an_argument_of_it(folder):
    (folder / "times.yaml").write_text(TIMES.replace("launch: 2 us", "lunch: 2 us"))
    assert any(
        "'lunch'" in one and one.startswith("6:") for one in problems_of(lambda: load_data_set(folder / "times.yaml"))
    )


def test_a_mistake_in_a_rule_says_for_which_row(folder):
    (folder / "times.yaml").write_text(TIMES.replace("launch: 2 us", "ranks: 7, launch: 2 us"))
    assert "times, row 6: 7 ranks are more than" in problems_of(lambda: validate(folder, ["times"]))[0]


def test_a_collective_that_is_not_named_is_left_out(folder):
    (folder / "times.yaml").write_text(TIMES.replace("collective: all_reduce, ", ""))
    assert set(validate(folder, ["times"]).left_out.why) == {"no rule says what is simulated"}
