"""The result of a run: tables, and what is needed to repeat it; on disk, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from simnet.errors import InputError, Problem
from simnet.experiment.columns import COLUMNS

__all__ = ["Result", "load_result"]

_DETAILS = ("iterations", "workers", "collectives", "links")


@dataclass(frozen=True, eq=False)
class Result:
    """What a run gave; `simnet.experiment.columns` says what each column is.

    Parameters
    ----------
    summary : DataFrame
        One row a job.
    iterations : DataFrame
        One row an iteration and worker.
    workers : DataFrame
        One row a worker.
    collectives : DataFrame
        One row an exchange.
    links : DataFrame
        One row a resource: links, and stacks and memory of hosts.
    scenario : dict
        The scenario with every default.
    about : dict
        Versions, seed, counts.
    warnings : tuple of str
        What is odd about the scenario, in words.
    """

    summary: pd.DataFrame
    iterations: pd.DataFrame
    workers: pd.DataFrame
    collectives: pd.DataFrame
    links: pd.DataFrame
    scenario: dict[str, Any]
    about: dict[str, Any]
    warnings: tuple[str, ...] = field(default=())

    def save(self, folder: str | Path) -> Path:
        """Write the tables, the scenario and what else is known into a folder, which is replaced as a whole.

        Parameters
        ----------
        folder : str or Path
            Made with its parents; one that exists must hold a result, or nothing.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        InputError
            The folder holds something else, or cannot be written.
        """
        folder = Path(folder)
        _refuse_foreign(folder)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        except OSError as error:
            raise _unwritable(folder, error) from None
        try:
            self._write(made)
            made.chmod(0o777 & ~_umask())
            _replace(made, folder)
        except OSError as error:
            raise _unwritable(folder, error) from None
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return folder

    def as_json(self) -> str:
        """Return the summary as one JSON object: the row, or ``{"jobs": [rows]}`` where there are several."""
        rows = json.loads(self.summary.to_json(orient="records", double_precision=15))
        rows = [_exact(row, exact) for row, exact in zip(rows, self.summary.to_dict(orient="records"), strict=True)]
        return json.dumps(rows[0] if len(rows) == 1 else {"jobs": rows}, allow_nan=False)

    def _write(self, folder: Path) -> None:
        from simnet.scenario import write_yaml

        self.summary.to_csv(folder / "summary.csv", index=False, lineterminator="\n")
        for table in _DETAILS:
            getattr(self, table).to_parquet(folder / f"{table}.parquet", index=False)
        (folder / "scenario.yaml").write_text(write_yaml(self.scenario), encoding="utf-8")
        about = {**self.about, "warnings": list(self.warnings)}
        (folder / "run.json").write_text(json.dumps(about, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def load_result(folder: str | Path) -> Result:
    """Read a result that `Result.save` wrote.

    Raises
    ------
    InputError
        The folder does not hold a whole result.
    """
    from simnet.scenario import read_yaml

    folder = Path(folder)
    missing = [name for name in _files() if not (folder / name).is_file()]
    if missing:
        hint = "the folder that `simnet run` wrote is wanted"
        raise InputError(Problem(f"no result: {', '.join(missing)} is missing", hint, source=str(folder)))
    types = {
        column.name: {"str": "str", "int": "int64", "float": "float64"}[column.dtype] for column in COLUMNS["summary"]
    }
    try:
        summary = pd.read_csv(folder / "summary.csv", dtype=types, keep_default_na=False, na_values={})
        details: Mapping[str, pd.DataFrame] = {
            table: pd.read_parquet(folder / f"{table}.parquet") for table in _DETAILS
        }
        about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        scenario = read_yaml(folder / "scenario.yaml").data
    except (ValueError, OSError) as error:
        raise InputError(Problem(f"the result cannot be read: {error}", source=str(folder))) from None
    return Result(summary, **details, scenario=scenario, about=about, warnings=tuple(about.pop("warnings", ())))


def _files() -> tuple[str, ...]:
    return ("summary.csv", *(f"{table}.parquet" for table in _DETAILS), "scenario.yaml", "run.json")


def _refuse_foreign(folder: Path) -> None:
    """Refuse to replace what is no result."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "run.json").is_file():
        hint = "an empty or new folder, or one with an earlier result, is wanted"
        raise InputError(Problem("the folder holds files that are no result", hint, source=str(folder)))
    if folder.exists() and not folder.is_dir():
        raise InputError(Problem("is a file", "a folder is wanted", source=str(folder)))


def _replace(made: Path, folder: Path) -> None:
    """Put a folder in the place of another, which goes aside first: a folder cannot be renamed over a full one."""
    if not folder.exists():
        made.rename(folder)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
    try:
        folder.rename(aside / "result")
        made.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _unwritable(folder: Path, error: OSError) -> InputError:
    hint = "choose another with -o"
    return InputError(Problem(f"cannot be written: {error.strerror or error}", hint, source=str(folder)))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _exact(row: dict[str, Any], exact: dict[Any, Any]) -> dict[str, Any]:
    """Give numbers back the digits that pandas' JSON writer drops."""
    return {
        key: exact[key] if isinstance(exact[key], float) and value is not None else value for key, value in row.items()
    }
