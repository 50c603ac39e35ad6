"""Pictures of a sweep, by kind: what is over what follows from what varies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from simnet.errors import InputError, Problem, nearest
from simnet.experiment.effects import Effects, main_effects
from simnet.experiment.plot import laws
from simnet.experiment.plot.bars import breakdown
from simnet.experiment.plot.curves import draw_curves, legend_below, panels
from simnet.experiment.plot.effects import effects_bars
from simnet.experiment.plot.heat_map import heat_map
from simnet.experiment.plot.style import words_of
from simnet.experiment.quantities import as_numbers
from simnet.experiment.sweep.view import SweepView, view_frame, view_sweep

__all__ = ["EFFECTS_OF", "KINDS", "Choice", "Kind", "effects_of", "plot", "plot_view", "series_of"]

EFFECTS_OF = ("iteration_time_s", "exposed_communication_time_s", "throughput_samples_per_s", "scaling_efficiency")
"""Numbers whose variance is explained."""

_MOST_CURVES = 8
_MOST_PANELS = 12
_MOST_BARS = 24
_DECADE = 10.0


@dataclass(frozen=True)
class Choice:
    """What somebody has chosen; None where the picture chooses.

    Attributes
    ----------
    x, y, by : columns
    """

    x: str | None = None
    y: str | None = None
    by: str | None = None


@dataclass(frozen=True, eq=False)
class _Chosen:
    """What is over what: rows, of which those parameters that find no place have their first value.

    Attributes
    ----------
    frame : rows to draw
    x, by, panel : columns; None where there is none
    note : what has been left out, in words
    is_line : whether points are joined: not where values are drawn at random
    """

    frame: pd.DataFrame
    x: str
    by: str | None
    panel: str | None
    note: str
    is_line: bool = True


@dataclass(frozen=True)
class Kind:
    """A kind of picture.

    Attributes
    ----------
    takes : which of x, y and by can be chosen
    draw : makes it
    """

    takes: tuple[str, ...]
    draw: Callable[[SweepView, Choice], Figure]


def plot(
    sweep: str | Path | pd.DataFrame,
    kind: str = "curves",
    *,
    x: str | None = None,
    y: str | None = None,
    by: str | None = None,
) -> Figure:
    """Return a picture of a sweep.

    Parameters
    ----------
    sweep : str, Path or DataFrame
        A folder that ``simnet sweep`` wrote, or a table of `simnet.sweep` or `simnet.load_sweep`.
    kind : str
        One of `KINDS`.
    x, y, by : str, optional
        Columns, in the place of what the picture would choose.

    Returns
    -------
    Figure
        Of matplotlib; ``figure.savefig("picture.svg")`` writes it.

    Raises
    ------
    InputError
        No sweep, no point that has succeeded, an unknown kind or column, or nothing to draw.

    Examples
    --------
    >>> import simnet
    >>> figure = simnet.plot("results/sweeps/scan", "efficiency")  # doctest: +SKIP
    """
    view = view_frame(sweep) if isinstance(sweep, pd.DataFrame) else view_sweep(sweep)
    return plot_view(view, kind, Choice(x, y, by))


def plot_view(view: SweepView, kind: str, choice: Choice | None = None) -> Figure:
    """Return a picture of a sweep that is loaded; see `plot`."""
    choice = choice or Choice()
    if kind not in KINDS:
        raise InputError(Problem(f"there is no kind {kind!r}", nearest(kind, KINDS), source="--kind"))
    problems = []
    for option in ("x", "y", "by"):
        column = getattr(choice, option)
        if column is None:
            continue
        source = f"--{option}"
        if option not in KINDS[kind].takes:
            taken = ", ".join(f"--{name}" for name in KINDS[kind].takes) or "none"
            problems.append(Problem(f"{kind} takes no {source}", f"of these it takes {taken}", source=source))
        elif column not in view.frame:
            problems.append(
                Problem(f"there is no column {column!r}", nearest(column, view.frame.columns), source=source)
            )
        elif option == "y" and kind != "heatmap" and not pd.api.types.is_numeric_dtype(view.frame[column]):
            problems.append(Problem(f"{column} is no number", "a column of numbers is wanted", source=source))
    if problems:
        raise InputError(problems)
    return KINDS[kind].draw(view, choice)


def _chosen(view: SweepView, choice: Choice) -> _Chosen:
    """Choose what is over what: first the workers, then numbers; protocols as curves; panels for a third."""
    drawn = view.drawn
    left = [name for name in view.parameters if name not in (choice.x, choice.by)]
    x = choice.x or view.workers or _longest(view, left) or "protocol"
    # Where some points leave the number of workers as it is, the parameter is no number, and the column is.
    left = [name for name in left if name != x and not (x == "workers" and name == "training.workers")]
    left = [name for name in left if name not in drawn]
    # What goes along with x, as the leaves of a cluster with its workers, needs no place of its own.
    along = [name for name in left if _go_together(view.frame, name, x)]
    left = [name for name in left if name not in along]
    by = choice.by or next((name for name in left if name == "protocol"), None) or _shortest(view, left)
    left = [name for name in left if name != by]
    panel = _shortest(view, left)
    left = [name for name in left if name != panel]
    frame, note = _at_first(view, view.frame, left)
    if along:
        note = "; ".join(filter(None, [note, f"along with {words_of(x)}: {', '.join(map(words_of, along))}"]))
    for column, most in ((by, _MOST_CURVES), (panel, _MOST_PANELS)):
        values = list(dict.fromkeys(frame[column])) if column is not None else []
        if len(values) > most:
            step = (len(values) - 1) / (most - 1)
            frame = frame[frame[column].isin([values[round(step * number)] for number in range(most)])]
            note = "; ".join(filter(None, [note, f"{most} of the {len(values)} values of {words_of(str(column))}"]))
    if drawn:
        others = [words_of(name) for name in drawn if name not in (x, by)]
        note = "; ".join(filter(None, [note, f"at any {' and '.join(others)}" if others else ""]))
    return _Chosen(frame, x, by, panel, note, is_line=not drawn)


def _go_together(frame: pd.DataFrame, one: str, other: str) -> bool:
    """Return whether each value of one column is found with one of another, and the other way round."""
    pairs = frame[[one, other]].drop_duplicates()
    return bool(pairs[one].is_unique and pairs[other].is_unique)


def _at_first(view: SweepView, frame: pd.DataFrame, parameters: list[str]) -> tuple[pd.DataFrame, str]:
    """Return the rows in which some parameters have their first value, and say so."""
    fixed = {name: view.values(name)[0] for name in parameters}
    for name, value in fixed.items():
        frame = frame[frame[name] == value]
    return frame, ", ".join(f"{words_of(name)} {value}" for name, value in fixed.items())


def _longest(view: SweepView, names: list[str]) -> str | None:
    """Return the parameter for an axis: one of numbers or quantities, the one with most values."""
    numbers = [name for name in names if as_numbers(view.frame[name]) is not None]
    return max(numbers or names, key=lambda name: len(view.values(name)), default=None)


def _shortest(view: SweepView, names: list[str]) -> str | None:
    return min(names, key=lambda name: len(view.values(name)), default=None)


def _curves(
    view: SweepView, choice: Choice, y: str, *, log_y: bool | None = None, title: str = ""
) -> tuple[Figure, _Chosen]:
    """Draw curves of a column, in panels where there is a third parameter."""
    chosen = _chosen(view, choice)
    frame = chosen.frame
    numbers = frame[y]
    if log_y is None:
        log_y = bool(numbers.min() > 0 and numbers.max() / numbers.min() >= _DECADE)
    title = "; ".join(filter(None, [title, chosen.note]))
    if chosen.panel is not None:
        assert chosen.by is not None
        return panels(
            frame, chosen.x, y, chosen.by, chosen.panel, title=title, log_y=log_y, line=chosen.is_line
        ), chosen
    figure = Figure(figsize=(6.6, 4.2), layout="constrained")
    draw_curves(figure.add_subplot(), frame, chosen.x, y, chosen.by, title=title, log_y=log_y, line=chosen.is_line)
    legend_below(figure)
    return figure, chosen


def _any_curves(view: SweepView, choice: Choice) -> Figure:
    return _curves(view, choice, choice.y or "throughput_samples_per_s")[0]


def _scaling(view: SweepView, choice: Choice) -> Figure:
    _need_workers(view)
    workers = view.frame[view.workers or "workers"]
    # On a logarithmic axis of workers linear scaling is a line only beside another one.
    figure, chosen = _curves(view, choice, "throughput_samples_per_s", log_y=bool(workers.min() > 0))
    # One worker alone, without communication, as many times.
    rows = chosen.frame[chosen.frame["speedup"] > 0]
    one = (rows["throughput_samples_per_s"] / rows["speedup"]).max()
    numbers = sorted(set(rows[chosen.x]))
    for axes in figure.axes:
        axes.plot(numbers, [one * number for number in numbers], color="#888888", linewidth=1, zorder=1, label="linear")
        low, high = axes.get_ylim()
        axes.set_ylim(low, max(high, 1.05 * one * numbers[-1]))
    for legend in figure.legends:
        legend.remove()
    legend_below(figure)
    return figure


def _efficiency(view: SweepView, choice: Choice) -> Figure:
    _need_workers(view)
    chosen = _chosen(view, Choice(view.workers, None, choice.by))
    return laws.efficiency(chosen.frame, chosen.x, chosen.by, chosen.panel, title=chosen.note)


def _ratio(view: SweepView, choice: Choice) -> Figure:
    """Draw the ratio of communication to computing, and where both take as long."""
    ratios = view.frame.loc[view.frame["communication_compute_ratio"] > 0, "communication_compute_ratio"]
    spans = bool(len(ratios) and ratios.max() / ratios.min() >= _DECADE and ratios.max() > _DECADE)
    title = "points without communication are left out" if spans and len(ratios) < len(view.frame) else ""
    rows = view.frame[view.frame["communication_compute_ratio"] > 0] if spans else view.frame
    some = replace(view, frame=rows)
    figure, _ = _curves(some, choice, "communication_compute_ratio", log_y=spans, title=title)
    highest = float(rows["communication_compute_ratio"].max())
    for axes in figure.axes:
        if highest > 0.5:
            axes.axhline(1.0, color="#888888", linewidth=1, zorder=1, label="as long as computing")
        if highest > 0.5 and not spans:
            axes.set_ylim(0, 1.05 * max(highest, 1.0))
    for legend in figure.legends:
        legend.remove()
    legend_below(figure)
    return figure


def _breakdown(view: SweepView, choice: Choice) -> Figure:
    """Draw a bar a point where there are few; else those with most workers, and others at their first value."""
    frame, notes = view.frame, []
    names = [name for name in view.parameters if len(view.values(name)) > 1]
    if choice.by is not None:
        names = [choice.by, *(name for name in names if name != choice.by)]
    workers = view.workers
    if len(frame) > _MOST_BARS and workers is not None:
        most = frame[workers].max()
        frame = frame[frame[workers] == most]
        names = [name for name in names if name != workers and len(set(frame[name])) > 1]
        notes.append(f"{most} workers")
    while len(frame) > _MOST_BARS and names:
        widest = max(names, key=lambda name: frame[name].nunique())
        frame, note = _at_first(view, frame, [widest])
        names = [name for name in names if name != widest]
        notes.append(note)
    if choice.by is not None:
        frame = frame.sort_values(
            choice.by, key=lambda column: column.map(view.values(str(choice.by)).index), kind="stable"
        )
    return breakdown(frame.reset_index(drop=True), names or view.parameters[:1] or ["protocol"], title=", ".join(notes))


def _heat_map(view: SweepView, choice: Choice) -> Figure:
    """Draw a number over the two parameters that matter most, the others at their first value."""
    numbers = [name for name in (choice.y,) if name is not None and name not in view.parameters]
    value = numbers[0] if numbers else "iteration_time_s"
    wanted = [name for name in (choice.x, choice.by) if name is not None]
    if len(set(view.parameters) | set(wanted)) < 2:
        raise InputError(Problem("a heat map is of two parameters: fewer vary", source="--kind"))
    if any(name in view.drawn for name in wanted or view.parameters):
        raise InputError(Problem("a heat map is of a grid: values here are drawn at random", source="--kind"))
    if not pd.api.types.is_numeric_dtype(view.frame[value]):
        raise InputError(Problem(f"{value} is no number", "a column of numbers is wanted", source="--y"))
    found = main_effects(view.good, view.parameters, value)
    order = found.order if found is not None else list(view.parameters)
    two = [*wanted, *(name for name in order if name not in wanted)][:2]
    if choice.x is None and choice.by is None:
        # The one with more values lies.
        two.sort(key=lambda name: -len(view.values(name)))
    elif choice.x is None:
        two.reverse()
    frame, note = _at_first(view, view.frame, [name for name in view.parameters if name not in two])
    everything, _ = _at_first(view, view.shown, [name for name in view.parameters if name not in two])
    return heat_map(_with_gaps(frame, everything, two), two[0], two[1], value, title=note)


def _with_gaps(frame: pd.DataFrame, everything: pd.DataFrame, two: list[str]) -> pd.DataFrame:
    """Return the rows, with empty ones where points have failed, so that values all of which failed are seen."""
    missing = everything.loc[everything["status"] == "failed", two]
    return pd.concat([frame, missing], ignore_index=True) if len(missing) and set(two) <= set(missing) else frame


def _effects(view: SweepView, _: Choice) -> Figure:
    found = effects_of(view)
    if not found:
        few = len(view.parameters) < 2
        said = "fewer than two parameters vary" if few else "every number is the same at all points"
        raise InputError(Problem(f"there is nothing to tell apart: {said}", source="--kind"))
    return effects_bars(found)


def effects_of(view: SweepView) -> list[Effects]:
    """Return what explains the numbers of a sweep; nothing where fewer than two parameters vary."""
    if len(view.parameters) < 2:
        return []
    found = [main_effects(view.good, view.parameters, column) for column in EFFECTS_OF]
    return [one for one in found if one is not None]


def series_of(view: SweepView) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    """Yield the curves of the picture of efficiency: what each is of, and its points."""
    chosen = _chosen(view, Choice(view.workers))
    names = [name for name in (chosen.panel, chosen.by) if name is not None]
    if not names:
        yield {}, chosen.frame
        return
    for values, series in chosen.frame.groupby(names, sort=False):
        yield dict(zip(names, values, strict=True)), series


def _need_workers(view: SweepView) -> None:
    if view.workers is None:
        hint = "the number of workers is the same at every point"
        raise InputError(Problem("there is nothing that scales", hint, source="--kind"))


KINDS: Mapping[str, Kind] = {
    "curves": Kind(("x", "y", "by"), _any_curves),
    "scaling": Kind(("by",), _scaling),
    "efficiency": Kind(("by",), _efficiency),
    "ratio": Kind(("x", "by"), _ratio),
    "breakdown": Kind(("by",), _breakdown),
    "heatmap": Kind(("x", "y", "by"), _heat_map),
    "effects": Kind((), _effects),
}
"""Kinds of pictures, by name; `simnet.experiment.plot_kinds` says what they are."""
