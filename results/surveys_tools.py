"""What all findings of the surveys are made with: sweep files that are run, tables and pictures beside them."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from writing import write

from simnet.experiment.plot import save_figure
from simnet.experiment.sweep.point import Outcome, keys_of
from simnet.experiment.sweep.running import run_sweep
from simnet.experiment.sweep.store import Store
from simnet.experiment.sweep.tables import table_of
from simnet.scenario.sweep.load import Sweep, load_sweep_file

__all__ = ["FOLDER", "Place", "markdown", "percent", "wide_table"]

FOLDER = Path(__file__).parent / "surveys"

_CORES = len(os.sched_getaffinity(0))


@dataclass
class Place:
    """The folder of a finding, and what its section of the paper is told.

    Parameters
    ----------
    folder : Path
        Where its sweep files lie, and its tables and pictures go.
    parts : dict of str to str
        Generated parts of the section, by name.
    """

    folder: Path
    parts: dict[str, str] = field(default_factory=dict)

    def run(self, name: str, columns: Mapping[str, str]) -> pd.DataFrame:
        """Run a sweep file of the folder, and return some columns of its table under names of their own.

        Parameters
        ----------
        name : str
            Of the file, without suffix.
        columns : mapping of str to str
            Their names in the table of the sweep, and what they are called here. Where ``status`` is among them points
            may fail.

        Raises
        ------
        RuntimeError
            A point has failed.
        """
        return self.run_with_tables(name, columns)[0]

    def run_with_tables(
        self, name: str, columns: Mapping[str, str]
    ) -> tuple[pd.DataFrame, list[Mapping[str, pd.DataFrame]]]:
        """Return as `run` does, and the tables of each point that the file says to keep."""
        sweep = load_sweep_file(self.folder / f"{name}.yaml")
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder))
            run_sweep(sweep, store, executor=_pool(), processes=_CORES)
            found = partial(_outcome, store, sweep)
            outcomes = {key: found(key) for key in keys_of(sweep)}
        table = table_of(sweep, outcomes)
        failed = table.loc[table["status"] == "failed", "error"]
        if "status" not in columns and len(failed) > 0:
            raise RuntimeError(f"{sweep.name}: {failed.iloc[0]}")
        tables = [outcomes[key].tables for key in keys_of(sweep)]
        return table[list(columns)].rename(columns=dict(columns)), tables

    def table(self, name: str, frame: pd.DataFrame) -> None:
        """Write a table, with digits that are the same on all machines."""
        write(frame, self.folder / f"{name}.csv", digits=6)

    def picture(self, name: str, figure: Figure) -> None:
        """Write a picture."""
        save_figure(figure, self.folder / f"{name}.svg")


@cache
def _pool() -> ProcessPoolExecutor:
    """Return processes that run the points of all sweeps, as many as there are cores; to start them takes seconds."""
    return ProcessPoolExecutor(_CORES, mp_context=multiprocessing.get_context("spawn"))


def _outcome(store: Store, sweep: Sweep, key: str) -> Outcome:
    outcome = store.get(key, sweep.keep)
    if outcome is None:
        raise LookupError(f"sweep {sweep.name} has no point {key}")
    return outcome


def markdown(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [[*map(str, head)], ["---"] * len(head), *([*map(str, row)] for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "&#124;") for cell in line) + " |" for line in lines)


def percent(share: float, digits: int = 0) -> str:
    """Return a share as text."""
    return f"{100.0 * share:.{digits}f} %"


def wide_table(table: pd.DataFrame, index: str | list[str], columns: str, values: str | list[str]) -> pd.DataFrame:
    """Return a table with a column for each value of one, in the order in which they come."""
    return table.pivot_table(index=index, columns=columns, values=values, aggfunc="first", sort=False)
