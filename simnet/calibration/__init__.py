"""Protocols fitted to a user's own measurements: logs of benchmarks, least squares, protocol files."""

from __future__ import annotations

from simnet.calibration.calibrating import Calibration, Quantity, calibrate, read_log
from simnet.calibration.log import Log, Timing

__all__ = ["Calibration", "Log", "Quantity", "Timing", "calibrate", "read_log"]
