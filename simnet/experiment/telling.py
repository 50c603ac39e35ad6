"""What is said beside the output, to standard error or to nobody; and how far something has come, for who shows it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Progress", "Show", "counting", "tell", "tell_nobody", "watched"]

_SHOWN_EVERY_S = 0.25


@dataclass(frozen=True)
class Progress:
    """How far something has come.

    Attributes
    ----------
    what : what is counted, such as iterations
    whole : how many there are; 0 where nobody knows
    done : of them
    elapsed_s : since the first was begun [s]
    found : that were there already, beside those that are done
    failed : beside those
    """

    what: str
    whole: int
    done: int
    elapsed_s: float
    found: int = 0
    failed: int = 0

    @property
    def over(self) -> int:
        """How many are not to be done any more."""
        return self.found + self.done + self.failed

    @property
    def left_s(self) -> float | None:
        """For how long it will go on; None while nothing is known [s]."""
        tried = self.done + self.failed
        return self.elapsed_s / tried * (self.whole - self.over) if tried and self.whole else None


Show = Callable[[Progress], None]
"""Shows how far something has come; called some times a second from another thread."""


def tell(line: str) -> None:
    """Print a line to standard error."""
    print(line, file=sys.stderr, flush=True)


def tell_nobody(_: object) -> None:
    """Say nothing."""


def counting(what: str, whole: int, done: Callable[[], int]) -> Callable[[], Progress]:
    """Return what tells how many of some things are done since now."""
    began_s = time.monotonic()
    return lambda: Progress(what, whole, done(), time.monotonic() - began_s)


@contextmanager
def watched(show: Show, progress: Callable[[], Progress]) -> Iterator[None]:
    """Have shown, at the beginning and some times a second from then on, how far something has come meanwhile.

    Who does it is not asked to count, nor to stop for it.

    Parameters
    ----------
    show : callable
    progress : callable
        Returns how far it has come; called from another thread.
    """
    if show is tell_nobody:
        yield
        return
    over = threading.Event()

    def go_on_showing() -> None:
        while not over.wait(_SHOWN_EVERY_S):
            show(progress())

    show(progress())
    thread = threading.Thread(target=go_on_showing, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        show(progress())
