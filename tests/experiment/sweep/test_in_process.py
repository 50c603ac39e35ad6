"""A sweep is one table: parameters under their paths, then the summary of each point."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import simnet
from simnet.errors import InputError
from simnet.experiment.columns import COLUMNS
from simnet.experiment.sweep import grid
from tests.experiment.examples import star_scenario

SUMMARY = [column.name for column in COLUMNS["summary"]]


def test_the_last_parameter_varies_fastest():
    points = list(grid({"a": [1, 2], "b": ["x", "y", "z"]}))
    assert [tuple(point.values()) for point in points] == [
        *((1, "x"), (1, "y"), (1, "z")),
        *((2, "x"), (2, "y"), (2, "z")),
    ]
    assert list(grid({})) == [{}]


def test_one_row_a_point_in_order_with_the_parameters_in_front():
    frame = simnet.sweep(star_scenario(4), {"training.bucket_size": ["1 MiB", "25 MiB"], "training.workers": [4, 1, 2]})
    assert frame.shape == (6, 2 + len(SUMMARY))
    assert list(frame.columns) == ["training.bucket_size", "training.workers", *SUMMARY]
    assert frame["training.bucket_size"].tolist() == ["1 MiB"] * 3 + ["25 MiB"] * 3
    assert frame["training.workers"].tolist() == frame["workers"].tolist() == [4, 1, 2] * 2
    assert frame.index.tolist() == list(range(6))


def test_each_row_is_the_run_of_its_point():
    frame = simnet.sweep(star_scenario(4), {"training.workers": [2, 4]}, {"training.overlap": False})
    for number, workers in enumerate((2, 4)):
        alone = simnet.run(star_scenario(4), {"training.workers": workers, "training.overlap": False}).summary
        both = frame.loc[[number], SUMMARY].reset_index(drop=True)
        pd.testing.assert_frame_equal(both.drop(columns="wall_time_s"), alone.drop(columns="wall_time_s"))


def test_a_parameter_with_the_name_of_a_column_stands_in_its_place():
    """`protocol` is a key of the scenario and a column of the summary; what was asked for is shown."""
    frame = simnet.sweep(star_scenario(2), {"protocol": ["tcp", {"tcp": {"mtu": "9000 B"}}]})
    assert list(frame.columns) == ["protocol", *(column for column in SUMMARY if column != "protocol")]
    assert frame["protocol"].tolist() == ["tcp", '{"tcp": {"mtu": "9000 B"}}']
    assert frame["wire_bytes"].is_monotonic_decreasing, "larger packets have fewer headers"


def test_values_may_be_an_array_or_a_range():
    for values in (np.array([1, 2]), range(1, 3), (1, 2)):
        assert simnet.sweep(star_scenario(2), {"training.workers": values})["workers"].tolist() == [1, 2]


def test_without_parameters_it_is_one_run():
    assert simnet.sweep(star_scenario(2), {})["workers"].tolist() == [2]


@pytest.mark.parametrize("values", [[], "tcp", {"tcp": {}}, ()])
def test_values_that_are_no_list_are_refused(values):
    with pytest.raises(InputError, match="a list of at least one value is wanted"):
        simnet.sweep(star_scenario(2), {"protocol": values})


def test_a_point_that_is_wrong_is_told_before_any_is_run(monkeypatch):
    monkeypatch.setattr("simnet.experiment.sweep.in_process.run", lambda *_: pytest.fail("was run"))
    with pytest.raises(InputError, match="3 workers do not fit on the 2 ranks"):
        simnet.sweep(star_scenario(2), {"training.workers": [1, 2, 3]})
