"""The table of a sweep for papers and other tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from simnet.errors import InputError, Problem, nearest
from simnet.experiment.sweep.tables import load_sweep, sweep_about

__all__ = ["FORMS", "chosen", "in_form"]

_USUAL = (
    *("iteration_time_s", "compute_time_s", "exposed_communication_time_s", "waiting_time_s"),
    *("throughput_samples_per_s", "scaling_efficiency", "baseline_speedup", "baseline_efficiency"),
)


def chosen(folder: str | Path, columns: str | None) -> pd.DataFrame:
    """Return some columns of the table of a sweep; by default the parameters, and what is asked for most.

    Parameters
    ----------
    folder : str or Path
    columns : str or None
        Their names, with commas between.

    Raises
    ------
    InputError
        Columns that the table does not have; all of them.
    """
    frame = load_sweep(folder)
    if columns is None:
        parameters = sweep_about(folder)["parameters"]
        workers = [] if "training.workers" in parameters or len(set(frame.get("workers", ()))) < 2 else ["workers"]
        names = [*parameters, *workers, *(name for name in _USUAL if name in frame)]
        failed = ["status", "error"] if (frame["status"] == "failed").any() else []
        return frame[[*names, *failed]]
    names = [name.strip() for name in columns.split(",")]
    unknown = [name for name in names if name not in frame]
    if unknown:
        raise InputError(
            Problem(f"there is no column {name!r}", nearest(name, frame.columns), source="--columns")
            for name in unknown
        )
    return frame[names]


def in_form(frame: pd.DataFrame, form: str) -> str:
    """Return a table as text in one of `FORMS`."""
    return FORMS[form](frame).rstrip("\n")


def _cells(frame: pd.DataFrame) -> list[list[str]]:
    return [[_cell(value) for value in row] for row in frame.itertuples(index=False)]


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _markdown(frame: pd.DataFrame) -> str:
    lines = [list(map(str, frame.columns)), ["---"] * len(frame.columns), *_cells(frame)]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )


_LATEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
        "\n": " ",
    }
)


def _latex(frame: pd.DataFrame) -> str:
    columns = "".join("r" if pd.api.types.is_numeric_dtype(frame[name]) else "l" for name in frame.columns)
    lines = [list(map(str, frame.columns)), *_cells(frame)]
    rows = [" & ".join(cell.translate(_LATEX) for cell in line) + r" \\" for line in lines]
    body = "\n".join([r"\hline", rows[0], r"\hline", *rows[1:], r"\hline"])
    return f"\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}"


FORMS: dict[str, Callable[[pd.DataFrame], str]] = {
    "csv": lambda frame: str(frame.to_csv(index=False, lineterminator="\n", na_rep="nan")),
    "markdown": _markdown,
    "latex": _latex,
    "json": lambda frame: str(frame.to_json(orient="records", double_precision=15, force_ascii=False)),
}
"""What writes a table as text, by name."""
