"""Logs as the tools print them, with all that stands between the rows; and logs that are refused, with the place."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simnet.calibration import calibrate
from simnet.calibration.log import LARGEST_LOG
from simnet.errors import InputError

from .writing import iperf3_json, iperf3_text, nccl_log, osu_log, perftest_log

ROWS = [(8.0, 10.0), (1024.0, 10.5), (1048576.0, 110.0)]
NCCL, OSU = nccl_log(ROWS, 4), osu_log(ROWS)
RATES, LATENCIES = perftest_log(ROWS, "RDMA_Write BW Test"), perftest_log(ROWS, "Send Latency Test")
IPERF3, IPERF3_JSON = iperf3_text(10.0, 9.4, [9.3, 9.5]), iperf3_json(10.0, 9.4, [9.3, 9.5])
ALL = {"nccl": NCCL, "osu": OSU, "rates": RATES, "latencies": LATENCIES, "iperf3": IPERF3, "iperf3 json": IPERF3_JSON}


def refused(calibrated, text, **options):
    """Return what is said of a log, without the names of folders and the lines that show the text."""
    with pytest.raises(InputError) as caught:
        calibrated(text, **options)
    return [re.sub(r"^.*/my cluster\.log", "LOG", str(one).split("\n")[0]) for one in caught.value.problems]


def test_lines_of_others_do_not_count(calibrated):
    """Tags of mpirun, messages of NCCL, rows of no bytes; a collective that is told by both bandwidths alone."""
    text = "\n".join(f"[1,0]<stdout>:{line}" for line in nccl_log(ROWS, 4, named="").splitlines())
    text = text.replace("#        (B)", "host:34:34 [0] NCCL INFO Launch mode Parallel\n[1,0]<stdout>:#        (B)")
    text += "\n[1,0]<stdout>:           0             0   float     sum      -1 35.20 0.00 0.00 0 34.05 0.00 0.00 0\n"
    found = calibrated(text)
    assert (found.log.collective, found.log.ranks, len(found.log.timings)) == ("all_reduce", 4, 6)
    assert any("left out: 1" in note for note in found.notes)


def test_older_nccl_tests(calibrated):
    """Without a column of roots, and without a word in place."""
    text = """# nThread 1 nGpus 8 minBytes 4 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#                                             out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144   float     sum    74.78   14.02   24.54  0e+00      N/A     N/A     N/A    N/A
     2097152        524288   float     sum    93.48   22.43   39.26  0e+00      N/A     N/A     N/A    N/A
