"""What the command ``simnet`` starts with, and what an error looks like."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

from simnet.cli.interruption import INTERRUPTED, interruption
from simnet.cli.streams import open_streams

__all__ = ["main"]


def main() -> None:
    """Run the command line.

    Exit status: 2 for bad input; 1 where a run cannot give a number or output cannot be written; 130 when interrupted.
    """
    open_streams()
    with interruption.heard():
        try:
            _run()
        except KeyboardInterrupt:
            interruption.end()
            sys.exit(INTERRUPTED)


def _run() -> None:
    with interruption.alone():
        # Loading all this takes a while, in which somebody may press Ctrl-C.
        from simnet.cli.app import app
        from simnet.errors import InputError, OutputError, SimulationError
        from simnet.writing import discard_unfinished

    interruption.discard = discard_unfinished
    try:
        with interruption.alone():
            try:
                app()
            finally:
                sys.stdout.flush()
    except SystemExit as left:
        # typer keeps an interrupt to itself.
        if left.code == INTERRUPTED:
            raise KeyboardInterrupt from None
        raise
    except InputError as error:
        _complain(str(error), len(error.problems))
        sys.exit(2)
    except (SimulationError, OutputError) as error:
        _complain(str(error))
        sys.exit(1)
    except MemoryError:
        _complain("there is not enough memory")
        sys.exit(1)
    except UnicodeEncodeError as error:
        # Of names of files that are no text in UTF-8.
        _complain(f"{error.object!a} is not text, and cannot be written")
        sys.exit(2)
    except OSError as error:
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
