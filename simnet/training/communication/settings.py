"""What a job is told of exchanges: plain data, in SI units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Architecture", "Compression", "Scheduling", "Sync"]


@dataclass(frozen=True)
class Architecture:
    """How the data-parallel group exchanges gradients.

    Parameters
    ----------
    name : str
        One of `simnet.training.communication.architectures.architecture_names`.
    options : mapping
        Its options, in SI units.
    """

    name: str = "ring"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def servers(self) -> int:
        """Servers that hold parameters; 0 where there are none."""
        return int(self.options.get("servers", 1)) if self.name == "parameter_server" else 0


@dataclass(frozen=True)
class Compression:
    """How gradients are compressed before they are exchanged.

    Parameters
    ----------
    name : str
        One of `simnet.training.communication.compression.SCHEMES`.
    options : mapping
        Its options.
    compress_s_per_byte, decompress_s_per_byte : float
        What it takes for each byte of fp32 gradients [s].
    error_feedback : bool
        Keep what was lost, to add it to the next gradients.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    compress_s_per_byte: float = 0.0
    decompress_s_per_byte: float = 0.0
    error_feedback: bool = False


@dataclass(frozen=True)
class Scheduling:
    """What travels together, and what goes first.

    Parameters
    ----------
    order : str
        ``first_ready``: in the order in which all have announced it; ``priority``: what the forward pass needs first.
    fusion : str
        What travels together. ``size``: tensors in buckets that are large enough; ``merged``: tensors in buckets whose
        exchange, one after the other, is over first; ``cycle``: tensors that are ready when a cycle ends.
    cycle_s : float
        With ``cycle``: its length, above 0 [s].
    buffer_bytes : float
        With ``cycle``: what travels together is at most so much [bytes].
    piece_bytes : float
        Buckets are cut into pieces of at most so much [bytes].
    negotiation_s : float
        From the announcement of the last worker until all know of it [s].
    credit_bytes : float
        Less than so much has set out, to be negotiated or to wait for a cycle, and is not over when another part does
        [bytes].
    streams : float or None
        Exchanges that may be under way at once; with parameter servers, those that a worker may be pushing. None: as
        many as the architecture usually has.
    """

    order: Literal["first_ready", "priority"] = "first_ready"
    fusion: Literal["size", "merged", "cycle"] = "size"
    cycle_s: float = math.inf
    buffer_bytes: float = math.inf
    piece_bytes: float = math.inf
    negotiation_s: float = 0.0
    credit_bytes: float = math.inf
    streams: float | None = None

    def streams_of(self, usual: float, *, joins_late: bool) -> float:
        """Return how many streams an architecture has that has so many as a rule.

        Where workers take part as they are ready, all at once as a rule, no order means anything; with priority they
        push one after the other, as in P3 (A. Jayarajan et al., "Priority-based parameter propagation for distributed
        DNN training", MLSys 2019).
        """
        if self.streams is not None:
            return self.streams
        return 1 if self.order == "priority" and joins_late else usual


@dataclass(frozen=True)
class Sync:
    """When workers synchronise.

    Parameters
    ----------
    name : str
        ``bsp``: bulk synchronous, all with all in each iteration; ``asp``: asynchronous, each goes on when its own
        exchange is over; ``ssp``: stale synchronous, likewise, but nobody gets more than `staleness` iterations ahead
        (Q. Ho et al., NIPS 2013); ``local_sgd``: as bsp, but only each `period`-th iteration exchanges anything (S.
        Stich, ICLR 2019); ``one_shot``: only the last one does (M. Zinkevich et al., NIPS 2010).
    staleness : int
        Of ``ssp``, at least 0.
    period : int
        Of ``local_sgd``, at least 1.
    """

    name: str = "bsp"
    staleness: int = 0
    period: int = 1

    @property
    def waits_alone(self) -> bool:
        """Whether each worker exchanges by itself, instead of all together."""
        return self.name in ("asp", "ssp")

    @property
    def bound(self) -> float:
        """How many iterations a worker may be ahead of another."""
        return math.inf if self.name == "asp" else self.staleness

    @property
    def label(self) -> str:
        """What tables call it."""
        numbers = {"ssp": f" {self.staleness}", "local_sgd": f" {self.period}"}
        return self.name + numbers.get(self.name, "")

    def rounds_period(self, iterations: int) -> int:
        """Return how many iterations there are from one exchange to the next, in a training of so many."""
        return max(iterations, 1) if self.name == "one_shot" else self.period

    def exchanges_in(self, iteration: int, last: int) -> bool:
        """Tell whether an iteration ends with an exchange, so that the `last` one always does."""
        if self.name == "one_shot":
            return iteration == last
        return (last - iteration) % self.period == 0
