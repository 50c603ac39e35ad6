"""Files and folders that are there whole, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simnet.errors import InputError, OutputError, Problem, SimnetError

__all__ = [
    "discard_unfinished",
    "hidden_prefix",
    "umask",
    "unfinished",
    "unfinished_while",
    "unwritable",
    "write_whole",
]

_BY_CHOICE = {
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL),
}
"""What comes of the name that was given; all else, such as a full disk, comes of the machine."""

_LONGEST_PREFIX = 40  # characters, of what has a few more behind it

_unfinished: set[Path] = set()


@contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """Let a file appear under its name when it is written, by renaming it.

    What is no file, such as a device or a pipe, is written into when all is there.

    Parameters
    ----------
    path : Path
        Its folder is made where it is not there.

    Yields
    ------
    Path
        Where to write.

    Raises
    ------
    InputError
        There can be no such file.
    OutputError
        The machine cannot take it.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with tempfile.TemporaryDirectory(prefix="simnet-") as folder:
                yield (made := Path(folder, "made"))
                with made.open("rb") as written, path.open("wb") as device:
                    shutil.copyfileobj(written, device)
            return
        place = path.resolve()  # of a link, what it leads to
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=hidden_prefix(path), dir=place.parent)
        os.close(handle)
        with unfinished(Path(name)) as made:
            yield made
            made.chmod(0o666 & ~umask())
            made.replace(place)
    except OSError as error:
        raise unwritable(path, error) from None


@contextmanager
def unfinished(made: Path) -> Iterator[Path]:
    """Have a file or folder removed in the end, if it has not got another name by then."""
    _unfinished.add(made)
    try:
        yield made
    finally:
        _let_go(made)


def unfinished_while(owner: object, made: Path) -> None:
    """Have a file or folder removed when nobody knows its owner any more."""
    _unfinished.add(made)
    weakref.finalize(owner, _let_go, made)


def discard_unfinished() -> None:
    """Remove what is not finished, as this process ends at once."""
    for made in list(_unfinished):
        _remove(made)


def unwritable(path: str | Path, error: OSError | RuntimeError) -> SimnetError:
    """Return what is said of a file or folder that cannot be written."""
    number = getattr(error, "errno", None)
    if number == errno.EEXIST:  # where a folder is to be, a file is
        return unwritable(path, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    said = getattr(error, "strerror", None) or str(error)
    if number and "errno" in said:  # as pyarrow has it in its text
        said = os.strerror(number)
    if isinstance(error, RuntimeError) or number in _BY_CHOICE:
        return InputError(Problem(f"cannot be written: {said}", "choose another place with -o", source=str(path)))
    return OutputError(str(Problem(f"cannot be written: {said}", source=str(path))))


def hidden_prefix(path: Path) -> str:
    """Return what the name of something begins with that is made for a path, beside it."""
    return f".{path.name[:_LONGEST_PREFIX]}."


def umask() -> int:
    """Return which rights new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _let_go(made: Path) -> None:
    _remove(made)
    _unfinished.discard(made)


def _remove(made: Path) -> None:
    if made.is_dir():
        shutil.rmtree(made, ignore_errors=True)
    else:
        made.unlink(missing_ok=True)
