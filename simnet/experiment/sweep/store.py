"""Where outcomes of points are kept: one file each, whole or not at all, under what the point is known by."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simnet.errors import InputError, Problem
from simnet.experiment.parquet import read_parquet, write_parquet
from simnet.experiment.sweep.point import Outcome
from simnet.writing import unwritable, write_whole

__all__ = ["Store", "check_store"]


@dataclass(frozen=True)
class Store:
    """Outcomes in a folder.

    Several processes may write into it at once: what each writes appears by renaming, and two that write the same point
    write the same.

    Parameters
    ----------
    folder : Path
    """

    folder: Path

    def put(self, outcome: Outcome) -> None:
        """Keep an outcome; its tables come first, so that they are there when it is.

        Raises
        ------
        InputError
            The folder cannot be written, or is full.
        """
        for name, table in outcome.tables.items():
            with write_whole(self._table(outcome.key, name)) as file:
                write_parquet(table, file)
        about = {
            "key": outcome.key,
            "rows": list(outcome.rows),
            "error": outcome.error,
            "wall_s": outcome.wall_s,
            "warnings": list(outcome.warnings),
            "tables": sorted(outcome.tables),
        }
        with write_whole(self._path(outcome.key)) as file:
            file.write_text(json.dumps(about, ensure_ascii=False) + "\n", encoding="utf-8")

    def get(self, key: str, keep: Collection[str] = ()) -> Outcome | None:
        """Return an outcome; None where there is none that can be read with the tables that are wanted.

        Tables that no scenario of the kind has are not missing.
        """
        try:
            about: dict[str, Any] = json.loads(self._path(key).read_text(encoding="utf-8"))
            return Outcome(
                str(about["key"]),
                tuple(about["rows"]),
                str(about["error"]),
                float(about["wall_s"]),
                tuple(about["warnings"]),
                {name: read_parquet(self._table(key, name)) for name in about["tables"] if name in keep},
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def found(self, keys: Iterable[str]) -> dict[str, Outcome]:
        """Return the outcomes that there are of some points, without their tables."""
        return {key: outcome for key in keys if (outcome := self.get(key)) is not None}

    def keys(self) -> Iterator[str]:
        """Yield what is kept."""
        for file in sorted(self.folder.glob("points/??/*.json")):
            yield file.stem

    def _path(self, key: str) -> Path:
        return self.folder / "points" / key[:2] / f"{key}.json"

    def _table(self, key: str, name: str) -> Path:
        return self.folder / "points" / key[:2] / f"{key}.{name}.parquet"


def check_store(folder: Path) -> None:
    """Refuse a folder that a sweep cannot be kept in, before a long run rather than after it.

    Raises
    ------
    InputError
        It is a file, holds something that is no sweep, or cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(Problem("is a file", "a folder is wanted", source=str(folder)))
    try:
        strange = [one.name for one in folder.iterdir() if one.name not in _OWN and not one.name.startswith(".")]
    except FileNotFoundError:
        strange = []
    except OSError as error:
        raise unwritable(folder / "points", error) from None
    if strange:
        hint = "an empty or new folder, or that of a sweep, is wanted"
        raise InputError(Problem(f"the folder holds {strange[0]!r}, which is of no sweep", hint, source=str(folder)))
    with write_whole(folder / ".tried"):
        pass
    (folder / ".tried").unlink(missing_ok=True)


_OWN = {
    *("points", "sweep.json", "report.html"),
    *(f"{name}.{kind}" for name in ("sweep", "means") for kind in ("parquet", "csv")),
}
"""What the folder of a sweep holds."""
