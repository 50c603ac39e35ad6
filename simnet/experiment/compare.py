"""Two scenarios, or results, side by side: what differs in what was asked, and in what came of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from simnet.experiment.columns import COLUMNS
from simnet.experiment.explain import Explanation, parts_of_run
from simnet.experiment.explain.explanation import GROUPS, percent_more, records
from simnet.experiment.result import Result, load_result
from simnet.experiment.run import result_of, run
from simnet.experiment.simulation import compile_for, simulate
from simnet.experiment.tables import ordered
from simnet.experiment.telling import Show, tell, tell_nobody
from simnet.scenario import Scenario, load_scenario

__all__ = ["Comparison", "compare"]

_COMPARED = (
    "iteration_time_s",
    "compute_time_s",
    "exposed_communication_time_s",
    "waiting_time_s",
    "input_time_s",
    "checkpoint_time_s",
    "recovery_time_s",
    "communication_time_s",
    "communication_compute_ratio",
    "throughput_samples_per_s",
    "scaling_efficiency",
    "bytes_sent_per_worker",
    "bound_iteration_time_s",
    "bottleneck",
)

_WIDEST = 60
"""Characters of a value that is shown."""

_Side = str | Path | Mapping[str, Any] | Scenario | Result


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two scenarios, or results, side by side; `simnet.experiment.columns` says what each column is.

    Parameters
    ----------
    names : tuple of str
        Of the scenarios.
    settings : DataFrame
        One row a key of the scenarios that differs, with its dotted path.
    results : DataFrame
        One row a job and column of the summary.
    parts : DataFrame or None
        One row a part of the iteration of the first job, where both are explained.
    """

    names: tuple[str, str]
    settings: pd.DataFrame
    results: pd.DataFrame
    parts: pd.DataFrame | None = None

    def as_json(self) -> str:
        """Return everything as one JSON object; what is not a number becomes null."""
        tables = {"settings": self.settings, "results": self.results, "parts": self.parts}
        found = {name: records(frame) for name, frame in tables.items() if frame is not None}
        return json.dumps({"a": self.names[0], "b": self.names[1], **found}, allow_nan=False)

    def __str__(self) -> str:
        """Return the tables as text."""
        lines = [f"a: {self.names[0]}", f"b: {self.names[1]}", "", "what differs in the scenarios:"]
        rows = [(row["key"], row["a"] or "-", row["b"] or "-") for row in self.settings.to_dict(orient="records")]
        lines += _aligned([("key", "a", "b"), *rows]) if rows else ["nothing"]
        lines += ["", "what came of them:"]
        several = len(set(self.results["job"])) > 1
        of_columns = [
            ((f"{row['job']}: " if several else "") + row["column"], row["a"], row["b"], percent_more(row["effect"]))
            for row in self.results.to_dict(orient="records")
        ]
        lines += _aligned([("column", "a", "b", "effect"), *of_columns])
        if self.parts is not None:
            lines += ["", "where the time of an iteration goes [ms]:"]
            of_parts = [
                (row["part"], _ms(row["a_time_s"]), _ms(row["b_time_s"]), _ms(row["difference_s"], sign="+"))
                for row in self.parts.to_dict(orient="records")
            ]
            lines += _aligned([("part", "a", "b", "b - a"), *of_parts])
        return "\n".join(lines)


def compare(
    a: _Side,
    b: _Side,
    *,
    explain: bool | None = None,
    say: Callable[[str], None] | None = None,
    show: Show = tell_nobody,
) -> Comparison:
    """Compare two scenarios, which are run, or results.

    Parameters
    ----------
    a, b : str, Path, mapping, Scenario or Result
        A scenario as `simnet.run` takes one, a folder with a result, or a result.
    explain : bool, optional
        Also show where the time goes; where one is a result its scenario is run again for that. By default where both
        are scenarios.
    say : callable, optional
        Told in a line what takes long; standard error by default.
    show : callable
        Shown how many iterations of each are over.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        Everything that is wrong with the scenarios, or folders.
    SimulationError
        A run came to a stop.
    """
    say = say or tell
    sides = [_opened(side) for side in (a, b)]
    wanted = explain if explain is not None else all(isinstance(side, Scenario) for side in sides)
    found = [_looked_at(side, say, show, explain=wanted) for side in sides]
    (one, first), (other, second) = found
    names = str(one.summary["scenario"].iloc[0]), str(other.summary["scenario"].iloc[0])
    parts = _parts(first, second) if first is not None and second is not None else None
    return Comparison(names, _settings(one.scenario, other.scenario), _results(one, other), parts)


def _opened(side: _Side) -> Scenario | Result:
    if isinstance(side, Scenario | Result):
        return side
    if isinstance(side, str | Path) and Path(side).is_dir():
        return load_result(side)
    return load_scenario(side)


