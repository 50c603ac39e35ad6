"""What speed-up a number of workers can have: laws, and what measured speed-ups say about the work.

Amdahl's and Gustafson's take numpy arrays of numbers of workers as well. P is the number of workers, T(P) the
time that they take, f a serial fraction: the part of the work that is not divided.
"""

from __future__ import annotations

import math
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "amdahl",
    "communication_bound",
    "fit_amdahl",
    "fit_gustafson",
    "gustafson",
    "karp_flatt",
    "speed_ratio",
    "super_linear",
    "work_ratio",
]

Number = TypeVar("Number", float, NDArray[np.float64])


def amdahl(workers: Number, serial_fraction: float) -> Number:
    """Return the speed-up of work that stays the same: 1 / (f + (1 - f) / P), which never passes 1 / f.

    Parameters
    ----------
    workers : float or ndarray
    serial_fraction : float
        Of the time of one worker.

    References
    ----------
    G. M. Amdahl, *Validity of the single processor approach to achieving large scale computing capabilities*, AFIPS
    1967.

    Examples
    --------
    >>> round(amdahl(1e9, 0.05), 3)
    20.0
    """
    return 1.0 / (serial_fraction + (1.0 - serial_fraction) / workers)


def gustafson(workers: Number, serial_fraction: float) -> Number:
    """Return the speed-up of work whose parallel part grows with the workers: P - f (P - 1).

    Parameters
    ----------
    workers : float or ndarray
    serial_fraction : float
        Of the time that P workers take, which is the same for any P.

    References
    ----------
    J. L. Gustafson, *Reevaluating Amdahl's law*, CACM 31(5), 1988.

    Examples
    --------
    >>> gustafson(1024.0, 0.5)
    512.5
    """
    return workers - serial_fraction * (workers - 1.0)


def speed_ratio(work: float, time_s: float, work_of_one: float, time_of_one_s: float) -> float:
    """Return the generalised speed-up (W_P / T_P) / (W_1 / T_1): a ratio of speeds, not of times for the same work.

    Parameters
    ----------
    work, work_of_one : float
        What all workers do together, and what one does alone, in the same unit.
    time_s, time_of_one_s : float
        [s]

    References
    ----------
    X.-H. Sun and J. L. Gustafson, *Toward a better parallel performance metric*, Parallel Computing 17, 1991.
    """
    return (work / time_s) / (work_of_one / time_of_one_s)


def work_ratio(samples_ratio: float, serial_fraction: float) -> float:
    """Return W_P / W_1 where of the work of one worker a part is serial, and the rest goes with the samples.

    The serial part counts once, although each worker repeats it: f + (1 - f) n_P / n_1. With as many samples it is 1,
    so that `speed_ratio` is Amdahl's; with P times as many in the same time it is Gustafson's.

    Parameters
    ----------
    samples_ratio : float
        n_P / n_1.
    serial_fraction : float
        Of the time of one worker.
    """
    return serial_fraction + (1.0 - serial_fraction) * samples_ratio


def karp_flatt(speedup: float, workers: float) -> float:
    """Return the serial fraction that a measured speed-up of fixed work amounts to: (1/S - 1/P) / (1 - 1/P).

    Where it grows with P, it is overhead that grows, not serial work, that holds speed-up back. It is below 0 where
    speed-up is super-linear, and not a number for one worker.

    Parameters
    ----------
    speedup : float
    workers : float

    References
    ----------
    A. H. Karp and H. P. Flatt, *Measuring parallel processor performance*, CACM 33(5), 1990.

    Examples
    --------
    >>> round(karp_flatt(amdahl(16.0, 0.1), 16.0), 12)
    0.1
    """
    if workers == 1:
        return math.nan
    return (1.0 / speedup - 1.0 / workers) / (1.0 - 1.0 / workers)


def fit_amdahl(workers: NDArray[np.float64], speedups: NDArray[np.float64]) -> float:
    """Return the serial fraction whose curve of `amdahl` is nearest: least squares of 1 / S, in which it is linear.

    Not a number where there is nothing but one worker.
    """
    slope = 1.0 - 1.0 / workers
    return _through_origin(slope, 1.0 / speedups - 1.0 / workers)


def fit_gustafson(workers: NDArray[np.float64], speedups: NDArray[np.float64]) -> float:
    """Return the serial fraction whose curve of `gustafson` is nearest: least squares of S.

    Not a number where there is nothing but one worker.
    """
    return _through_origin(workers - 1.0, workers - speedups)


def _through_origin(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    squares = float((x * x).sum())
    return float((x * y).sum()) / squares if squares > 0 else math.nan


def communication_bound(
    compute_to_communication: float, workers: float, scaling: Literal["strong", "weak"], *, overlap: bool = False
) -> float:
    """Return the speed-up where communication takes as long for any number of workers, one included.

    With C the computing of one worker and M the communication, T(1) = C + M. Strong scaling: T(P) = C / P + M, or
    max(C / P, M) where communication is hidden behind computing. The first never passes (C + M) / M: at 1:1 never 2,
    and hiding does not lift that limit, it only reaches it, from P = C / M on. Weak scaling: each worker computes C, P
    times as many samples; against one worker that computes only, it has an efficiency of C / (C + M), or
    C / max(C, M): at 1:1 it is 1/2, or 1.

    Parameters
    ----------
    compute_to_communication : float
        C / M of one worker.
    workers : float
    scaling : str
        ``strong`` or ``weak``.
    overlap : bool
        Communication goes on during computing.

    Examples
    --------
    >>> communication_bound(1.0, 1e9, "strong") < 2.0
    True
    >>> communication_bound(1.0, 64, "weak"), communication_bound(1.0, 64, "weak", overlap=True)
    (32.0, 64.0)
    """
    compute, communication = compute_to_communication, 1.0
    together = max if overlap else _sum
    if scaling == "strong":
        return (compute + communication) / together(compute / workers, communication)
    return workers * compute / together(compute, communication)


def _sum(first: float, second: float) -> float:
    return first + second


def super_linear(memory_of_one: float, memory: float, compute: float, workers: float, overhead: float = 0.0) -> bool:
    """Tell whether P workers are more than P times as fast as one: MC_1 > P MC_P + d CC_P.

    With what one computes CC_1 = CC_P (P - d) that is the same as (CC_1 + MC_1) / (CC_P + MC_P) > P. So it takes memory
    that is accessed in less than a P-th of the time, which needs data that are used more than once, and overhead that
    does not use that up.

    Parameters
    ----------
    memory_of_one, memory : float
        Time on memory of one worker, and of each of P [s, or cycles].
    compute : float
        CC_P, time of each of P on arithmetic, with what it does only because there are others [s, or cycles].
    workers : float
        P.
    overhead : float
        d: what all P do together more than one does, in units of `compute`, from 0 to P.
    """
    return memory_of_one > workers * memory + overhead * compute
