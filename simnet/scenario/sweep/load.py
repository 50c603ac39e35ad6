"""Load a sweep: read, validate, expand into points, and report everything that is wrong at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from simnet.errors import InputError, KeyPath, Problem
from simnet.scenario.document import Document, python_document
from simnet.scenario.load import SCENARIO_SUFFIXES, name_of, parse_scenario
from simnet.scenario.locate import find_file
from simnet.scenario.overrides import Override, apply_overrides
from simnet.scenario.sections import problems_of
from simnet.scenario.sweep.conditions import Condition
from simnet.scenario.sweep.models import MOST_POINTS, SweepSpec
from simnet.scenario.sweep.sampling import draw_points
from simnet.scenario.yaml_document import read_yaml

__all__ = ["SEED", "Point", "Sweep", "load_sweep_file"]

SEED = "run.seed"
"""The path of the key that repeats differ in."""


@dataclass(frozen=True, eq=False)
class Point:
    """One point of a sweep.

    Attributes
    ----------
    number : its place in the sweep, from 0
    values : what is varied, by path
    overrides : these and what is the same at every point, each with its place in the sweep file
    """

    number: int
    values: Mapping[str, Any]
    overrides: tuple[Override, ...]


@dataclass(frozen=True, eq=False)
class Sweep:
    """A scenario with some of its keys varied.

    Attributes
    ----------
    name : str
    scenario : Document
        The scenario as it is given.
    scenario_name : str
        Its name where it gives none.
    folder : Path
        What its paths are relative to.
    parameters : tuple of str
        Paths of what is varied, in order; the seed of repeats is last.
    points : tuple of Point
    baseline : mapping
        Values of the point that others refer to, by path; empty where there is none.
    keep : tuple of str
        Tables of each point to keep.
    is_repeated : bool
        Whether points differ in their seed alone.
    """

    name: str
    scenario: Document
    scenario_name: str
    folder: Path
    parameters: tuple[str, ...]
    points: tuple[Point, ...]
    baseline: Mapping[str, Any]
    keep: tuple[str, ...]
    is_repeated: bool


@dataclass(frozen=True)
class _Value:
    """A value of a key, and where in the sweep file it stands."""

    path: str
    value: Any
    place: KeyPath


def load_sweep_file(sweep: str | Path | Mapping[str, Any], overrides: Iterable[Override] = ()) -> Sweep:
    """Return a sweep with all its points.

    Parameters
    ----------
    sweep : str, Path or mapping
        A file, or its content as plain data.
    overrides : iterable of Override
        Values that are the same at every point, beside those of the file.

    Raises
    ------
    InputError
        Everything that is wrong with the file, and with any value that it gives to a key.
    """
    if isinstance(sweep, Mapping):
        document, folder, name = python_document(sweep, ""), Path(), "sweep"
    else:
        path = find_file(str(sweep), None)
        document, folder = read_yaml(path), path.parent
        name = name_of(path, "sweep")
    spec = _validate(document)
    scenario, inside, scenario_name = _scenario_of(document, spec, folder)
    common = [*_overrides(document, _settings(spec.set, ("set",))), *overrides]
    rows = _rows(document, spec)
    parameters = tuple(dict.fromkeys(value.path for row in rows for value in row))
    rows = _those_where(document, spec, rows)
    points = tuple(
        Point(number, {value.path: value.value for value in row}, (*common, *_overrides(document, row)))
        for number, row in enumerate(rows)
    )
    _check_lost(common, points)
    _check_values(scenario, points)
    return Sweep(
        spec.name or name,
        scenario,
        scenario_name,
        inside,
        parameters,
        points,
        _baseline(document, spec, parameters, points),
        tuple(spec.keep or ()),
        spec.repeat is not None,
    )


def _validate(document: Document) -> SweepSpec:
    problems = list(document.problems)
    try:
        spec = SweepSpec.model_validate(document.data)
    except ValidationError as error:
        raise InputError([*problems, *problems_of(document, SweepSpec, error)]) from None
    if problems:
        raise InputError(problems)
    return spec


def _scenario_of(document: Document, spec: SweepSpec, folder: Path) -> tuple[Document, Path, str]:
    """Return the scenario, the folder that its paths are relative to, and the name that it has by default."""
    if isinstance(spec.scenario, dict):
        return _part(document, ("scenario",), spec.scenario), folder, "scenario"
    try:
        path = find_file(spec.scenario, folder, "scenarios", SCENARIO_SUFFIXES)
    except InputError as error:
        raise InputError(document.at(("scenario",), problem) for problem in error.problems) from None
    return read_yaml(path).checked(), path.parent, name_of(path, "scenario")


def _part(document: Document, path: KeyPath, value: Any) -> Document:
    """Return what stands at a path as a document of its own, with the places of the whole."""
    if not isinstance(value, (dict, list)):  # as most values of a sweep, of which there may be thousands
        return Document(value, document.source, {(): document.places[path]} if path in document.places else {})
    places = {known[len(path) :]: place for known, place in document.places.items() if known[: len(path)] == path}
    return Document(value, document.source, places)


def _overrides(document: Document, values: Iterable[_Value]) -> Iterator[Override]:
    for value in values:
        yield Override(tuple(value.path.split(".")), _part(document, value.place, value.value))


def _settings(values: Mapping[str, Any] | None, place: KeyPath) -> list[_Value]:
    return [_Value(path, value, (*place, path)) for path, value in (values or {}).items()]


def _rows(document: Document, spec: SweepSpec) -> list[list[_Value]]:
    """Return the values of each point: the product of all that is given, the last of it fastest."""
    blocks: list[Sequence[list[_Value]]] = []
    for path, values in (spec.grid or {}).items():
        blocks.append([[_Value(path, value, ("grid", path, n))] for n, value in enumerate(values)])
    if spec.zip is not None:
        count = len(next(iter(spec.zip.values())))
        blocks.append(
            [[_Value(path, values[n], ("zip", path, n)) for path, values in spec.zip.items()] for n in range(count)]
        )
    if spec.list is not None:
        blocks.append([_settings(values, ("list", n)) for n, values in enumerate(spec.list)])
    if spec.sample is not None:
        try:
            drawn = draw_points(spec.sample)
        except InputError as error:
            raise InputError(document.at(("sample",), problem) for problem in error.problems) from None
        blocks.append([[_Value(path, value, ("sample",)) for path, value in point.items()] for point in drawn])
    if spec.repeat is not None:
        blocks.append([[_Value(SEED, seed, ("repeat",))] for seed in spec.repeat])
    seen: set[str] = set()
    for block in blocks:
        own = {value.path for row in block for value in row}
        for path in sorted(own & seen):
            message = f"{path} is varied twice"
            raise InputError(document.problem(block[0][0].place, message, "once is wanted", at_key=True))
        seen |= own
    count = 1
    for block in blocks:
        count *= len(block)
    if count > MOST_POINTS:
        raise InputError(
            document.problem((), f"{count:,} points are too many", f"at most {MOST_POINTS:,} are possible")
        )
    return [[value for row in rows for value in row] for rows in itertools.product(*blocks)]


def _those_where(document: Document, spec: SweepSpec, rows: list[list[_Value]]) -> list[list[_Value]]:
    """Drop the points that miss a condition."""
    if spec.where is None:
        return rows
    points = [{value.path: value.value for value in row} for row in rows]
    known: dict[str, object] = {path: None for point in points for path in point}
    problems: list[Problem] = []
    kept = [True] * len(points)
    for number, text in enumerate(spec.where):
        place: KeyPath = ("where", number) if ("where", number) in document.places else ("where",)
        try:
            condition = Condition(text, known)
            # A point of a list may lack the value of another.
            whole = [dict.fromkeys(known) | point for point in points]
            kept = [was and condition.holds(point) for was, point in zip(kept, whole, strict=True)]
        except InputError as error:
            problems += [document.at(place, problem) for problem in error.problems]
    if not problems and not any(kept):
        problems.append(document.problem(("where",), "no point is left", "conditions that some points meet are wanted"))
    if problems:
        raise InputError(problems)
    return [row for row, keeps in zip(rows, kept, strict=True) if keeps]


def _baseline(
    document: Document, spec: SweepSpec, parameters: Sequence[str], points: Sequence[Point]
) -> Mapping[str, Any]:
    given = spec.baseline or {}
    unknown = [path for path in given if path not in parameters]
    if unknown:
        hint = f"one of {', '.join(parameters)} is wanted" if parameters else "nothing is"
        raise InputError(
            document.problem(("baseline", path), f"{path} is not varied", hint, at_key=True) for path in unknown
        )
    if not any(all(_is_same(point.values.get(path), value) for path, value in given.items()) for point in points):
        hint = "values that a point has are wanted"
        raise InputError(document.problem(("baseline",), "no point has the values of the baseline", hint))
    return given


def _is_same(value: Any, other: Any) -> bool:
    return bool(value == other) or str(value) == str(other)


def _check_lost(common: Sequence[Override], points: Sequence[Point]) -> None:
    """Refuse values that another one, which comes later, replaces at every point, or at some."""
    problems: dict[Problem, None] = {}
    seen: set[tuple[str, ...]] = set()
    for point in points:
        if tuple(point.values) in seen:
            continue
        seen.add(tuple(point.values))
        # Of what is the same at every point, that of the command line may replace that of the file.
        for place, later in list(enumerate(point.overrides))[len(common) :]:
            for earlier in point.overrides[:place]:
                if earlier.path[: len(later.path)] == later.path:
                    lost, by = ".".join(earlier.path), ".".join(later.path)
                    why = "it varies" if lost == by else f"{by} varies, and replaces it"
                    message = f"{lost} has no effect: {why}"
                    problem = earlier.document.problem((), message, "one of them is wanted", at_key=True)
                    problems[problem] = None
    if problems:
        raise InputError(problems)


def _check_values(scenario: Document, points: Sequence[Point]) -> None:
    """Refuse values that a key cannot have; which ones go together, only running tells."""
    problems: dict[Problem, None] = {}
    seen: set[tuple[str, str]] = set()
    for point in points:
        new = {(path, repr(value)) for path, value in point.values.items()} - seen
        if not new and point.number:
            continue
        seen |= new
        try:
            parse_scenario(apply_overrides(scenario, point.overrides))
        except InputError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise InputError(problems)
