"""What kinds of pictures of a sweep there are; apart from how they are drawn, so that help is quick."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["PLOT_KINDS"]

PLOT_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "curves": "any column over a parameter: --y, throughput by default",
        "scaling": "throughput over the number of workers, beside linear scaling",
        "efficiency": "scaling efficiency over workers, with fits of Amdahl's and Gustafson's laws",
        "ratio": "communication time over computing time",
        "breakdown": "where an iteration goes: computing, exposed communication, waiting",
        "heatmap": "a number over two parameters: --y, iteration time by default; --x lies, --by stands",
        "effects": "which parameter matters most: variance explained by main effects",
    }
)
"""In a line, by name."""
