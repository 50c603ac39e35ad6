"""Rows of the kernel's tables, lent to plays and given back."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from simnet.fabric.kernels.tables import Table, Tables, make_tables

__all__ = ["Slots", "enlarge", "enlarge_events"]


@dataclass
class Slots:
    """Runs of rows of one table.

    A run that was given back serves the next that has exactly its length, as the same schedules come again and again.

    Attributes
    ----------
    used : int
        Rows 0 .. used - 1 have been lent at some time.
    """

    used: int = 0
    _free: dict[int, list[int]] = field(default_factory=dict)

    def take(self, length: int) -> int:
        """Return the first of `length` rows."""
        free = self._free.get(length)
        if free:
            return free.pop()
        start = self.used
        self.used += length
        return start

    def give_back(self, start: int, length: int) -> None:
        """Take rows back."""
        self._free.setdefault(length, []).append(start)

    def reset(self) -> None:
        """Take all rows back."""
        self.used = 0
        self._free.clear()


def enlarge(tables: Tables, **rows: int) -> Tables:
    """Return the same tables with room for at least so many rows, or the tables themselves where they have it.

    Parameters
    ----------
    tables : Tables
    **rows : int
        Rows needed, by name of the table.
    """
    have = {
        name: len(getattr(tables, name))
        for name in ("operations", "dependencies", "hops", "resources", "gates", "plays", "servers", "devices", "costs")
    }
    if all(have[name] >= needed for name, needed in rows.items()):
        return tables
    room = {name: max(have[name], 2 * rows[name] if rows.get(name, 0) > have[name] else 0) for name in have}
    larger = make_tables(**room, events=max(len(tables.events), 2 * room["operations"]))
    for old, new in zip(tables, larger, strict=True):
        new[: len(old)] = old
    larger.operations["place"][have["operations"] :] = -1
    _unroll(tables, larger.queue)
    larger.clock["queue_head"] = 0
    return larger


def enlarge_events(tables: Tables) -> Tables:
    """Return the same tables with at least twice the room for events and for steps that follow at once."""
    room = 2 * len(tables.events) + int(tables.clock["step"][0])
    events, queue = np.zeros(room, tables.events.dtype), np.zeros(room, tables.queue.dtype)
    events[: len(tables.events)] = tables.events
    _unroll(tables, queue)
    return tables._replace(events=events, queue=queue)


def _unroll(tables: Tables, queue: Table) -> None:
    """Copy the queue, a ring, into a larger one from its beginning on."""
    queue[: len(tables.queue)] = np.roll(tables.queue, -int(tables.clock["queue_head"][0]))
    tables.clock["queue_head"] = 0
