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
    assert simnet.run(SCENARIO | {"training": {"workers": 2}}).queues is None


def test_what_is_lost_is_sent_again():
    """One packet in 10,000 is lost on each link: as many bytes arrive, and it takes longer."""
    topology = {"star": SCENARIO["topology"]["star"] | {"loss_probability": 1e-4}}
    training = {"workers": 4, "overlap": False}
    lossy = simnet.run(SCENARIO | {"topology": topology, "training": training, "fidelity": "packet"})
    clean = simnet.run(SCENARIO | {"training": training, "fidelity": "packet"})
    assert lossy.queues["lost"].sum() > 0
    assert lossy.summary["iteration_time_s"][0] > clean.summary["iteration_time_s"][0]
    assert not lossy.warnings


def test_protocols_that_do_not_go_by_packets_yet_are_refused():
    with pytest.raises(InputError, match="fidelity packet does not know tcp yet, known: ideal, roce"):
        simnet.run(SCENARIO | {"protocol": "tcp", "fidelity": "packet"})
    with pytest.raises(InputError, match="resume_at is above pause_at"):
        simnet.run(SCENARIO | {"fidelity": "packet", "packet": {"pause_at": "10 KB", "resume_at": "20 KB"}})
