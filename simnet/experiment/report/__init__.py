"""A sweep as one page of HTML."""

from __future__ import annotations

from simnet.experiment.report.page import report

__all__ = ["report"]
