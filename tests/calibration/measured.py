"""Logs that others have published, in the form that the tool prints."""

from __future__ import annotations

from typing import NamedTuple

from .writing import nccl_log, osu_log, perftest_log

_NCCL_US = (34.73, 34.66, 35.0, 35.6, 34.83, 34.53, 34.56, 34.94, 36.07, 35.42, 35.92, 35.91, 36.18, 36.65, 37.82)
_NCCL_US += (41.19, 47.53, 60.32, 74.78, 93.48, 112.0, 162.0, 226.0, 374.3, 584.5, 1162.2, 2112.2, 4200.3, 8159.5)
_NCCL_US += (16215.0, 32070.0, 63896.0)
_OSU_US = {2: 3.05, 64: 3.25, 128: 3.5, 256: 3.7, 512: 4.6, 1024: 5.6, 2048: 6.5, 4096: 8.4}
_OSU_US |= {1 << 20: 900.0, 1 << 21: 1830.0, 1 << 22: 3680.0, 1 << 23: 7350.0}
_PERFTEST_MPPS = (2.778732, 2.788833, 2.787609, 2.788268, 2.713896, 2.812504, 2.898535, 2.782698, 2.686135, 2.712980)
_PERFTEST_MPPS += (2.620509, 2.546793, 1.636168, 1.074080, 0.594753, 0.338685, 0.171545, 0.089645, 0.045358, 0.022817)
_PERFTEST_MPPS += (0.011460, 0.005819, 0.002905)


class Measured(NamedTuple):
    """A log, and by how much a line in the size misses it."""

    log: str
    median: float
    worst: float


MEASURED = {
    # microsoft/superbenchmark, tests/data/nccl_allreduce.log: 8 A100 in one host, 4 B to 8 GiB, out of place.
    "nccl-tests": Measured(nccl_log([(4.0 * 2**n, time) for n, time in enumerate(_NCCL_US)], 8, hosts=1), 0.1, 0.45),
    # OSU tutorial at CCGrid 2011 (D. K. Panda), slide 112: RoCE on 10G, ConnectX-DDR.
    "osu_latency": Measured(osu_log(list(_OSU_US.items())), 0.1, 0.4),
    # microsoft/superbenchmark, tests/data/ib_loopback_all_sizes.log: RDMA write, one queue pair, 2 B to 8 MiB.
    "ib_write_bw": Measured(
        perftest_log([(2.0 ** (n + 1), 1 / rate) for n, rate in enumerate(_PERFTEST_MPPS)], "RDMA_Write BW Test", "IB"),
        0.1,
        0.4,
    ),
}
