"""Connections between pairs of nodes: which are open, and how far their windows have opened."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.behaviour import connections_of, packets_of
from simnet.fabric.kernels.losses import SACK
from simnet.fabric.network import Network
from simnet.fabric.placement import Placement
from simnet.fabric.startup import start_up_idle_s

__all__ = ["Beginning", "Connections"]

_MOST_LEVELS = 64


@dataclass(frozen=True, eq=False)
class Beginning:
    """What the first firings of a play pay for their connections, shape (operations,).

    Attributes
    ----------
    setup_s : to open them, and until their windows are open [s]
    opens : whether a first firing is sent from a first window
    """

    setup_s: NDArray[np.float64]
    opens: NDArray[np.bool_]


class Connections:
    """The connections of a network that persist.

    Parameters
    ----------
    network : Network
    windows : bool
        Whether windows open at flow level; otherwise somebody else sees to that.
    """

    def __init__(self, network: Network, *, windows: bool) -> None:
        self._protocol = network.protocol
        transport = network.protocol.transport
        per_message = network.protocol.connection == "per_message"
        self._has_windows = windows and not per_message and math.isfinite(transport.initial_window_packets)
        self._is_open = np.zeros(0, np.bool_)
        self._window = np.zeros(0)
        self._used_at = np.zeros(0)

    def begin(self, placement: Placement, now: float) -> Beginning:
        """Open what a play needs and is not open; return what that takes.

        Parameters
        ----------
        placement : Placement
        now : float
            [s]
        """
        connection = placement.operations["connection"]
        self._make_room(int(connection.max(initial=-1)) + 1)
        beginning = Beginning(np.zeros(len(connection)), np.zeros(len(connection), np.bool_))
        rows = np.flatnonzero((placement.setup_s > 0.0) & (connection >= 0))
        if len(rows):
            rows = rows[~self._is_open[connection[rows]]]
            first = rows[np.unique(connection[rows], return_index=True)[1]]
            beginning.setup_s[first] = placement.setup_s[first]
            self._is_open[connection[first]] = True
        if self._has_windows:
            self._open_windows(placement, beginning, now)
        return beginning

    def end(self, placement: Placement, now: float) -> None:
        """Note that a play is over."""
        if self._has_windows:
            used = placement.used_connections
            self._used_at[used] = now

    def _make_room(self, count: int) -> None:
        missing = count - len(self._window)
        if missing > 0:
            self._is_open = np.concatenate([self._is_open, np.zeros(missing, np.bool_)])
            self._window = np.concatenate([self._window, np.zeros(missing)])
            self._used_at = np.concatenate([self._used_at, np.full(missing, -math.inf)])

    def _open_windows(self, placement: Placement, beginning: Beginning, now: float) -> None:
        """Charge the first message of each operation with what all of its messages idle while the window opens."""
        transport, operations = self._protocol.transport, placement.operations
        connection = operations["connection"]
        used = placement.used_connections
        if transport.slow_start_after_idle:
            idle = used[now - self._used_at[used] > transport.minimum_timeout_s]
            self._window[idle] = np.minimum(self._window[idle], transport.initial_window_packets)
        if (self._window[used] == math.inf).all():
            return
        unused = used[self._window[used] == 0.0]
        self._window[unused] = transport.initial_window_packets
        rows = np.flatnonzero(connection >= 0)
        rows = rows[self._window[connection[rows]] < math.inf]
        turn = _turns(connection[rows])
        first = rows[turn == 0]
        beginning.opens[first] = self._window[connection[first]] <= transport.initial_window_packets
        # Where packets are lost, the window of each message is drawn.
        drawn = operations["reliability"][rows] == SACK
        self._window[connection[rows[drawn]]] = math.inf
        for number in range(int(turn.max(initial=-1)) + 1):
            its = rows[(turn == number) & ~drawn]
            self._open_further(placement, its[self._window[connection[its]] < math.inf], beginning)

    def _open_further(self, placement: Placement, rows: NDArray[np.int64], beginning: Beginning) -> None:
        """Charge operations, each of another connection, with what all of their messages idle."""
        if not len(rows):
            return
        operations = placement.operations[rows]
        most = max(self._protocol.transport.window_bytes / self._protocol.payload_bytes, 1.0)
        over = connections_of(operations, self._protocol)
        # Of each of the connections that a message is spread over, when all that begin with it send as well.
        packet_s = operations["packet_time"] * over * _sharing(placement, rows)
        columns = (
            packets_of(operations, self._protocol) / over,
            self._window[operations["connection"]],
            packet_s,
            # A window that is limited is open when it is as large as it may be.
            np.minimum(operations["round_trip"], most * packet_s),
            operations["firings"],
        )
        alike, which = np.unique(np.stack(columns), axis=1, return_inverse=True)
        found = [start_up_idle_s(*column[:4], int(column[4])) for column in alike.T.tolist()]
        idle_s, window = np.array(found).T[:, which.reshape(-1)]
        beginning.setup_s[rows] += idle_s
        self._window[operations["connection"]] = window


def _sharing(placement: Placement, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of some operations first fire as early as each of them, on the resource with most of these."""
    level = _levels(placement)
    is_one = np.zeros(len(placement.operations), np.bool_)
    is_one[rows] = True
    hops = placement.hops[is_one[placement.hops["flow"]]]
    places = np.stack([hops["resource"], level[hops["flow"]]])
    _, which, users = np.unique(places, axis=1, return_inverse=True, return_counts=True)
    sharing = np.ones(len(placement.operations), np.int64)
    np.maximum.at(sharing, hops["flow"], users[which.reshape(-1)])
    return np.asarray(sharing[rows], dtype=np.int64)


def _levels(placement: Placement) -> NDArray[np.int64]:
    """Return how many messages have to come one after the other before each operation first fires; 64 is many."""
    dependencies, operations = placement.dependencies, placement.operations
    first = dependencies[dependencies["offset"] <= 0]
    level = np.zeros(len(operations), np.int64)
    step = operations["is_message"].astype(np.int64)[first["before"]]
    for _ in range(_MOST_LEVELS):
        before = level.copy()
        np.maximum.at(level, first["after"], np.minimum(level[first["before"]] + step, _MOST_LEVELS))
        if (level == before).all():
            break
    return level


def _turns(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of the same number come before each."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, np.bool_)
    place = np.arange(len(ordered))
    turns = np.empty(len(ordered), np.int64)
    turns[order] = place - np.maximum.accumulate(np.where(begins, place, 0))
    return turns
