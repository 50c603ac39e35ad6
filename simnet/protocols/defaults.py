"""How a protocol is written down: each value with the source that it is from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from simnet.extensions import Extensions
from simnet.protocols.congestion.control import Control

__all__ = ["EXTENSIONS", "Default", "Definition", "Framing", "Value", "changed"]

EXTENSIONS = Extensions("protocol", "simnet.protocols")
"""Protocols that installed packages add: each a `Definition`, or a `simnet.protocols.FlowProtocol`."""

Value = float | str | bool

Framing = Callable[[float], tuple[float, float]]
"""Payload and header of a full packet [bytes] from the MTU [bytes]."""


@dataclass(frozen=True)
class Default:
    """One value of a protocol and where it is from.

    Parameters
    ----------
    field : str
        Name of a field of `simnet.protocols.FlowProtocol` or its `simnet.protocols.Transport`.
    value : float, str or bool
        In the unit of the field.
    source : str
        A paper, standard, measurement or the reasoning that leads from these to the value.
    """

    field: str
    value: Value
    source: str


@dataclass(frozen=True)
class Definition:
    """A protocol as its module writes it down.

    Parameters
    ----------
    name, summary : str
    link_kinds : tuple of str
        Kinds of link that it is native to; any if empty.
    framing : callable
        Payload and header of a packet from the MTU.
    framing_source : str
        Where the sizes of the headers are from.
    defaults : tuple of Default
        Every field that has a meaning for it, but payload and header; the others are those of an ideal network.
    control : type of Control or None
        A congestion control of its own, which is called as the protocol is; for `PacketFabric`.
    """

    name: str
    summary: str
    link_kinds: tuple[str, ...]
    framing: Framing
    framing_source: str
    defaults: tuple[Default, ...]
    control: type[Control] | None = None


def changed(defaults: Iterable[Default], *changes: Default) -> tuple[Default, ...]:
    """Return defaults with some of them changed, or added.

    Parameters
    ----------
    defaults : iterable of Default
    *changes : Default
        Each takes the place of that of the same field.

    Returns
    -------
    tuple of Default
    """
    return tuple({default.field: default for default in (*defaults, *changes)}.values())
