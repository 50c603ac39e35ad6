"""How tables of results are written: the same bytes on every machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

__all__ = ["filled", "write"]


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


def filled(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with the text between ``<!-- generated: NAME -->`` and ``<!-- end -->`` written anew.

    Parameters
    ----------
    page : str
    parts : mapping of str to str
        By name; each has to be on the page. Others that are there stay as they are.
    """
    for name, text in parts.items():
        marked = re.compile(rf"(<!-- generated: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not marked.search(page):
            raise ValueError(f"the page has no part {name!r}")
        page = marked.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)
    return page
