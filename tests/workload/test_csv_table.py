"""Reading CSV files: whatever they hold, there is a table or an error that tells the place."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simnet.errors import InputError, Problem
from simnet.workload import load_trace, load_workload_csv
from simnet.workload.csv_table import parse_count, parse_number, read_table


@pytest.mark.parametrize(
    ("text", "number", "count"),
    [
        ("0", 0.0, 0),
        ("007", 7.0, 7),
        ("1e3", 1000.0, 1000),
        ("2.5", 2.5, None),
        (" 4 ", 4.0, 4),
        ("1e16", 1e16, None),
        ("1e61", None, None),
        ("-1", None, None),
        ("nan", None, None),
        ("inf", None, None),
        ("1_000", None, None),
        ("1,5", None, None),
        ("\u0663", None, None),
        ("\uff11", None, None),
        ("0x1", None, None),
        ("9" * 5000, None, None),
        ("", None, None),
        (3, 3.0, 3),
        (3.0, 3.0, 3),
        (10**400, None, None),
        (True, None, None),
        (None, None, None),
    ],
)
def test_numbers(text: object, number: float | None, count: int | None) -> None:
    assert parse_number(text) == number
    assert parse_count(text) == count


def test_cells_are_found_in_their_line(write: Callable[[str], Path]) -> None:
    table = read_table(write('a, b ,c\n1,,"x, ""y"""\n  2 , 3,4\n'), ["a", "b"], ["c"])
    assert list(table) == [{"a": "1", "b": "", "c": 'x, "y"'}, {"a": "2", "b": "3", "c": "4"}]
    assert [line.column(index) for line in table.lines for index in range(4)] == [1, 3, 4, 14, 3, 7, 9, 10]
    problem = table.problem(1, "b", "too small")
    assert (problem.line, problem.column, problem.text) == (3, 7, "  2 , 3,4")


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ('"x,1', 1, "this quote is not closed in its line"),
        ('1, "x', 4, "this quote is not closed in its line"),
        ('1,"x"" ', 3, "this quote is not closed in its line"),
        ('x"y,1', 2, "a quote inside of a cell"),
        ('"x"y,1', 1, "text follows the cell in quotes"),
        ('"a" , "b""c"d', 7, "text follows the cell in quotes"),
    ],
)
def test_quotes_that_do_not_pair(line: str, column: int, message: str, write: Callable[[str], Path]) -> None:
    """The line alone is wrong: what is below it is read as ever."""
    with pytest.raises(InputError) as caught:
        read_table(write(f"a,b\n{line}\n1,2\n3\n"), ["a", "b"])
    assert [(problem.line, problem.column, problem.message) for problem in caught.value.problems] == [
        (2, column, message),
        (4, 2, "1 cells where the header has 2"),
    ]


def test_a_header_whose_quotes_do_not_pair(write: Callable[[str], Path]) -> None:
    with pytest.raises(InputError) as caught:
        read_table(write('"a,b\n1,2\n'), ["a", "b"])
    assert [(problem.line, problem.column) for problem in caught.value.problems] == [(1, 1)]


def test_space_around_quotes_does_not_matter(write: Callable[[str], Path]) -> None:
    assert list(read_table(write('a,b\n "x,y" , ""\n'), ["a", "b"])) == [{"a": "x,y", "b": ""}]


@pytest.mark.parametrize(
    ("data", "line", "column"), [(b"\xff\xfe", 1, 1), (b"a,b\n1,\xe9\n", 2, 3), ("é,\n".encode() + b"\xe9", 2, 1)]
)
def test_the_place_of_what_is_not_utf8(data: bytes, line: int, column: int, tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match="is not UTF-8 text") as caught:
        read_table(path, ["a", "b"])
    [problem] = caught.value.problems
    assert (problem.line, problem.column) == (line, column)


HEADERS = [
    "layer,parameters,forward_s,backward_s\n",
    "layer,parameters,forward_flops,memory_bytes,dtype\n",
    "iteration,rank,layer,phase,start_s,duration_s,parameters\n",
    "",
]
cells = st.one_of(
    st.sampled_from(
        ["a", "b", "0", "1", "1e9", "-1", "nan", "", "forward", "backward", "optimizer", "fp32", '"', '"x,"']
    ),
    st.text(max_size=5),
)
tables = st.lists(st.lists(cells, max_size=8).map(",".join), max_size=8).map("\n".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(header=st.sampled_from(HEADERS), body=tables)
def test_any_text_gives_a_workload_or_an_input_error(header: str, body: str, tmp_path: Path) -> None:
    path = tmp_path / "any.csv"
    path.write_text(header + body, encoding="utf-8", errors="surrogatepass")
    for load in (
        lambda: load_workload_csv(path, batch_size=4, gpu="v100"),
        lambda: load_trace(path, batch_size=4),
    ):
        problems: tuple[Problem, ...] | None = None
        try:
            load()
        except InputError as error:
            problems = error.problems
        assert problems is None or problems
        assert all(problem.message and problem.column <= len(problem.text) + 1 for problem in problems or ())


def test_a_long_cell_is_refused_in_a_time_in_proportion_to_it() -> None:
    """Some nanoseconds a character, and not for each pair of them: 300,000 squared would be minutes."""
    began_s = time.process_time()
    assert parse_number("9" * 300_000 + "x") is None
    assert time.process_time() - began_s < 5.0
