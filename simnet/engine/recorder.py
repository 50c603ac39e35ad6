"""What happened, as rows; the experiment layer makes tables of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

__all__ = ["Recorder"]

Row = TypeVar("Row", bound=NamedTuple)


class Recorder:
    """Collects rows; the kind of a row is its type, a named tuple whose fields are the columns."""

    def __init__(self) -> None:
        self._rows: dict[type[NamedTuple], list[NamedTuple]] = {}

    def add(self, row: NamedTuple) -> None:
        """Append a row to the table of its kind."""
        self._rows.setdefault(type(row), []).append(row)

    def take_back(self, kind: type[Row], is_void: Callable[[Row], bool]) -> list[Row]:
        """Remove rows of one kind, as what they tell of is void; return them."""
        rows = self.rows(kind)
        self._rows[kind] = [row for row in rows if not is_void(row)]
        return [row for row in rows if is_void(row)]

    def count(self, kind: type[NamedTuple]) -> int:
        """Return how many rows of one kind there are."""
        return len(self._rows.get(kind, ()))

    def rows(self, kind: type[Row]) -> list[Row]:
        """Return all rows of one kind, in the order in which they came."""
        return list(self._rows.get(kind, []))  # type: ignore[arg-type]
