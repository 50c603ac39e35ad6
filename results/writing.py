"""How tables of results are written: the same bytes on every machine."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

__all__ = ["write"]


def write(frame: pd.DataFrame, path: Path, digits: int = 9) -> None:
    """Write a table, without the column that differs from run to run and the digits that differ between machines.

    Parameters
    ----------
    frame : DataFrame
    path : Path
        Its folder is made where it is not there.
    digits : int
        That numbers are written with.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.drop(columns="wall_time_s", errors="ignore").to_csv(
        path, index=False, lineterminator="\n", float_format=f"%.{digits}g"
    )
