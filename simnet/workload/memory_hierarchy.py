"""Time that computing spends on memory, by the level of caches and memory that its working set fits into.

With P workers each has a P-th of the data. From some P on that fits into a cache, where each access takes less time, so
that P workers may be more than P times as fast as one: super-linear speed-up. That takes data that are used more than
once; what is used once has to come from memory anyway. Capacity alone decides here: what fits into a level is served
by it, what does not is served by the next one, whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simnet.workload.model import Workload

__all__ = [
    "MemoryHierarchy",
    "MemoryLevel",
    "matrix_product",
    "memory_level",
    "memory_time_s",
    "with_memory_time",
    "with_serial_time",
    "working_set_bytes",
]


@dataclass(frozen=True)
class MemoryLevel:
    """A cache, or memory.

    Parameters
    ----------
    size_bytes : float
        What fits in [bytes].
    bandwidth_bytes_per_s : float
        At which what is in it is accessed [bytes/s].
    """

    size_bytes: float
    bandwidth_bytes_per_s: float


@dataclass(frozen=True)
class MemoryHierarchy:
    """Caches and memory of a worker, and what it has in them.

    Parameters
    ----------
    levels : tuple of MemoryLevel
        The smallest first.
    bytes_per_sample : float
        Of the working set [bytes].
    fixed_bytes : float
        Of the working set, whatever the batch: parameters, say [bytes].
    uses : float
        How often each byte of it is accessed in a pass.
    """

    levels: tuple[MemoryLevel, ...]
    bytes_per_sample: float
    uses: float
    fixed_bytes: float = 0.0


def working_set_bytes(hierarchy: MemoryHierarchy, samples: float) -> float:
    """Return the working set of a worker with so many samples [bytes].

    Parameters
    ----------
    hierarchy : MemoryHierarchy
    samples : float
        That the worker passes over.

    Returns
    -------
    float
        [bytes]
    """
    return samples * hierarchy.bytes_per_sample + hierarchy.fixed_bytes


def memory_level(levels: Sequence[MemoryLevel], size_bytes: float) -> MemoryLevel:
    """Return the first level that a working set fits into.

    Parameters
    ----------
    levels : sequence of MemoryLevel
        From the nearest on.
    size_bytes : float
        Of the working set [bytes].

    Returns
    -------
    MemoryLevel

    Raises
    ------
    ValueError
        There is none.
    """
    for level in levels:
        if size_bytes <= level.size_bytes:
            return level
    raise ValueError(f"{size_bytes:g} B do not fit into the {levels[-1].size_bytes:g} B of the last level")


def memory_time_s(hierarchy: MemoryHierarchy, samples: float) -> float:
    """Return the time that a pass over so many samples spends on memory: accesses over bandwidth [s].

    Parameters
    ----------
    hierarchy : MemoryHierarchy
    samples : float
        That the worker passes over.

    Returns
    -------
    float
        [s]

    Raises
    ------
    ValueError
        The working set fits into no level.
    """
    size_bytes = working_set_bytes(hierarchy, samples)
    return hierarchy.uses * size_bytes / memory_level(hierarchy.levels, size_bytes).bandwidth_bytes_per_s


def matrix_product(size: int, element_bytes: float) -> tuple[float, float, float]:
    """Return what one row of the product of two square matrices costs, if a sample is a row.

    The three matrices of N x N elements take 3 N^2 elements; the 2 N^3 operations use each of them N times. Workers are
    taken to share all three evenly, which a division into blocks comes near.

    Parameters
    ----------
    size : int
        N.
    element_bytes : float
        [bytes]

    Returns
    -------
    flops : float
        Per sample.
    bytes_per_sample : float
        [bytes]
    uses : float
        How often each byte is accessed.

    Examples
    --------
    >>> matrix_product(1000, 8.0)
    (2000000.0, 24000.0, 1000.0)
    """
    return 2.0 * size**2, 3.0 * size * element_bytes, float(size)


def with_memory_time(workload: Workload, hierarchy: MemoryHierarchy) -> Workload:
    """Return a workload whose layers spend time on memory as well, in proportion to their arithmetic.

    Parameters
    ----------
    workload : Workload
        With the time of its arithmetic.
    hierarchy : MemoryHierarchy

    Returns
    -------
    Workload
        The same with longer passes.

    Raises
    ------
    ValueError
        The working set fits into no level.
    """
    memory_s = memory_time_s(hierarchy, workload.batch_size)
    factor = 1.0 + memory_s / workload.compute_time_s
    return replace(
        workload,
        forward_s=workload.forward_s * factor,
        backward_s=workload.backward_s * factor,
        memory_s=memory_s,
        source=f"{workload.source}, and memory",
    )


def with_serial_time(workload: Workload, serial_s: float) -> Workload:
    """Return a workload that does something first, in each pass, that takes as long whatever the batch.

    Parameters
    ----------
    workload : Workload
    serial_s : float
        Before the first layer [s].

    Returns
    -------
    Workload
        The same with a longer forward pass.
    """
    first = np.zeros(len(workload.forward_s))
    first[0] = serial_s
    return replace(workload, forward_s=workload.forward_s + first, serial_s=workload.serial_s + serial_s)
