"""Logs of perftest: ``ib_write_bw``, ``ib_send_lat`` and their kin.

``MB/sec`` there is 2^20 bytes a second, ``Gb/sec`` 10^9 bits. Latencies of writes and sends are half a round trip, of
reads the whole (linux-rdma/perftest, ``src/perftest_parameters.c`` and ``src/perftest_resources.c``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from simnet.calibration.log import Log, LogText, Measures, Timing, Word
from simnet.errors import InputError, Problem
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
    value = next((name for name in names if name.startswith("BW average[")), "") if is_rate else ""
    if not is_rate:
        value = next((name for name in _LATENCIES if name in names), "")
    unit = _RATES.get(value.removeprefix("BW average[").removesuffix("]"), 0.0)
    if not value or (is_rate and not unit):
        wanted = "BW average[MB/sec] or BW average[Gb/sec]" if is_rate else " or ".join(_LATENCIES)
        raise InputError(text.problem_with(number, "the table has no column that is known", f"{wanted} is wanted"))
    timings: dict[Timing, None] = {}  # a log of both sides has every row twice
    problems: list[Problem] = []
    empty = 0
    for words in text.rows(number + 1):
        if not (words[0].text.isdecimal() and words[0].text.isascii()):
            continue
        try:
            if len(words) < len(names):
                hint = f"as many as in the header are wanted: {', '.join(names)}"
                raise InputError(text.problem(words[-1], f"{len(words)} cells where the header has {len(names)}", hint))
            size = text.number(words[0], "the size")
            measured = words[names.index(value)]
            number_read = text.number(measured, f"the {value}")
            if size == 0 or number_read == 0:
                empty += 1
            elif is_rate:
                per_message_s = _per_message_s(text, words, names, measured, size / (unit * number_read))
                timings[Timing(size, directions * per_message_s)] = None
            else:
                timings[Timing(size, MICROSECOND * number_read)] = None
        except InputError as error:
            problems += error.problems
    if not problems and not timings:
        problems.append(text.problem_with(number, "there is no row below this header", "rows of numbers are wanted"))
    if problems:
        raise InputError(problems)
    return tuple(timings), empty


def _per_message_s(
    text: LogText, words: Sequence[Word], names: Sequence[str], measured: Word, by_rate_s: float
) -> float:
    """Return the time from one message to the next: by the number of messages a second where that has more digits."""
    if "MsgRate[Mpps]" not in names:
        return by_rate_s
    messages = words[names.index("MsgRate[Mpps]")]
    rate = text.number(messages, "the MsgRate[Mpps]")
    return 1.0 / (MEGA * rate) if _digits(messages.text) > _digits(measured.text) else by_rate_s


def _digits(number: str) -> int:
    """Count the digits that say something."""
    return len(number.replace(".", "").lstrip("0"))
