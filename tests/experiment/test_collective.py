"""`simnet collective` against closed forms, bounds and symmetries."""

from __future__ import annotations

import math
from dataclasses import replace
from math import ceil, floor, log2

import numpy as np
import pytest

from simnet.experiment.collective import run_collective
from simnet.experiment.columns import COLUMNS
from simnet.protocols import PROTOCOLS, resolve
from simnet.scenario import CollectiveSettings, load_collective
from simnet.topology import leaf_spine, star
from simnet.traffic import BUS_FACTOR, COLLECTIVES, count

S, B, P = 100e6, 12.5e9, 2e-6  # bytes, bytes/s of a link, s for the two links of a path
EVERY = [(name, algorithm) for name, collective in COLLECTIVES.items() for algorithm in collective.algorithms]


def settings(
    name: str, algorithm: str = "", *, ranks: int, sizes=(S,), protocol="ideal", overrides=None, **others
) -> CollectiveSettings:
    """A collective on a star of as many hosts as ranks."""
    topology = star(hosts=ranks, bandwidth_bytes_per_s=B, latency_s=P / 2)
    return CollectiveSettings(
        **{
            "collective": name,
            "algorithm": algorithm or next(iter(COLLECTIVES[name].algorithms)),
            "topology": topology,
            "protocol": resolve(protocol, overrides),
            "nodes": topology.compiled.rank_nodes,
            "sizes_bytes": tuple(sizes),
            "options": {},
        }
        | others
    )


def closed_form(name: str, algorithm: str, n: int) -> float:
    """Time on an uncontended star [s], as the docstrings of `simnet.traffic` have it."""
    rounds = ceil(log2(n))
    around, at_once = (n - 1) * (S / (n * B) + P), (n - 1) * S / (n * B) + P
    match name, algorithm:
        case "all_reduce", "butterfly":
            return (rounds if n == 2**rounds else floor(log2(n)) + 2) * (S / B + P)
        case "all_reduce", _:
            return (
                2
                * {"ring": around, "star": (n - 1) * S / B + P, "tree": rounds * (S / B + P), "mesh": at_once}[
                    algorithm
                ]
            )
        case "broadcast" | "reduce", "tree":
            return rounds * (S / B + P)
        case "send_recv", "ring":
            return S / B + P
    return {"ring": around, "pairwise": around, "direct": at_once}[algorithm]


COMPOSED = ("halving_doubling", "halving", "doubling", "double_tree", "chain", "hierarchical", "torus")
"""Their times are tested in tests/fabric/test_closed_forms_of_algorithms.py."""


@pytest.mark.parametrize("n", [2, 3, 4, 7, 16])
@pytest.mark.parametrize(("name", "algorithm"), [case for case in EVERY if case[1] not in COMPOSED])
def test_time_on_a_star_is_the_closed_form(name, algorithm, n):
    """Exactly equal chunks, nothing but latency and bandwidth: within 1e-9, and the bound is not above."""
    frame = run_collective(settings(name, algorithm, ranks=n, overrides={"divisible": True}))
    assert frame.time_us[0] == pytest.approx(1e6 * closed_form(name, algorithm, n), rel=1e-9)
    assert frame.bound_time_us[0] <= frame.time_us[0] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [case for case in EVERY if case[1] in ("ring", "tree", "direct") and case[0] != "all_to_all"],
)
def test_where_no_link_is_shared_or_all_are_full_the_bound_is_reached(name, algorithm):
    """Rings and trees are chains, direct exchanges fill every link; only latency after a full link is left out."""
    frame = run_collective(settings(name, algorithm, ranks=4, overrides={"divisible": True}))
    assert frame.bound_time_us[0] == pytest.approx(frame.time_us[0], abs=1e6 * P + 1e-6)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize(("name", "algorithm"), EVERY)
