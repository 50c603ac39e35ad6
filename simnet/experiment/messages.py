"""A file of single messages, written while they are simulated."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from simnet.experiment.columns import COLUMNS
from simnet.experiment.parquet import read_parquet
from simnet.fabric.messages import Messages
from simnet.writing import unfinished_while, unwritable

__all__ = ["MessageFile"]

_TYPES: dict[str, Any] = {"str": pa.dictionary(pa.int32(), pa.string()), "int": pa.int64(), "float": pa.float64()}
_SCHEMA = pa.schema([(column.name, _TYPES[column.dtype]) for column in COLUMNS["messages"]])


class MessageFile:
    """The table of messages of a run, as a parquet file, since it may be larger than memory.

    Parameters
    ----------
    path : Path
        The file, which has been written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def begin(cls) -> tuple[MessageFile, MessageWriter]:
        """Return a temporary file, which goes when nobody knows it any more, and who writes it."""
        folder = Path(tempfile.mkdtemp(prefix="simnet-messages-"))
        made = cls(folder / "messages.parquet")
        unfinished_while(made, folder)
        return made, MessageWriter(made.path)

    def read(self) -> pd.DataFrame:
        """Return all of it."""
        return read_parquet(self.path)


class MessageWriter:
    """Writes batches of messages into a file.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = pq.ParquetWriter(path, _SCHEMA)

    def write(self, messages: Messages) -> None:
        """Write one batch.

        Raises
        ------
        OutputError
            There is no more room where the system has temporary files.
        """
        # Plays are called after their job; those of nobody's, as background traffic is, have no colon.
        jobs = [name.partition(": ")[0] if ": " in name else "" for name in messages.play.tolist()]
        columns = {**vars(messages), "collective": messages.play, "job": np.array(jobs, dtype=object)}
        arrays = [pa.array(columns[field.name]).cast(field.type) for field in _SCHEMA]
        try:
            self._file.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA))
        except OSError as error:
            raise unwritable(self._path, error) from None

    def close(self) -> None:
        """Write the end of the file."""
        try:
            self._file.close()
        except OSError as error:
            raise unwritable(self._path, error) from None
