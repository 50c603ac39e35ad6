"""``simnet validate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simnet.cli.progress import shown
from simnet.experiment.telling import tell

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["validate"]

_OF_ALL, _OF_A_PART = "results/validation", "results/runs/validation"


def validate(
    data_sets: Annotated[
        list[str] | None, typer.Argument(metavar="[DATA_SET]...", help="Data sets; all that are described by default.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="measurements.csv and a description of each data set; what ships by default."
        ),
    ] = None,
    use: Annotated[str, typer.Option(metavar="USE", help="calibration or validation; both by default.")] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FOLDER",
            help="Where tables and the picture go: results/validation, or results/runs/validation of a part.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes.")] = 1,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the errors as comma-separated values.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the errors as one JSON list of objects.")] = False,
) -> None:
    """Predict what others measured, and say how far off it is, by data set; beside it two simpler predictions."""
    from simnet.cli.frames import form_problems, frame_in_form
    from simnet.errors import InputError, Problem, nearest
    from simnet.experiment.validation import save_validation
    from simnet.experiment.validation import validate as run_validation

    problems = form_problems(as_csv=as_csv, as_json=as_json)
    if use not in ("", "calibration", "validation"):
        problems.append(Problem(f"--use is {use!r}", nearest(use, ("calibration", "validation"))))
    if problems:
        raise InputError(problems)
    with shown() as show:
        done = run_validation(folder, data_sets or (), (use,) if use else (), jobs=jobs, say=tell, show=show)
    is_part = bool(data_sets or folder or use)
    for path in save_validation(done, output or Path(_OF_A_PART if is_part else _OF_ALL)):
        tell(f"wrote {path}")
    frame = done.scores
    if as_csv or as_json:
        print(frame_in_form(frame, as_csv=as_csv, as_json=as_json))
        return
    parts = [_errors(frame), _beside_simpler(frame)] if len(frame) else []
    parts.append(f"{len(done.table)} rows predicted, {len(done.left_out)} left out (left_out.csv says why)")
    print("\n\n".join(part for part in parts if part))


def _errors(scores: pd.DataFrame) -> str:
    from simnet.cli.frames import frame_as_text

    return frame_as_text(_per_cent(scores[["data_set", "use", "rows", "median_error", "p90_error", "worst_error"]]))


def _beside_simpler(scores: pd.DataFrame) -> str:
    """Return what is known of training alone: two simpler predictions, the time that is lost, and the order."""
    from simnet.cli.frames import frame_as_text

    columns = ["data_set", "linear_median_error", "constant_median_error", "lossy_rows"]
    columns += [f"{name}_lost_time_error" for name in ("simnet", "linear", "constant")]
    columns += ["misranked_pairs", "ranked_pairs"]
    if not set(columns) <= set(scores.columns):
        return ""
    return frame_as_text(_per_cent(scores.dropna(subset=["linear_median_error"])[columns]))


def _per_cent(frame: pd.DataFrame) -> pd.DataFrame:
    """Return errors as text in per cent."""
    shown = frame.copy()
    for name in frame.columns:
        if name.endswith("_error"):
            shown[name] = [f"{100 * value:.1f} %" for value in frame[name]]
        elif name.endswith(("_rows", "_pairs")):
            shown[name] = frame[name].astype(int)
    return shown
