"""Ctrl-C ends a command within a second, whatever is going on, with a line about what was done so far.

Python raises KeyboardInterrupt only between two of its own steps, which may be far apart while something compiled is
called, and some callers pass over it. So a thread hears of the signal as well, and ends the process where it is still
there soon afterwards.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Protocol

__all__ = ["INTERRUPTED", "NOTHING", "Interruption", "Shown", "interruption"]

INTERRUPTED = 130
"""Exit status."""

_PATIENCE_S = 0.5
"""For how long the process may go on, so that it is over within a second even where a machine is busy."""

NOTHING = "nothing is written"
"""What is said where there is nothing to be said."""


class Shown(Protocol):
    """What is shown of how far it is."""

    def words(self) -> str:
        """Return in words what was done so far and is kept."""

    def end(self) -> None:
        """Take it away."""


class Interruption:
    """What becomes of Ctrl-C in this process.

    Attributes
    ----------
    shown : Shown or None
        What is shown of how far it is.
    discard : callable
        Removes what is not finished.
    """

    def __init__(self) -> None:
        self.shown: Shown | None = None
        self.discard: Callable[[], None] = lambda: None
        self._pressed = False
        self._once = threading.Lock()
        self._over = threading.Event()

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen to Ctrl-C."""
        # What is begun in the background has Ctrl-C ignored, which is left so.
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            yield
            return
        self.shown, self._pressed = None, False
        self._once, self._over = threading.Lock(), threading.Event()
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            with self._watched():
                yield
        finally:
            self._over.set()
            # Once it was pressed the process ends, and nobody is to press it again.
            if not self._pressed:
                signal.signal(signal.SIGINT, before)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Have any error that comes out after somebody pressed Ctrl-C be a KeyboardInterrupt.

        Some callers turn it into an error of their own, as modules do that cannot be loaded then.
        """
        try:
            yield
        except BaseException as raised:
            is_done = isinstance(raised, SystemExit) and not raised.code
            if self._pressed and not is_done:
                raise KeyboardInterrupt from None
            raise

    def end(self) -> None:
        """Say it, and end the process at once where somebody has pressed Ctrl-C: taking it apart may take seconds."""
        self.say()
        if self._pressed:
            self._leave()

    def say(self) -> None:
        """Print the line, once."""
        if not self._once.acquire(blocking=False):
            return
        if self.shown is not None:
            self.shown.end()
        so_far = self.shown.words() if self.shown is not None else NOTHING
        print(f"interrupted: {so_far}", file=sys.stderr, flush=True)

    def _interrupt(self, _: int, __: FrameType | None) -> None:
        self._pressed = True
        # Whoever presses it again has been heard already.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Have a thread end the process soon after the signal."""
        if sys.platform == "win32":
            yield
            return
        heard, told = os.pipe()
        os.set_blocking(told, False)
        before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        threading.Thread(target=self._wait, args=(heard, self._over), daemon=True).start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            os.close(told)

    def _wait(self, heard: int, over: threading.Event) -> None:
        while number := os.read(heard, 1):
            if number[0] == signal.SIGINT and not over.wait(_PATIENCE_S):
                self._leave()
        os.close(heard)

    def _leave(self) -> None:
        with suppress(BaseException):
            self.say()
        with suppress(BaseException):
            self.discard()
        for stream in (sys.stdout, sys.stderr):
            with suppress(BaseException):
                stream.flush()
        os._exit(INTERRUPTED)


interruption = Interruption()
"""That of this process."""
