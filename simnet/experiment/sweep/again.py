"""Run a point of a sweep once more, with all its tables: of points themselves only summaries are kept."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from simnet.errors import InputError, Problem
from simnet.experiment.result import Result
from simnet.experiment.run import run
from simnet.experiment.sweep.view import SweepView
from simnet.experiment.telling import Show, tell_nobody
from simnet.scenario import Scenario, override_from_text, python_document
from simnet.scenario.load import load_document
from simnet.scenario.overrides import overrides_from_mapping

__all__ = ["point_scenario", "run_again"]

_SAME = 1e-9


def point_scenario(view: SweepView, folder: Path, row: int) -> Scenario:
    """Return the scenario of a row of a sweep.

    Parameters
    ----------
    view : SweepView
    folder : Path
        That of the sweep.
    row : int
        Its label in ``view.rows``.

    Raises
    ------
    InputError
        The folder does not say what its scenario was, or files that it names are not there any more.
    """
    about = view.about
    if "scenario" not in about:
        hint = "run `simnet sweep` into it once more"
        raise InputError(Problem("the folder does not say what its scenario was", hint, source=str(folder)))
    values = {path: _given(view.rows.at[row, path]) for path in about["parameters"]}
    overrides = overrides_from_mapping(about["set"])
    for path, value in values.items():
        if isinstance(value, str):
            # The table has mappings, lists and what stands beside text as text.
            overrides.append(override_from_text(f"{path}={value}"))
        elif value is not None:
            overrides += overrides_from_mapping({path: value})
    document = python_document(about["scenario"], "")
    place = folder / about["scenario_folder"]
    return load_document(document, place, about["scenario_name"], overrides)


def run_again(view: SweepView, scenario: Scenario, row: int, show: Show = tell_nobody) -> Result:
    """Run the scenario of a row again, with a timeline; `show` is shown how many iterations are over.

    Raises
    ------
    InputError
        It does not give what the sweep has, as another version of simnet may not.
    """
    result = run(scenario, timeline=True, show=show)
    before: dict[Any, Any] = view.rows.loc[row].to_dict()
    now_s = float(result.summary.loc[result.summary["job"] == before["job"], "iteration_time_s"].iloc[0])
    before_s = float(before["iteration_time_s"])
    if not math.isclose(now_s, before_s, rel_tol=_SAME):
        said = f"an iteration takes {now_s:.9g} s now, and {before_s:.9g} s in the sweep"
        raise InputError(Problem(said, "run `simnet sweep` again with this version"))
    return result


def _given(value: object) -> object:
    """Return a value of the table as it was given; None where the scenario was left as it is."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)  # beside an empty cell a whole number is none any more
    return None if value == "" else value
