"""Standard streams that nobody listens to: closed when the command begins, or by a reader that has had enough.

What is said then goes nowhere, and the work is done as if it were heard.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["open_streams"]

_STREAMS = ("stdin", "stdout", "stderr")


def open_streams() -> None:
    """Have all standard streams open, and those for output escape letters that they have not and outlast their readers.

    To be called before anything else opens a file, which would get the number of a closed stream.
    """
    for number, name in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            _open_nowhere(number, name)
    for name in _STREAMS[1:]:
        stream = getattr(sys, name)
        if type(stream) is io.TextIOWrapper and stream is getattr(sys, f"__{name}__"):
            raw = io.BufferedWriter(_Outlasting(stream.fileno(), "w", closefd=False))
            buffering = stream.line_buffering
            setattr(sys, name, io.TextIOWrapper(raw, encoding=stream.encoding, line_buffering=buffering))
        if isinstance(getattr(sys, name), io.TextIOWrapper):
            # Names may have letters that the terminal has not; escaped they can still be read.
            getattr(sys, name).reconfigure(errors="backslashreplace")


class _Outlasting(io.FileIO):
    """A file to write to that leads nowhere once nobody reads it any more."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, and return how many bytes were taken."""
        try:
            return super().write(data)
        except BrokenPipeError:
            _lead_nowhere(self.fileno())
            return super().write(data)


def _open_nowhere(number: int, name: str) -> None:
    _lead_nowhere(number)
    stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)


def _lead_nowhere(number: int) -> None:
    """Have a descriptor lead nowhere, for processes that are begun as well."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere == number:
        os.set_inheritable(number, True)
        return
    os.dup2(nowhere, number)
    os.close(nowhere)
