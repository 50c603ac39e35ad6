"""The one point of a sweep that a report looks at closely."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from simnet.errors import InputError, Problem
from simnet.experiment.plot.style import words_of
from simnet.experiment.result import Result
from simnet.experiment.sweep.again import point_scenario, run_again
from simnet.experiment.sweep.view import SweepView
from simnet.experiment.telling import Show, tell_nobody
from simnet.scenario.sweep.load import SEED
from simnet.topology import Topology

__all__ = ["TellingPoint", "numbers_of_points", "telling_point"]


@dataclass(frozen=True, eq=False)
class TellingPoint:
    """A point that was run again.

    Attributes
    ----------
    number : in the sweep
    words : the values of its parameters
    reason : why it was chosen
    job : of which it was chosen
    result : with a timeline
    topology : that it ran on
    """

    number: int
    words: str
    reason: str
    job: str
    result: Result
    topology: Topology


def telling_point(view: SweepView, folder: Path, number: int | None = None, show: Show = tell_nobody) -> TellingPoint:
    """Choose a point and run it again: by default, of those with most workers, the least efficient one.

    Parameters
    ----------
    view : SweepView
    folder : Path
        That of the sweep.
    number : int, optional
        Of the point; that of `numbers_of_points`.
    show : callable
        Shown how many iterations are over.

    Raises
    ------
    InputError
        There is no such point, it has failed, or it cannot be run again.
    """
    numbers = numbers_of_points(view)
    rows = view.rows
    if number is not None:
        found = rows[numbers == number]
        if found.empty:
            hint = f"numbers from 0 to {numbers.max()} are there"
            raise InputError(Problem(f"there is no point {number}", hint, source="--point"))
        if (found["status"] == "failed").any():
            raise InputError(Problem(f"point {number} has failed", "one that has not is wanted", source="--point"))
        row, reason = found.index[0], "the one that was asked for"
    else:
        good = rows[rows["status"] == "ok"]
        largest = good[good["workers"] == good["workers"].max()]
        # Where nothing says how efficient, the slowest.
        efficiency = largest["scaling_efficiency"].astype("float64")
        by_time = efficiency.isna().all()
        row = largest["iteration_time_s"].astype("float64").idxmax() if by_time else efficiency.idxmin()
        which = "that takes longest" if by_time else "that is least efficient"
        reason = f"of those with most workers ({int(largest['workers'].iloc[0])}) the one {which}"
    names = [*view.parameters, *([SEED] if SEED in view.about.get("parameters", ()) else [])]
    words = ", ".join(f"{words_of(name)} {view.shown[name].to_dict()[row]}" for name in names)
    scenario = point_scenario(view, folder, row)
    job = str(rows["job"].to_dict()[row])
    return TellingPoint(int(numbers[row]), words, reason, job, run_again(view, scenario, row, show), scenario.topology)


def numbers_of_points(view: SweepView) -> pd.Series:
    """Return the number of the point of each row, from 0; rows of several jobs of a point have the same."""
    names = [name for name in view.about.get("parameters", view.parameters) if name in view.rows]
    numbers: list[int] = []
    before: object = None
    seen: set[object] = set()
    number = -1
    for values, job in zip(map(tuple, view.rows[names].astype(str).to_numpy()), view.rows["job"], strict=True):
        if values != before or job in seen or pd.isna(job):
            number += 1
            seen = set()
        seen.add(job)
        numbers.append(number)
        before = values
    return pd.Series(numbers, index=view.rows.index)
