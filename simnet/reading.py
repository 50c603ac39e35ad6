"""Files that people give, read so that none of them can stop or fill the machine."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simnet.errors import InputError, Problem

__all__ = ["LARGEST_FILE", "decoded", "garbage_kept", "read_content", "read_text"]

LARGEST_FILE = 256_000_000
"""Bytes of a file of data, such as a topology, a trace or a profile, also after it is uncompressed."""

_LINE_END = re.compile("\r\n|[\n\r]")


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Collect no garbage meanwhile.

    A large file is a million small objects, none of them garbage; looking at all of them again and again takes half of
    the time to read it.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read_content(path: Path, wanted: str, largest: int = LARGEST_FILE) -> bytes:
    """Return the bytes of a regular file.

    Parameters
    ----------
    path : Path
    wanted : str
        What should be there, as ``a topology file``.
    largest : int
        Most bytes that are read.

    Raises
    ------
    InputError
        Missing, a directory, a device or a pipe, too large, or not readable.
    """
    source = str(path)
    try:
        if path.is_dir():
            raise InputError(Problem("is a directory", f"{wanted} is wanted", source=source))
        if not path.exists() and not path.is_symlink():
            raise InputError(Problem("there is no such file", source=source))
        # A device may never end, and a pipe never begin.
        if path.exists() and not path.is_file():
            raise InputError(Problem("is not a regular file", f"{wanted} is wanted", source=source))
        size = path.stat().st_size
        content = b""
        if size <= largest:
            with path.open("rb") as file:
                # What the file system says of a file's size need not be true, as under /proc.
                content = file.read(largest + 1)
        size = max(size, len(content))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(Problem(f"cannot be read: {reason}", source=source)) from None
    except ValueError:
        raise InputError(Problem("is not a file name", source=ascii(source))) from None
    if size > largest:
        raise InputError(Problem(f"is {size} bytes long", f"at most {largest} are read", source=source))
    return content


def read_text(path: Path, wanted: str, largest: int = LARGEST_FILE) -> str:
    """Return the text of a regular file in UTF-8; the parameters are those of `read_content`.

    Raises
    ------
    InputError
        As of `read_content`, or it is not UTF-8; with line and column.
    """
    return decoded(read_content(path, wanted, largest), str(path))


def decoded(content: bytes, source: str, encoding: str = "utf-8-sig") -> str:
    """Return bytes as text.

    Raises
    ------
    InputError
        They are none; with line and column.
    """
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        # The mark at the beginning, which ``utf-8-sig`` leaves out, counts in its error.
        begun = _LINE_END.split(error.object[: error.start].decode(encoding, "replace"))
        name = encoding.removesuffix("-sig").upper()
        message = f"is not {name} text (byte {error.object[error.start]:#04x})"
        raise InputError(
            Problem(message, "save the file as UTF-8", source=source, line=len(begun), column=len(begun[-1]) + 1)
        ) from None
