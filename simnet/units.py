"""Quantities as people write them, and as simnet computes with them.

Outside, a quantity is text with a unit: ``100 Gbps``, ``25 MiB``, ``1 us``. Inside, it is a float in bytes, seconds or
bytes per second. This module alone knows how the two are related, so it alone has an 8, a 1e9 or a 2**20 in it.

======================  ==================================================================================
dimension               units
======================  ==================================================================================
bandwidth, in bits      ``bps``, ``kbps``, ``Mbps``, ``Gbps``, ``Tbps``, ``Pbps``; also ``Gb/s``, ``Gibit/s``, …
bandwidth, in bytes     ``B/s``, ``kB/s``, ``MB/s``, ``GB/s``, ``TB/s``, ``PB/s``; ``KiB/s``, …, ``PiB/s``
size                    ``B``, ``kB``, ``MB``, ``GB``, ``TB``, ``PB``; ``KiB``, …, ``PiB``; ``bit``, ``kbit``, …
duration                ``ns``, ``us`` (or ``µs``), ``ms``, ``s``, ``min``, ``h``
duration per byte       ``ns/B``, ``us/KiB``, ``ms/MB``, …: a duration, a stroke, a size in bytes
======================  ==================================================================================

``k``, ``M``, ``G``, ``T``, ``P`` are powers of 1000 and ``Ki``, ``Mi``, ``Gi``, ``Ti``, ``Pi`` powers of 1024 (IEC
80000-13); ``K`` alone is read as ``k``. Capitals count: ``b`` is a bit, ``B`` a byte. A number without a unit is
refused, 0 too.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

__all__ = [
    "BITS_PER_BYTE",
    "GIBIBYTE",
    "GIGA",
    "GIGABIT_PER_S",
    "KIBIBYTE",
    "MEBIBYTE",
    "MEGA",
    "MICROSECOND",
    "MILLISECOND",
    "NANOSECOND",
    "UnitError",
    "format_bandwidth",
    "format_duration",
    "format_duration_per_byte",
    "format_size",
    "parse_bandwidth",
    "parse_duration",
    "parse_duration_per_byte",
    "parse_size",
]

BITS_PER_BYTE = 8
KIBIBYTE = 2**10  # bytes
MEBIBYTE = 2**20  # bytes
GIBIBYTE = 2**30  # bytes
GIGABIT_PER_S = 1e9 / BITS_PER_BYTE  # bytes per second
NANOSECOND = 1e-9  # seconds
MICROSECOND = 1e-6  # seconds
MILLISECOND = 1e-3  # seconds
MEGA = 1e6
GIGA = 1e9

_NUMBER = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.DOTALL)
_LONGEST = 60  # characters; no quantity that somebody means is longer
_MOST_SHOWN = 10**_LONGEST

_PREFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_PREFIXES |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}

_BYTES = {f"{prefix}B": Fraction(scale) for prefix, scale in _PREFIXES.items()}
_BITS = {f"{prefix}bit": Fraction(scale, BITS_PER_BYTE) for prefix, scale in _PREFIXES.items()}
_SHORT_BITS = {f"{prefix}b": Fraction(scale, BITS_PER_BYTE) for prefix, scale in _PREFIXES.items()}

_SIZE = _BYTES | _BITS
_BANDWIDTH = (
    {f"{unit}ps": scale for unit, scale in _SHORT_BITS.items()}
    | {f"{unit}/s": scale for unit, scale in (_SHORT_BITS | _BITS | _BYTES).items()}
    | {f"{unit}ps": scale for unit, scale in _BYTES.items()}
)
_DURATION = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),  # U+00B5, the micro sign
    "μs": Fraction(1, 10**6),  # U+03BC, the Greek letter
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
}
_DURATION_PER_BYTE = {
    f"{time}/{size}": seconds / scale for time, seconds in _DURATION.items() for size, scale in _BYTES.items()
}

_DIMENSIONS = {
    "a bandwidth": _BANDWIDTH,
    "a size": _SIZE,
    "a duration": _DURATION,
    "a duration per byte": _DURATION_PER_BYTE,
}
_EXAMPLES = {
    "a bandwidth": "write it like '100 Gbps' (bits) or '12.5 GB/s' (bytes)",
    "a size": "write it like '25 MiB', '25 MB' or '4096 B'",
    "a duration": "write it like '1 us', '2.5 ms' or '3 s'",
    "a duration per byte": "write it like '0.09 ns/B' or '92 us/MiB'",
}

# The units that are printed. The first group is taken where it needs few digits.
_BANDWIDTH_SHOWN = (
    ("bps", "kbps", "Mbps", "Gbps", "Tbps", "Pbps"),
    ("B/s", "kB/s", "MB/s", "GB/s", "KiB/s", "MiB/s", "GiB/s"),
)
_SIZE_SHOWN = (("B", "KiB", "MiB", "GiB", "TiB", "PiB", "kB", "MB", "GB", "TB", "PB"),)
_DURATION_SHOWN = (("ns", "us", "ms", "s", "min", "h"),)
_DURATION_PER_BYTE_SHOWN = (("ns/B", "us/B", "ms/B", "s/B"),)
_FEW_DIGITS = 6
_MANY_DIGITS = 15


class UnitError(ValueError):
    """A text that is not the quantity that is wanted.

    Attributes
    ----------
    message : what is wrong, naming the text
    hint : what would be right
    """

    def __init__(self, message: str, hint: str) -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}, {hint}")


def parse_bandwidth(text: object) -> float:
    """Return a bandwidth such as ``100 Gbps`` or ``12.5 GB/s`` [bytes/s].

    Parameters
    ----------
    text : object
        Number and unit; what is no text is refused.

    Returns
    -------
    float
        [bytes/s]

    Raises
    ------
    UnitError
        No text, no number, no unit, a unit of something else, negative or infinite.

    Examples
    --------
    >>> parse_bandwidth("100 Gbps")
    12500000000.0
    """
    return _parse(text, "a bandwidth")


def parse_size(text: object) -> float:
    """Return a size such as ``25 MiB`` or ``4096 B`` [bytes].

    Parameters
    ----------
    text : object
        Number and unit; what is no text is refused.

    Returns
    -------
    float
        [bytes]

    Raises
    ------
    UnitError
        As of `parse_bandwidth`.

    Examples
    --------
    >>> parse_size("25 MiB"), parse_size("25 MB")
    (26214400.0, 25000000.0)
    """
    return _parse(text, "a size")


def parse_duration(text: object) -> float:
    """Return a duration such as ``1 us`` or ``2 min`` [s].

    Parameters
    ----------
    text : object
        Number and unit; what is no text is refused.

    Returns
    -------
    float
        [s]

    Raises
    ------
    UnitError
        As of `parse_bandwidth`.

    Examples
    --------
    >>> parse_duration("1.1 us")
    1.1e-06
    """
    return _parse(text, "a duration")


def parse_duration_per_byte(text: object) -> float:
    """Return what each byte costs, such as ``0.09 ns/B`` [s/byte].

    Parameters
    ----------
    text : object
        Number and unit; what is no text is refused.

    Returns
    -------
    float
        [s/byte]

    Raises
    ------
    UnitError
        As of `parse_bandwidth`.

    Examples
    --------
    >>> parse_duration_per_byte("0.09 ns/B")
    9e-11
    """
    return _parse(text, "a duration per byte")


def format_bandwidth(bytes_per_s: float, *, exact: bool = False) -> str:
    """Return a bandwidth as short text.

    Parameters
    ----------
    bytes_per_s : float
        [bytes/s]
    exact : bool
        Give every digit, so that parsing the text returns the very same number; otherwise four digits.

    Returns
    -------
    str
        Number and unit; ``unlimited`` for infinity.

    Examples
    --------
    >>> format_bandwidth(12.5e9)
    '100 Gbps'
    """
    return _format(bytes_per_s, _BANDWIDTH, _BANDWIDTH_SHOWN, _BANDWIDTH_SHOWN[0], "B/s", exact)


def format_size(size_bytes: float, *, exact: bool = False) -> str:
    """Return a size as short text.

    Parameters
    ----------
    size_bytes : float
        [bytes]
    exact : bool
        As for `format_bandwidth`.

    Returns
    -------
    str
        Number and unit; ``unlimited`` for infinity.

    Examples
    --------
    >>> format_size(26214400), format_size(102228128)
    ('25 MiB', '102.2 MB')
    """
    return _format(size_bytes, _SIZE, _SIZE_SHOWN, ("B", "kB", "MB", "GB", "TB", "PB"), "B", exact)


def format_duration(seconds: float, *, exact: bool = False) -> str:
    """Return a duration as short text.

    Parameters
    ----------
    seconds : float
        [s]
    exact : bool
        As for `format_bandwidth`.

    Returns
    -------
    str
        Number and unit; ``unlimited`` for infinity.

    Examples
    --------
    >>> format_duration(0.0123456)
    '12.35 ms'
    """
    return _format(seconds, _DURATION, _DURATION_SHOWN, ("ns", "us", "ms", "s"), "s", exact)


def format_duration_per_byte(seconds_per_byte: float, *, exact: bool = False) -> str:
    """Return what each byte costs as short text.

    Parameters
    ----------
    seconds_per_byte : float
        [s/byte]
    exact : bool
        As for `format_bandwidth`.

    Returns
    -------
    str
        Number and unit; ``unlimited`` for infinity.

    Examples
    --------
    >>> format_duration_per_byte(9e-11)
    '0.09 ns/B'
    """
    shown = _DURATION_PER_BYTE_SHOWN
    return _format(seconds_per_byte, _DURATION_PER_BYTE, shown, shown[0], "s/B", exact)


def _parse(text: object, dimension: str) -> float:
    example = _EXAMPLES[dimension]
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        raise UnitError(f"{_shown(text)} has no unit", example)
    if not isinstance(text, str):
        raise UnitError(f"{_shown(text)} is not {dimension}", example)
    if len(text) > _LONGEST:
        raise UnitError(f"{_shown(text)} is not {dimension}", f"{example}, in at most {_LONGEST} characters")
    match = _NUMBER.fullmatch(text.strip()) if text.isascii() or _known_micro(text) else None
    if match is None:
        raise UnitError(f"{text!r} is not {dimension}", example)
    number, unit = match.groups()
    if not unit:
        raise UnitError(f"{text!r} has no unit", example)
    scale = _DIMENSIONS[dimension].get(unit)
    if scale is None:
        raise UnitError(*_wrong_unit(text, unit, dimension))
    if number.startswith("-") and float(number) != 0:
        raise UnitError(f"{text!r} is negative", example)
    return _scaled(text, number, scale)


def _scaled(text: str, number: str, scale: Fraction) -> float:
    """Multiply without the rounding of two floats, so that ``1.1 us`` is 1.1e-6 and not its neighbour."""
    rough = float(number)
    if rough == 0:
        return 0.0
    # The exponent is only expanded to digits when it is known to be small.
    try:
        value = float(Fraction(number) * scale) if math.isfinite(rough) else math.inf
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise UnitError(f"{text!r} is too large", "a finite quantity is wanted")
    return value


def _known_micro(text: str) -> bool:
    return text.replace("µ", "u").replace("μ", "u").isascii()


def _wrong_unit(text: str, unit: str, dimension: str) -> tuple[str, str]:
    """Say what the unit is instead, or which one was probably meant."""
    if unit in _SHORT_BITS and dimension == "a size":
        prefix = unit.removesuffix("b")
        return f"{text!r} may mean bits or bytes", f"write '{prefix}bit' for bits or '{prefix}B' for bytes"
    for other, units in _DIMENSIONS.items():
        if unit in units:
            return f"{text!r} is {other}, not {dimension}", _EXAMPLES[dimension]
    same_letters = [known for known in _DIMENSIONS[dimension] if known.casefold() == unit.casefold()]
    if same_letters:
        meant = " or ".join(repr(known) for known in same_letters)
        why = "" if dimension == "a duration" else " (b is a bit, B a byte)"
        return f"{unit!r} in {text!r} is not a unit", f"did you mean {meant}?{why}"
    if unit in _SHORT_BITS:
        return f"{text!r} is an amount, not {dimension}", f"did you mean '{unit}/s'?"
    if dimension == "a duration per byte":
        return f"{unit!r} in {text!r} is not a unit of {dimension}", _EXAMPLES[dimension]
    shown = {"a bandwidth": "Mbps, Gbps, MB/s, GB/s, GiB/s, …", "a size": "B, kB, MB, GB, KiB, MiB, GiB, …"}
    return (
        f"{unit!r} in {text!r} is not a unit of {dimension}",
        f"known: {shown.get(dimension, ', '.join(_DURATION_SHOWN[0]))}",
    )


def _shown(value: object) -> str:
    if isinstance(value, int) and not -_MOST_SHOWN < value < _MOST_SHOWN:
        return "a very large number"  # Python does not even write one of thousands of digits
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _format(
    value: float,
    units: dict[str, Fraction],
    shown: tuple[tuple[str, ...], ...],
    rounded: tuple[str, ...],
    base: str,
    exact: bool,
) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "unlimited" if value > 0 else "-unlimited"
    if value == 0:
        return f"0 {base}"
    precise = _exact_text(value, units, shown, base)
    if exact or len(precise.split()[0].strip("-")) < _FEW_DIGITS:
        return precise
    unit = max((u for u in rounded if abs(value) >= units[u]), key=lambda u: units[u], default=rounded[0])
    return f"{float(f'{float(Fraction(value) / units[unit]):.4g}'):g} {unit}"


def _exact_text(value: float, units: dict[str, Fraction], shown: tuple[tuple[str, ...], ...], base: str) -> str:
    """Return the shortest text that is read back as exactly this value."""
    texts: list[tuple[int, str]] = []
    decimal = Fraction(repr(float(value)))  # what is meant by the number, not its nearest binary fraction
    for group in shown:
        for unit in group:
            try:
                number = repr(float(decimal / units[unit])).removesuffix(".0")
                if float(Fraction(number) * units[unit]) == value:
                    texts.append((len(number), f"{number} {unit}"))
            except OverflowError:
                continue
        best = min(texts, key=lambda text: text[0], default=(_FEW_DIGITS + 1, f"{value!r} {base}"))
        if best[0] <= _FEW_DIGITS:
            break
    if best[0] >= _MANY_DIGITS:
        # Nothing is short: then rather 4.9999999999999996 us than 8.333333333333333e-08 min.
        for unit in shown[0]:
            plain = decimal / units[unit]
            if not 1 <= abs(plain) < 1000:
                continue
            number = format(Decimal(plain.numerator) / Decimal(plain.denominator), "f")
            if float(Fraction(number) * units[unit]) == value:
                return f"{number} {unit}"
    return best[1]
