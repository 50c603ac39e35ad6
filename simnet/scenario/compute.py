"""From the sections about computing to settings: stragglers, memory, and the target of a training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from simnet.errors import InputError, Problem
from simnet.scenario.compute_models import MemoryHierarchySpec, PatternSpec, StragglerSpec, TargetSpec
from simnet.training.computing.stragglers import Constant, Drifting, Occasional, Pattern, Periodic, Straggler
from simnet.units import format_size
from simnet.workload import (
    AnyWorkload,
    MemoryHierarchy,
    MemoryLevel,
    Workload,
    with_memory_time,
    with_serial_time,
    working_set_bytes,
)

__all__ = [
    "build_stragglers",
    "straggler_problems",
    "target_problems",
    "target_samples",
    "with_other_times",
]

_PATTERNS: dict[str, type[Pattern]] = {
    "constant": Constant,
    "drifting": Drifting,
    "periodic": Periodic,
    "occasional": Occasional,
}


def build_stragglers(specs: Sequence[StragglerSpec]) -> tuple[Straggler, ...]:
    """Return which workers are slower than they should be, and when."""
    return tuple(Straggler(spec.workers, _pattern(spec.pattern)) for spec in specs)


def _pattern(spec: PatternSpec) -> Pattern:
    options = spec.options
    return _PATTERNS[spec.name](**{key: getattr(options, key) for key in type(options).model_fields})


def straggler_problems(specs: Sequence[StragglerSpec], workers: int) -> Iterator[Problem]:
    """Yield ranks that are not there, and what lasts longer than its period."""
    for number, spec in enumerate(specs):
        for place, rank in enumerate(spec.workers):
            if rank >= workers:
                message = f"stragglers[{number}] names rank {rank}, of {workers} workers"
                hint = f"ranks from 0 to {workers - 1} are there"
                yield Problem(message, hint, ("stragglers", number, "workers", place))
            elif rank in spec.workers[:place]:
                message = f"stragglers[{number}] names rank {rank} twice"
                yield Problem(message, "once is enough", ("stragglers", number, "workers", place))
        periodic = spec.pattern.periodic
        if periodic is not None and periodic.lasts > periodic.every:
            message = f"lasts is {periodic.lasts}, more than every {periodic.every} iterations"
            path = ("stragglers", number, "pattern", "periodic", "lasts")
            yield Problem(message, f"at most {periodic.every} is possible", path)


def target_problems(spec: TargetSpec | None) -> Iterator[Problem]:
    """Yield that nothing is given, or too much."""
    if spec is None:
        return
    given = (spec.samples is not None, spec.epochs is not None, spec.dataset_samples is not None)
    if given not in ((True, False, False), (False, True, True)):
        message = "target has neither samples alone, nor epochs and dataset_samples"
        yield Problem(message, "give one or the other: {epochs: 100, dataset_samples: 1281167}", ("target",))


def target_samples(spec: TargetSpec | None) -> float:
    """Return the samples that the whole training goes through; 0 where that is not given."""
    if spec is None:
        return 0.0
    return float(spec.samples or (spec.epochs or 0) * (spec.dataset_samples or 0))


def with_other_times(workload: AnyWorkload, spec: Any) -> AnyWorkload:
    """Return a workload with what it spends on memory, and what it computes whatever its batch.

    Parameters
    ----------
    workload : Workload, RecordedTrace or DataflowWorkload
        The last two have all their times already.
    spec : WorkloadSpec
    """
    if not isinstance(workload, Workload):
        return workload
    if spec.memory_hierarchy is not None:
        workload = with_memory_time(workload, _hierarchy(spec.memory_hierarchy, workload.batch_size))
    return with_serial_time(workload, spec.serial_time) if spec.serial_time else workload


def _hierarchy(spec: MemoryHierarchySpec, batch_size: int) -> MemoryHierarchy:
    """Return caches and memory in SI units.

    Raises
    ------
    InputError
        Levels that do not grow, or a working set that fits into none.
    """
    path = ("memory_hierarchy", "levels")
    levels = tuple(MemoryLevel(level.size, level.bandwidth) for level in spec.levels)
    if not levels:
        raise InputError(Problem("levels is empty", "at least one is wanted", path))
    problems = [
        Problem(f"levels[{number}] is not larger than the one before", "the smallest goes first", (*path, number))
        for number, (before, level) in enumerate(pairwise(levels), start=1)
        if level.size_bytes <= before.size_bytes
    ]
    hierarchy = MemoryHierarchy(levels, spec.bytes_per_sample, spec.uses, spec.fixed_size)
    needed, there = working_set_bytes(hierarchy, batch_size), levels[-1].size_bytes
    if needed > there and not problems:
        message = f"a working set of {format_size(needed)} fits into no level, the last of which has"
        problems.append(Problem(f"{message} {format_size(there)}", "add the memory", path))
    if problems:
        raise InputError(problems)
    return hierarchy
