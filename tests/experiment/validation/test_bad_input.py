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
    ],
)
def test_a_description_that_is_wrong(folder, before, after, said):
    (folder / "small.yaml").write_text(SMALL.replace(before, after, 1))
    found = problems_of(lambda: load_data_set(folder / "small.yaml"))
    assert any(said in one and not one.startswith("0:") for one in found)


def test_what_a_rule_sets_is_checked_as_in_a_scenario(folder):
    (folder / "small.yaml").write_text(SMALL.replace("training.overlap: false", "training.overlapp: false"))
    assert any("overlapp" in one for one in problems_of(lambda: validate(folder, ["small"])))


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