def test_bandwidths_follow_from_size_and_time(name, algorithm, n):
    """algbw = S/t; busbw = algbw times 2(n - 1)/n, (n - 1)/n or 1; neither where nothing takes time."""
    frame = run_collective(settings(name, algorithm, ranks=n, sizes=[4e6]))
    factor = {"all_reduce": 2 * (n - 1) / n, "broadcast": 1, "reduce": 1, "send_recv": 1}.get(name, (n - 1) / n)
    row = frame.iloc[0]
    if n == 1:
        assert row.time_us == row.bound_time_us == row.steps == 0
        assert math.isnan(row.algbw_GBps)
        assert math.isnan(row.busbw_GBps)
        return
    assert row.algbw_GBps == pytest.approx(4e6 / (row.time_us * 1e-6) / 1e9, rel=1e-12)
    assert row.busbw_GBps == pytest.approx(row.algbw_GBps * factor, rel=1e-12)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["all_reduce", "reduce_scatter", "all_gather", "send_recv"])
def test_bus_bandwidth_of_a_ring_is_never_above_that_of_a_link(name, protocol):
    """Every rank sends busbw times the time over one link. With no overheads and much to send it is nearly reached."""
    sizes = [0, 4, 100, 4096, 1e6, 1e9]
    frame = run_collective(settings(name, "ring", ranks=7, sizes=sizes, protocol=protocol))
    assert (frame.busbw_GBps <= B / 1e9).all()
    if protocol == "ideal":
        assert frame.busbw_GBps.iloc[-1] > 0.99 * B / 1e9


@pytest.mark.parametrize(("name", "algorithm"), EVERY)
def test_the_order_of_ranks_does_not_matter_on_a_star(name, algorithm):
    """All hosts are alike. 1,000,001 elements: chunks differ by one."""
    some = settings(name, algorithm, ranks=6, sizes=[4e6 + 4], protocol="tcp")
    frame = run_collective(some)
    for seed in range(3):
        permuted = np.random.Generator(np.random.PCG64(seed)).permutation(some.nodes)
        again = run_collective(replace(some, nodes=permuted))
        assert again.time_us[0] == pytest.approx(frame.time_us[0], rel=1e-12)


@pytest.mark.parametrize("root", range(5))
@pytest.mark.parametrize("name", ["broadcast", "reduce"])
def test_the_root_does_not_matter_on_a_star(name, root):
    times = [run_collective(settings(name, ranks=5, options={"root": r})).time_us[0] for r in (0, root)]
    assert times[1] == pytest.approx(times[0], rel=1e-12)


def test_the_order_of_ranks_matters_where_racks_share_uplinks():
    """2 racks of 4: in order two messages of a ring cross an uplink in each direction; alternating all eight do."""
    topology = leaf_spine(leaves=2, hosts_per_leaf=4, spines=1, oversubscription=4.0, bandwidth_bytes_per_s=B)
    in_order = settings("all_reduce", "ring", ranks=8, topology=topology, nodes=topology.compiled.rank_nodes)
    alternating = in_order.nodes.reshape(2, 4).T.ravel()
    first, second = (run_collective(replace(in_order, nodes=n)).time_us[0] for n in (in_order.nodes, alternating))
    assert second == pytest.approx(4 * first, rel=0.01)


@pytest.mark.parametrize(("name", "algorithm"), [case for case in EVERY if case[1] not in ("double_tree", "chain")])
def test_0_bytes_take_as_long_as_the_steps(name, algorithm):
    """Nothing drains, so a message takes p: steps times p, where pieces do not travel one behind the other."""
    frame = run_collective(settings(name, algorithm, ranks=5, sizes=[0, 3]))
    assert frame.size_bytes.tolist() == [0, 0]
    assert frame.time_us.tolist() == pytest.approx([1e6 * P * frame.steps[0]] * 2, rel=1e-9)
    assert frame.algbw_GBps.tolist() == [0, 0]


@pytest.mark.parametrize(("name", "algorithm"), EVERY)
def test_fewer_elements_than_ranks_leave_chunks_empty(name, algorithm):
    """1 and 3 elements on 5 ranks: never faster than 0 bytes, never slower than 5 elements."""
    frame = run_collective(settings(name, algorithm, ranks=5, sizes=[0, 4, 12, 20]))
    assert frame.size_bytes.tolist() == [0, 4, 12, 20]
    assert frame.time_us.is_monotonic_increasing


@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize(("name", "algorithm"), EVERY)
def test_steps_are_those_of_the_schedule(name, algorithm, n):
    frame = run_collective(settings(name, algorithm, ranks=n, sizes=[400]))
    schedule = COLLECTIVES[name].algorithms[algorithm].make(n, 100, 4)
    assert frame.steps.tolist() == [count(schedule).steps]


