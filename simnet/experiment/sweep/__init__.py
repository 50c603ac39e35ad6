"""A scenario with parameters varied: points that are run, kept and put together as tables."""

from __future__ import annotations

from simnet.experiment.sweep.in_process import grid, sweep
from simnet.experiment.sweep.running import run_sweep
from simnet.experiment.sweep.tables import load_sweep, merge_sweeps

__all__ = ["grid", "load_sweep", "merge_sweeps", "run_sweep", "sweep"]
