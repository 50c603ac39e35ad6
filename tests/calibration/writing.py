"""Logs of benchmarks, written from times as the tools print them."""

from __future__ import annotations

import json
from collections.abc import Iterable

Rows = Iterable[tuple[float, float]]
"""Sizes [bytes] and times [us]."""


def nccl_log(rows: Rows, ranks: int, named: str = "all_reduce_perf", in_place: float = 1.0, hosts: int = 0) -> str:
    """Return what nccl-tests prints on one rank a host, or on so many hosts; in place takes so many times as long."""
    lines = [
        f"# Collective test starting: {named}" if named else "#",
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824",
    ]
    lines += [
        f"#  Rank {rank:2d} Group  0 Pid {1000 + rank} on  node{rank % (hosts or ranks)} device  0 [0000:07:00] NVIDIA"
        for rank in range(ranks)
    ]
    lines += [
        "#                                                              out-of-place                       in-place",
        "#       size         count      type   redop    root"
        "     time   algbw   busbw #wrong     time   algbw   busbw #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
    ]
    for size, time in rows:
        cells = [f"{size:12.0f}", f"{size / 4:12.0f}", "   float     sum      -1"]
        for one in (time, time * in_place):
            bandwidth = size / one / 1e3
            cells.append(f"{one:.9f} {bandwidth:7.2f} {2 * (ranks - 1) / ranks * bandwidth:7.2f}      0")
        lines.append(" ".join(cells))
    return "\n".join([*lines, "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 1.0", "#", ""])


def osu_log(rows: Rows, test: str = "Latency", column: str = "Latency (us)") -> str:
    """Return what an OSU micro-benchmark prints; its second column may also be a bandwidth."""
    lines = [f"# OSU MPI {test} Test v5.8", f"# Size          {column}"]
    return "\n".join([*lines, *(f"{size:<20.0f}{value:>12.9f}" for size, value in rows), ""])


def osu_bandwidth_log(rows: Rows) -> str:
    return osu_log([(size, size / time) for size, time in rows], "Bandwidth", "Bandwidth (MB/s)")


def perftest_log(rows: Rows, title: str, link: str = "Ethernet", queue_pairs: int = 1) -> str:
    """Return what perftest prints: rates in Gbit/s, or latencies."""
    rule = "-" * 87
    is_rate = title.endswith("BW Test")
    lines = [
        rule,
        f"                    {title}",
        " Dual-port       : OFF          Device         : mlx5_0",
        f" Number of qps   : {queue_pairs}            Transport type : IB",
        f" Link type       : {link}",
        rule,
    ]
    if is_rate:
        lines.append(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]")
        lines += [
            f" {size:<10.0f} 5000             {0:.2f}               {8e-3 * size / time:.9f}            {1 / time:.6f}"
            for size, time in rows
        ]
    else:
        lines.append(
            " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
            "99% percentile[usec]   99.9% percentile[usec] "
        )
        lines += [
            f" {size:<7.0f} 1000          1.79           5.41         {time:.9f}     "
            f"\t       {time + 0.01:.2f}        \t0.18   \t\t2.03    \t5.41   "
            for size, time in rows
        ]
    return "\n".join([*lines, rule, ""])


def iperf3_text(seconds: float, gigabits: float, intervals: Iterable[float] = (), streams: int = 1) -> str:
    """Return what iperf3 prints of so many streams with one rate in all."""
    ids: dict[int | str, float] = dict.fromkeys(range(5, 5 + 2 * streams, 2), 1.0 / streams)
    if streams > 1:
        ids["SUM"] = 1.0
    lines = [
        "Connecting to host 10.0.0.2, port 5201",
        "[  5] local 10.0.0.1 port 40000 connected to 10.0.0.2 port 5201",
        "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd",
    ]
    for second, rate in enumerate(intervals):
        lines += [
            f"[{one:>3}]   {second}.00-{second + 1}.00   sec  1.09 GBytes  {rate * share:.6f} Gbits/sec    0  1 MBytes"
            for one, share in ids.items()
        ]
    lines += [
        "- - - - - - - - - - - - - - - - - - - - - - - - -",
        "[ ID] Interval           Transfer     Bitrate         Retr",
    ]
    for end in ("sender", "receiver"):
        lines += [
            f"[{one:>3}]   0.00-{seconds:.2f}  sec  11.0 GBytes  {gigabits * share:.6f} Gbits/sec             {end}"
            for one, share in ids.items()
        ]
    return "\n".join([*lines, "", "iperf Done.", ""])


def iperf3_json(seconds: float, gigabits: float, intervals: Iterable[float] = (), streams: int = 1) -> str:
    """Return what ``iperf3 --json`` prints of so many streams with one rate in all."""
    total = {"seconds": seconds, "bytes": seconds * gigabits / 8e-9, "bits_per_second": gigabits * 1e9}
    return json.dumps(
        {
            "start": {
                "version": "iperf 3.16",
                "timestamp": {"time": "Tue, 14 Nov 2023 22:13:20 GMT"},
                "test_start": {"protocol": "TCP", "num_streams": streams},
            },
            "intervals": [{"sum": {"bits_per_second": rate * 1e9}} for rate in intervals],
            "end": {"streams": [{}] * streams, "sum_sent": total, "sum_received": total},
        },
        indent=1,
    )
