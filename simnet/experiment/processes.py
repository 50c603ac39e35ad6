"""Processes of this machine that do what they are sent, and leave it to the parent what Ctrl-C means."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import ParamSpec, TypeVar

__all__ = ["Processes"]

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


class Processes:
    """Processes of this machine, which are killed when something goes wrong in the parent, and end when it does.

    Parameters
    ----------
    processes : int
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes

    def __enter__(self) -> Processes:
        self._pool = self._begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._kill()
        self._pool.shutdown(wait=kind is None, cancel_futures=True)

    def submit(
        self, function: Callable[_Given, _Made], *arguments: _Given.args, **named: _Given.kwargs
    ) -> Future[_Made]:
        """Have a function of a module called."""
        with _nothing_of_ctrl_c():
            return self._pool.submit(function, *arguments, **named)

    def begin_again(self) -> None:
        """Begin new processes in the place of those of which one is lost."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._begin()

    def _begin(self) -> ProcessPoolExecutor:
        _begin_tracker()
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._processes, context, initializer=_begin_worker)

    def _kill(self) -> None:
        # There is no other way to stop what a pool has under way.
        for process in list((self._pool._processes or {}).values()):
            process.kill()


@contextmanager
def _nothing_of_ctrl_c() -> Iterator[None]:
    """Have processes that are begun meanwhile hear nothing of Ctrl-C, not even while they load; it comes after."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_tracker() -> None:
    """Begin what removes the semaphores of a pool whose parent ends at once; that this happens is nothing to be told.

    It is a process of its own, which gets the options of this one, and would be begun with the first worker.
    """
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.pop()


def _begin_worker() -> None:
    """Hear nothing of Ctrl-C, and end when the parent does, even where it is killed.

    A worker that waits for tasks would not see that: it holds the other end of the queue itself.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
