"""A topology, its links coloured by how busy they are, and the busiest one named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simnet.experiment.plot.layout import Layout, Place, lay_out
from simnet.topology import CompiledTopology, Topology
from simnet.units import format_bandwidth

__all__ = ["draw_topology"]

# From light to dark, so that it can be read in grey, and told apart with every common kind of colour blindness.
_SHADES = LinearSegmentedColormap.from_list("busy", colormaps["inferno_r"](np.linspace(0.15, 0.95, 64)))
_UNUSED, _NODE = "#d0d0d0", "#555555"
_LOOKS = {"switch": ("s", 34.0), "host": ("o", 14.0), "gpu": ("^", 12.0), "nic": ("D", 5.0), "storage": ("P", 30.0)}
_MOST_NAMES = 20
_MANY = 80
_MOST_NAMES_INSIDE = 12


def draw_topology(topology: Topology, links: pd.DataFrame, *, title: str = "") -> Figure:
    """Return a drawing of a topology whose links are coloured by their utilisation.

    Both directions of a cable, and cables beside each other, are one line, coloured by the busiest of them. In large
    clusters a host stands for what is inside of it, and one host for several at the same switch.

    Parameters
    ----------
    topology : Topology
    links : DataFrame
        Of a result.
    title : str
    """
    arrays = topology.compiled
    known = dict(zip(links["resource"], links["utilisation"], strict=True))
    busy = np.array([known.get(name, 0.0) for name in arrays.link_name])
    layout = lay_out(topology)
    between, inside = _lines(arrays, layout, busy)
    highest = float(busy.max()) if len(busy) else 0.0
    norm = Normalize(0.0, highest or 1.0)
    figure = Figure(figsize=(7.6, 5.0), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal" if layout.is_round or layout.grid else "auto")
    many = len(layout.place) > _MANY
    thin = min(1.0, (_MANY / len(layout.place)) ** 0.7)
    order = sorted(between, key=lambda ends: between[ends])
    axes.add_collection(
        LineCollection(
            [line for ends in order for line in _course(layout, *ends)],
            colors=[
                _SHADES(norm(between[ends])) if between[ends] > 0 else _UNUSED
                for ends in order
                for _ in _course(layout, *ends)
            ],
            linewidths=[
                thin * (0.9 + 2.2 * (float(norm(between[ends])) if highest else 0.0))
                for ends in order
                for _ in _course(layout, *ends)
            ],
            capstyle="round",
        )
    )
    _draw_nodes(axes, arrays, layout, inside, norm, many=many)
    _mark_hottest(axes, arrays, layout, busy)
    axes.autoscale_view()
    axes.margins(0.06, 0.12)
    axes.set_title("\n".join(filter(None, [title, *_captions(arrays, layout, busy, known)])), fontsize="medium")
    shades = figure.colorbar(_scale(norm), ax=axes, shrink=0.7, pad=0.02, label="utilisation")
    shades.ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g} %")
    return figure


def _scale(norm: Normalize) -> Any:
    from matplotlib.cm import ScalarMappable

    return ScalarMappable(norm, _SHADES)


def _lines(
    arrays: CompiledTopology, layout: Layout, busy: NDArray[np.float64]
) -> tuple[dict[tuple[int, int], float], dict[int, float]]:
    """Return the utilisation of each line, by its ends, and of the busiest link inside of each node that is drawn."""
    between: dict[tuple[int, int], float] = {}
    inside: dict[int, float] = {}
    sources, targets = layout.drawn[arrays.link_source], layout.drawn[arrays.link_target]
    for source, target, share in zip(sources.tolist(), targets.tolist(), busy.tolist(), strict=True):
        if source == target:
            inside[source] = max(inside.get(source, 0.0), share)
        else:
            ends = (min(source, target), max(source, target))
            between[ends] = max(between.get(ends, 0.0), share)
    return between, inside


def _course(layout: Layout, one: int, other: int) -> list[list[Place]]:
    """Return the course of a line: straight, or bent over what stands between, or torn where it leads around."""
    (x, y), (to_x, to_y) = layout.place[one], layout.place[other]
    if layout.grid and any(abs(a - b) > 1 for a, b in zip(layout.grid[one], layout.grid[other], strict=True)):
        away = np.array([to_x - x, to_y - y]) / np.hypot(to_x - x, to_y - y) * 0.45
        return [[(x, y), (x - away[0], y - away[1])], [(to_x, to_y), (to_x + away[0], to_y + away[1])]]
    if y == to_y and not layout.grid and not layout.is_round:
        rise = 0.12 + 0.5 * abs(to_x - x)
        return [[(x + (to_x - x) * t, y + rise * 4 * t * (1 - t)) for t in np.linspace(0, 1, 17).tolist()]]
    return [[(x, y), (to_x, to_y)]]


def _draw_nodes(
    axes: Axes,
    arrays: CompiledTopology,
    layout: Layout,
    inside: Mapping[int, float],
    norm: Normalize,
    *,
    many: bool,
) -> None:
    kinds = {node: arrays.node_kind[node] for node in layout.place}
    for kind, (marker, size) in _LOOKS.items():
        nodes = [node for node in layout.place if kinds[node] == kind]
        colours = [_SHADES(norm(inside[node])) if inside.get(node, 0.0) > 0 else _NODE for node in nodes]
        spots = np.array([layout.place[node] for node in nodes]).reshape(-1, 2)
        small = 0.35 if many and len(nodes) > _MOST_NAMES else 1.0
        axes.scatter(spots[:, 0], spots[:, 1], s=size * small, c=colours, marker=marker, zorder=3, linewidths=0)
    hosts = [node for node, kind in kinds.items() if kind == "host"]
    for kind in ("switch", "host", "storage"):
        nodes = [node for node in layout.place if kinds[node] == kind]
        rows: dict[float, list[int]] = {}
        for node in nodes:
            rows.setdefault(0.0 if layout.is_round or layout.grid else layout.place[node][1], []).append(node)
        for row in rows.values():
            most = _MOST_NAMES_INSIDE if layout.is_round and kind == "switch" else _MOST_NAMES
            if len(row) > most or (kind == "switch" and arrays.host_of_node[row[0]] >= 0 and len(hosts) > 1):
                continue
            turned = not layout.is_round and sum(len(arrays.node_names[node]) for node in row) > _MANY
            for node in row:
                _name(axes, layout, arrays.node_names[node], node, upward=kind == "switch", turned=turned)


def _name(axes: Axes, layout: Layout, name: str, node: int, *, upward: bool, turned: bool) -> None:
    """Write a name beside a node: away from the middle of a circle, above switches and below hosts elsewhere."""
    x, y = layout.place[node]
    length = float(np.hypot(x, y))
    if layout.is_round and length > 0.05:
        shift = (9.0 * x / length, 9.0 * y / length)
        align = "left" if shift[0] > 3 else "right" if shift[0] < -3 else "center"
        upright = "bottom" if shift[1] > 3 else "top" if shift[1] < -3 else "center"
    else:
        up = upward or layout.is_round
        shift, align, upright = (0.0, 6.0 if up else -6.0), "center", "bottom" if up else "top"
    axes.annotate(
        name,
        (x, y),
        shift,
        textcoords="offset points",
        ha=align,
        va=upright,
        rotation=90 if turned else 0,
        fontsize=7,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.4},
        zorder=4,
    )


def _mark_hottest(axes: Axes, arrays: CompiledTopology, layout: Layout, busy: NDArray[np.float64]) -> None:
    """Draw a ring around the busiest link, or around the node that it is inside of."""
    if not len(busy) or busy.max() <= 0:
        return
    link = int(np.argmax(busy))
    one, other = (int(layout.drawn[end[link]]) for end in (arrays.link_source, arrays.link_target))
    course = _course(layout, min(one, other), max(one, other))[0] if one != other else [layout.place[one]]
    x, y = course[len(course) // 2] if len(course) > 2 else np.mean(course, axis=0)
    mark = axes.scatter([x], [y], s=110, facecolors="none", edgecolors="black", linewidths=1.2, zorder=5)
    mark.set_gid("hottest")


def _captions(
    arrays: CompiledTopology, layout: Layout, busy: NDArray[np.float64], known: Mapping[str, float]
) -> list[str]:
    """Return what is the busiest link, in words, and what it is drawn as."""
    if not len(busy) or busy.max() <= 0:
        return ["no link carries anything"]
    link = int(np.argmax(busy))
    rate = format_bandwidth(float(f"{arrays.link_bandwidth[link]:.4g}"))
    said = [f"hottest link, ringed: {arrays.link_name[link]}, {100 * busy[link]:.3g} % of {rate}"]
    first = max(known, key=lambda name: known[name])
    if known[first] > busy[link] * (1 + 1e-6):
        said.append(f"busier than any link: {first}, {100 * known[first]:.3g} %")
    if layout.bundle > 1:
        said.append(f"each host that is drawn stands for up to {layout.bundle} at the same switch: the busiest")
    return said
