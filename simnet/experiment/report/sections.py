"""The sections of a report: what was asked, what came of it, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from matplotlib.figure import Figure

from simnet.errors import InputError, Problem
from simnet.experiment.effects import INTERACTIONS
from simnet.experiment.plot.of_sweep import effects_of, plot_view, series_of
from simnet.experiment.plot.style import words_of
from simnet.experiment.plot.topology import draw_topology
from simnet.experiment.report import tables
from simnet.experiment.report.point import TellingPoint
from simnet.experiment.report.tables import Table
from simnet.experiment.scaling import fitted_laws
from simnet.experiment.sweep.view import SweepView

__all__ = ["Picture", "Section", "sections"]


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure, and what is seen on it."""

    figure: Figure
    words: str


@dataclass(frozen=True, eq=False)
class Section:
    """A section; one with nothing but text says why there is nothing."""

    name: str
    title: str
    text: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = field(default=())


def sections(view: SweepView, point: TellingPoint | None, no_point: str) -> Iterator[Section]:
    """Yield the sections of a report.

    Parameters
    ----------
    view : SweepView
    point : TellingPoint, optional
        Run again with a timeline.
    no_point : str
        Why there is none.
    """
    yield _question(view)
    yield Section("points", "Points", ("A click on a heading sorts.",), tables=(tables.points(view),))
    for name, title, make in _OF_SWEEP:
        try:
            yield make(view)
        except InputError as error:
            yield Section(name, title, (f"Left out: {_reason(error)}.",))
    yield from _point(point) if point is not None else [Section("point", "One point", (f"Left out: {no_point}.",))]
    if len(view.failed):
        text = f"{len(view.failed)} of {len(view.rows)} rows; they are in none of the pictures."
        yield Section("failed", "Failed points", (text,), tables=(tables.failures(view),))


def _reason(error: InputError) -> str:
    problem = error.problems[0]
    return f"{problem.message}; {problem.hint}" if problem.hint else problem.message


def _question(view: SweepView) -> Section:
    about, rows = view.about, view.rows
    text = []
    points, finished = about.get("points", len(rows)), about.get("finished", len(rows))
    said = f"{points} point{'' if points == 1 else 's'}"
    if finished < points:
        said += f", of which {points - finished} have not been run yet"
    failed = about.get("failed", len(view.failed))
    said += f", {failed} have failed: {_first_errors(view)}" if failed else ", none has failed"
    text.append(f"{said}.")
    if view.seeds > 1:
        text.append(f"Each was run with up to {view.seeds} seeds; what is shown are means, with 95 % intervals.")
    if about.get("baseline"):
        words = ", ".join(f"{words_of(path)} {value}" for path, value in about["baseline"].items())
        text.append(f"Baseline: {words}; all else as at each point.")
    fixed = [(words_of(name), _inline(value)) for name, value in _fixed(view)]
    found = [tables.table(["the same at every point", "value"], fixed)] if fixed else []
    varied = [tables.parameters(view)] if view.parameters else []
    if not view.parameters:
        text.append("Nothing varies.")
    if len(view.frame) > 1:
        varied.append(tables.table(["", *map(words_of, ["value", *view.parameters])], _extremes(view)))
    return Section("question", "The question", tuple(text), tables=(*varied, *found))


def _first_errors(view: SweepView) -> str:
    """Return the errors that are most frequent, each once."""
    counts = view.failed["error"].map(lambda error: str(error).splitlines()[0]).value_counts(sort=False)
    shown = sorted(counts.items(), key=lambda item: -item[1])[:3]
    more = f"; and {len(counts) - len(shown)} other errors" if len(counts) > len(shown) else ""
    return "; ".join(f"{count} with “{error}”" for error, count in shown) + more


_FIXED = (
    *("model", "gpu", "workers", "parallelism", "protocol", "architecture", "sync", "fidelity"),
    *("batch_size_per_worker", "iterations"),
)


def _fixed(view: SweepView) -> Iterator[tuple[str, object]]:
    """Yield what is the same at every point: what the sweep sets, and what the summary says."""
    yield from view.fixed.items()
    given = {path.rpartition(".")[2] for path in (*view.fixed, *view.parameters)}
    topology = (view.about.get("scenario") or {}).get("topology")
    if topology is not None and "topology" not in view.parameters:
        for path in view.parameters:
            if path.startswith("topology."):
                topology = _without(topology, path.split(".")[1:])
        yield "topology", topology
    for path, value in (view.about.get("set") or {}).items():
        given.add(path.rpartition(".")[2])
        yield path, value
    for name in _FIXED:
        if (
            name not in given
            and name in view.frame
            and view.frame[name].nunique() == 1
            and view.frame[name].iloc[0] != ""
        ):
            yield name, view.frame[name].iloc[0]


def _without(value: object, keys: list[str]) -> object:
    """Return a mapping without what a path leads to."""
    if not isinstance(value, dict) or not keys:
        return value
    rest = {key: inner for key, inner in value.items() if key != keys[0]}
    if len(keys) == 1 or keys[0] not in value:
        return rest
    return {key: _without(inner, keys[1:]) if key == keys[0] else inner for key, inner in value.items()}


