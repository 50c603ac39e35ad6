"""How far off predictions are, and how far simpler ones would be."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.experiment.validation import misranked_pairs, score_groups
from simnet.experiment.validation.scores import best_constant_efficiency


def rows(measured, predicted, linear=None, **columns) -> pd.DataFrame:
    """Make a table as of a validation."""
    count = len(measured)
    given_ = {
        "model": "m",
        "batch": 1,
        "precision": "fp32",
        "workers": 2,
        "metric": "rate",
        "data_set": "d",
        "use": "validation",
    } | columns
    table = pd.DataFrame({"row": range(count), "measured": measured, "predicted": predicted, **given_})
    table["linear"] = linear if linear is not None else math.nan
    table["error"] = table.predicted / table.measured - 1
    return table


def test_errors_of_a_group():
    scores = score_groups(rows([100.0] * 11, [100.0 + 2 * number for number in range(11)])).iloc[0]
    assert (scores.median_error, scores.p90_error, scores.worst_error) == pytest.approx((0.10, 0.18, 0.20))


def test_linear_scaling_errs_by_what_is_lost():
    """Efficiency 0.5 is predicted as 1: error 1; the best constant, 0.5, has none."""
    scores = score_groups(rows([50.0, 50.0], [50.0, 25.0], linear=[100.0, 100.0])).iloc[0]
    assert scores.linear_median_error == pytest.approx(1.0)
    assert scores.constant_median_error == pytest.approx(0.0)


def test_lost_time_is_compared_by_itself():
    """Measured 0.5: 1 is lost for each 1; predicted 0.8: 0.25, three quarters too little; from 0.9 on none counts."""
    scores = score_groups(rows([50.0, 95.0], [80.0, 10.0], linear=[100.0, 100.0])).iloc[0]
    assert scores.lossy_rows == 1
    assert scores.simnet_lost_time_error == pytest.approx(0.75)
    assert scores.linear_lost_time_error == pytest.approx(1.0)


@given(st.lists(st.floats(0.05, 1.2), min_size=1, max_size=20))
def test_no_other_constant_has_a_smaller_median_error(efficiencies):
    """Neither one that was measured, nor any of a hundred between the least and the largest."""
    measured = np.array(efficiencies)
    best = best_constant_efficiency(measured)

    def off(constant: float) -> float:
        return float(np.median(np.abs(constant / measured - 1)))

    others = [*measured, *np.linspace(measured.min(), measured.max(), 100)]
    assert all(off(best) <= off(other) + 1e-12 for other in others)


def test_settings_are_ranked_only_where_they_were_told_apart():
    """100, 95 and 50: the first two differ by 5 %, each of them from the third by far; one of these two is wrong."""
    wrong, pairs = misranked_pairs(rows([100.0, 95.0, 50.0], [40.0, 90.0, 60.0]))
    assert (wrong, pairs) == ([(0, 2)], 2)


def test_other_models_are_not_compared():
    wrong, pairs = misranked_pairs(rows([100.0, 50.0], [1.0, 2.0], model=["one", "other"]))
    assert (wrong, pairs) == ([], 0)
