"""Scaling efficiency beside what the laws of Amdahl and Gustafson make of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from simnet.experiment.plot.curves import draw_curves, legend_below, panel_axes
from simnet.experiment.plot.style import COLOURS
from simnet.experiment.scaling import fitted_laws
from simnet.training.laws.speedup import amdahl, gustafson

__all__ = ["efficiency"]

_LAWS = {"amdahl": (amdahl, "--"), "gustafson": (gustafson, ":")}
_ONE = "all"
_NEAR = 0.9  # of the variance of speed-up: a curve that explains less would only mislead


def efficiency(
    frame: pd.DataFrame, x: str = "workers", by: str | None = None, panel: str | None = None, *, title: str = ""
) -> Figure:
    """Return scaling efficiency over the number of workers, and the nearest curves of Amdahl and of Gustafson.

    Those that explain less than 0.9 of the variance of speed-up are left out.

    Parameters
    ----------
    frame : DataFrame
        As of `simnet.sweep`.
    x : str
        Column of the number of workers.
    by, panel : str, optional
        Columns: a curve for each value of the one, a panel for each of the other.
    title : str
    """
    rows = frame if panel is not None else frame.assign(**{_ONE: ""})
    figure, cells = panel_axes(rows, panel or _ONE, title)
    known = list(frame[by].unique()) if by is not None else []
    fitted: set[str] = set()
    for axes, name, group in cells:
        draw_curves(axes, group, x, "scaling_efficiency", by, title=name, line=False, whole=frame)
        for value, series in group.groupby(by, sort=False) if by is not None else [("", group)]:
            number = known.index(value) if known else 0
            fits = fitted_laws(series[x], series["speedup"])
            numbers = np.geomspace(max(series[x].min(), 1), series[x].max(), 60)
            for law, (curve, line) in _LAWS.items():
                fraction = fits[f"{law}_serial_fraction"]
                if fits[f"{law}_r_squared"] >= _NEAR:
                    share = curve(numbers, fraction) / numbers
                    [drawn] = axes.plot(
                        numbers, share, line, color=COLOURS[number % len(COLOURS)], linewidth=1, zorder=1.5
                    )
                    drawn.set_gid(f"{law} {value}")
                    fitted.add(law)
        axes.set_ylim(0, max(1.05, axes.get_ylim()[1]))
    for law in (law for law in _LAWS if law in fitted):
        axes.plot([], [], _LAWS[law][1], color="#555555", linewidth=1, label=f"{law.capitalize()}, fitted")
    legend_below(figure)
    return figure
