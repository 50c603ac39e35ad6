"""A scenario with everything resolved: objects and SI numbers, ready to be run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.faults import NetworkFault
from simnet.fabric.packet.settings import PacketSettings
from simnet.fabric.settings import EngineSettings
from simnet.protocols import FlowProtocol, mismatch
from simnet.topology import Topology
from simnet.training.recovery.settings import Crash
from simnet.training.settings import BackgroundSettings, JobSettings, RunSettings

__all__ = ["Fault", "Scenario"]

Fault = NetworkFault | Crash
"""What a scenario may say that goes wrong."""


@dataclass(frozen=True, eq=False)
class Scenario:
    """A validated scenario with everything that it names.

    Parameters
    ----------
    name : str
    fidelity : str
        ``flow`` or ``packet``.
    topology : Topology
    protocol_name : str
        As the scenario calls it; ``rdma`` may stand for InfiniBand or RoCE.
    protocol : FlowProtocol
    jobs : tuple of JobSettings
    nodes : tuple of ndarray, shape (workers,) each
        Node index of each worker of each job.
    background : BackgroundSettings or None
    faults : tuple
        What goes wrong, and when, of the network and of jobs; the latter are those of the jobs, too.
    packet : PacketSettings or None
        None at flow level.
    reduce_s_per_byte : float
        Time that a receiver needs to add a byte to what it has [s/byte].
    run : RunSettings
    engine : EngineSettings
    baseline_samples_per_s : float or None
        Throughput that counts as speedup 1 [samples/s]; None: one worker without communication.
    resolve : callable
        Returns the scenario as plain data with every default; see `resolved`.
    notes : tuple of str
        What is odd about its jobs, in words.
    """

    name: str
    fidelity: str
    topology: Topology
    protocol_name: str
    protocol: FlowProtocol
    jobs: tuple[JobSettings, ...]
    nodes: tuple[NDArray[np.int64], ...]
    background: BackgroundSettings | None
    faults: tuple[Fault, ...]
    packet: PacketSettings | None
    reduce_s_per_byte: float
    run: RunSettings
    engine: EngineSettings
    baseline_samples_per_s: float | None
    resolve: Callable[[], dict[str, Any]]
    notes: tuple[str, ...] = ()

    @cached_property
    def resolved(self) -> dict[str, Any]:
        """The scenario as plain data with every default; loading it again gives the same scenario."""
        return self.resolve()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about it, in words."""
        compiled = self.topology.compiled
        found = [mismatch(self.protocol, compiled.link_kind)]
        drops = self.protocol.transport.reliability == "sack" and self.protocol.transport.link_flow_control == "none"
        if self.packet is None and not drops and not np.isinf(compiled.link_buffer_bytes).all():
            seen = "; what they drop is seen with fidelity: packet"
            lossy = self.protocol.transport.link_flow_control == "none"
            found.append(
                f"buffers of links have no effect on {self.protocol.name} at fidelity flow{seen if lossy else ''}"
            )
        return (*(warning for warning in found if warning), *self.notes)

    @property
    def job(self) -> JobSettings:
        """The job, where there is one."""
        [job] = self.jobs
        return job
