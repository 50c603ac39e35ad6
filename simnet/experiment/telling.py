"""What is said beside the output: to standard error, or to nobody."""

from __future__ import annotations

import sys

__all__ = ["tell", "tell_nobody"]


def tell(line: str) -> None:
    """Print a line to standard error."""
    print(line, file=sys.stderr, flush=True)


def tell_nobody(_: object) -> None:
    """Say nothing."""
