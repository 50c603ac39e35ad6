"""Where the time of an iteration goes, and what would make it shorter."""

from __future__ import annotations

from simnet.experiment.explain.explaining import explain, parts_of_run
from simnet.experiment.explain.explanation import Explanation

__all__ = ["Explanation", "explain", "parts_of_run"]
