"""Streams: how much may be under way at once, and what goes next where it is more."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush

__all__ = ["Streams"]


@dataclass
class Streams:
    """Lets things begin when there is room, the smallest priority first, and among equals the first that came.

    What has begun is never interrupted. There is room as long as less than the limit is under way, so that what is
    larger than what is left begins too.

    Parameters
    ----------
    limit : float
        How much may be under way at once, in the unit of sizes.
    """

    limit: float = math.inf
    _is_held: bool = False
    _under_way: float = 0
    _came: int = 0
    _queue: list[tuple[int, int, float, Callable[[], None]]] = field(default_factory=list)

    def enter(self, priority: int, begin: Callable[[], None], size: float = 1) -> None:
        """Have something begin, now or when it is its turn."""
        self._came += 1
        heappush(self._queue, (priority, self._came, size, begin))
        self._go_on()

    def leave(self, size: float = 1) -> None:
        """Say that something of a size is over that has begun."""
        self._under_way -= size
        self._go_on()

    def hold(self) -> None:
        """Let nothing begin until `release`."""
        self._is_held = True

    def release(self) -> None:
        """Let things begin again."""
        self._is_held = False
        self._go_on()

    def _go_on(self) -> None:
        while not self._is_held and self._under_way < self.limit and self._queue:
            *_, size, begin = heappop(self._queue)
            self._under_way += size
            begin()
