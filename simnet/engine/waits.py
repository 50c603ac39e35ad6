"""The type of a SimPy process."""

from __future__ import annotations

from collections.abc import Generator

import simpy

__all__ = ["Waits"]

Waits = Generator[simpy.Event, object, None]
"""What a process does: it yields each event that it waits for, and returns nothing."""
