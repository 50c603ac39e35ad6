"""What is simulated for each measurement: descriptions of data sets, as YAML beside the measurements.

A description is a scenario (or a collective) and rules. A rule says which rows it is for, and which keys it sets; later
rules win. So how a system is modelled stands once for all its rows, and a new row of the same system needs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, ValidationError

from simnet.errors import InputError, KeyPath, Problem
from simnet.experiment.validation.measurements import BANDWIDTH_UNITS, RATE_UNITS, TIME_UNITS, Measurement
from simnet.scenario import load_collective
from simnet.scenario.document import Document
from simnet.scenario.fields import Text, Word, hint_at, refuse, shown
from simnet.scenario.sections import Section, problems_of, unknown_key
from simnet.scenario.yaml_document import read_yaml

__all__ = ["Case", "DataSet", "load_data_set", "load_data_sets"]

_COLUMNS = tuple(field.name for field in fields(Measurement))
_NUMBERS = ("row", "batch", "workers", "hosts", "size_bytes", "value")
_PLAYS = ("training", "collective")
_NEEDED = {"training": {"topology"}, "collective": {"collective", "topology", "protocol"}}
_PREDICTED = {"training": (*RATE_UNITS,), "collective": (*TIME_UNITS, *BANDWIDTH_UNITS)}
_BOUND = re.compile(r"(<|>=) ?([0-9]+)")


def _where(value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict) or not value:
        refuse(f"is {shown(value)}", "a mapping from columns to patterns is wanted, like {model: ResNet-50}")
    for column in value:
        if column not in _COLUMNS:
            refuse(f"has the column {shown(column)}", hint_at(str(column), _COLUMNS), key=column)
    found = {
        column: tuple(str(one) for one in (patterns if isinstance(patterns, list) else [patterns]))
        for column, patterns in value.items()
    }
    for column, patterns in found.items():
        if not patterns:
            refuse(f"has no pattern for {column}", "at least one is wanted", key=column)
        for pattern in patterns:
            if column in _NUMBERS and not _is_of_number(pattern):
                hint = "a whole number, '< N', '>= N', or a pattern with * or ? is wanted"
                refuse(f"has {shown(pattern)} for {column}", hint, key=column)
    return found


def _is_of_number(pattern: str) -> bool:
    """Tell whether a pattern can be that of a column of numbers; nothing is that of a cell without one."""
    return not pattern or bool(_BOUND.fullmatch(pattern)) or set(pattern) <= set("0123456789.*?")


def _set(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        refuse(f"is {shown(value)}", "a mapping from keys to values is wanted, like {training.overlap: false}")
    return dict(value)


def _columns(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        refuse(f"is {shown(value)}", "a list of columns is wanted, like [model, batch]")
    for column in value:
        if column not in _COLUMNS:
            refuse(f"names {shown(column)}", hint_at(str(column), _COLUMNS))
    return tuple(value)


class _RuleSpec(Section):
    """What holds for some of the rows."""

    where: Annotated[dict[str, tuple[str, ...]], PlainValidator(_where)] = Field(
        {}, description="Columns and patterns with * and ?, '< N', '>= N', or lists of these; all rows where not given."
    )
    set: Annotated[dict[str, Any], PlainValidator(_set)] = Field({}, description="Keys and their values.")
    assumed: Annotated[str, Text("a sentence")] = Field("", description="What the source does not say.")
    leave_out: Annotated[str, Text("a sentence")] = Field("", description="Why such rows are not predicted.")

    def holds_for(self, row: Measurement) -> bool:
        """Return whether a row has what is wanted in each column."""
        return all(
            any(_fits(getattr(row, column), pattern) for pattern in patterns) for column, patterns in self.where.items()
        )


class _DataSetSpec(Section):
    """How the rows of a data set are simulated."""

    about: Annotated[str, Text("some sentences")] = Field(description="What was measured, and how it is modelled.")
    play: Annotated[str, Word(_PLAYS)] = Field(description="Whether rows are of training or of collectives.")
    one_gpu: Annotated[tuple[str, ...], PlainValidator(_columns)] = Field(
        ("model", "batch", "precision"), description="Columns that a row has in common with the rate of one GPU."
    )
    scenario: Annotated[dict[str, Any], PlainValidator(_set)] = Field(description="What all rows have in common.")
    rules: tuple[_RuleSpec, ...] = Field((), description="What holds for some of the rows; later ones win.")


@dataclass(frozen=True)
class Case:
    """A measurement, and what is simulated for it.

    Attributes
    ----------
    measured : Measurement
    play : str
        ``training`` or ``collective``.
    scenario : mapping
        The scenario, or the arguments of a collective.
    overrides : mapping
        Keys that differ, by path.
    document : Document
        The description.
    places : mapping of str to tuple
        Where in it each of the overrides stands.
    folder : Path
        What files are relative to.
    one_gpu : float or None
        Rate of one GPU that was measured with it [samples/s].
    assumed : tuple of str
        What the source does not say.
    """

    measured: Measurement
    play: Literal["training", "collective"]
    scenario: Mapping[str, Any]
    overrides: Mapping[str, Any]
    document: Document
    places: Mapping[str, KeyPath]
    folder: Path
    one_gpu: float | None
    assumed: tuple[str, ...]


@dataclass(frozen=True)
class DataSet:
    """How the rows of a data set are simulated.

    Attributes
    ----------
    name : str
    folder : Path
        What files are relative to.
    document : Document
        The description.
    """

    name: str
    folder: Path
    spec: _DataSetSpec
    document: Document

    @property
    def about(self) -> str:
        """What was measured, and how it is modelled."""
        return self.spec.about

    def cases(self, rows: Iterable[Measurement]) -> tuple[list[Case], list[tuple[Measurement, str]]]:
        """Return what is simulated for the rows of this data set, and those that are not predicted, each with why."""
        own = [row for row in rows if row.data_set == self.name]
        cases: list[Case] = []
        left_out: list[tuple[Measurement, str]] = []
        for row in own:
            if row.use == "input":
                continue
            numbered = [(number, rule) for number, rule in enumerate(self.spec.rules) if rule.holds_for(row)]
            rules = [rule for _, rule in numbered]
            why = next((rule.leave_out for rule in rules if rule.leave_out), "")
            one = self._one_gpu(row, own) if self.spec.play == "training" else None
            if not why and self.spec.play == "training" and one is None:
                why = "the rate of one GPU was not measured"
            overrides = {key: value for rule in rules for key, value in rule.set.items()}
            places: dict[str, KeyPath] = {key: ("rules", at, "set", key) for at, rule in numbered for key in rule.set}
            given = {**self.spec.scenario, **overrides}
            if not why and not _NEEDED[self.spec.play] <= {key.partition(".")[0] for key in given}:
                why = "no rule says what is simulated"
            why = why or self._unknown(row, given)
            if why:
                left_out.append((row, why))
                continue
            assumed = tuple(dict.fromkeys(rule.assumed for rule in rules if rule.assumed))
            case = Case(
                row,
                self.spec.play,  # type: ignore[arg-type]  # Word has checked it
                self.spec.scenario,
                overrides,
                self.document,
                places,
                self.folder,
                one,
                assumed,
            )
            cases.append(case)
        return cases, left_out

    def _unknown(self, row: Measurement, given: Mapping[str, Any]) -> str:
        """Return what is not known of a row without which it cannot be predicted; empty where all is."""
        if row.unit not in _PREDICTED[self.spec.play]:
            return f"{row.metric} in {row.unit} is nothing that is predicted of a {self.spec.play}"
        if self.spec.play == "training" and row.workers is None and "training.workers" not in given:
            return "how many workers there were is not said"
        if self.spec.play == "collective" and row.size_bytes is None and "sizes" not in given:
            return "of which size it is is not said"
        return ""

    def _one_gpu(self, row: Measurement, own: Sequence[Measurement]) -> float | None:
        def key(one: Measurement) -> tuple[object, ...]:
            return tuple(getattr(one, column) for column in self.spec.one_gpu)

        rates = [one.value for one in own if one.use == "input" and one.workers == 1 and key(one) == key(row)]
        return rates[0] if rates else None


def load_data_set(path: Path) -> DataSet:
    """Read the description of a data set, which has the name of the file.

    Raises
    ------
    InputError
        Everything that is wrong with it.
    """
    document = read_yaml(path)
    try:
        spec = _DataSetSpec.model_validate(document.data)
    except ValidationError as error:
        raise InputError([*document.problems, *problems_of(document, _DataSetSpec, error)]) from None
    problems = [*document.problems, *(_unknown_arguments(document, spec) if spec.play == "collective" else ())]
    if problems:
        raise InputError(problems)
    return DataSet(path.stem, path.parent, spec, document)


def _unknown_arguments(document: Document, spec: _DataSetSpec) -> Iterator[Problem]:
    """Yield what is set for a collective and is none of its arguments."""
    known = [name for name in signature(load_collective).parameters if name != "source"]
    places = [
        (("scenario",), spec.scenario),
        *((("rules", number, "set"), rule.set) for number, rule in enumerate(spec.rules)),
    ]
    for path, given in places:
        for key in given:
            if key not in known:
                yield unknown_key(document, (*path, key), known)


def load_data_sets(folder: Path) -> tuple[DataSet, ...]:
    """Read all descriptions in a folder, in the order of their names.

    Raises
    ------
    InputError
        Everything that is wrong with them, or there is none.
    """
    paths = sorted(folder.glob("*.yaml"))
    if not paths:
        raise InputError(Problem("no data set is described here", "files *.yaml are wanted", source=str(folder)))
    found: list[DataSet] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            found.append(load_data_set(path))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return tuple(found)


def _fits(value: object, pattern: str) -> bool:
    """Return whether a cell is as a pattern says: text with * and ?, or a number that others are below or not."""
    if bounded := _BOUND.fullmatch(pattern):
        if not isinstance(value, int | float):
            return False
        return (value < float(bounded[2])) == (bounded[1] == "<")
    return fnmatchcase("" if value is None else str(value), pattern)
