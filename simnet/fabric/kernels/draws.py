"""Random numbers of an operation; compiled.

The generator is that of D. H. Lehmer with the multiplier 48271 (S. Park and K. Miller, CACM 36(7), 1993): one 64-bit
number of state, and the same without compiling. A state comes from a stream that is named by seed and play.
"""

from __future__ import annotations

import numpy as np

from simnet.fabric.kernels.compiled import kernel
from simnet.fabric.kernels.tables import Table

__all__ = ["DRAWS", "draw", "packets_until_loss"]

DRAWS = 2147483647
"""States are 1 .. DRAWS - 1."""

_FAR = 1e15


@kernel
def draw(operations: Table, row: int) -> float:
    """Return a number above 0 and below 1."""
    state = operations[row].random * 48271 % DRAWS
    operations[row].random = state
    return state / DRAWS


@kernel
def packets_until_loss(operations: Table, row: int, loss: float) -> float:
    """Return after how many packets one is lost, that one included, where each is lost with the probability `loss`."""
    if loss <= 0.0:
        return _FAR
    return min(1.0 + np.floor(np.log(draw(operations, row)) / np.log1p(-loss)), _FAR)
