"""Tables of numbers on a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from simnet.errors import Problem

__all__ = ["form_problems", "frame_as_json", "frame_as_text", "frame_in_form", "print_or_write"]


def frame_as_json(frame: pd.DataFrame) -> str:
    """Return one list of objects, one a line; a number that there is none of is null."""
    import json

    rows = [
        {key: None if _is_nan(value) else value for key, value in row.items()}
        for row in frame.to_dict(orient="records")
    ]
    return "[" + ",\n ".join(json.dumps(row, allow_nan=False) for row in rows) + "]"


def frame_as_text(frame: pd.DataFrame, form: str = ".6g") -> str:
    """Return aligned columns, with numbers that are not whole in some form."""
    cells = [[str(name) for name in frame.columns]]
    cells += [[_shown(value, form) for value in row.values()] for row in frame.to_dict(orient="records")]
    widths = [max(len(line[place]) for line in cells) for place in range(len(frame.columns))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def form_problems(*, as_csv: bool, as_json: bool) -> list[Problem]:
    """Return what is wrong with how a table is to be printed."""
    from simnet.errors import Problem

    return [Problem("--csv and --json exclude each other", "one of them is wanted")] if as_csv and as_json else []


def frame_in_form(frame: pd.DataFrame, *, as_csv: bool, as_json: bool, form: str = ".6g") -> str:
    """Return a table as JSON, as comma-separated values, or as text with numbers in some form."""
    if as_json:
        return frame_as_json(frame)
    return frame.to_csv(index=False, lineterminator="\n").rstrip("\n") if as_csv else frame_as_text(frame, form)


def print_or_write(text: str, output: Path | None) -> None:
    """Print a text, or write it into a file, whole or not at all."""
    if output is None:
        print(text)
        return
    from simnet.writing import write_whole

    with write_whole(output) as file:
        file.write_text(text + "\n", encoding="utf-8")


def _shown(value: object, form: str) -> str:
    if _is_nan(value):
        return "-"
    return format(value, form) if isinstance(value, float) else str(value)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
