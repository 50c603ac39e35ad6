"""Whether a value can be that of a field of a protocol."""

from __future__ import annotations

import math

from simnet.errors import Problem, nearest
from simnet.protocols.fields import FIELDS, ProtocolField

__all__ = ["value_problems"]


def value_problems(name: str, value: object) -> list[Problem]:
    """Return what is wrong with the value of one field; the path of a problem is the name of the field."""
    field = FIELDS.get(name)
    if field is None:
        return [Problem(f"a protocol has no {name!r}", nearest(name, FIELDS), (name,))]
    if field.quantity == "choice":
        fine, wanted = value in field.choices, f"it is one of {', '.join(field.choices)}"
    elif field.quantity == "flag":
        fine, wanted = isinstance(value, bool), "it is true or false"
    else:
        fine, wanted = _is_number(field, value), f"it is a number {'above' if field.above else 'of at least'} "
        wanted += f"{field.least:g}{' ' if field.unit else ''}{field.unit}"
        wanted += f" and at most {field.most:g}" if math.isfinite(field.most) else ""
    return [] if fine else [Problem(f"{field.key} cannot be {value!r}", wanted, (name,))]


def _is_number(field: ProtocolField, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return False
    if math.isinf(value) and not field.unlimited:
        return False
    return (value > field.least if field.above else value >= field.least) and value <= field.most