"""
    log = calibrated(text).log
    assert (log.collective, log.ranks, log.hosts, len(log.timings)) == ("all_reduce", 8, 0, 2)


def test_both_sides_of_perftest_in_one_log(calibrated):
    """Each row and each heading twice counts once, and warnings about clocks stand between."""
    text = RATES.replace(
        "MsgRate[Mpps]\n", "MsgRate[Mpps]\nConflicting CPU frequency values detected: 1500.0 != 3393.6.\n"
    )
    doubled = "\n".join(line for line in text.splitlines() for _ in range(2))
    assert calibrated(doubled).log.timings == calibrated(RATES).log.timings


def test_units_of_perftest(calibrated):
    """MB/sec are 2^20 bytes a second: 1 MiB at 1000 MB/sec takes 1 ms."""
    header = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]"
    row = " 1048576    1000             1000.00            1000.00\t\t   0.001000"
    text = f"                    RDMA_Read BW Test\n{header}\n{row}\n"
    [timing] = calibrated(text).log.timings
    assert timing.time_s == pytest.approx(1e-3, rel=1e-12)


@pytest.mark.parametrize(
    ("unit", "factor"), [("Gbits", 0.125e9), ("Mbits", 0.125e6), ("MBytes", 2**20), ("bits", 0.125)]
)
def test_units_of_iperf3(calibrated, unit, factor):
    found = calibrated(IPERF3.replace("Gbits", unit))
    assert 1 / found.fit.beta.value == pytest.approx(9.4 * factor, rel=1e-6)


def test_dates_and_tools_are_told(calibrated):
    assert "Tue, 14 Nov 2023 22:13:20 GMT" in calibrated(IPERF3_JSON).text
    assert "iperf 3.16" in calibrated(IPERF3_JSON).text
    assert "v" not in calibrated(OSU).log.tool.removeprefix("OSU micro-benchmarks")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            b"",
            "LOG: is empty, the output of a benchmark is wanted",
        ),
        (
            b" \n\t\n",
            "LOG: is empty, the output of a benchmark is wanted",
        ),
        (
            b"# OSU\n\xff\xfe",
            "LOG:2:1: is not UTF-8 text (byte 0xff), save the file as UTF-8",
        ),
        (
            "\n  total 12\n",
            "LOG:2:1: is no log that simnet knows, the output of nccl-tests, OSU micro-benchmarks, "
            "perftest, iperf3 is wanted, with the header of its table",
        ),
        (
            NCCL + OSU,
            "LOG: is of nccl-tests and of OSU micro-benchmarks, save each benchmark into a file of its own",
        ),
        # nccl-tests
        (
            NCCL.replace("110.000000000", "nan", 1),
            "LOG:12:52: the time is 'nan', a number of at least 0 is wanted",
        ),
        (
            NCCL.replace("110.000000000", "-1", 1),
            "LOG:12:52: the time is '-1', a number of at least 0 is wanted",
        ),
        (
            NCCL[: NCCL.index("# Out of")].rstrip()[:-30],
            "LOG:12:89: 10 cells where the header has 13, as many as in the header are wanted: size count"
            " type redop root time algbw busbw #wrong time algbw busbw #wrong",
        ),
        (
            NCCL[: NCCL.index("           8 ")],
            "LOG:8:1: there is no row of a size above 0 below this header, rows that begin with a size, a"
            " count and a type are wanted below it",
        ),
        (
            re.sub(r"#  Rank.*\n", "", NCCL),
            "LOG:4:1: the log does not say how many ranks there are, give their number, --ranks N; logs "
            "that list their ranks need none",
        ),
        (
            nccl_log(ROWS, 4, named="").replace("sum      -1", "max      -1").replace("14", "99"),
            "LOG:8:1: the log does not say which collective it is of, give it, --collective NAME; known: "
            "all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, send_recv",
        ),
        # OSU
        (
            OSU.replace("Latency Test", "Multiple Latency Test"),
            "LOG:1:1: simnet does not read the OSU test 'Multiple Latency', known: osu_latency, osu_bw, "
            "osu_bibw, osu_allreduce",
        ),
        (
            OSU.replace("10.500000000", "inf"),
            "LOG:4:21: the latency is 'inf', a number of at least 0 is wanted",
        ),
        (
            OSU.replace("10.500000000", ""),
            "LOG:4:1: a row of one cell, a size and what was measured are wanted",
        ),
        (
            OSU + osu_log(ROWS, "Bandwidth"),
            "LOG:6:1: another benchmark begins here, save each benchmark into a file of its own",
        ),
        (
            OSU[: OSU.index("8  ")],
            "LOG:1:1: there is no row below this heading, rows of size and value are wanted",
        ),
        (
            OSU.replace("Latency Test", "Allreduce Latency Test"),
            "LOG:1:1: a log of osu_allreduce does not say how many ranks there are, give their number, --ranks N",
        ),
        # perftest
        (
            RATES.replace("                    RDMA_Write BW Test\n", ""),
            "LOG:6:1: no title stands above this table, the lines above the table say which test it is, "
            "such as 'RDMA_Write BW Test': leave them in",
        ),
        (
            LATENCIES.replace("Send Lat", "Atomic_CMP Lat"),
            "LOG:2:1: simnet does not read tests of Atomic_CMP, known: ib_write_bw, ib_write_lat, "
            "ib_read_bw, ib_read_lat, ib_send_bw, ib_send_lat",
        ),
        (
            LATENCIES.replace("10.500000000", "1O.5"),
            "LOG:9:52: the t_typical[usec] is '1O.5', a number of at least 0 is wanted",
        ),
        (
            RATES + LATENCIES,
            "LOG:13:1: another benchmark begins here, save each benchmark into a file of its own",
        ),
        (
            RATES.replace("Gb/sec", "furlongs"),
            "LOG:7:1: the table has no column that is known, BW average[MB/sec] or BW average[Gb/sec] is wanted",
        ),
        # iperf3
        (
            IPERF3.replace("9.400000 Gbits", "fast Gbits"),
            "LOG:8:1: this row is not one of iperf3, [ID], interval, size and rate are wanted, as 9.41 Gbits/sec",
        ),
        (
            IPERF3.replace("[  5]  ", "[  5][TX-C]  "),
            "LOG:4:1: the test has both directions, one direction at a time is wanted, without --bidir",
        ),
        (
            IPERF3.replace("Retr", "Total Datagrams"),
            "LOG:3:1: the test is of UDP, TCP is wanted: what UDP sends is what its option -b says",
        ),
        (
            IPERF3[: IPERF3.index("- - -")],
            "LOG:3:1: the test has no end, the rows that end with sender and receiver are wanted, below all others",
        ),
        (
            IPERF3 + IPERF3,
            "LOG:20:1: another test ends here, save each test into a file of its own",
        ),
        (
            IPERF3.replace("9.4", "0.0").replace("9.400000", "0.00"),
            "LOG:9:1: nothing came through, a rate above 0 is wanted",
        ),
        (
            "{",
            "LOG:1:2: this is not JSON: expecting property name enclosed in double quotes",
        ),
        (
            '{"a": 1}',
            "LOG:1:1: this JSON is not that of iperf3, start and end are wanted, as iperf3 --json prints them",
        ),
        (
            '{"start": {}, "end": {},\n "error": "unable to connect"}',
            "LOG:2:11: iperf3 failed: 'unable to connect', the log of a test that ended is wanted",
        ),
        (
            IPERF3_JSON.replace("TCP", "UDP"),
            "LOG:8:16: the test is of UDP, TCP is wanted: what UDP sends is what its option -b says",
        ),
        (
            IPERF3_JSON.replace('"seconds": 10.0', '"seconds": NaN'),
            "LOG:34:15: end.sum_received.seconds is nan, a number above 0 is wanted",
        ),
        (
            IPERF3_JSON.replace("9500000000.0", "1e308"),
            "LOG:20:24: intervals.1.sum.bits_per_second is 1e+308, a number of at least 0 is wanted",
        ),
        (
            IPERF3.replace("9.500000 Gbits", f"{10**200}.5 Gbits"),
            "LOG:5:1: this row is not one of iperf3, [ID], interval, size and rate are wanted, as 9.41 Gbits/sec",
        ),
        (
            IPERF3.replace("0.00-10.00", f"0.00-{10**400}"),
            "LOG:8:1: this row is not one of iperf3, [ID], interval, size and rate are wanted, as 9.41 Gbits/sec",
        ),
    ],
)
def test_refused_with_the_place(calibrated, text, said):
    assert refused(calibrated, text)[0] == said


def test_several_collectives_in_one_log(calibrated):
    """Two tables with the same columns are of one benchmark, run twice, unless the log names two."""
    assert len(calibrated(NCCL + NCCL).log.timings) == 2 * len(calibrated(NCCL).log.timings)
    assert calibrated(NCCL + NCCL).log.ranks == 4
    [said] = refused(calibrated, NCCL + nccl_log(ROWS, 4, "all_gather_perf"))
    assert said.startswith("LOG:23:1: another table begins here, and the log names all_reduce and all_gather")


def test_every_damaged_row_is_told(calibrated):
    assert len(refused(calibrated, OSU.replace(".", ","))) == len(ROWS)


LONG = [f"{OSU}\n16 {'9' * 300_000}x", "# OSU x " * 40_000, "# size count " * 30_000]


@pytest.mark.parametrize("text", LONG)
def test_lines_that_are_long_take_no_longer_for_their_length(calibrated, text):
    """Reading takes time in proportion to the text, some microseconds a character at most, and not to its square."""
    began_s = time.process_time()
    assert refused(calibrated, text)
    assert time.process_time() - began_s < 5.0


@pytest.mark.parametrize("size", ["-1024", "1024.5", "1e3"])
@pytest.mark.parametrize("log", [OSU, LATENCIES])
def test_sizes_that_are_none_are_told(calibrated, log, size):
    said = refused(calibrated, re.sub(r"^( *)1024 ", rf"\g<1>{size} ", log, flags=re.MULTILINE))
    assert [one.partition(": ")[2] for one in said] == [f"the size is '{size}', a whole number of bytes is wanted"]


def test_options_of_collectives_are_not_for_other_logs(calibrated):
    assert refused(calibrated, OSU, ranks=4, collective="all_reduce") == [
        "--ranks: the log is of osu_latency, which is no collective, leave it out",
        "--collective: the log is of osu_latency, which is no collective, leave it out",
    ]


def test_options_that_contradict_the_log(calibrated):
    assert refused(calibrated, NCCL, ranks=8) == ["--ranks: the log has 4 ranks, not 8, leave the number out"]
    said = refused(calibrated, NCCL, collective="broadcast")
    assert said == ["--collective: the log is of all_reduce, not of broadcast, leave the name out"]


def test_options_that_make_no_sense_are_told_together(calibrated):
    said = refused(
        calibrated, "x", base="tpc", name="a b", ranks=1, collective="all_redue", link="0 Gbps", path_latency="2"
    )
    assert [one.partition(":")[0] for one in said] == [
        "--base", "--name", "--collective", "--ranks", "--link", "--path-latency", "LOG",
    ]  # fmt: skip


def test_files_that_cannot_be_read(tmp_path):
    for path, said in (
        (tmp_path, "is a directory"),
        (tmp_path / "none", "there is no such file"),
        ("a\0b", "there is no such file"),
    ):
        with pytest.raises(InputError, match=said):
            calibrate(path)


def test_a_file_that_is_too_large(tmp_path):
    path = tmp_path / "large.log"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(InputError, match=f"is 100000000 bytes long, at most {LARGEST_LOG} are read"):
        calibrate(path)


@pytest.mark.parametrize("name", list(ALL))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_refused_or_read(calibrated, name, data):
    """A log with a piece cut out, put in or written over is read, or refused in words: nothing else is raised."""
    text = ALL[name]
    place = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 40))
    piece = data.draw(
        st.text(max_size=8) | st.sampled_from(["nan", "1e999", "-5", "0", "9" * 400, "\n", "\0", "[  5]", "{"])
    )
    try:
        found = calibrated((text[:place] + piece + text[place + length :]).encode("utf-8", "surrogatepass"))
    except InputError:
        pass
    else:
        assert found.fit.alpha.value >= 0
        assert found.fit.beta.value >= 0
