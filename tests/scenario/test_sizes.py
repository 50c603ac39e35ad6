"""Lists and ranges of sizes."""

from __future__ import annotations

import pytest

from simnet.errors import InputError
from simnet.scenario.sizes import MOST_SIZES, parse_sizes


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("8B", [8]),
        ("0B", [0]),
        ("8B,1MiB", [8, 2**20]),
        (" 8 B , 1 MB ", [8, 10**6]),
        ("8B:64B:x2", [8, 16, 32, 64]),
        ("8B:63B:x2", [8, 16, 32]),
        ("8B:8B:x2", [8]),
        ("1kB:4kB:x1.5", [1000, 1500, 2250, 3375]),
        ("1MiB:3MiB:+1MiB", [2**20, 2**21, 3 * 2**20]),
        ("0B:10B:+4B", [0, 4, 8]),
        ("8B : 32B : x 2", [8, 16, 32]),
        ("1MB:2MB:+ 1 MB,0B,4B:8B:x2", [10**6, 2 * 10**6, 0, 4, 8]),
    ],
)
def test_sizes_come_in_the_order_in_which_they_are_written(text, sizes):
    assert list(parse_sizes(text, "sizes")) == sizes


def test_as_many_as_are_accepted():
    assert len(parse_sizes(f"1B:{MOST_SIZES}B:+1B", "sizes")) == MOST_SIZES


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("", 1, "'' is not a size, write a size"),
        ("8B,,1B", 4, "'' is not a size, write a size"),
        ("8B, 9", 5, "'9' has no unit"),
        ("8B, 9s", 5, "'9s' is a duration, not a size"),
        ("8B:1GiB", 1, "'8B:1GiB' is neither a size nor a range"),
        ("8B:1GiB:x2:3", 1, "neither a size nor a range"),
        ("8B:1GiB:2", 9, "'2' is no step"),
        ("8B:1GiB:x1", 9, "'x1' is no step"),
        ("8B:1GiB:x\u0663", 9, "'x\u0663' is no step"),
        ("8B:1GiB:xx", 9, "'xx' is no step"),
        ("8B:1GiB:+0B", 9, "'+0B' is no step"),
        ("8B:1GiB:+ 1", 11, "'1' has no unit"),
        ("8B:1GiB:+1s", 10, "'1s' is a duration"),
        ("8B:1Gib:x2", 4, "'1Gib' may mean bits or bytes"),
        ("1MiB:8B:x2", 6, "'1MiB:8B:x2' ends before it begins"),
        ("0B:8B:x2", 1, "a multiple of 0 B is 0 B"),
        ("1e9TB", 1, "'1e9TB' is too large"),
        ("-8B", 1, "'-8B' is negative"),
        (f"1B:{MOST_SIZES + 1}B:+1B", 1, "more sizes than anybody reads"),
        ("1B:9XB:x1.000001", 4, "not a unit"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(text, column, said):
    with pytest.raises(InputError) as caught:
        parse_sizes(text, "--sizes")
    [problem] = caught.value.problems
    assert (problem.source, problem.line, problem.column) == ("--sizes", 1, column)
    assert said in str(problem)


def test_everything_that_is_wrong_is_said():
    with pytest.raises(InputError) as caught:
        parse_sizes("8,9B,1s,2B:1B:x2", "--sizes")
    assert [problem.column for problem in caught.value.problems] == [1, 6, 12]
