"""Models made from what the code below already says: the parameters of a function, the fields of a dataclass.

Code below has units in its names (``latency_s``); a scenario has them in its text (``latency: 1 us``). So a key is the
name without its unit, its type and default are those of the parameter, and nothing is written twice but what it means.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import GenericAlias, MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import Field, create_model

from simnet.extensions import Extensions
from simnet.scenario.fields import Flag, Quantity, Real, Text, Whole, Word
from simnet.scenario.sections import OnDemand, Section

__all__ = ["About", "made_model", "made_on_demand", "natural_key", "si_arguments"]

# Longer suffixes first: "_bytes_per_s" ends in "_s" too.
_DIMENSIONS = {
    "_bytes_per_s": "bandwidth",
    "_s_per_byte": "duration per byte",
    "_bytes": "size",
    "_s": "duration",
}


@dataclass(frozen=True)
class About:
    """What the code below does not say of a key.

    Attributes
    ----------
    description : what it means, for the schema
    marker : how its value is checked; None: as its type and unit say
    fields : what the keys mean of a parameter that is itself a dataclass
    """

    description: str
    marker: Any = None
    fields: Mapping[str, About] | None = None


def natural_key(name: str) -> tuple[str, str]:
    """Return the key of a parameter and the dimension that its name gives, empty where it has no unit.

    Examples
    --------
    >>> natural_key("send_overhead_s_per_byte"), natural_key("mtu_bytes"), natural_key("hosts")
    (('send_overhead_per_byte', 'duration per byte'), ('mtu', 'size'), ('hosts', ''))
    """
    for suffix, dimension in _DIMENSIONS.items():
        if name.endswith(suffix):
            key = name.removesuffix(suffix)
            return (f"{key}_per_byte" if dimension == "duration per byte" else key), dimension
    return name, ""


def made_model(
    name: str,
    source: Callable[..., Any] | type,
    about: Mapping[str, About],
    *,
    description: str,
    defaults: object = None,
    leave_out: Sequence[str] = (),
    all_optional: bool = False,
    limits: bool = False,
) -> type[Section]:
    """Return a model with one key for each parameter.

    Parameters
    ----------
    name : str
        Of the model.
    source : function or dataclass
        Whose parameters or fields become keys.
    about : mapping
        What each key means.
    description : str
        Of the model as a whole.
    defaults : dataclass instance, optional
        Whose values are the defaults, instead of those of `source`.
    leave_out : sequence of str
        Parameters that are no keys.
    all_optional : bool
        Every default is None: what is not given stays as it is.
    limits : bool
        Bandwidths are caps, which may be ``unlimited``.
    """
    made: dict[str, Any] = {}
    hints = get_type_hints(source)
    for parameter, default in _parameters(source).items():
        if parameter in leave_out:
            continue
        key, dimension = natural_key(parameter)
        of_key = about[key]
        default = getattr(defaults, parameter, default)
        kind, optional = _without_none(hints[parameter])
        if of_key.fields is not None:
            annotation: Any = made_model(
                name + kind.__name__, kind, of_key.fields, description=of_key.description, defaults=default
            )
            default = annotation()
        else:
            annotation = _annotated(kind, of_key.marker, dimension, limits)
        if all_optional or optional:
            annotation, default = annotation | None, None if all_optional or default is None else default
        given = {} if default is MISSING else {"default": default}
        made[key] = (annotation, Field(**given, description=of_key.description))
    model = create_model(name, __base__=Section, __module__=__name__, **made)
    model.__doc__ = description
    return model


def made_on_demand(
    name: str,
    source: Callable[[], Callable[..., Any]],
    extensions: Extensions,
    known: Mapping[str, About] = MappingProxyType({}),
    leave_out: Sequence[str] = (),
) -> Any:
    """Return the annotation of a section whose model is made when it is asked for, from what a package adds.

    A parameter means, and is checked as, what its annotation has beside its type: a text, and a marker out of
    `simnet.scenario.fields`, as in ``Annotated[int, Whole(1, 64), "Number of racks."]``.

    Parameters
    ----------
    name : str
        Of what is added.
    source : callable
        Returns the function; raises `InputError`.
    extensions : Extensions
        What is blamed.
    known : mapping
        What keys mean that are not annotated.
    leave_out : sequence of str
        Parameters that are no keys.
    """

    @cache
    def model() -> type[Section]:
        function = source()
        with extensions.blaming(name, "has a parameter that cannot be a key"):
            about = dict(_annotated_keys(function, known))
            words = "".join(word.capitalize() for word in re.split("[._-]", name))
            said = (inspect.getdoc(function) or name).partition("\n")[0]
            return made_model(words, function, about, description=said, leave_out=leave_out)

    return Annotated[Any, OnDemand(model)]


def _annotated_keys(source: Callable[..., Any], known: Mapping[str, About]) -> Iterator[tuple[str, About]]:
    for parameter, hint in get_type_hints(source, include_extras=True).items():
        key, _ = natural_key(parameter)
        beside = hint.__metadata__ if get_origin(hint) is Annotated else ()
        said = next((one for one in beside if isinstance(one, str)), "")
        marker = next((one for one in beside if hasattr(one, "check")), None)
        if said or marker or key not in known:
            yield key, About(said or f"{key.replace('_', ' ').capitalize()}.", marker)
        else:
            yield key, known[key]


def si_arguments(source: Callable[..., Any] | type, section: Section) -> dict[str, Any]:
    """Return what a model made from `source` holds, by the names of the parameters, without what is None."""
    arguments = {}
    for parameter in _parameters(source):
        key, _ = natural_key(parameter)
        value = getattr(section, key, None)
        if value is not None:
            arguments[parameter] = value
    return arguments


def _parameters(source: Callable[..., Any] | type) -> dict[str, Any]:
    if is_dataclass(source):
        return {
            field.name: field.default_factory() if field.default_factory is not MISSING else field.default
            for field in fields(source)
        }
    return {
        name: MISSING if parameter.default is inspect.Parameter.empty else parameter.default
        for name, parameter in inspect.signature(source).parameters.items()
    }


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        if len(kinds) == 1 and len(kinds) < len(get_args(hint)):
            return kinds[0], True
    return hint, False


def _annotated(kind: Any, marker: Any, dimension: str, limits: bool) -> Any:
    if get_origin(kind) is Sequence:
        return GenericAlias(tuple, (_annotated(get_args(kind)[0], marker, dimension, limits), ...))
    return Annotated[kind, marker or _marker(kind, dimension, limits)]


def _marker(kind: Any, dimension: str, limits: bool) -> Any:
    if dimension:
        is_bandwidth = dimension == "bandwidth"
        return Quantity(dimension, positive=is_bandwidth, limit=is_bandwidth and limits)
    if get_origin(kind) is Literal:
        return Word(get_args(kind))
    markers = {bool: Flag(), int: Whole(), float: Real(minimum=0.0), str: Text(may_be_empty=True)}
    return markers[kind]
