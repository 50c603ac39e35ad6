"""Benchmarks: their counts are tests and run with all others; the long ones run only with ``make bench``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("benchmark_only"):
        return
    for item in items:
        if item.path.parent == Path(__file__).parent and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="a long benchmark: make bench"))


@pytest.fixture(autouse=True, scope="session")
def _kernels():
    """Compile and load before anything is measured."""
    from simnet_workloads import load_kernels

    load_kernels()
