"""The result of a run: tables, and what is needed to repeat it; on disk, whole or not at all."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from simnet.errors import InputError, Problem
from simnet.experiment.columns import COLUMNS, DTYPES
from simnet.experiment.messages import MessageFile
from simnet.experiment.parquet import read_parquet, write_parquet
from simnet.units import format_duration
from simnet.writing import hidden_prefix, umask, unfinished, unwritable

if TYPE_CHECKING:
    from simnet.experiment.plot.of_result import ResultPlots

__all__ = ["OPTIONAL_TABLES", "Result", "check_folder", "load_result"]

_DETAILS = ("iterations", "workers", "collectives", "links")
_MESSAGES = "messages.parquet"
OPTIONAL_TABLES = ("queues", "connections", "faults", "staleness", "spans", "load")
"""Tables that not every run has."""

_MOST_TRIES = 100


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
    message_file : MessageFile, optional
        One row a message, where they were recorded; see `messages`.
    queues, connections : DataFrame, optional
        One row a port, and one a connection, at fidelity packet.
    staleness : DataFrame, optional
        How many iterations were how stale, where workers exchange by themselves.
    faults : DataFrame, optional
        One row a fault, where the scenario has some.
    spans, load : DataFrame, optional
        What each worker did when, and how busy resources were, where a timeline was wanted.
    """

    summary: pd.DataFrame
    iterations: pd.DataFrame
    workers: pd.DataFrame
    collectives: pd.DataFrame
    links: pd.DataFrame
    scenario: dict[str, Any]
    about: dict[str, Any]
    warnings: tuple[str, ...] = field(default=())
    message_file: MessageFile | None = None
    queues: pd.DataFrame | None = None
    connections: pd.DataFrame | None = None
    staleness: pd.DataFrame | None = None
    faults: pd.DataFrame | None = None
    spans: pd.DataFrame | None = None
    load: pd.DataFrame | None = None

    def __repr__(self) -> str:
        """Return what it is of, and the names of its tables."""
        jobs = "; ".join(
            f"{row['job']} {format_duration(row['iteration_time_s'])} an iteration of {row['workers']} workers"
            for row in self.summary.to_dict(orient="records")
        )
        tables = [one.name for one in fields(self) if isinstance(getattr(self, one.name), pd.DataFrame)]
        return f"<Result {self.scenario.get('name', '')}: {jobs}; {', '.join(tables)}>"

    @property
    def messages(self) -> pd.DataFrame:
        """One row a message, read from the file that they were recorded in.

        Raises
        ------
        ValueError
            They were not; ``run: {record: messages}`` in a scenario records them.
        """
        if self.message_file is None:
            raise ValueError("messages are recorded only by a scenario with run: {record: messages}")
        return self.message_file.read()

    @property
    def plot(self) -> ResultPlots:
        """Pictures: ``result.plot.breakdown()``, ``timeline()``, ``topology()``, ``utilisation()``."""
        from simnet.experiment.plot.of_result import ResultPlots

        return ResultPlots(self)

    def save(self, folder: str | Path) -> Path:
        """Write the tables, the scenario and what else is known into a folder, which is replaced as a whole.

        Where several processes save into one folder, it holds the result of one of them in the end.

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
            The folder holds something else, or there can be none.
        OutputError
            The machine cannot take it.
        """
        check_folder(folder)
        folder = Path(folder)
        place = folder.resolve()
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with unfinished(Path(tempfile.mkdtemp(prefix=hidden_prefix(place), dir=place.parent))) as made:
                self._write(made)
                made.chmod(0o777 & ~umask())
                _replace(made, place)
        except OSError as error:
            raise unwritable(folder, error) from None
        return folder

    def as_json(self) -> str:
        """Return the summary as one JSON object: the row, or ``{"jobs": [rows]}`` where there are several.

        JSON has no infinity and no NaN; both become null.
        """
        rows = [
            {name: value if _fits_json(value) else None for name, value in row.items()}
            for row in self.summary.to_dict(orient="records")
        ]
        return json.dumps(rows[0] if len(rows) == 1 else {"jobs": rows}, allow_nan=False)

    def _write(self, folder: Path) -> None:
        from simnet.scenario import write_yaml

        self.summary.to_csv(folder / "summary.csv", index=False, lineterminator="\n", na_rep="nan")
        for table in _DETAILS:
            write_parquet(getattr(self, table), folder / f"{table}.parquet")
        for name in OPTIONAL_TABLES:
            table = getattr(self, name)
            if table is not None:
                write_parquet(table, folder / f"{name}.parquet")
        if self.message_file is not None:
            shutil.copyfile(self.message_file.path, folder / _MESSAGES)
        (folder / "scenario.yaml").write_text(write_yaml(self.scenario), encoding="utf-8")
        about = {**self.about, "warnings": list(self.warnings)}
        (folder / "run.json").write_text(json.dumps(about, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def check_folder(folder: str | Path) -> None:
    """Refuse a folder that `Result.save` would refuse, before a long run rather than after it.

    Raises
    ------
    InputError
        It is a file, the working directory, or holds something that is no result.
    """
    source = str(folder)
    try:
        place = Path(folder).resolve()
        if place.exists() and not place.is_dir():
            raise InputError(Problem("is a file", "a folder is wanted", source=source))
        _check_parent(place.parent)
        if place == Path.cwd() or place in Path.cwd().parents:
            hint = "name a new folder below it"
            raise InputError(Problem("the folder that you are in cannot be replaced", hint, source=source))
        # A second look, because another process may have been replacing it at the first.
        if not _is_free(place) and not _is_free(place):
            hint = "an empty or new folder, or one with an earlier result and nothing else, is wanted"
            raise InputError(Problem("the folder holds files that are no result", hint, source=source))
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
        raise unwritable(folder, error) from None


def _check_parent(parent: Path) -> None:
    """Try whether something can be written into a folder, or into the first of its parents that is there."""
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    with tempfile.TemporaryDirectory(prefix=".simnet.", dir=parent):
        pass


def load_result(folder: str | Path) -> Result:
    """Read a result that `Result.save` wrote.

    Parameters
    ----------
    folder : str or Path

    Returns
    -------
    Result

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
    try:
        # As text first: so numbers keep every digit, and a scenario may be called NA.
        text = pd.read_csv(folder / "summary.csv", dtype="str", keep_default_na=False)
        summary = text.astype({column.name: DTYPES[column.dtype] for column in COLUMNS["summary"]})
        details: Mapping[str, pd.DataFrame] = {table: read_parquet(folder / f"{table}.parquet") for table in _DETAILS}
        files = {name: folder / f"{name}.parquet" for name in OPTIONAL_TABLES}
        optional: dict[str, Any] = {
            name: read_parquet(file) if file.is_file() else None for name, file in files.items()
        }
        about = dict(json.loads((folder / "run.json").read_text(encoding="utf-8")))
        scenario = read_yaml(folder / "scenario.yaml").data
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise InputError(Problem(f"the result cannot be read: {error}", source=str(folder))) from None
    recorded = folder / _MESSAGES
    return Result(
        summary,
        **details,
        scenario=scenario,
        about=about,
        warnings=tuple(about.pop("warnings", ())),
        message_file=MessageFile(recorded) if recorded.is_file() else None,
        **optional,
    )


def _files() -> tuple[str, ...]:
    return ("summary.csv", *(f"{table}.parquet" for table in _DETAILS), "scenario.yaml", "run.json")


def _is_free(place: Path) -> bool:
    """Tell whether a folder is not there, or empty, or holds a result and nothing else."""
    try:
        there = set(os.listdir(place))  # noqa: PTH208 (all at once, or as nearly as can be)
    except FileNotFoundError:
        return True
    return not there or {"run.json", "scenario.yaml"} <= there <= {
        *_files(),
        _MESSAGES,
        *(f"{table}.parquet" for table in OPTIONAL_TABLES),
    }


def _replace(made: Path, place: Path) -> None:
    """Put a folder in the place of another, which goes aside first: a folder cannot be renamed over a full one.

    What was there is deleted last, so that a process that is killed leaves one of the two behind in any case.
    """
    aside = Path(tempfile.mkdtemp(prefix=f"{hidden_prefix(place)}old.", dir=place.parent))
    try:
        for number in range(_MOST_TRIES):
            try:
                made.rename(place)
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            check_folder(place)
            with suppress(FileNotFoundError):  # another process was quicker
                place.rename(aside / str(number))
    except BaseException:
        # What was there comes back, if nobody has put another in its place.
        for number in range(_MOST_TRIES):
            with suppress(OSError):
                (aside / str(number)).rename(place)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    raise OSError(errno.EBUSY, f"other processes have replaced it {_MOST_TRIES} times meanwhile")


def _fits_json(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)
