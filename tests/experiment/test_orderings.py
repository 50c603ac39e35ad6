"""What every published measurement agrees on: which transport is better, on what network."""

from __future__ import annotations

import pytest

import simnet

NO_OVERHEADS = {
    **dict.fromkeys(("send_overhead", "receive_overhead", "latency", "connection_setup", "fetch"), "0 s"),
    **dict.fromkeys(("send_overhead_per_byte", "receive_overhead_per_byte"), "0 s/B"),
    **dict.fromkeys(("header", "pipeline"), "0 B"),
    **dict.fromkeys(
        ("connection_cap", "host_send_capacity", "host_receive_capacity", "initial_window", "window"), "unlimited"
    ),
    **dict.fromkeys(("copies_send", "copies_receive", "connection_setup_round_trips"), 0),
    "forwarding": "cut_through",
}


@pytest.fixture(scope="module")
def equal_links():
    """Return the summaries of the 100-GPU job by protocol, all on the 100 Gbit/s cluster."""
    names = ["rdma", "dpdk", "ipoib", "tcp"]
    return simnet.sweep("inception_v3_100gpu", {"protocol": names}).set_index("protocol")


def test_on_the_links_that_each_is_used_on(shipped):
    """Efficiency: RDMA > IPoIB (both 100 Gbit/s InfiniBand) > TCP (10 Gbit/s Ethernet)."""
    names = ("inception_v3_100gpu", "inception_v3_100gpu_ipoib", "inception_v3_100gpu_tcp_10g")
    rdma, ipoib, tcp = (shipped(name).summary.iloc[0] for name in names)
    assert [row.protocol for row in (rdma, ipoib, tcp)] == ["rdma", "ipoib", "tcp"]
    assert {row.workers for row in (rdma, ipoib, tcp)} == {100}
    assert 1 > rdma.scaling_efficiency > ipoib.scaling_efficiency > tcp.scaling_efficiency > 0
    assert rdma.communication_time_s < ipoib.communication_time_s < tcp.communication_time_s


def test_on_equal_links(equal_links):
    """Efficiency at 100 Gbit/s: RDMA > DPDK > IPoIB and kernel TCP."""
    efficiency = equal_links["scaling_efficiency"]
    assert efficiency["rdma"] > efficiency["dpdk"] > max(efficiency["ipoib"], efficiency["tcp"])


def test_without_overheads_all_are_the_same():
    """With every overhead set to 0, and no window, the four and `ideal` differ by less than 1e-9."""
    values = [{name: NO_OVERHEADS} for name in ("rdma", "dpdk", "ipoib", "tcp", "ideal")]
    frame = simnet.sweep("inception_v3_100gpu", {"protocol": values}, {"run.iterations": 3})
    for column in ("scaling_efficiency", "iteration_time_s", "exposed_communication_time_s", "communication_time_s"):
        assert frame[column].max() == pytest.approx(frame[column].min(), rel=1e-9), column
    assert (frame["wire_bytes"] == frame["bytes_sent_per_worker"]).all()


def test_a_strange_pair_of_protocol_and_links_is_flagged_not_refused(shipped):
    result = simnet.run("resnet50_16gpu", {"protocol": "tcp", "run.iterations": 1})
    assert result.warnings == (
        "tcp is made for ethernet or wan or wireless links and runs here on infiniband: "
        "its costs are taken as they are, at the bandwidth and latency of the links",
    )
    assert shipped("resnet50_16gpu").warnings == ()


@pytest.mark.parametrize("mode", ["ipoib", "ipoib-datagram"])
def test_ipoib_alone_is_datagram_mode(mode):
    run = simnet.run("resnet50_16gpu", {"protocol": mode, "run.iterations": 1})
    assert run.about["protocol"] == "ipoib"
    assert run.summary.protocol[0] == mode


@pytest.mark.parametrize(("topology", "meant"), [("v100_8x4_100g", "infiniband"), ("v100_8x4_10g", "roce")])
def test_rdma_is_what_the_links_are(topology, meant):
    run = simnet.run("resnet50_16gpu", {"topology": topology, "run.iterations": 1})
    assert run.about["protocol"] == meant
    assert run.warnings == ()
