"""The summaries of what ships, as they were when somebody last looked at them.

A difference is not a fault in itself: where a change of the model is meant, ``pytest --force-regen`` writes them anew,
and the difference is looked at before it is committed.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from simnet.shipped import shipped_folder

RESULTS = Path(__file__).parents[2] / "results"
SCENARIOS = sorted(file.stem for file in shipped_folder("scenarios").glob("*.yaml"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_summary(shipped, dataframe_regression, name):
    summary = shipped(name).summary.drop(columns="wall_time_s")
    text = summary.select_dtypes(exclude="number").columns
    summary = summary.astype(dict.fromkeys(text, object))
    dataframe_regression.check(summary, basename=name, default_tolerance={"rtol": 1e-9, "atol": 0.0})


def test_the_table_behind_the_picture_in_the_readme_is_of_today(shipped):
    """Where this fails and the change is meant, run ``make results``."""
    table = pd.read_csv(RESULTS / "inception_v3_100gpu" / "summary.csv", keep_default_na=False)
    today = pd.concat([shipped(name).summary for name in table["scenario"]], ignore_index=True)
    columns = [column for column in table.columns if column in today]
    pd.testing.assert_frame_equal(table[columns], today[columns], rtol=1e-6, atol=1e-9, check_dtype=False)