def test_sizes_are_rounded_down_to_whole_elements():
    """11 B are 2 elements of fp32, 5 of fp16 and 11 of fp8."""
    for dtype, size in (("fp32", 8), ("fp16", 10), ("fp8", 11), ("fp64", 8)):
        frame = run_collective(settings("broadcast", ranks=2, sizes=[11], dtype=dtype))
        assert frame.size_bytes.tolist() == [size]
        assert frame.time_us[0] == pytest.approx(1e6 * (size / B + P), rel=1e-9)


@pytest.mark.parametrize(("name", "algorithm"), EVERY)
def test_open_connections_are_warm_and_the_time_of_a_size_does_not_depend_on_those_before(name, algorithm):
    some = settings(name, algorithm, ranks=4, sizes=[1e6, 64, 1e6], protocol="tcp")
    assert some.protocol.connection_setup_round_trips > 0
    frame = run_collective(some)
    alone = run_collective(replace(some, sizes_bytes=(1e6,)))
    assert frame.time_us[0] == pytest.approx(frame.time_us[2], rel=1e-12)
    assert frame.time_us[0] == pytest.approx(alone.time_us[0], rel=1e-12)
    without = replace(some.protocol, connection_setup_s=0.0, connection_setup_round_trips=0.0)
    free = run_collective(replace(some, protocol=without))
    assert frame.time_us.tolist() == pytest.approx(free.time_us.tolist(), rel=1e-12)


def test_a_new_connection_for_each_message_is_paid_for_each_time():
    """Steps times the set-up, which is all that differs where windows are large from the beginning."""
    persistent = settings("all_gather", "ring", ranks=4, protocol="tcp")
    transport = replace(persistent.protocol.transport, initial_window_packets=math.inf)
    persistent = replace(persistent, protocol=replace(persistent.protocol, transport=transport))
    each = replace(persistent, protocol=replace(persistent.protocol, connection="per_message"))
    times = [run_collective(one).time_us[0] for one in (persistent, each)]
    protocol = persistent.protocol
    setup_s = protocol.connection_setup_s + protocol.connection_setup_round_trips * 2 * (P + protocol.latency_s)
    assert times[1] - times[0] == pytest.approx(3 * 1e6 * setup_s, rel=1e-9)


@pytest.mark.parametrize(("name", "algorithm"), EVERY)
@pytest.mark.parametrize("protocol", ["tcp", "rdma", "ipoib"])
def test_no_time_is_below_its_bound_on_a_shipped_cluster(name, algorithm, protocol):
    some = load_collective(
        name, topology="v100_8x4_100g", protocol=protocol, algorithm=algorithm, sizes="0B,1kB,1MB,64MiB"
    )
    frame = run_collective(some, say=lambda line: None)
    assert (frame.bound_time_us <= frame.time_us * (1 + 1e-9)).all()
    assert frame.time_us.is_monotonic_increasing


def test_columns_are_the_documented_ones():
    frame = run_collective(settings("all_reduce", ranks=2, sizes=[8]))
    assert list(frame.columns) == [column.name for column in COLUMNS["collective_sizes"]]
    assert [str(kind) for kind in frame.dtypes] == ["int64", *["float64"] * 4, *["int64"] * 4]


def test_every_collective_has_a_factor():
    assert list(BUS_FACTOR) == list(COLLECTIVES)


def test_what_is_odd_is_said():
    said: list[str] = []
    run_collective(settings("send_recv", ranks=2, sizes=[8], protocol="ipoib"), say=said.append)
    assert any("ipoib is made for infiniband links" in line for line in said)


def test_the_time_of_a_call_comes_on_top():
    """A launch of 7 us makes every size take 7 us longer, bound and all."""
    plain, called = (
        run_collective(
            load_collective("all_reduce", topology="nvlink_node_8", protocol="ideal", sizes="1KiB,1MiB", **launch)
        )
        for launch in ({}, {"launch": "7 us"})
    )
    for column in ("time_us", "bound_time_us"):
        assert (called[column] - plain[column]).tolist() == pytest.approx([7.0, 7.0], rel=1e-9)
