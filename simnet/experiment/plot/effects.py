"""Which parameter matters most: the variance of numbers, shared out among parameters."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from simnet.experiment.effects import CHANCE, INTERACTIONS, Effects
from simnet.experiment.plot.style import COLOURS, HATCHES, label_axes, words_of

__all__ = ["effects_bars"]

_REST = {INTERACTIONS: "#999999", CHANCE: "#dddddd"}
_LEAST_WRITTEN = 0.06


def effects_bars(effects: Sequence[Effects], *, title: str = "") -> Figure:
    """Return a bar for each number, as long as its variance, in parts that its parameters explain.

    Parameters
    ----------
    effects : sequence of Effects
        Of the same parameters.
    title : str
    """
    parts = list(dict.fromkeys(name for one in effects for name in one.shares))
    figure = Figure(figsize=(7.2, 1.4 + 0.5 * len(effects)), layout="constrained")
    axes = figure.add_subplot()
    parameters = [part for part in parts if part not in _REST]
    for part in (*parameters, *(rest for rest in _REST if rest in parts)):
        place = parameters.index(part) if part in parameters else 0
        drawn = axes.barh(
            range(len(effects)),
            [one.shares.get(part, 0.0) for one in effects],
            left=[_before(one, part, parameters) for one in effects],
            color=_REST.get(part, COLOURS[place % len(COLOURS)]),
            hatch=HATCHES[place % len(HATCHES)] if part in parameters else "",
            edgecolor="white",
            linewidth=0,
            height=0.7,
            label=part if part in _REST else words_of(part),
        )
        shares = [one.shares.get(part, 0.0) for one in effects]
        written = [f"{share:.0%}" if share >= _LEAST_WRITTEN else "" for share in shares]
        for text in axes.bar_label(drawn, labels=written, label_type="center", fontsize=8):
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85})
            text.set_visible(bool(text.get_text()))
    names = [words_of(one.column) + (" (logarithm)" if one.is_log else "") for one in effects]
    axes.set_yticks(range(len(effects)), labels=names)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    label_axes(axes, "part of the variance", "", title, grid="x")
    figure.legend(loc="outside lower center", ncols=min(len(parts), 5), frameon=False)
    return figure


def _before(effects: Effects, part: str, parameters: Sequence[str]) -> float:
    """Return where a part begins: behind those that stand before it."""
    order = [*parameters, *_REST]
    return sum(effects.shares.get(name, 0.0) for name in order[: order.index(part)])