def _looked_at(
    side: Scenario | Result, say: Callable[[str], None], show: Show, *, explain: bool
) -> tuple[Result, Explanation | None]:
    """Return the result of one side, and where its time goes if that is wanted."""
    if not explain:
        return (side if isinstance(side, Result) else run(side, say=say, show=show)), None
    scenario = load_scenario(side.scenario) if isinstance(side, Result) else side
    compile_for(scenario, say, show)
    simulation = simulate(replace(scenario, run=replace(scenario.run, records_plays=True)), show)
    result = side if isinstance(side, Result) else result_of(simulation)
    return result, parts_of_run(simulation)


def _settings(one: Mapping[str, Any], other: Mapping[str, Any]) -> pd.DataFrame:
    """Return the keys that differ, in the order of the scenarios."""
    rows = [{"key": ".".join(path), "a": a, "b": b} for path, a, b in _differences(one, other) if path != ("name",)]
    return ordered("compared_settings", pd.DataFrame(rows, columns=["key", "a", "b"]))


def _differences(one: Any, other: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield each place where two scenarios differ, with what stands there; of another choice only what it is."""
    if one == other:
        return
    if isinstance(one, list) and isinstance(other, list):
        one, other = dict(enumerate(one)), dict(enumerate(other))
    chosen = path[-1:] not in ((), ("jobs",)) and _is_choice(one, other)
    if not isinstance(one, Mapping) or not isinstance(other, Mapping) or chosen:
        yield path, _said(one, path), _said(other, path)
        return
    for key in dict.fromkeys([*one, *other]):
        yield from _differences(one.get(key), other.get(key), (*path, str(key)))


def _is_choice(one: Any, other: Any) -> bool:
    """Tell whether two values are each one of several things to choose, and not the same."""
    both = isinstance(one, Mapping) and isinstance(other, Mapping) and len(one) == len(other) == 1
    return both and list(one) != list(other)


def _said(value: Any, path: tuple[str, ...]) -> str:
    """Return a value in a line; a protocol by its name, as all of its costs are its own."""
    if value is None:
        return ""
    if path[-1] == "protocol" and isinstance(value, Mapping):
        return str(value.get("name") or ", ".join(value))
    text = _plain(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = (
            f"{key}: {_plain(one)}" if not isinstance(one, Mapping) else f"{key} ({_plain(one)})"
            for key, one in value.items()
        )
        return ", ".join(inside)
    return ", ".join(map(_plain, value)) if isinstance(value, list) else str(value)


def _results(one: Result, other: Result) -> pd.DataFrame:
    """Return the compared columns of each job that both have: by its name, or by its place where names differ."""
    first, second = one.summary, other.summary
    by_name = set(first["job"]) & set(second["job"])
    pairs = (
        [
            (first[first["job"] == job].iloc[0], second[second["job"] == job].iloc[0])
            for job in first["job"]
            if job in by_name
        ]
        if by_name
        else list(zip((row for _, row in first.iterrows()), (row for _, row in second.iterrows()), strict=False))
    )
    units = {column.name: column.unit for column in COLUMNS["summary"]}
    rows = []
    for a, b in pairs:
        for column in _COMPARED:
            numbers = isinstance(a[column], float) or isinstance(b[column], float)
            if numbers and a[column] == b[column] == 0.0:
                continue
            rows.append(
                {
                    "job": str(a["job"]),
                    "column": column,
                    "unit": units[column],
                    "a": _shown(a[column]),
                    "b": _shown(b[column]),
                    "effect": _ratio(a[column], b[column]) if numbers else math.nan,
                }
            )
    return ordered("compared_results", pd.DataFrame(rows))


def _ratio(a: float, b: float) -> float:
    return float(b) / float(a) - 1.0 if a else math.nan


def _parts(one: Explanation, other: Explanation) -> pd.DataFrame:
    """Return the parts of both iterations, groups in their order."""
    first, second = (each.parts.set_index("part")["time_s"] for each in (one, other))
    groups = dict(zip(one.parts["part"], one.parts["group"], strict=True))
    groups |= dict(zip(other.parts["part"], other.parts["group"], strict=True))
    rows = [
        {
            "group": groups[part],
            "part": part,
            "a_time_s": float(first.get(part, 0.0)),
            "b_time_s": float(second.get(part, 0.0)),
        }
        for part in sorted(groups, key=lambda part: GROUPS.index(str(groups[part])))
    ]
    frame = pd.DataFrame(rows, columns=["group", "part", "a_time_s", "b_time_s"])
    frame["difference_s"] = frame["b_time_s"] - frame["a_time_s"]
    return ordered("compared_parts", frame)


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _ms(seconds: float, sign: str = "") -> str:
    return f"{seconds * 1e3:{sign}.3f}"


def _aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    rows = list(rows)
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
