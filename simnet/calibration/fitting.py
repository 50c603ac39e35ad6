"""Fit latency and rate to the timings of a log.

Each time is a line in two unknowns: ``time = steps alpha + share size beta``. Alpha is what each message takes whatever
its size [s], beta what each byte takes [s/byte]; steps and share follow from what was measured (`line_of`). They are
chosen so that the sum of squares of the *relative* errors is least, as sizes of 8 B and of 1 GiB count alike then, and
neither is negative. Standard errors are those of linear least squares: errors are taken as independent, with one
relative spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from simnet.calibration.log import Log
from simnet.traffic import BUS_FACTOR, COLLECTIVES

__all__ = ["Fit", "Unknown", "fit_log", "line_of"]

TOLD = 2.0
"""An unknown is told where it is at least so many times its standard error: with 95 % it is not 0 then."""

_STEPS: Mapping[str, Callable[[int], int]] = MappingProxyType(
    {
        **{name: COLLECTIVES[name].algorithms["ring"].steps for name in ("all_reduce", "all_gather", "reduce_scatter")},
        "send_recv": COLLECTIVES["send_recv"].algorithms["ring"].steps,
        "all_to_all": COLLECTIVES["all_to_all"].algorithms["direct"].steps,
        "broadcast": lambda ranks: ranks - 1,
        "reduce": lambda ranks: ranks - 1,
    }
)
"""Messages in a row: of rings, of a direct all-to-all, and of chains through which small pieces go."""


_MOST_OF_BASE = 0.5  # of the time that was measured


@dataclass(frozen=True)
class Unknown:
    """What is known of alpha or beta.

    Parameters
    ----------
    value : float
        At least 0.
    error : float
        Standard error; nan where there are no more rows than unknowns, or it was not fitted.
    fitted : bool
        Whether the log tells it; otherwise it is that of the base protocol.
    """

    value: float
    error: float = math.nan
    fitted: bool = True


@dataclass(frozen=True)
class Fit:
    """Alpha and beta of a log.

    Parameters
    ----------
    alpha : Unknown
        [s]
    beta : Unknown
        [s/byte]
    steps : float
        Messages in a row.
    share : float
        Bytes that one connection, or host, carries for each byte of the size.
    relative_errors : ndarray of float, shape (rows,)
        Fitted over measured time, less 1.
    notes : tuple of str
        What the log does not tell.
    """

    alpha: Unknown
    beta: Unknown
    steps: float
    share: float
    relative_errors: NDArray[np.float64]
    notes: tuple[str, ...]


def line_of(log: Log) -> tuple[float, float]:
    """Return how many messages wait for each other, and the share of the size that each rank sends."""
    if log.measures == "collective":
        return float(_STEPS[log.collective](log.ranks)), BUS_FACTOR[log.collective](log.ranks)
    return 1.0, 1.0


def fit_log(log: Log, base_alpha_s: float, base_beta_s_per_byte: float, packet_bytes: float) -> Fit:
    """Fit alpha and beta to a log.

    Of one size they cannot be told apart: up to a packet it tells alpha, beyond it beta. Of small sizes alone, or large
    ones, one of them cannot be told at all. For it stands the value of the base protocol, as far as the log allows it.

    Parameters
    ----------
    log : Log
    base_alpha_s : float
        Of the base protocol [s].
    base_beta_s_per_byte : float
        Of the base protocol [s/byte].
    packet_bytes : float
        Payload of a packet of it [bytes].
    """
    steps, share = line_of(log)
    sizes = np.array([timing.size_bytes for timing in log.timings])
    times = np.array([timing.time_s for timing in log.timings])
    columns = np.stack([np.full_like(times, steps), share * sizes], axis=1) / times[:, np.newaxis]
    is_stream = log.measures == "stream"
    what = "the overhead of each message" if is_stream else "latency"
    of_base = base_alpha_s, base_beta_s_per_byte
    if len(np.unique(sizes)) == 1:
        tells_rate = is_stream or share * float(sizes[0]) / steps > packet_bytes
        alpha, beta, note = _of_one_size(columns, of_base, tells_rate, what)
        if math.isnan(beta.error) and log.spread is not None:
            beta = Unknown(beta.value, beta.value * log.spread, beta.fitted)
        notes = [note]
    else:
        alpha, beta, notes = _of_several_sizes(columns, of_base, what)
    if is_stream:
        notes.append("a stream gives no latency: that of the base protocol stays")
    errors = columns @ np.array([alpha.value, beta.value]) - 1.0
    return Fit(alpha, beta, steps, share, errors, tuple(notes))


def _of_one_size(
    columns: NDArray[np.float64], of_base: tuple[float, float], tells_rate: bool, what: str
) -> tuple[Unknown, Unknown, str]:
    """Return alpha and beta of one size, and what it does not tell: one of both is that of the base.

    Where that would be most of what was measured, the log shows that it is less, and it is left out.
    """
    known = 0 if tells_rate else 1
    is_left_out = bool(columns[:, known].mean() * of_base[known] > _MOST_OF_BASE)
    kept = Unknown(0.0 if is_left_out else of_base[known], fitted=is_left_out)
    fitted = _fitted(columns, 1 - known, kept.value)
    note = f"{'the rate' if known else what} cannot be told from one size, and "
    note += "is left out" if is_left_out else "is that of the base protocol"
    return (fitted, kept, note) if known else (kept, fitted, note)


def _of_several_sizes(
    columns: NDArray[np.float64], of_base: tuple[float, float], what: str
) -> tuple[Unknown, Unknown, list[str]]:
    """Return alpha and beta of several sizes, and what they do not tell."""
    alpha, beta = _both(columns)
    if not _is_told(alpha) and _agrees(alpha, of_base[0]):
        note = f"{what} cannot be told from sizes as large as these: that of the base protocol stays"
        return Unknown(of_base[0], fitted=False), _fitted(columns, 1, of_base[0]), [note]
    if not _is_told(beta) and _agrees(beta, of_base[1]):
        note = "the rate cannot be told from sizes as small as these: that of the base protocol stays"
        return _fitted(columns, 0, of_base[1]), Unknown(of_base[1], fitted=False), [note]
    notes = [
        f"{which} is not told apart from 0, though that of the base protocol is too much for this log"
        for which, unknown in (("alpha", alpha), ("beta", beta))
        if not _is_told(unknown)
    ]
    return alpha, beta, notes


def _is_told(unknown: Unknown) -> bool:
    return math.isnan(unknown.error) or unknown.value >= TOLD * unknown.error


def _agrees(unknown: Unknown, base: float) -> bool:
    return abs(base - unknown.value) <= TOLD * unknown.error


def _both(columns: NDArray[np.float64]) -> tuple[Unknown, Unknown]:
    """Return the least squares of ``columns @ (alpha, beta) - 1``; the one that would be negative is 0."""
    scale = np.linalg.norm(columns, axis=0)
    scaled = columns / scale
    values, *_ = np.linalg.lstsq(scaled, np.ones(len(columns)), rcond=None)
    if values[0] < 0.0 or values[1] < 0.0:
        # Of two that are not negative either the least is inside, or at one of both edges.
        edges = [_fitted(columns, place, 0.0) for place in (0, 1)]
        squares = [float(((columns[:, place] * edges[place].value - 1.0) ** 2).sum()) for place in (0, 1)]
        place = int(np.argmin(squares))
        zero = Unknown(0.0, _errors(scaled, np.array([0.0, 1.0]) if place else np.array([1.0, 0.0]), scale)[1 - place])
        return (zero, edges[1]) if place else (edges[0], zero)
    errors = _errors(scaled, values, scale)
    return Unknown(values[0] / scale[0], errors[0]), Unknown(values[1] / scale[1], errors[1])


def _errors(scaled: NDArray[np.float64], values: NDArray[np.float64], scale: NDArray[np.float64]) -> list[float]:
    """Return the standard errors of both."""
    rows = len(scaled)
    if rows <= 2:
        return [math.nan, math.nan]
    best = values if values.all() else values * (scaled @ values).sum() / ((scaled @ values) ** 2).sum()
    variance = ((scaled @ best - 1.0) ** 2).sum() / (rows - 2)
    spread = np.sqrt(variance * np.diag(np.linalg.pinv(scaled.T @ scaled)))
    return [float(one) for one in spread / scale]


def _fitted(columns: NDArray[np.float64], place: int, other: float) -> Unknown:
    """Return one of both where the other is known."""
    column, left = columns[:, place], 1.0 - columns[:, 1 - place] * other
    square = float(column @ column)
    value = max(float(column @ left) / square, 0.0)
    rows = len(column)
    if rows < 2:
        return Unknown(value)
    variance = float(((column * value - left) ** 2).sum()) / (rows - 1)
    return Unknown(value, math.sqrt(variance / square))
