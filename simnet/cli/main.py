"""What the command ``simnet`` starts with, and what an error looks like."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> None:
    """Run the command line.

    Exit status: 2 for bad input; 1 where a run cannot give a number or output cannot be written; 130 when interrupted.
    """
    try:
        _run()
    except KeyboardInterrupt:
        _complain("interrupted")
        sys.exit(_INTERRUPTED)


def _run() -> None:
    for stream in (sys.stdout, sys.stderr):
        # Names may have letters that the terminal has not; escaped they can still be read.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Loading all this takes a while, in which somebody may press Ctrl-C.
    from simnet.cli.app import app
    from simnet.errors import InputError, SimulationError

    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except SystemExit as left:
        # typer keeps an interrupt to itself.
        if left.code == _INTERRUPTED:
            raise KeyboardInterrupt from None
        raise
    except InputError as error:
        _complain(str(error), len(error.problems))
        sys.exit(2)
    except SimulationError as error:
        _complain(str(error))
        sys.exit(1)
    except OSError as error:
        # Whoever reads a pipe may stop when they have had enough; that needs no words.
        if not isinstance(error, BrokenPipeError):
            _complain(f"{error.filename or 'output'}: {error.strerror or error}")
        # Python would try once more, and complain, when it closes the output.
        with suppress(io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _complain(text: str, problems: int = 0) -> None:
    print(text, file=sys.stderr)
    if problems > 1:
        print(f"{problems} problems", file=sys.stderr)


if __name__ == "__main__":
    main()
