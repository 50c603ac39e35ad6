"""What the loop over firings reads and remembers: records, as those of the event kernel in `tables`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.tables import Table

__all__ = ["DURATION", "LINE", "Times"]

LINE = np.dtype(
    (
        np.record,
        [
            ("source", np.int64),  # ranks
            ("target", np.int64),
            ("first_in", np.int64),  # dependencies
            ("last_in", np.int64),
            ("longer", np.int64),  # chunks, from the first, that hold one element more
            ("turned", np.int64),  # of the chunk that the next firing carries
            ("step", np.int64),
            ("modulus", np.int64),
            ("offset", np.int64),
            ("width", np.int64),
            ("reduce_firings", np.int64),
            ("first_share", np.int64),  # resources that it shares; see `Recurrence.shares`
            ("last_share", np.int64),
            ("first_setup", np.float64),  # before the first firing
            ("each_setup", np.float64),  # and before each of the others
            ("arrived", np.float64),  # the latest firing
            ("free_at", np.float64),  # the receiver
        ],
    )
)
"""An operation, and where it stands."""

DURATION = np.dtype(
    (
        np.record,
        [
            ("lead", np.float64),  # from the start until the flow begins
            ("flow", np.float64),  # until it has drained
            ("way", np.float64),  # until it arrives
            ("receive", np.float64),  # until it is taken in
            ("reduce", np.float64),  # and reduced
        ],
    )
)


class Times(NamedTuple):
    """What is remembered of the latest firings.

    Attributes
    ----------
    drained, delivered : ndarray, shape (firings remembered, operations)
        Times [s].
    spans, pauses : tables
        How long each rank had transfers under way, and each shared resource a flow; see `simnet.fabric.kernels.spans`.
    """

    drained: NDArray[np.float64]
    delivered: NDArray[np.float64]
    spans: Table
    pauses: Table
