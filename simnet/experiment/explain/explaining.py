"""Explain a scenario: run it, walk back from the end of an iteration, and cut what lies on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simnet.errors import InputError, Problem, nearest
from simnet.experiment.explain.computing import STRAGGLERS, Computing
from simnet.experiment.explain.explanation import GROUPS, Explanation, group_of, parts_table
from simnet.experiment.explain.ideal import Piece, Replays
from simnet.experiment.explain.path import Stretch, Window, choose_window, critical_path
from simnet.experiment.explain.sensitivity import as_busy, sensitivity_table
from simnet.experiment.findings import mean_iteration_time_s
from simnet.experiment.simulation import Simulation, compile_for, simulate
from simnet.experiment.tables import ordered
from simnet.experiment.telling import Show, tell, tell_nobody
from simnet.scenario import Override, Scenario, load_scenario
from simnet.training.job import Job
from simnet.training.records import PlayRow
from simnet.training.settings import RunSettings
from simnet.units import format_duration

__all__ = ["explain", "parts_of_run"]


def explain(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    overrides: Mapping[str, object] | Iterable[Override] = (),
    say: Callable[[str], None] | None = None,
    *,
    job: str | None = None,
    sensitivity: bool = True,
    show: Show = tell_nobody,
) -> Explanation:
    """Tell where the time of an iteration goes, and what would make it shorter.

    Parameters
    ----------
    scenario : str, Path, mapping or Scenario
        As of `simnet.run`.
    overrides : mapping or iterable of Override
        Values to put in first, by path.
    say : callable, optional
        Told in a line what takes long; standard error by default.
    job : str, optional
        Which of several jobs; the first by default.
    sensitivity : bool
        Run the scenario again with one thing changed at a time.
    show : callable
        Shown how many iterations, then how many of the changes are over.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        Everything that is wrong with the scenario, or no such job.
    SimulationError
        The run came to a stop.
    """
    say = say or tell
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, overrides)
    names = [one.name for one in scenario.jobs]
    if job is not None and job not in names:
        raise InputError(Problem(f"there is no job {job!r}", nearest(job, names)))
    compile_for(scenario, say, show)
    found = parts_of_run(simulate(replace(scenario, run=replace(scenario.run, records_plays=True)), show), job)
    if not sensitivity:
        return found
    table = sensitivity_table(scenario, found.job, show)
    note = as_busy(found.cause, table)
    return replace(found, sensitivity=table, notes=(*found.notes, *([note] if note else [])))


def parts_of_run(simulation: Simulation, job: str | None = None) -> Explanation:
    """Explain a run that kept what was played, and what each waited for.

    Parameters
    ----------
    simulation : Simulation
        With ``records_plays``.
    job : str, optional
        The first by default.
    """
    scenario, recorder = simulation.scenario, simulation.recorder
    one = next(each for each in simulation.jobs if job is None or each.settings.name == job)
    window = choose_window(one, recorder, _period(one, scenario.run))
    path = critical_path(one, recorder, window)
    replays = Replays(scenario, recorder.rows(PlayRow))
    computing = Computing(one)
    cut = [(stretch, _pieces(stretch, one, replays, computing)) for stretch in path]
    count = window.iterations
    iteration_time_s = (window.end_s - window.begin_s) / count
    notes = tuple(dict.fromkeys(note for stretch, _ in cut for note in _notes(stretch, one)))
    recovery_s = one.supervisor.recovery_s() if one.supervisor is not None else 0.0
    if recovery_s > 0.0:
        notes += (f"between iterations, recovery from crashes took {format_duration(recovery_s)} of each in the mean",)
    sums: dict[str, list[Piece]] = {}
    for _, pieces in cut:
        for piece in pieces:
            sums.setdefault(piece.part, []).append(piece)
    rows = [
        {
            "group": group_of(part),
            "part": part,
            "time_s": math.fsum(piece.time_s for piece in pieces) / count,
            "about": _about(pieces),
        }
        for part, pieces in sums.items()
    ]
    rows = [row for row in rows if row["time_s"] != 0.0]
    rows.sort(key=lambda row: (GROUPS.index(str(row["group"])), -_sorted_by(row)))
    first = int(one.course.first[window.rank])
    return Explanation(
        scenario.name,
        one.settings.name,
        iteration_time_s,
        mean_iteration_time_s(simulation, one.settings.name),
        window.rank,
        tuple(range(window.first - first, window.last - first + 1)),
        parts_table(rows, iteration_time_s),
        _path_table(path, window, first),
        notes,
    )


def _sorted_by(row: Mapping[str, Any]) -> float:
    """Order computing as on the path, the rest by what it takes."""
    return 0.0 if row["group"] == "computing" else float(row["time_s"])


def _period(job: Job, run: RunSettings) -> int:
    """Return how many iterations there are until things repeat."""
    training = job.settings.training
    if training.sync.name == "one_shot":
        return run.iterations
    period = training.sync.period if training.sync.name == "local_sgd" else 1
    if training.checkpoint is not None:
        period = math.lcm(period, training.checkpoint.every)
    return min(period, run.iterations)


def _pieces(stretch: Stretch, job: Job, replays: Replays, computing: Computing) -> list[Piece]:
    """Cut a stretch into what each cause takes of it."""
    if stretch.what == "compute":
        return computing.pieces(stretch)
    if stretch.play is None:
        crash = _crash_in(stretch, job) if stretch.what == "waiting" else None
        return [Piece("recovery" if crash else stretch.what, stretch.duration_s, crash or "")]
    row = stretch.play
    pieces = replays.pieces(row, stretch.since_s, stretch.end_s, stretch.over_for)
    last = pieces.pop()
    if stretch.what == "step":
        pieces += _computing_of_step(stretch, job, replays, last.time_s)
    elif last.time_s != 0.0:
        pieces.append(Piece("computing of servers", last.time_s))
    whole_s = stretch.end_s - stretch.since_s
    # Of what began before the iteration, each cause has the same share as of the whole.
    share = stretch.duration_s / whole_s
    pieces = [replace(piece, time_s=piece.time_s * share) for piece in pieces]
    return _rounded(pieces, stretch.duration_s)


def _crash_in(stretch: Stretch, job: Job) -> str | None:
    """Return who had crashed, and was not there yet, in a stretch of waiting."""
    crashes = [crash for crash in job.settings.crashes if crash.begin_s < stretch.end_s]
    away = [crash for crash in crashes if crash.end_s > stretch.begin_s]
    return away[-1].what if away else None


def _rounded(pieces: list[Piece], whole_s: float) -> list[Piece]:
    """Take away what is nothing but rounding, and have the largest piece bear what is missing."""
    kept = [piece for piece in pieces if abs(piece.time_s) > whole_s * 1e-9]
    if not kept:
        return [Piece("exchange", whole_s)]
    place = max(range(len(kept)), key=lambda number: kept[number].time_s)
    missing_s = whole_s - math.fsum(piece.time_s for piece in kept)
    kept[place] = replace(kept[place], time_s=kept[place].time_s + missing_s)
    return kept


def _computing_of_step(stretch: Stretch, job: Job, replays: Replays, computing_s: float) -> list[Piece]:
    """Cut what workers compute in a step: at the usual speed, for stragglers, and while others compute."""
    row = stretch.play
    assert row is not None
    grid = job.settings.training.grid
    step = job.steps[grid.place_of(int(row.members[0]))[1]]
    slowness = 1.0 / np.asarray(job.settings.training.speed_factors or [1.0])
    usual = float(np.median(slowness))
    schedule = step.usual_schedule(row.placement.schedule, usual)
    usual_s = replays.computing_s(row, stretch.since_s, stretch.over_for, schedule)
    whole_s = replays.computing_s(row, row.start_s, -1, schedule)
    busy = min(step.longest_compute_s * usual / whole_s, 1.0) if whole_s > 0.0 else 1.0
    return [
        Piece("computing in steps", usual_s * busy),
        Piece("pipeline bubble", usual_s * (1.0 - busy)),
        Piece(STRAGGLERS, computing_s - usual_s),
    ]


def _about(pieces: Iterable[Piece]) -> str:
    """Return what most of some pieces are about."""
    sums: dict[str, float] = {}
    for piece in pieces:
        sums[piece.about] = sums.get(piece.about, 0.0) + piece.time_s
    return max(sums, key=lambda about: sums[about])


def _notes(stretch: Stretch, job: Job) -> Iterable[str]:
    if stretch.play is not None and stretch.since_s < stretch.begin_s:
        yield "an exchange that began before the iteration is cut in proportion"
    if stretch.what == "waiting" and not _crash_in(stretch, job):
        yield "for some of the time nothing is known but that the worker waited"


def _path_table(path: Iterable[Stretch], window: Window, first: int) -> pd.DataFrame:
    """Return the path as a table, times from the beginning of the iteration on."""
    rows = [
        {
            "start_s": stretch.begin_s - window.begin_s,
            "duration_s": stretch.duration_s,
            "worker": stretch.rank,
            "what": stretch.what if stretch.play is None else stretch.play.what,
            "bucket": stretch.play.bucket if stretch.play is not None else -1,
            "iteration": (stretch.play.iteration if stretch.play is not None else _iteration(stretch, window)) - first,
        }
        for stretch in path
    ]
    return ordered("critical_path", pd.DataFrame(rows))


def _iteration(stretch: Stretch, window: Window) -> int:
    return stretch.span.iteration if stretch.span is not None else window.last
