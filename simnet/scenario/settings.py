"""A scenario with everything resolved: objects and SI numbers, ready to be run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from simnet.protocols import FlowProtocol
from simnet.topology import Topology
from simnet.workload import RecordedTrace, Workload

__all__ = ["JitterSettings", "RunSettings", "Scenario", "TrainingSettings"]


@dataclass(frozen=True)
class JitterSettings:
    """Random factors on compute times.

    Parameters
    ----------
    distribution : str
        ``lognormal``, ``normal``, ``uniform`` or ``exponential``.
    spread : float
        The one parameter: sigma, sigma, half width or scale; relative to a compute time of 1.
    """

    distribution: str
    spread: float


@dataclass(frozen=True)
class TrainingSettings:
    """Who trains, and how they keep in step.

    Parameters
    ----------
    workers : int
        They are the first ranks of the topology.
    architecture : str
        ``ring``, ``star``, ``tree``, ``butterfly``, ``mesh`` or ``parameter_server``.
    options : mapping
        Options of the architecture, as ``hub``, ``exchange`` or ``servers``.
    sync : str
        ``bsp``.
    bucket_bytes : float
        Gradients are sent in buckets of at least this size [bytes].
    overlap : bool
        Buckets are sent during the backward pass.
    gradient_element_bytes : float
        Size of one gradient element on the wire [bytes].
    jitter : JitterSettings or None
    speed_factors : tuple of float
        Relative speed of each worker, shape (workers,).
    """

    workers: int
    architecture: str
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    sync: str = "bsp"
    bucket_bytes: float = 0.0
    overlap: bool = True
    gradient_element_bytes: float = 4.0
    jitter: JitterSettings | None = None
    speed_factors: tuple[float, ...] = ()


@dataclass(frozen=True)
class RunSettings:
    """How long is simulated and measured.

    Parameters
    ----------
    iterations, warmup : int
        Measured iterations, and those before them that are not.
    seed : int
        Seed of all random streams.
    """

    iterations: int
    warmup: int
    seed: int


@dataclass(frozen=True, eq=False)
class Scenario:
    """A validated scenario with everything that it names.

    Parameters
    ----------
    name : str
    fidelity : str
        ``flow``.
    topology : Topology
    protocol : FlowProtocol
    workload : Workload or RecordedTrace
    training : TrainingSettings
    run : RunSettings
    baseline_samples_per_s : float or None
        Throughput that counts as speedup 1 [samples/s]; None: one worker without communication.
    resolved : dict
        The scenario as plain data with every default; loading it again gives the same scenario.
    """

    name: str
    fidelity: str
    topology: Topology
    protocol: FlowProtocol
    workload: Workload | RecordedTrace
    training: TrainingSettings
    run: RunSettings
    baseline_samples_per_s: float | None
    resolved: dict[str, Any]
