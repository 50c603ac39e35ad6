"""Records of single messages, read from the kernel's log in batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.records import LOG
from simnet.fabric.kernels.tables import Table, Tables
from simnet.fabric.play import Play

__all__ = ["LOG_ROWS", "MessageLog", "Messages", "TakeMessages"]

LOG_ROWS = 1 << 17
"""What the log has room for; a message takes two rows."""


@dataclass(frozen=True, eq=False)
class Messages:
    """A batch of messages; arrays of shape (messages,), times on the clock of the simulation [s].

    Attributes
    ----------
    play : names of the plays that they belong to
    operation, firing : which operation of its schedule sent it, and in which firing
    source, target : ranks
    size_bytes : payload
    start_s : when it waited for nothing more
    flow_start_s : when its payload began to flow, after overheads and connection set-up
    drained_s : when its last byte had left
    delivered_s : when it was received, and reduced; NaN where it never was
    """

    play: NDArray[np.str_]
    operation: NDArray[np.int64]
    firing: NDArray[np.int64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    size_bytes: NDArray[np.float64]
    start_s: NDArray[np.float64]
    flow_start_s: NDArray[np.float64]
    drained_s: NDArray[np.float64]
    delivered_s: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.firing)


TakeMessages = Callable[[Messages], None]


class MessageLog:
    """Makes messages of the records that the kernel leaves in its log, and hands them on.

    Parameters
    ----------
    take : callable
        Handed each batch, in order of delivery.
    """

    def __init__(self, take: TakeMessages) -> None:
        self._take = take
        self._plays: dict[int, tuple[Play, int]] = {}  # by stamp: the play, and its first row of operations
        self._over: set[Play] = set()
        self._drained = np.zeros(0, LOG)  # not delivered yet

    def begin(self, play: Play, stamp: int) -> None:
        """Note whose operations bear a stamp from now on."""
        self._plays[stamp] = play, play.rows["operations"]

    def end(self, play: Play) -> None:
        """Note that nothing more comes of a play than what is in the log."""
        self._over.add(play)

    def read(self, tables: Tables, base_s: float) -> None:
        """Read and empty the log; its times count from `base_s`."""
        clock = tables.clock
        log = tables.log[: int(clock["logged"][0])].copy()
        clock["logged"] = 0
        for column in ("began", "flow_began", "time"):
            log[column] += base_s
        drained = np.concatenate([self._drained, log[~log["is_delivery"]]])
        delivered = log[log["is_delivery"]]
        found = _where(delivered, drained)
        self._hand_on(drained[found], delivered["time"])
        left = np.ones(len(drained), np.bool_)
        left[found] = False
        self._drained = drained[left]
        if self._over:
            late = set(self._drained["stamp"].tolist())
            over = [stamp for stamp, (play, _) in self._plays.items() if play in self._over and stamp not in late]
            for stamp in over:
                self._over.remove(self._plays.pop(stamp)[0])

    def close(self) -> None:
        """Hand on what was never delivered, and forget the plays."""
        self._hand_on(self._drained, np.full(len(self._drained), np.nan))
        self._drained = self._drained[:0]
        self._plays.clear()

    def _hand_on(self, drained: Table, delivered_s: NDArray[np.float64]) -> None:
        if not len(drained):
            return
        stamps, which = np.unique(drained["stamp"], return_inverse=True)
        plays = [self._plays[stamp] for stamp in stamps.tolist()]
        operation = drained["row"] - np.array([first for _, first in plays])[which]
        source, target = np.empty(len(drained), np.int64), np.empty(len(drained), np.int64)
        for number, (play, _) in enumerate(plays):
            its, operations = which == number, play.placement.schedule.operations
            source[its], target[its] = operations.source[operation[its]], operations.target[operation[its]]
        self._take(
            Messages(
                play=np.array([play.name for play, _ in plays])[which],
                operation=operation,
                firing=drained["firing"].copy(),
                source=source,
                target=target,
                size_bytes=drained["size_bytes"].copy(),
                start_s=drained["began"].copy(),
                flow_start_s=drained["flow_began"].copy(),
                drained_s=drained["time"].copy(),
                delivered_s=delivered_s,
            )
        )


def _where(delivered: Table, drained: Table) -> NDArray[np.int64]:
    """Return which of the drained messages each of the delivered ones is."""
    both = np.concatenate([drained, delivered])
    order = np.lexsort((both["is_delivery"], both["firing"], both["row"], both["stamp"]))
    # A delivery comes right after the draining of the same firing.
    place = np.flatnonzero(both["is_delivery"][order])
    found = np.empty(len(delivered), np.int64)
    found[order[place] - len(drained)] = order[place - 1]
    return found
