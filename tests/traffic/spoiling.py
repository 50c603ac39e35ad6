"""Schedules that are wrong in one place, for tests of what finds that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simnet.traffic import Kind, Schedule


def without_dependency(schedule: Schedule, row: int) -> Schedule:
    deps = schedule.dependencies
    columns = {name: np.delete(getattr(deps, name), row) for name in ("before", "after", "offset", "until", "delay_s")}
    return replace(schedule, dependencies=replace(deps, **columns))


def with_value(schedule: Schedule, column: str, operation: int, value: int) -> Schedule:
    changed = getattr(schedule.operations, column).copy()
    changed[operation] = value
    return replace(schedule, operations=replace(schedule.operations, **{column: changed}))


def sends(schedule: Schedule) -> list[int]:
    return np.flatnonzero(schedule.operations.kind == Kind.SEND).tolist()
