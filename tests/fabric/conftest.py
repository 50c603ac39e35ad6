"""Fixtures of the fabric tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import simpy

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.settings import DEFAULT_ENGINE, EngineSettings
from simnet.protocols import FlowProtocol
from simnet.topology import star


@pytest.fixture
def make_fabric() -> Callable[..., FluidFabric]:
    """Make a fabric on a star with links of 1 byte/s; keyword arguments are fields of the protocol."""

    def make(
        hosts: int,
        *,
        latency_s: float = 0.0,
        bandwidth_bytes_per_s: float = 1.0,
        start_s: float = 0.0,
        reduce_s_per_byte: float = 0.0,
        engine: EngineSettings = DEFAULT_ENGINE,
        **protocol: object,
    ) -> FluidFabric:
        topology = star(hosts=hosts, bandwidth_bytes_per_s=bandwidth_bytes_per_s, latency_s=latency_s / 2)
        network = Network(topology, FlowProtocol(**protocol))
        return FluidFabric(simpy.Environment(start_s), network, reduce_s_per_byte, engine)

    return make
