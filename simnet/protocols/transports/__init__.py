"""What transports do about packets that do not come: one class a file, told what happens and saying what to do."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from simnet.protocols.transports.best_effort import BestEffort
from simnet.protocols.transports.go_back_n import GoBackN
from simnet.protocols.transports.rules import (
    FinishMessage,
    GoBack,
    Instruction,
    Progress,
    Reply,
    Rules,
    SendAgain,
    SetTimer,
)

__all__ = [
    "RULES",
    "BestEffort",
    "FinishMessage",
    "GoBack",
    "GoBackN",
    "Instruction",
    "Progress",
    "Reply",
    "Rules",
    "SendAgain",
    "SetTimer",
]

RULES: Mapping[str, type[Rules]] = MappingProxyType(
    {"go_back_n": GoBackN, "best_effort": BestEffort, "sack": Rules, "selective_repeat": Rules}
)
"""Rules by the name that `simnet.protocols.Transport` has for what is done about loss; those that need an account of
single packets are part of the packet level."""
