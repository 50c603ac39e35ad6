"""Pictures of tables: readable in print and to colour-blind readers, axes with units."""

from __future__ import annotations

from simnet.experiment.plot.bars import bars, breakdown
from simnet.experiment.plot.curves import curves, panels
from simnet.experiment.plot.style import save_figure

__all__ = ["bars", "breakdown", "curves", "panels", "save_figure"]
