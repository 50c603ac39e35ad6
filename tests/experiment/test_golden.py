"""The summaries of what ships, as they were when somebody last looked at them.

A difference is not a fault in itself: where a change of the model is meant, ``pytest --force-regen`` writes them anew,
and the difference is looked at before it is committed.
"""

from __future__ import annotations

import pytest

from simnet.shipped import shipped_folder

SCENARIOS = sorted(file.stem for file in shipped_folder("scenarios").glob("*.yaml"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_summary(shipped, dataframe_regression, name):
    # Parts that are nothing but rounding, as a waiting time of 1e-18 s, are 0 for this purpose.
    summary = shipped(name).summary.drop(columns="wall_time_s")
    text = summary.select_dtypes(exclude="number").columns
    summary = summary.astype(dict.fromkeys(text, object))
    dataframe_regression.check(summary, basename=name, default_tolerance={"rtol": 1e-9, "atol": 1e-15})
