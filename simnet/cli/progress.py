"""How far something has come, on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from simnet.cli.interruption import NOTHING, interruption
from simnet.experiment.telling import Progress, Show

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

__all__ = ["shown"]

_AFTER_S = 2.0
"""What takes no longer is shown no bar."""


@contextmanager
def shown(kept: str = NOTHING, *, quiet: bool = False) -> Iterator[Show]:
    """Yield what shows progress: as a bar on a terminal, once it takes long, and to who presses Ctrl-C in words.

    Parameters
    ----------
    kept : str
        What is there of it where it is interrupted.
    quiet : bool
        No bar.
    """
    line = _Line(kept, drawn=not quiet and _can_draw())
    interruption.shown = line
    try:
        yield line.show
    finally:
        line.end()
    interruption.shown = None


class _Line:
    """What was shown last, and the bar of it."""

    def __init__(self, kept: str, *, drawn: bool) -> None:
        self._kept, self._drawn = kept, drawn
        self._last: Progress | None = None
        self._began_s = time.monotonic()
        self._bar: Bar | None = None

    def show(self, progress: Progress) -> None:
        """Show how far it has come."""
        self._last = progress
        if self._drawn and (self._bar is not None or time.monotonic() - self._began_s >= _AFTER_S):
            self._draw(progress)

    def words(self) -> str:
        """Return how far it has come in words."""
        last = self._last
        if last is None or not last.whole:
            return self._kept
        failed = f" ({last.failed:,} failed)" if last.failed else ""
        return f"{last.over:,} of {last.whole:,} {last.what} are done{failed}; {self._kept}"

    def end(self) -> None:
        """Take the bar away."""
        self._drawn = False
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.stop()

    def _draw(self, progress: Progress) -> None:
        if self._bar is None:
            self._bar = _bar()
            self._bar.start()
        bar = self._bar
        if not bar.tasks or bar.tasks[0].description != progress.what:
            for task in bar.task_ids:
                bar.remove_task(task)
            bar.add_task(progress.what, total=None, about="")
        about = _about(progress)
        bar.update(bar.task_ids[0], total=progress.whole or None, completed=progress.over, about=about, refresh=True)


def _about(progress: Progress) -> str:
    """Return in words what stands behind the bar."""
    parts = []
    if progress.whole:
        parts.append(f"{progress.over:,} of {progress.whole:,}")
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    parts.append(_clock(progress.elapsed_s))
    if progress.left_s is not None:
        parts.append(f"about {_clock(progress.left_s)} left")
    return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


def _can_draw() -> bool:
    """Tell whether standard error is a terminal on which something can be written over."""
    if not sys.stderr.isatty():
        return False
    from rich.console import Console

    console = Console(stderr=True)
    return console.is_terminal and not console.is_dumb_terminal


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[about]}"))
    return Bar(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
