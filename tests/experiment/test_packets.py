"""Training at packet level: the same tables as at flow level, and what only packets can tell."""

from __future__ import annotations

import pandas as pd
import pytest

import simnet
from simnet.errors import InputError

SCENARIO = {
    "topology": {"star": {"hosts": 5, "bandwidth": "100 Gbps", "latency": "1 us"}},
    "protocol": "roce",
    "workload": {"model": "resnet50", "batch_size": 64, "samples_per_s": 250.0},
    "run": {"iterations": 2},
}


@pytest.mark.parametrize("architecture", ["ring", "butterfly", "mesh", "parameter_server"])
def test_it_takes_as_long_as_at_flow_level(architecture):
    """Nothing is lost and switches pause in time: within 2 %, and the links have carried the same bytes."""
    training = {"workers": 4, "architecture": architecture, "overlap": False}
    flow, packet = (
        simnet.run(SCENARIO | {"training": training, "fidelity": fidelity}) for fidelity in ("flow", "packet")
    )
    exposed = "exposed_communication_time_s"
    assert packet.summary[exposed][0] == pytest.approx(flow.summary[exposed][0], rel=0.02)
    assert packet.summary["bytes_sent_per_worker"][0] == flow.summary["bytes_sent_per_worker"][0]
    used = flow.links["wire_bytes"] > 0
    # At packet level acknowledgements take some of the way back.
    assert (packet.links["wire_bytes"][used] >= flow.links["wire_bytes"][used] * (1 - 1e-9)).all()
    assert (packet.links["wire_bytes"][used] <= flow.links["wire_bytes"][used] * 1.02).all()
    assert packet.queues is not None
    assert packet.queues[["dropped", "lost", "marked"]].sum().sum() == 0


def test_queues_are_saved_and_read_again(tmp_path):
    result = simnet.run(SCENARIO | {"training": {"workers": 2}, "fidelity": "packet"})
    result.save(tmp_path / "result")
    again = simnet.load_result(tmp_path / "result")
    pd.testing.assert_frame_equal(again.queues, result.queues)
    pd.testing.assert_frame_equal(again.connections, result.connections)
    assert simnet.run(SCENARIO | {"training": {"workers": 2}}).queues is None


def test_connections_account_for_what_was_sent():
    """Payload that has arrived is what schedules sent, 3 iterations of it; with headers of each packet on the wire."""
    training = {"workers": 4, "overlap": False}
    result = simnet.run(SCENARIO | {"training": training, "fidelity": "packet"})
    connections = result.connections
    assert connections["goodput_bytes"].sum() == pytest.approx(
        3 * 4 * result.summary["bytes_sent_per_worker"][0], rel=1e-9
    )
    assert (connections["wire_bytes"] > connections["goodput_bytes"]).all()
    assert connections[["retransmitted", "timeouts", "lost_bytes"]].sum().sum() == 0


def test_what_is_lost_is_sent_again():
    """One packet in 10,000 is lost on each link: as many bytes arrive, and it takes longer."""
    topology = {"star": SCENARIO["topology"]["star"] | {"loss_probability": 1e-4}}
    training = {"workers": 4, "overlap": False}
    lossy = simnet.run(SCENARIO | {"topology": topology, "training": training, "fidelity": "packet"})
    clean = simnet.run(SCENARIO | {"training": training, "fidelity": "packet"})
    assert lossy.queues["lost"].sum() > 0
    assert lossy.summary["iteration_time_s"][0] > clean.summary["iteration_time_s"][0]
    assert not lossy.warnings


def test_a_switch_that_would_never_resume_is_refused():
    with pytest.raises(InputError, match="resume_at is above pause_at"):
        simnet.run(SCENARIO | {"fidelity": "packet", "packet": {"pause_at": "10 KB", "resume_at": "20 KB"}})


def test_switches_without_room_for_a_packet_are_refused():
    """4096 bytes and 82 of headers are 4178, more than 4 KB."""
    with pytest.raises(InputError, match="a buffer of 4000 B has no room for a packet, one of roce has 4178 B"):
        simnet.run(SCENARIO | {"fidelity": "packet", "packet": {"buffer": "4 KB"}})


@pytest.mark.parametrize("fidelity", ["flow", "packet"])
def test_what_is_lost_and_not_sent_again_is_accounted_for(fidelity):
    """1 % of packets on each of two links: 1 - 0.99^2 = 1.99 % of the payload, within 10 % of that."""
    topology = {"star": SCENARIO["topology"]["star"] | {"loss_probability": 0.01}}
    training = {"workers": 4, "overlap": False}
    result = simnet.run(
        SCENARIO | {"topology": topology, "training": training, "fidelity": fidelity, "protocol": "best-effort"}
    )
    row = result.summary.iloc[0]
    assert row["lost_bytes"] / (4 * row["bytes_sent_per_worker"]) == pytest.approx(1 - 0.99**2, rel=0.1)
    by_bucket = result.collectives.query("iteration >= 0")["lost_bytes"]
    assert by_bucket.sum() == pytest.approx(2 * row["lost_bytes"], rel=1e-9)
