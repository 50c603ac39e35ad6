"""Quantities: text with units on one side, SI floats on the other."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet import units
from simnet.units import (
    UnitError,
    format_bandwidth,
    format_duration,
    format_duration_per_byte,
    format_size,
    parse_bandwidth,
    parse_duration,
    parse_duration_per_byte,
    parse_size,
)

PAIRS = [
    (parse_bandwidth, format_bandwidth),
    (parse_size, format_size),
    (parse_duration, format_duration),
    (parse_duration_per_byte, format_duration_per_byte),
]


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        # G bits a second: 1e9 / 8 bytes a second
        ("100 Gbps", 12.5e9),
        ("100Gbps", 12.5e9),
        ("  100  Gb/s ", 12.5e9),
        ("100 Gbit/s", 12.5e9),
        ("1 bps", 0.125),
        ("1 Kbps", 125),
        ("1 kbps", 125),
        ("1.6 Tbps", 200e9),
        ("8 Pbps", 1e15),
        ("8 Pb/s", 1e15),
        ("1 PB/s", 1e15),
        ("1 PiB/s", 2.0**50),
        ("1 Gibit/s", 2**30 / 8),
        # bytes a second
        ("12.5 GB/s", 12.5e9),
        ("12.5 GBps", 12.5e9),
        ("1 GiB/s", 2**30),
        ("1 KB/s", 1000),
        ("1 KiB/s", 1024),
        (".5e-3 MB/s", 500),
        ("+1e9 B/s", 1e9),
        ("0 Gbps", 0),
    ],
)
def test_bandwidths(text, bytes_per_s):
    assert parse_bandwidth(text) == bytes_per_s


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("25 MiB", 25 * 2**20),
        ("25 MB", 25e6),
        ("10 KB", 1e4),
        ("10 kB", 1e4),
        ("10 KiB", 10240),
        ("8 kbit", 1000),
        ("1 B", 1),
        ("2 TiB", 2 * 2**40),
        ("16 GB", 16e9),
        ("5. B", 5),
        ("0 B", 0),
        ("-0 B", 0),
    ],
)
def test_sizes(text, size_bytes):
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 ns", 1e-9),
        ("1 us", 1e-6),
        ("1 \u00b5s", 1e-6),
        ("1 \u03bcs", 1e-6),
        ("2.5 ms", 2.5e-3),
        ("3 s", 3),
        ("2 min", 120),
        ("1.5 h", 5400),
        ("1.1 us", 1.1e-6),
        ("0.3 ns", 0.3e-9),
        ("1e-999999999 s", 0),
    ],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "seconds_per_byte"),
    [("0.09 ns/B", 9e-11), ("1 us/KiB", 1e-6 / 1024), ("1 ms/MB", 1e-9), ("2 s/GiB", 2 / 2**30)],
)
def test_durations_per_byte(text, seconds_per_byte):
    assert parse_duration_per_byte(text) == seconds_per_byte


@pytest.mark.parametrize(
    ("parse", "text", "message", "hint"),
    [
        (parse_bandwidth, 100, "100 has no unit", "'100 Gbps' (bits) or '12.5 GB/s' (bytes)"),
        (parse_bandwidth, "100", "'100' has no unit", "'100 Gbps'"),
        (parse_size, 0, "0 has no unit", "'25 MiB'"),
        (parse_size, "0", "'0' has no unit", "'25 MiB'"),
        (parse_bandwidth, "100 gbps", "'gbps' in '100 gbps' is not a unit", "did you mean 'Gbps' or 'GBps'?"),
        (parse_bandwidth, "100 Gb", "'100 Gb' is an amount, not a bandwidth", "did you mean 'Gb/s'?"),
        (parse_bandwidth, "25 MiB", "'25 MiB' is a size, not a bandwidth", "'100 Gbps'"),
        (parse_bandwidth, "1 furlong", "'furlong' in '1 furlong' is not a unit of a bandwidth", "GiB/s"),
        (parse_size, "8 Mb", "'8 Mb' may mean bits or bytes", "write 'Mbit' for bits or 'MB' for bytes"),
        (parse_size, "25 mib", "'mib' in '25 mib' is not a unit", "did you mean 'MiB'?"),
        (parse_size, "25 Gbps", "'25 Gbps' is a bandwidth, not a size", "'25 MiB'"),
        (parse_duration, "3 sec", "'sec' in '3 sec' is not a unit of a duration", "known: ns, us, ms, s, min, h"),
        (parse_duration, "3 S", "'S' in '3 S' is not a unit", "did you mean 's'?"),
        (parse_duration, "1 Gbps", "'1 Gbps' is a bandwidth, not a duration", "'1 us'"),
        (parse_duration_per_byte, "1 ns", "'1 ns' is a duration, not a duration per byte", "'0.09 ns/B'"),
        (parse_duration, "-1 us", "'-1 us' is negative", "write it like '1 us'"),
        (parse_bandwidth, "1e400 Gbps", "'1e400 Gbps' is too large", "finite"),
        (parse_bandwidth, "1e999999999 Gbps", "'1e999999999 Gbps' is too large", "finite"),
        (parse_bandwidth, "1.7e308 Tbps", "'1.7e308 Tbps' is too large", "finite"),
        (parse_duration, "nan s", "'nan s' is not a duration", "'1 us'"),
        (parse_duration, "", "'' is not a duration", "'1 us'"),
        (parse_duration, "\uff11 s", "'\uff11 s' is not a duration", "'1 us'"),
        (parse_duration, True, "True is not a duration", "'1 us'"),
        (parse_duration, None, "None is not a duration", "'1 us'"),
        (parse_duration, [1], "[1] is not a duration", "'1 us'"),
        (parse_size, math.nan, "nan has no unit", "'25 MiB'"),
        (parse_size, "1" * 100 + " B", "'" + "1" * 59 + "… is not a size", "in at most 60 characters"),
        (parse_bandwidth, "1 pbps", "'pbps' in '1 pbps' is not a unit", "did you mean 'Pbps' or 'PBps'?"),
    ],
)
def test_refused_with_a_hint(parse, text, message, hint):
    with pytest.raises(UnitError) as caught:
        parse(text)
    assert caught.value.message == message
    assert hint in caught.value.hint
    assert str(caught.value) == f"{caught.value.message}, {caught.value.hint}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_bandwidth(12.5e9), "100 Gbps"),
        (format_bandwidth(25e6), "200 Mbps"),
        (format_bandwidth(2**30, exact=True), "1 GiB/s"),
        (format_duration(5.0 * 1e-6, exact=True), "4.9999999999999996 us"),
        (format_bandwidth(1e9 / 3), "2.667 Gbps"),
        (format_bandwidth(math.inf), "unlimited"),
        (format_size(25 * 2**20), "25 MiB"),
        (format_size(25e6), "25 MB"),
        (format_size(102_228_128), "102.2 MB"),
        (format_size(102_228_128, exact=True), "102228128 B"),
        (format_size(0), "0 B"),
        (format_duration(1.1e-6), "1.1 us"),
        (format_duration(0.0123456), "12.35 ms"),
        (format_duration(90), "90 s"),
        (format_duration(5e-10), "0.5 ns"),
        (format_duration(6e-8), "60 ns"),
        (format_duration_per_byte(9e-11), "0.09 ns/B"),
        (format_duration(math.nan), "nan"),
    ],
)
def test_printed_short(text, expected):
    assert text == expected


@given(st.sampled_from(PAIRS), st.floats(min_value=0, max_value=1e300, allow_subnormal=False))
def test_exact_text_is_read_back_as_the_same_number(pair, value):
    parse, show = pair
    assert parse(show(value, exact=True)) == value


@given(st.sampled_from(PAIRS), st.floats(min_value=1e-12, max_value=1e15))
def test_short_text_is_right_to_four_digits(pair, value):
    parse, show = pair
    assert parse(show(value)) == pytest.approx(value, rel=6e-4)


@given(st.sampled_from(PAIRS), st.text() | st.floats() | st.integers() | st.lists(st.integers()))
def test_nothing_but_a_unit_error_is_ever_raised(pair, value):
    parse, _ = pair
    try:
        result = parse(value)
    except UnitError:
        return
    assert math.isfinite(result)


def test_constants_agree_with_the_parser():
    assert parse_bandwidth("1 Gbps") == units.GIGABIT_PER_S
    assert parse_size("1 KiB") == units.KIBIBYTE
    assert parse_size("1 MiB") == units.MEBIBYTE
    assert parse_size("1 GiB") == units.GIBIBYTE
    assert parse_size("8 bit") * units.BITS_PER_BYTE == 8
    assert [parse_duration(f"1 {unit}") for unit in ("ns", "us", "ms")] == [
        units.NANOSECOND,
        units.MICROSECOND,
        units.MILLISECOND,
    ]


def test_a_number_that_python_does_not_write():
    with pytest.raises(UnitError, match="a very large number has no unit"):
        parse_size(10**5000)
