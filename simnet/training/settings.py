"""What a job is told: plain data, in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simnet.units import MEBIBYTE
from simnet.workload import RecordedTrace, Workload

__all__ = ["Architecture", "Jitter", "JobSettings", "RunSettings", "TrainingSettings"]


@dataclass(frozen=True)
class Architecture:
    """How the data-parallel group exchanges gradients.

    Parameters
    ----------
    name : str
        ``ring``, ``star``, ``tree``, ``butterfly``, ``mesh`` or ``parameter_server``.
    options : mapping
        Keyword arguments of the function that makes the schedule.
    """

    name: str = "ring"
    options: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Jitter:
    """A random factor on the compute time of each worker in each iteration.

    Parameters
    ----------
    distribution : str
        ``lognormal``: exp(spread z - spread² / 2); ``normal``: 1 + spread z, at least 0; ``uniform``: between
        1 - spread and 1 + spread; ``exponential``: 1 + spread x. z is standard normal, x exponential with mean 1.
    spread : float
        At least 0, relative.
    """

    distribution: str = "lognormal"
    spread: float = 0.0


@dataclass(frozen=True)
class TrainingSettings:
    """Who trains, and how they keep in step.

    Parameters
    ----------
    workers : int
        They are the first ranks of the topology.
    architecture : Architecture
    sync : str
        ``bsp``.
    bucket_bytes : float
        A bucket is sent when it holds at least so much [bytes].
    overlap : bool
        Send a bucket when it is ready, during the backward pass; otherwise all after it.
    gradient_element_bytes : float
        Size of one gradient element on the wire [bytes].
    jitter : Jitter or None
    speed_factors : tuple of float, shape (workers,)
        Relative speed of each worker: 0.5 computes twice as long. Empty: all the same.
    placement : str
        ``in_order``: rank r is the r-th node of the topology; ``random``: the same nodes in random order, as of a job
        whose scheduler does not know the network.
    """

    workers: int
    architecture: Architecture = Architecture()
    sync: str = "bsp"
    bucket_bytes: float = 25.0 * MEBIBYTE
    overlap: bool = True
    gradient_element_bytes: float = 4.0
    jitter: Jitter | None = None
    speed_factors: tuple[float, ...] = ()
    placement: str = "in_order"


@dataclass(frozen=True, eq=False)
class JobSettings:
    """A workload that is trained on ranks.

    Parameters
    ----------
    name : str
    workload : Workload or RecordedTrace
    training : TrainingSettings
    """

    name: str
    workload: Workload | RecordedTrace
    training: TrainingSettings


@dataclass(frozen=True)
class RunSettings:
    """How long is simulated and measured.

    Parameters
    ----------
    iterations : int
        Measured iterations, at least 1.
    warmup : int
        Iterations before those, not measured.
    seed : int
        Of all random streams.
    records_messages : bool
        Keep every single message.
    """

    iterations: int = 10
    warmup: int = 1
    seed: int = 0
    records_messages: bool = False
