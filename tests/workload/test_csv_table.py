"""Reading CSV files: whatever they hold, there is a table or an error that tells the place."""

from __future__ import annotations

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
