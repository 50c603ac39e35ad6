"""Logs of perftest: ``ib_write_bw``, ``ib_send_lat`` and their kin.

``MB/sec`` there is 2^20 bytes a second, ``Gb/sec`` 10^9 bits. Latencies of writes and sends are half a round trip, of
reads the whole (linux-rdma/perftest, ``src/perftest_parameters.c`` and ``src/perftest_resources.c``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from simnet.calibration.log import MOST_PROBLEMS, Log, LogText, Measures, Timing, Word
from simnet.errors import InputError, Problem, attempt
from simnet.units import GIGABIT_PER_S, MEBIBYTE, MEGA, MICROSECOND

__all__ = ["HEADER", "read_perftest"]

HEADER = re.compile(r"^.*#bytes\s+#iterations\s+(?:BW peak\[|t_min\[|t_avg\[).*$", re.MULTILINE)
_TITLE = re.compile(
    r"^\s*(?P<verb>RDMA_Write|RDMA_Read|Send|Raw Ethernet|Atomic\S*)\s+(?P<both>(?:Post List )?Bidirectional\s+)?"
    r"(?P<what>BW|Latency) Test\s*$",
    re.MULTILINE,
)
_VERBS = {"RDMA_Write": "write", "RDMA_Read": "read", "Send": "send"}
_RATES = {"MB/sec": float(MEBIBYTE), "Gb/sec": GIGABIT_PER_S}
_LATENCIES = ("t_typical[usec]", "t_avg[usec]")
_COLUMN = re.compile(r"BW peak\[\S+\]|BW average\[\S+\]|99(?:\.9)?% percentile\[usec\]|tps average|\S+")


def read_perftest(text: LogText) -> Log:
    """Return what a log of perftest says.

    Raises
    ------
    InputError
        Damaged rows, all of them; a test that is not known; several tests.
    """
    header = HEADER.search(text.text)
    assert header is not None
    number = text.line_at(header.start())
    titles = list(_TITLE.finditer(text.text))
    if not titles:
        hint = "the lines above the table say which test it is, such as 'RDMA_Write BW Test': leave them in"
        raise InputError(text.problem_with(number, "no title stands above this table", hint))
    title = titles[0]
    for other in titles[1:]:
        if (other["verb"], other["both"], other["what"]) != (title["verb"], title["both"], title["what"]):
            line = text.line_at(other.start("verb"))
            hint = "save each benchmark into a file of its own"
            raise InputError(text.problem_with(line, "another benchmark begins here", hint))
    verb = _VERBS.get(title["verb"])
    if verb is None:
        line = text.line_at(title.start("verb"))
        hint = "known: ib_write_bw, ib_write_lat, ib_read_bw, ib_read_lat, ib_send_bw, ib_send_lat"
        raise InputError(text.problem_with(line, f"simnet does not read tests of {title['verb']}", hint))
    is_rate = title["what"] == "BW"
    timings, empty = _timings(text, header[0], number, is_rate, 2 if title["both"] else 1)
    queue_pairs = re.search(r"Number of qps\s*:\s*(\d{1,6})\b", text.text)
    link_type = re.search(r"Link type\s*:\s*(\w+)", text.text)
    measures: Measures = "stream" if is_rate else "read" if verb == "read" else "ping_pong"
    notes = [f"left out: {empty} with a 0"] if empty else []
    return Log(
        text.source,
        "perftest",
        f"ib_{verb}_{'bw' if is_rate else 'lat'}",
        measures,
        timings,
        connections=max(int(queue_pairs[1]), 1) if queue_pairs and is_rate else 1,
        link_kind={"IB": "infiniband", "Ethernet": "ethernet"}.get(link_type[1], "") if link_type else "",
        notes=tuple(notes),
    )


def _timings(text: LogText, header: str, number: int, is_rate: bool, directions: int) -> tuple[tuple[Timing, ...], int]:
    """Return the timings below a header, and how many rows of 0 there are."""
    names = _COLUMN.findall(header[header.index("#bytes") :])
    wanted = [f"BW average[{unit}]" for unit in _RATES] if is_rate else _LATENCIES
    column = next((name for name in wanted if name in names), "")
    if not column:
        hint = f"{' or '.join(wanted)} is wanted"
        raise InputError(text.problem_with(number, "the table has no column that is known", hint))
    timings: dict[Timing, None] = {}  # a log of both sides has every row twice
    problems: list[Problem] = []
    empty = 0
    for words in text.rows(number + 1):
        if not text.is_row(words):
            continue
        row = attempt(problems, partial(_row, text, words, names, column))
        if len(problems) >= MOST_PROBLEMS:
            break
        if row is None:
            continue
        size, time_s = row
        if size > 0 and time_s > 0:
            timings[Timing(size, directions * time_s)] = None
        else:
            empty += 1
    if not problems and not timings:
        problems.append(text.problem_with(number, "there is no row below this header", "rows of numbers are wanted"))
    if problems:
        raise InputError(problems)
    return tuple(timings), empty


def _row(text: LogText, words: Sequence[Word], names: Sequence[str], column: str) -> tuple[float, float]:
    """Return the size and the time of a message, or from one to the next; 0 where that is not known."""
    if len(words) < len(names):
        hint = f"as many as in the header are wanted: {', '.join(names)}"
        raise InputError(text.problem(words[-1], f"{len(words)} cells where the header has {len(names)}", hint))
    size = text.size(words[0])
    measured = words[names.index(column)]
    value = text.number(measured, f"the {column}")
    if column in _LATENCIES:
        return size, MICROSECOND * value
    unit = _RATES[column.removeprefix("BW average[").removesuffix("]")]
    if "MsgRate[Mpps]" in names:
        messages = words[names.index("MsgRate[Mpps]")]
        rate = text.number(messages, "the MsgRate[Mpps]")
        # Of small messages their number a second has more digits.
        if rate > 0 and _digits(messages.text) > _digits(measured.text):
            return size, 1.0 / (MEGA * rate)
    return size, size / (unit * value) if value else 0.0


def _digits(number: str) -> int:
    """Count the digits that say something."""
    return len(number.replace(".", "").lstrip("0"))
