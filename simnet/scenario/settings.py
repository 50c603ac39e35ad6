"""A scenario with everything resolved: objects and SI numbers, ready to be run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simnet.fabric.settings import EngineSettings
from simnet.protocols import FlowProtocol
from simnet.topology import Topology
from simnet.training.settings import JobSettings, RunSettings

__all__ = ["Scenario"]


@dataclass(frozen=True, eq=False)
class Scenario:
    """A validated scenario with everything that it names.

    Parameters
    ----------
    name : str
    fidelity : str
        ``flow``.
    topology : Topology
    protocol_name : str
        As the scenario calls it; ``rdma`` may stand for InfiniBand or RoCE.
    protocol : FlowProtocol
    job : JobSettings
    run : RunSettings
    engine : EngineSettings
    baseline_samples_per_s : float or None
        Throughput that counts as speedup 1 [samples/s]; None: one worker without communication.
    resolved : dict
        The scenario as plain data with every default; loading it again gives the same scenario.
    """

    name: str
    fidelity: str
    topology: Topology
    protocol_name: str
    protocol: FlowProtocol
    job: JobSettings
    run: RunSettings
    engine: EngineSettings
    baseline_samples_per_s: float | None
    resolved: dict[str, Any]
