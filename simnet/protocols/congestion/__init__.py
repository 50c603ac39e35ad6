"""Congestion controls: one class a file, told what happens and setting window or pace."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from simnet.protocols.congestion.control import Control
from simnet.protocols.congestion.cubic import Cubic
from simnet.protocols.congestion.dcqcn import Dcqcn
from simnet.protocols.congestion.dctcp import Dctcp
from simnet.protocols.congestion.reno import Reno

__all__ = ["CONTROLS", "Control"]

CONTROLS: Mapping[str, type[Control]] = MappingProxyType(
    {"none": Control, "reno": Reno, "cubic": Cubic, "dctcp": Dctcp, "dcqcn": Dcqcn, "dcqcn_vendor": Dcqcn}
)
"""Each congestion control by the name that `simnet.protocols.Transport` has for it."""
