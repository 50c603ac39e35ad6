"""Files that are there whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from simnet.errors import InputError, Problem

__all__ = ["unwritable", "write_whole"]


class write_whole:  # noqa: N801 (used as a function)
    """Let a file appear under its name when it is written, by renaming it.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Path:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
            os.close(handle)
        except OSError as error:
            raise unwritable(self._path, error) from None
        self._made = Path(name)
        return self._made

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._made.chmod(0o644)
                self._made.replace(self._path)
        except OSError as refused:
            raise unwritable(self._path, refused) from None
        finally:
            self._made.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise unwritable(self._path, error) from None


def unwritable(path: Path, error: OSError) -> InputError:
    """Return what is said of a file that cannot be written."""
    said = f"cannot be written: {error.strerror or error}"
    return InputError(Problem(said, "another folder, or more room, is wanted", source=str(path.parent)))
