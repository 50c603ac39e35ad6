"""Files that none of the readers of simnet can be stopped or filled by."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from simnet.errors import InputError, Problem
from simnet.json_text import MOST_VALUES, parse_json
from simnet.reading import decoded, read_content, read_text
from simnet.workload import from_profile
from simnet.workload.csv_table import MOST_LINES, table_from_text


def test_a_file_that_says_nothing_of_its_size() -> None:
    """Under /proc a file has 0 bytes by its size, and as many as it likes when it is read."""
    with pytest.raises(InputError, match="is 11 bytes long, at most 10 are read"):
        read_content(Path("/proc/self/maps"), "text", 10)


def test_a_profile_that_is_small_until_it_is_uncompressed(tmp_path: Path) -> None:
    """300 MB of spaces are 300 kB compressed."""
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * 300_000_000, 1))
    assert path.stat().st_size < 2_000_000
    with pytest.raises(InputError, match="is too large uncompressed, at most 256000000 bytes are read"):
        from_profile(path)


def test_values_and_lines_are_counted_before_they_are_made() -> None:
    with pytest.raises(InputError, match="more than 10000000 values"):
        parse_json("[" + "0," * MOST_VALUES + "0]")
    with pytest.raises(InputError, match=f"has {MOST_LINES + 2} lines, at most {MOST_LINES} are read"):
        table_from_text("a\n" + "1\n" * (MOST_LINES + 1), "t.csv", ["a"])


def test_a_byte_order_mark_does_not_shift_the_place() -> None:
    """The third character of the second line is none."""
    with pytest.raises(InputError, match=r"t:2:3: is not UTF-8 text \(byte 0xff\)"):
        decoded(b"\xef\xbb\xbfa\nbc\xff", "t")
    with pytest.raises(InputError, match="t:1:3: "):
        decoded(b"\xef\xbb\xbfab\xff", "t")


def test_text_is_read_without_its_mark(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfx")
    assert read_text(tmp_path / "a", "text") == "x"


def test_what_is_printed_cannot_steer_a_terminal() -> None:
    """A caret stands below its character, and a message shows what the value really is."""
    said = str(Problem("it is \x1b[31m", "not \u202e", source="a\x07b", line=1, column=3, text="a\x1bb\tc"))
    assert said == "a\\x07b:1:3: it is \\x1b[31m, not \\u202e\n    a\ufffdb c\n      ^"


def test_of_many_problems_the_first_are_shown() -> None:
    shown = str(InputError(Problem(f"p{number}") for number in range(1000))).splitlines()
    assert (len(shown), shown[199], shown[-1]) == (201, "p199", "and 800 more")
