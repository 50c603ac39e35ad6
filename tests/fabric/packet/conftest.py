"""The kernels of the packet level are compiled once, not by every process that runs tests."""

from __future__ import annotations

import pytest

from simnet.fabric.packet.fabric import compile_packet_kernels


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    compile_packet_kernels(print)
