"""``simnet validate``: what it prints, writes and refuses."""

from __future__ import annotations

import json

import pandas as pd
import pytest


def test_errors_are_printed_and_tables_written(command, here):
    status, out, err = command("validate", "nccl_tests")
    assert status == 0
    assert "nccl_tests  calibration    32" in out
    assert "32 rows predicted, 0 left out" in out
    folder = here / "results" / "runs" / "validation"
    assert {path.name for path in folder.iterdir()} == {
        "cases.csv",
        "errors.csv",
        "left_out.csv",
        "predicted_over_measured.svg",
    }
    assert err.count("wrote ") == 4
    cases = pd.read_csv(folder / "cases.csv")
    assert (cases.error - (cases.predicted / cases.measured - 1)).abs().max() < 1e-4


def test_errors_for_programs(command, here):
    _, out, _ = command("validate", "nccl_tests", "--json", "--output", here / "somewhere")
    [row] = json.loads(out)
    assert (row["data_set"], row["rows"]) == ("nccl_tests", 32)
    _, out, _ = command("validate", "nccl_tests", "--csv", "--output", here / "somewhere")
    assert out.splitlines()[0].startswith("data_set,use,rows,median_error")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nccl_test"], "unknown data set 'nccl_test', did you mean 'nccl_tests'?"),
        (["--use", "calibrate"], "--use is 'calibrate', did you mean 'calibration'?"),
        (["--folder", "nowhere"], "no such file"),
        (["nccl_tests", "--csv", "--json"], "--csv and --json exclude each other"),
    ],
)
def test_mistakes(command, here, arguments, said):
    status, out, err = command("validate", *arguments)
    assert status == 2
    assert said in err
    assert out == ""
    assert not (here / "results").exists()
