"""Tables as parquet files, whatever letters their names have: pyarrow itself opens only names that are text."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

__all__ = ["read_parquet", "write_parquet"]


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write a table, without its index."""
    with path.open("wb") as file:
        frame.to_parquet(file, index=False)


def read_parquet(path: Path) -> pd.DataFrame:
    """Return a table that `write_parquet` wrote."""
    with path.open("rb") as file:
        return pd.read_parquet(file)
