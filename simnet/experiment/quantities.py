"""Values of a parameter as numbers, where they are numbers or quantities with units."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from simnet.units import UnitError, parse_bandwidth, parse_duration, parse_size

__all__ = ["as_numbers"]

_PARSERS: tuple[Callable[[str], float], ...] = (parse_bandwidth, parse_size, parse_duration)


def as_numbers(values: pd.Series) -> pd.Series | None:
    """Return numbers, or quantities of one kind in the units of SI, as numbers; None where they are something else."""
    if pd.api.types.is_bool_dtype(values):
        return None
    if pd.api.types.is_numeric_dtype(values):
        return values.astype("float64")
    for parse in _PARSERS:
        try:
            known = {text: float(parse(text)) for text in values.unique()}
        except (UnitError, ValueError, TypeError, AttributeError):
            continue
        return values.map(known).astype("float64")
    return None
