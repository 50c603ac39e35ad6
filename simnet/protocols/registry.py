"""Protocols by name: what there is, what a name and its overrides come to, and whether that fits the links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from simnet.errors import InputError, Problem, nearest
from simnet.protocols.added import added_definition
from simnet.protocols.best_effort import BEST_EFFORT
from simnet.protocols.checking import value_problems
from simnet.protocols.congestion import CONTROLS, Control
from simnet.protocols.congestion.dcqcn_parameters import VENDOR
from simnet.protocols.defaults import EXTENSIONS, Definition, Value, changed
from simnet.protocols.dpdk import DPDK
from simnet.protocols.fields import FIELDS
from simnet.protocols.flow_protocol import FlowProtocol
from simnet.protocols.grpc import GRPC
from simnet.protocols.ideal import IDEAL
from simnet.protocols.ipoib import IPOIB_CONNECTED, IPOIB_DATAGRAM
from simnet.protocols.rdma import INFINIBAND, IRN, ROCE, ROCE_LOSSY
from simnet.protocols.tcp import DCTCP, TCP, TCP_RENO
from simnet.protocols.transport import Transport

__all__ = [
    "PROTOCOLS",
    "ProtocolValue",
    "mismatch",
    "misnamed_protocols",
    "own_controls",
    "protocol_names",
    "resolve",
    "values",
]

_DEFINITIONS = MappingProxyType(
    {
        one.name: one
        for one in (
            IDEAL,
            TCP,
            TCP_RENO,
            DCTCP,
            GRPC,
            DPDK,
            IPOIB_DATAGRAM,
            IPOIB_CONNECTED,
            INFINIBAND,
            ROCE,
            ROCE_LOSSY,
            IRN,
            BEST_EFFORT,
        )
    }
)
_ALIASES = MappingProxyType({"ipoib-datagram": "ipoib"})
_INSIDE_A_HOST = frozenset({"nvlink", "pcie", "upi"})
_FITS_ANYTHING = frozenset({"other"})

PROTOCOLS = (*_DEFINITIONS, *_ALIASES, "rdma")
"""The names that come with simnet; ``rdma`` is ``infiniband`` or ``roce``, as the links are."""


@dataclass(frozen=True)
class ProtocolValue:
    """One value of a protocol, to be shown.

    Parameters
    ----------
    field : str
        Name of the field.
    value : float, str or bool
    unit : str
        Empty where the value has none.
    source : str
        Where the value is from.
    """

    field: str
    value: Value
    unit: str
    source: str


def protocol_names() -> tuple[str, ...]:
    """Return the names that a scenario may use: `PROTOCOLS`, and those that installed packages add.

    Returns
    -------
    tuple of str
    """
    return (*PROTOCOLS, *EXTENSIONS.names(PROTOCOLS))


def misnamed_protocols() -> list[Problem]:
    """Return what is wrong with names under which packages add protocols, and which are in no list.

    Returns
    -------
    list of Problem
    """
    return list(EXTENSIONS.misnamed())


def resolve(name: str, overrides: Mapping[str, Value] | None = None, link_kinds: Iterable[str] = ()) -> FlowProtocol:
    """Return the protocol that a name and overrides mean.

    Parameters
    ----------
    name : str
        One of `protocol_names`.
    overrides : mapping
        Values by the names of the fields, in their units; see `simnet.protocols.FIELDS`. Payload and header of a packet
        follow from `mtu_bytes` unless they are overridden themselves.
    link_kinds : iterable of str
        The kinds of links of the topology, which tell what ``rdma`` is.

    Returns
    -------
    FlowProtocol

    Raises
    ------
    InputError
        With every problem: an unknown name, an unknown field, a value that makes no sense. The path of a problem with
        an override is the name of the field.
    """
    definition = _definition(name, link_kinds)
    given = dict(overrides or {})
    problems = [problem for field, value in given.items() for problem in value_problems(field, value)]
    if problems:
        raise InputError(problems)
    chosen: dict[str, Any] = {default.field: default.value for default in definition.defaults} | given
    if chosen.get("congestion_control") == "dcqcn_vendor":
        chosen = {default.field: default.value for default in changed(definition.defaults, *VENDOR)} | given
    own_controls(str(chosen.get("congestion_control", "none")))
    payload, header = definition.framing(float(chosen["mtu_bytes"]))
    chosen = {"payload_bytes": payload, "header_bytes": header} | chosen
    if chosen["payload_bytes"] <= 0:
        hint = f"{definition.name} has {header:g} B of headers"
        raise InputError(Problem(f"an MTU of {chosen['mtu_bytes']:g} B leaves no payload", hint, ("mtu_bytes",)))
    crossed = [
        Problem(_is_above(low, high, chosen), "the other way round is wanted", (low if low in given else high,))
        for low, high in (("minimum_timeout_s", "maximum_timeout_s"), ("mark_from_s", "mark_all_s"))
        if low in chosen and high in chosen and chosen[low] > chosen[high]
    ]
    if crossed:
        raise InputError(crossed)
    behaviour = {field: chosen.pop(field) for field in list(chosen) if FIELDS[field].of_transport}
    return FlowProtocol(
        name=definition.name,
        summary=definition.summary,
        link_kinds=definition.link_kinds,
        transport=Transport(**behaviour),
        **chosen,
    )


def values(name: str, link_kinds: Iterable[str] = ()) -> tuple[ProtocolValue, ...]:
    """Return every value of a protocol with its unit and source, in the order of `simnet.protocols.FIELDS`.

    A field that has no meaning for the protocol is not among them.

    Parameters
    ----------
    name : str
        One of `PROTOCOLS`.
    link_kinds : iterable of str
        As of `resolve`.

    Returns
    -------
    tuple of ProtocolValue

    Raises
    ------
    InputError
        There is no such protocol.
    """
    definition = _definition(name, link_kinds)
    protocol = resolve(definition.name)
    sources = {default.field: default.source for default in definition.defaults}
    sources |= dict.fromkeys(("payload_bytes", "header_bytes"), definition.framing_source)
    return tuple(
        ProtocolValue(field.name, field.of(protocol), field.unit, sources[field.name])
        for field in FIELDS.values()
        if field.name in sources
    )


def own_controls(name: str) -> dict[str, type[Control]]:
    """Return the congestion control of a name where a package adds it, as `simnet.fabric` wants those of one's own.

    Parameters
    ----------
    name : str
        As the field `congestion_control` has it.

    Returns
    -------
    dict of str to type
        Empty where it comes with simnet.

    Raises
    ------
    InputError
        The protocol of that name has no control of its own.
    """
    if name in CONTROLS:
        return {}
    control = added_definition(name).control
    if control is None:
        message = f"congestion_control cannot be {name!r}: that protocol has none of its own"
        raise InputError(Problem(message, f"known: {', '.join(CONTROLS)}", ("congestion_control",)))
    return {name: control}


def mismatch(protocol: FlowProtocol, link_kinds: Iterable[str]) -> str | None:
    """Say where a protocol runs on links that it is not made for, which is simulated all the same.

    Parameters
    ----------
    protocol : FlowProtocol
    link_kinds : iterable of str
        The kinds of links of the topology; links inside a host do not count.

    Returns
    -------
    str or None
        A warning, or None where it fits.
    """
    if not protocol.link_kinds:
        return None
    strange = sorted(set(link_kinds) - set(protocol.link_kinds) - _INSIDE_A_HOST - _FITS_ANYTHING)
    if not strange:
        return None
    native = " or ".join(protocol.link_kinds)
    return (
        f"{protocol.name} is made for {native} links and runs here on {' and '.join(strange)}: "
        "its costs are taken as they are, at the bandwidth and latency of the links"
    )


def _definition(name: str, link_kinds: Iterable[str]) -> Definition:
    if name in PROTOCOLS:
        EXTENSIONS.require_unclaimed(name)
    elif name in EXTENSIONS.names():
        return added_definition(name)
    else:
        raise InputError(Problem(f"there is no protocol {name!r}", nearest(name, protocol_names())))
    if name == "rdma":
        return INFINIBAND if "infiniband" in set(link_kinds) else ROCE
    return _DEFINITIONS[_ALIASES.get(name, name)]


def _is_above(low: str, high: str, chosen: Mapping[str, Any]) -> str:
    lower, higher = FIELDS[low], FIELDS[high]
    return f"{lower.key} of {lower.written(chosen[low])} is above {higher.key} of {higher.written(chosen[high])}"