def _inline(value: object) -> str:
    """Return a mapping as it could stand in YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_inline(inner)}" for key, inner in value.items()) + "}"
    return str(value)


def _extremes(view: SweepView) -> Iterator[list[object]]:
    frame = view.frame
    for words, column, pick in (
        ("shortest iteration [s]", "iteration_time_s", np.argmin),
        ("longest iteration [s]", "iteration_time_s", np.argmax),
        ("highest throughput [samples/s]", "throughput_samples_per_s", np.argmax),
        ("lowest scaling efficiency", "scaling_efficiency", np.argmin),
    ):
        numbers = frame[column].to_numpy(dtype=np.float64)
        if np.isfinite(numbers).all():
            row = frame.iloc[int(pick(numbers))]
            yield [words, float(row[column]), *(row[name] for name in view.parameters)]


def _scaling(view: SweepView) -> Section:
    pictures = (
        Picture(plot_view(view, "scaling"), "throughput over the number of workers"),
        Picture(plot_view(view, "efficiency"), "scaling efficiency over the number of workers, with fitted laws"),
    )
    by, rows = [], []
    for values, series in series_of(view):
        by = list(values)
        fits = fitted_laws(series[view.workers], series["speedup"])
        rows.append([*values.values(), len(series), *fits.values()])
    head = ["Amdahl: serial fraction", "R²", "Gustafson: serial fraction", "R²"]
    text = (
        "Efficiency is speed-up over the number of workers P; speed-up is that over one worker without communication. "
        "Lines are the nearest curves, by least squares, of Amdahl's law, 1 / (f + (1 - f)/P), in 1/speed-up, and of "
        "Gustafson's, P - f (P - 1), in speed-up. f is the fraction that would be serial if that were all that holds "
        "speed-up back; R² is the part of the variance of the speed-up that a curve explains: below 0 it is no better "
        "than a constant, and f means nothing. Curves that explain less than 0.9 are not drawn.",
    )
    table = tables.table([*map(words_of, by), "points", *head], rows)
    return Section("scaling", "Scaling", text, pictures, (table,))


def _ratio(view: SweepView) -> Section:
    if len(view.frame) < 2:
        raise InputError(Problem("it is in the table, as there is one point"))
    text = "Time with a transfer under way, hidden behind computing or not, over the time of computing."
    picture = Picture(plot_view(view, "ratio"), "communication time over computing time")
    return Section("ratio", "Communication to computing", (text,), (picture,))


def _breakdown(view: SweepView) -> Section:
    text = "Exposed communication is what computing does not hide; waiting is for peers while nothing is transferred."
    picture = Picture(plot_view(view, "breakdown"), "parts of the iteration time, stacked")
    return Section("breakdown", "Where an iteration goes", (text,), (picture,))


def _heat_map(view: SweepView) -> Section:
    picture = Picture(plot_view(view, "heatmap"), "iteration time over two parameters")
    text = ["Iteration time over two parameters."]
    if len(view.parameters) > 2:
        text = ["Iteration time over the two parameters that explain most of it; the others have their first value."]
    if len(view.failed):
        text.append("Hatched: no point there has succeeded.")
    return Section("heatmap", "Two parameters", tuple(text), (picture,))


def _effects(view: SweepView) -> Section:
    picture = Picture(plot_view(view, "effects"), "variance explained by each parameter")
    found = effects_of(view)
    first = found[0]
    order = ", ".join(f"{words_of(name)} {first.shares[name]:.0%}" for name in first.order)
    what = words_of(first.column)
    said = f"Of the variance of {what} over all points, main effects explain: {order}; interactions"
    text = [
        f"{said} {first.shares[INTERACTIONS]:.0%}.",
        "A main effect is what a value of one parameter adds in the mean over the others: an additive model is fitted "
        "by least squares, and what each parameter explains is its mean over all orders of taking them in (on a full "
        "grid: analysis of variance). What the additive model leaves is interactions"
        + (", and what differs between seeds of a point is chance." if view.seeds > 1 else ".")
        + " Where a number spans a decade or more, it is its logarithm that is explained.",
    ]
    grouped = sorted({name for one in found for name in one.grouped})
    if grouped:
        text.append(f"{', '.join(map(words_of, grouped))}: so many values that they were put into five groups.")
    if len(view.failed):
        text.append("Points that have failed are left out.")
    return Section("effects", "What matters most", tuple(text), (picture,))


def _point(point: TellingPoint) -> Iterator[Section]:
    drawn = point.result.plot
    values = f" ({point.words})" if point.words else ""
    text = f"Point {point.number}{values}, run again with a timeline: {point.reason}."
    summary = point.result.summary.set_index("job").to_dict(orient="index")[point.job]
    facts = [
        [words_of(name), float(summary[name])]
        for name in ("iteration_time_s", "compute_time_s", "exposed_communication_time_s", "waiting_time_s")
    ]
    numbers = tables.table(["mean of an iteration", "[s]"], facts)
    pictures = (
        Picture(draw_topology(point.topology, point.result.links), "topology with links coloured by utilisation"),
        Picture(drawn.timeline(job=point.job), "timeline of one iteration"),
        Picture(drawn.utilisation(), "utilisation of the busiest resources over time"),
    )
    yield Section("point", "One point", (text, *point.result.warnings), pictures, (numbers,))


_OF_SWEEP: tuple[tuple[str, str, Callable[[SweepView], Section]], ...] = (
    ("scaling", "Scaling", _scaling),
    ("ratio", "Communication to computing", _ratio),
    ("breakdown", "Where an iteration goes", _breakdown),
    ("heatmap", "Two parameters", _heat_map),
    ("effects", "What matters most", _effects),
)
