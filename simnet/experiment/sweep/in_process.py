"""A scenario with parameters varied, as one table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simnet.errors import InputError, Problem
from simnet.experiment.run import run
from simnet.experiment.sweep.tables import shown
from simnet.experiment.telling import Show, counting, tell_nobody, watched
from simnet.scenario import load_scenario

__all__ = ["grid", "sweep"]


def sweep(
    scenario: str | Path | Mapping[str, Any],
    parameters: Mapping[str, Sequence[object]],
    overrides: Mapping[str, object] | None = None,
    say: Callable[[str], None] | None = None,
    show: Show = tell_nobody,
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
    say : callable, optional
        Told in a line what takes long; standard error by default.
    show : callable
        Shown how many points are over.

    Returns
    -------
    DataFrame
        One row a point and job: the parameters under their paths, then the columns of the summary; a parameter that has
        the name of one of these (``protocol``) stands in its place. Mappings and lists are shown as JSON.

    Raises
    ------
    InputError
        The first point that is wrong; all are checked before one is run.

    Examples
    --------
    >>> import simnet
    >>> frame = simnet.sweep("resnet50_16gpu", {"training.workers": [1, 2, 4]})  # doctest: +SKIP
    """
    wrong = [
        Problem(f"the values of {path} are {values!r}", "a list of at least one value is wanted", (path,))
        for path, values in parameters.items()
        if isinstance(values, (str, Mapping)) or len(values) == 0
    ]
    if wrong:
        raise InputError(wrong)
    points = [{**(overrides or {}), **point} for point in grid(parameters)]
    for point in points:
        load_scenario(scenario, point)
    frames: list[pd.DataFrame] = []
    with watched(show, counting("points", len(points), lambda: len(frames))):
        for point in points:
            summary = run(scenario, point, say).summary
            given = pd.DataFrame({path: [shown(point[path])] * len(summary) for path in parameters})
            frames.append(pd.concat([given, summary.drop(columns=list(parameters), errors="ignore")], axis="columns"))
    return pd.concat(frames, ignore_index=True)


def grid(parameters: Mapping[str, Sequence[object]]) -> Iterator[dict[str, object]]:
    """Yield every combination of the values of some parameters; the last parameter varies fastest."""
    for values in itertools.product(*parameters.values()):
        yield {path: _plain(value) for path, value in zip(parameters, values, strict=True)}


def _plain(value: object) -> object:
    """Return a number of numpy as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
