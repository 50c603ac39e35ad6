"""Scenarios small enough for closed forms: a workload of few layers on a network that costs nothing but its links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

GBPS = 1e9 / 8  # bytes/s
B, LATENCY = 10 * GBPS, 2e-6
"""Bandwidth of a link [bytes/s], latency of one [s]."""

P = 2 * LATENCY
"""Latency of the two links between hosts of a star [s]."""

ELEMENTS = 240_000
"""Parameters of a workload of one layer; a number with many divisors."""

S = 4.0 * ELEMENTS
"""Its gradients [bytes]."""

X = S / B
"""How long a link takes for them [s]."""

FORWARD_S, BACKWARD_S = 0.01, 0.02
C = FORWARD_S + BACKWARD_S
"""How long a worker computes [s]."""


def within(value: Any, rel: float = 1e-9, abs: float = 1e-12) -> Any:
    """Return what is as good as equal: times are sums of some terms on a clock."""
    return pytest.approx(value, rel=rel, abs=abs)


def layers(folder: Path, rows: Sequence[Mapping[str, Any]] = ({},)) -> str:
    """Write an own workload, and return its file; a row says what is other than in the workload of one layer."""
    usual = {"parameters": ELEMENTS, "forward_s": FORWARD_S, "backward_s": BACKWARD_S}
    file = folder / "layers.csv"
    table = pd.DataFrame([{"layer": f"layer{place}", **usual, **row} for place, row in enumerate(rows)])
    table.to_csv(file, index=False)
    return str(file)


def star(hosts: int, **options: Any) -> dict[str, Any]:
    """Return hosts around a switch."""
    return {"star": {"hosts": hosts, "bandwidth": "10 Gbps", "latency": "2 us", **options}}


def scenario(
    file: str, topology: Mapping[str, Any], training: Mapping[str, Any] | None = None, **sections: Any
) -> dict[str, Any]:
    """Return a scenario of a workload in a file; gradients go in one bucket after the backward pass unless it says."""
    return {
        "topology": topology,
        "protocol": {"ideal": {"divisible": True}},
        "workload": {"file": file, "batch_size": 24},
        "training": {"overlap": False, "bucket_size": "1 GB", **(training or {})},
        "run": {"iterations": 2, "warmup": 1},
        **sections,
    }
