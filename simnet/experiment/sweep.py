"""A scenario with parameters varied, as one table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from simnet.experiment.run import run

__all__ = ["grid", "sweep"]


def sweep(
    scenario: str | Path | Mapping[str, Any],
    parameters: Mapping[str, Sequence[object]],
    overrides: Mapping[str, object] | None = None,
) -> pd.DataFrame:
    """Run a scenario at every combination of some parameters, in this process.

    Parameters
    ----------
    scenario : str, Path or mapping
        As for `simnet.run`.
    parameters : mapping of str to sequence
        Values by path: ``{"protocol": ["tcp", "rdma"], "training.workers": [1, 2, 4]}``; the last varies fastest.
    overrides : mapping, optional
        Values that are the same at every point.

    Returns
    -------
    DataFrame
        One row a point and job: the parameters under their paths, then the columns of the summary.

    Raises
    ------
    InputError
        A point that is wrong; nothing is returned then.

    Examples
    --------
    >>> import simnet
    >>> frame = simnet.sweep("resnet50_16gpu", {"training.workers": [1, 2, 4]})  # doctest: +SKIP
    """
    frames = []
    for point in grid(parameters):
        summary = run(scenario, {**(overrides or {}), **point}).summary
        for position, (path, value) in enumerate(point.items()):
            summary.insert(position, path, [value] * len(summary))
        frames.append(summary)
    return pd.concat(frames, ignore_index=True)


def grid(parameters: Mapping[str, Sequence[object]]) -> Iterator[dict[str, object]]:
    """Yield every combination of the values of some parameters; the last parameter varies fastest."""
    for values in itertools.product(*parameters.values()):
        yield dict(zip(parameters, values, strict=True))
