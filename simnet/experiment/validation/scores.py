"""How far predictions are off, and how far simpler ones would be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["LOSSY_BELOW", "TOLD_APART", "best_constant_efficiency", "misranked_pairs", "score_groups"]

LOSSY_BELOW = 0.9
"""Scaling efficiency below which the time that is lost is compared by itself."""

TOLD_APART = 0.1
"""Settings whose measurements differ by more than this share have to be ranked as measured."""

_ALIKE = ("model", "batch", "precision", "workers", "metric")
"""What settings have in common that are ranked against each other."""


def score_groups(table: pd.DataFrame, by: Sequence[str] = ("data_set", "use")) -> pd.DataFrame:
    """Return the errors of each group of rows.

    Parameters
    ----------
    table : DataFrame
        As of `Validation.table`.
    by : sequence of str
        Columns that make the groups.

    Returns
    -------
    DataFrame
        One row a group: `rows`; median, 90th percentile and worst of |predicted / measured - 1|; for training the
        same median and percentile of two simpler predictions (`linear`: as many times one GPU; `constant`: that times
        the one efficiency whose median error in the group is least), the median error of the time that is lost,
        1/efficiency - 1, on rows below `LOSSY_BELOW`, by simnet and by both others, and how many pairs of settings are
        ranked wrong, of how many.
    """
    return pd.DataFrame([dict(zip(by, key, strict=True)) | _scores(rows) for key, rows in table.groupby(list(by))])


def _scores(rows: pd.DataFrame) -> dict[str, object]:
    error = rows.error.abs().to_numpy()
    found: dict[str, object] = {
        "rows": len(rows),
        "median_error": float(np.median(error)),
        "p90_error": float(np.quantile(error, 0.9)),
        "worst_error": float(error.max()),
    }
    linear = rows.linear.to_numpy(dtype=float)
    if np.isnan(linear).any():
        return found
    measured = rows.measured.to_numpy(dtype=float)
    constant = best_constant_efficiency(measured / linear)
    others = {"linear": linear, "constant": constant * linear}
    for name, predicted in others.items():
        off = np.abs(predicted / measured - 1.0)
        found |= {f"{name}_median_error": float(np.median(off)), f"{name}_p90_error": float(np.quantile(off, 0.9))}
    lossy = measured / linear < LOSSY_BELOW
    found["lossy_rows"] = int(lossy.sum())
    for name, predicted in {"simnet": rows.predicted.to_numpy(dtype=float), **others}.items():
        found[f"{name}_lost_time_error"] = _lost_time_error(linear[lossy], measured[lossy], predicted[lossy])
    wrong, pairs = misranked_pairs(rows)
    return found | {"misranked_pairs": len(wrong), "ranked_pairs": pairs}


def best_constant_efficiency(efficiency: NDArray[np.float64]) -> float:
    """Return the one efficiency with the least median of |predicted / measured - 1|.

    Where it is least, one row is predicted as much too fast as another too slow: it is a harmonic mean of two.
    """
    one, other = np.triu_indices(len(efficiency))
    constants = 2.0 / (1.0 / efficiency[one] + 1.0 / efficiency[other])
    off = [float(np.median(np.abs(constant / efficiency - 1.0))) for constant in constants]
    return float(constants[int(np.argmin(off))])


def _lost_time_error(
    linear: NDArray[np.float64], measured: NDArray[np.float64], predicted: NDArray[np.float64]
) -> float:
    """Return the median of |lost time as predicted / as measured - 1|, each in units of the time that is not lost."""
    if not len(linear):
        return math.nan
    return float(np.median(np.abs((linear / predicted - 1.0) / (linear / measured - 1.0) - 1.0)))


def misranked_pairs(rows: pd.DataFrame) -> tuple[list[tuple[int, int]], int]:
    """Return pairs of settings in the wrong order, and how many pairs are told apart at all.

    Settings are compared that train the same model with the same batch and precision on as many workers, of which the
    same was measured, more than `TOLD_APART` apart.

    Parameters
    ----------
    rows : DataFrame
        Of one data set, with columns `row`, `measured` and `predicted`.

    Returns
    -------
    wrong : list of (int, int)
        Rows, the one that was measured faster first.
    pairs : int
    """
    wrong: list[tuple[int, int]] = []
    pairs = 0
    for _, alike in rows.groupby(list(_ALIKE), dropna=False):
        ordered = alike.sort_values("measured", ascending=False).to_dict(orient="records")
        for fast, slow in itertools.combinations(ordered, 2):
            if fast["measured"] > (1.0 + TOLD_APART) * slow["measured"]:
                pairs += 1
                if fast["predicted"] <= slow["predicted"]:
                    wrong.append((fast["row"], slow["row"]))
    return wrong, pairs
