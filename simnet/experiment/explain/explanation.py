"""Where the time of an iteration goes: tables, and the cause in words."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from simnet.experiment.tables import ordered
from simnet.units import format_duration

__all__ = ["GROUPS", "Explanation", "group_of", "parts_table", "percent_more", "records"]

GROUPS = ("computing", "communication", "waiting")
"""What parts belong to, in the order in which they are shown."""

_WAITING = ("stragglers", "pipeline bubble", "negotiation", "input", "checkpoint", "waiting", "fault", "recovery")
_COMMUNICATION = (
    "latency",
    "host protocol stack",
    "adding up on receipt",
    "serialisation",
    "slow start, windows and pacing",
    "loss recovery",
    "contention",
    "exchange",
)


def group_of(part: str) -> str:
    """Return which of `GROUPS` a part belongs to."""
    kind = part.partition(":")[0]
    return "communication" if kind in _COMMUNICATION else "waiting" if kind in _WAITING else "computing"


@dataclass(frozen=True, eq=False)
class Explanation:
    """Where the time of an iteration goes; `simnet.experiment.columns` says what each column is.

    Parameters
    ----------
    scenario, job : str
    iteration_time_s : float
        Of the iteration that is explained [s].
    mean_iteration_time_s : float
        Of all that are measured [s].
    worker : int
        The one that ended last.
    iterations : tuple of int
        Which are explained, the first measured one 0; of several the times are those of one in the mean.
    parts : DataFrame
        One row a part; they add up to `iteration_time_s`.
    path : DataFrame
        One row a stretch of the critical path, in the order of time.
    notes : tuple of str
        What could not be told apart, in words.
    sensitivity : DataFrame or None
        One row a change of the scenario.
    """

    scenario: str
    job: str
    iteration_time_s: float
    mean_iteration_time_s: float
    worker: int
    iterations: tuple[int, ...]
    parts: pd.DataFrame
    path: pd.DataFrame
    notes: tuple[str, ...] = ()
    sensitivity: pd.DataFrame | None = None

    @property
    def cause(self) -> str:
        """The largest part that is not computing; empty where there is only that."""
        rest = self.parts[self.parts["group"] != "computing"].to_dict(orient="records")
        largest = max(rest, key=lambda row: float(row["time_s"]), default=None)
        return str(largest["part"]) if largest is not None and largest["time_s"] > 0.0 else ""

    @property
    def verdict(self) -> str:
        """What the iteration is bound by, in a sentence or two."""
        if self.iteration_time_s <= 0.0:
            return "nothing takes any time."
        shares = self.parts.groupby("group")["time_s"].sum() / self.iteration_time_s
        computing, cause = float(shares.get("computing", 0.0)), self.cause
        if not cause:
            return "bound by: computing, all of the iteration."
        [row] = self.parts[self.parts["part"] == cause].to_dict(orient="records")
        about = f" ({row['about']})" if row["about"] else ""
        share = _percent(float(row["time_s"]) / self.iteration_time_s)
        if computing > float(row["time_s"]) / self.iteration_time_s:
            return (
                f"bound by: computing, {_percent(computing)} of the iteration; "
                f"of the rest most is {cause}{about}, {share}."
            )
        return f"bound by: {cause}{about}, {share} of the iteration; computing is {_percent(computing)}."

    def as_json(self) -> str:
        """Return everything as one JSON object; what is not a number becomes null."""
        tables = {"parts": self.parts, "path": self.path, "sensitivity": self.sensitivity}
        data = {
            "scenario": self.scenario,
            "job": self.job,
            "iteration_time_s": self.iteration_time_s,
            "mean_iteration_time_s": self.mean_iteration_time_s,
            "worker": self.worker,
            "iterations": list(self.iterations),
            "verdict": self.verdict,
            "notes": list(self.notes),
            **{name: records(frame) for name, frame in tables.items() if frame is not None},
        }
        return json.dumps(data, allow_nan=False)

    def __str__(self) -> str:
        """Return the tables as text."""
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        numbers = self.iterations
        which = (
            f"iteration {numbers[0]}"
            if len(numbers) == 1
            else f"iterations {numbers[0]} to {numbers[-1]}, one in the mean"
        )
        lines = [
            f"{self.scenario}, job {self.job}: {format_duration(self.iteration_time_s)} "
            f"({which}, worker {self.worker}; mean of all {format_duration(self.mean_iteration_time_s)})",
            "",
        ]
        rows = []
        for group in GROUPS:
            own = self.parts[self.parts["group"] == group]
            if not len(own):
                continue
            rows.append((group, *_time_and_share(own["time_s"].sum(), own["share"].sum()), ""))
            rows += [
                (f"  {row['part']}", *_time_and_share(row["time_s"], row["share"]), row["about"])
                for row in own.to_dict(orient="records")
            ]
        total = (self.iteration_time_s, 1.0 if self.iteration_time_s > 0.0 else 0.0)
        rows.append(("iteration", *_time_and_share(*total), ""))
        lines += _aligned([("part", "time", "share", ""), *rows])
        lines += ["", self.verdict, *(f"note: {note}" for note in self.notes)]
        if self.sensitivity is not None and len(self.sensitivity):
            lines += ["", "with one thing changed at a time:"]
            lines += _aligned(
                [
                    ("change", "time", "effect", ""),
                    *(_changed(row) for row in self.sensitivity.to_dict(orient="records")),
                ]
            )
        return lines


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON can hold them."""
    return [
        {str(key): None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
        for row in frame.to_dict(orient="records")
    ]


def _changed(row: Mapping[Hashable, Any]) -> tuple[str, str, str, str]:
    if row["failed"]:
        return row["change"], "-", "-", row["failed"]
    return row["change"], format_duration(row["iteration_time_s"]), percent_more(row["effect"]), ""


def percent_more(effect: float) -> str:
    """Return by how much something is more, or less, in words; nothing of what is no number."""
    if math.isnan(effect):
        return ""
    return "0.0 %" if abs(effect) < _NO_PERCENT else f"{effect * 100.0:+.1f} %"


_NO_PERCENT = 0.0005


def _time_and_share(time_s: float, share: float) -> tuple[str, str]:
    sign = "-" if time_s < 0.0 else ""
    return sign + format_duration(abs(time_s)), _percent(share)


def _percent(share: float) -> str:
    return f"{share * 100.0:.1f} %"


def _aligned(rows: Sequence[tuple[str, str, str, str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    return [
        f"{what.ljust(widths[0])}  {time.rjust(widths[1])}  {share.rjust(widths[2])}  {about}".rstrip()
        for what, time, share, about in rows
    ]


def parts_table(rows: Sequence[dict[str, object]], iteration_time_s: float) -> pd.DataFrame:
    """Return the table of parts, groups in their order, in each the longest first."""
    frame = pd.DataFrame(rows, columns=["group", "part", "time_s", "about"])
    frame["share"] = frame["time_s"] / iteration_time_s if iteration_time_s > 0.0 else 0.0
    return ordered("explanation", frame)
