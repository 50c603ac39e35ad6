"""The closed loop: a log, a protocol from it, and the benchmark simulated with that gives the times of the log."""

from __future__ import annotations

import numpy as np
import pytest
import simpy

from simnet.calibration.fitting import line_of
from simnet.experiment.collective import run_collective
from simnet.experiment.telling import tell_nobody
from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.placement import place
from simnet.scenario import load_collective, topology_from_text
from simnet.scenario.build import load_protocol
from simnet.traffic import Partition, ScheduleBuilder

from .measured import MEASURED
from .writing import iperf3_text, nccl_log, osu_bandwidth_log, osu_log, perftest_log

ROUNDED = 2e-4
"""A protocol file has five digits."""


def star(hosts, latency="0 us"):
    """Return hosts around a switch with links that are so fast that the protocol alone limits."""
    return f"{{star: {{hosts: {hosts}, bandwidth: 1 Pbps, latency: {latency}}}}}"


@pytest.fixture
def written(tmp_path):
    """Write the protocol file of a calibration."""

    def write(found):
        path = tmp_path / "fitted.yaml"
        path.write_text(found.text)
        return path

    return write


def collective_us(found, path, topology=None, algorithm=None):
    """Simulate each size of a log as a collective; a message one way is one that all ranks send to the next."""
    log = found.log
    sizes = ",".join(f"{timing.size_bytes:.0f}B" for timing in log.timings)
    settings = load_collective(
        log.collective or "send_recv",
        topology=topology or star(log.ranks),
        protocol=str(path),
        algorithm=algorithm,
        sizes=sizes,
        dtype="fp8",
    )
    return run_collective(settings, say=tell_nobody).time_us.to_numpy()


def stream_us(found, path, messages=100):
    """Simulate each size of a log as messages behind one another, on each of its connections; return times between.

    Those of twice as many messages, less those of as many, so that opening connections and latency do not count.
    """
    log = found.log
    topology = topology_from_text(star(2))
    network = Network(topology, load_protocol(path).protocol, 0)

    def played_s(size, repeat):
        build = ScheduleBuilder("stream", 2, Partition(1, 4))
        build.send([0] * log.connections, 1, repeat=repeat, width=0, fixed_bytes=size / log.connections)
        env = simpy.Environment()
        fabric = FluidFabric(env, network)
        play = fabric.play(place(build.schedule(), topology.compiled.rank_nodes[:2], network), "stream")
        env.run(until=play.complete)
        return play.duration_s

    return np.array(
        [
            1e6 * (played_s(one.size_bytes, 2 * messages) - played_s(one.size_bytes, messages)) / messages
            for one in log.timings
        ]
    )


def logged_us(found):
    return np.array([1e6 * timing.time_s for timing in found.log.timings])


@pytest.mark.parametrize("base", ["tcp", "roce", "infiniband", "ideal", "dpdk", "ipoib"])
@pytest.mark.parametrize(
    ("program", "ranks"),
    [
        ("all_reduce_perf", 2),
        ("all_reduce_perf", 5),
        ("all_gather_perf", 4),
        ("reduce_scatter_perf", 4),
        ("alltoall_perf", 6),
        ("sendrecv_perf", 3),
        ("broadcast_perf", 2),
        ("reduce_perf", 2),
    ],
)
def test_collectives(calibrated, written, base, program, ranks):
    """From alpha = 9 us and 3 GB/s, whatever the base has for overheads, rendezvous, batches and store-and-forward."""
    sizes = [ranks * 4.0 * 8**n for n in range(9)]  # the same for each rank
    some = calibrated(nccl_log([(size, size) for size in sizes], ranks, program), base=base)
    steps, share = line_of(some.log)
    rows = [(size, 9.0 * steps + share * size / 3e3) for size in sizes]
    found = calibrated(nccl_log(rows, ranks, program), base=base)
    algorithm = "{chain: {chunks: 1}}" if found.log.collective in ("broadcast", "reduce") else None
    simulated = collective_us(found, written(found), algorithm=algorithm)
    assert simulated == pytest.approx(logged_us(found), rel=ROUNDED)


@pytest.mark.parametrize("base", ["tcp", "infiniband", "roce", "ipoib"])
@pytest.mark.parametrize("log", [osu_log, lambda rows: perftest_log(rows, "RDMA_Read Latency Test")])
@pytest.mark.parametrize(("alpha_us", "rate"), [(1.2, 12.0), (20.0, 1.1), (5000.0, 0.1)])
def test_latencies(calibrated, written, base, log, alpha_us, rate):
    """Of a fast network, a slow one and a far one, whose window of TCP would be too small."""
    sizes = [8.0 * 16**n for n in range(7)]
    found = calibrated(log([(size, alpha_us + size / (1e3 * rate)) for size in sizes]), base=base)
    assert collective_us(found, written(found)) == pytest.approx(logged_us(found), rel=ROUNDED)


@pytest.mark.parametrize("base", ["tcp", "infiniband", "roce", "ipoib"])
@pytest.mark.parametrize(
    "log",
    [
        osu_bandwidth_log,
        lambda rows: perftest_log(rows, "RDMA_Write BW Test"),
        lambda rows: perftest_log(rows[-1:], "Send BW Test"),
    ],
)
def test_streams(calibrated, written, base, log):
    """Messages of a stream are 0.7 us and S / (9 GB/s) apart."""
    found = calibrated(log([(8.0 * 8**n, 0.7 + 8.0 * 8**n / 9e3) for n in range(8)]), base=base)
    assert stream_us(found, written(found)) == pytest.approx(logged_us(found), rel=ROUNDED)


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("gigabits", [9.4, 94.0])
def test_iperf3(calibrated, written, streams, gigabits):
    """The rate of all connections together, also above what the base gives one of them."""
    found = calibrated(iperf3_text(10.0, gigabits, streams=streams))
    assert stream_us(found, written(found)) == pytest.approx(logged_us(found), rel=1e-3)


def test_latency_of_the_path_counts_once(calibrated, written):
    """With 1 us on each of the two links, 2 us of the 9 are the topology's."""
    rows = [(8.0 * 16**n, 9.0 + 8.0 * 16**n / 3e3) for n in range(7)]
    found = calibrated(osu_log(rows), path_latency="2 us")
    assert collective_us(found, written(found), star(2, "1 us")) == pytest.approx(logged_us(found), rel=ROUNDED)


@pytest.mark.parametrize("name", list(MEASURED))
def test_measured(calibrated, written, name):
    """What others have measured: simulated times miss the log by as much as the fit says, size by size."""
    case = MEASURED[name]
    found = calibrated(case.log)
    path = written(found)
    simulated = stream_us(found, path) if found.log.measures == "stream" else collective_us(found, path)
    errors = simulated / logged_us(found) - 1.0
    # Some bytes over eight ranks are not the same for each.
    whole = np.array([timing.size_bytes >= 1024 for timing in found.log.timings])
    assert errors[whole] == pytest.approx(found.fit.relative_errors[whole], abs=5e-3)
    assert np.median(np.abs(errors)) < case.median
    assert np.abs(errors).max() < case.worst
