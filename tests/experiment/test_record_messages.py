"""``run: {record: messages}``: a table of every message, which agrees with all others."""

from __future__ import annotations

import numpy as np
import pytest

import simnet
from simnet.experiment.columns import COLUMNS

SCENARIO = {
    "name": "recorded",
    "topology": {"star": {"hosts": 5, "bandwidth": "100 Gbps", "latency": "1 us"}},
    "protocol": "rdma",
    "workload": {"model": "resnet50", "gpu": "v100", "batch_size": 64},
    "training": {"workers": 5, "bucket_size": "25 MiB"},
    "run": {"iterations": 2, "warmup": 1, "record": "messages"},
}


@pytest.fixture(scope="module")
def recorded():
    return simnet.run(SCENARIO)


def test_the_table_has_the_documented_columns(recorded):
    assert list(recorded.messages.columns) == [column.name for column in COLUMNS["messages"]]
    assert (recorded.messages["job"] == recorded.summary["job"].iloc[0]).all()


def test_messages_add_up_to_exchanges(recorded):
    """Number and bytes by exchange, warm-up included; from the start of the first until the last delivery."""
    messages, exchanges = recorded.messages, recorded.collectives
    assert len(messages) == recorded.summary["messages"].iloc[0] == exchanges["messages"].sum()
    groups = messages.groupby("collective", observed=True)
    found = groups.agg(
        n=("firing", "size"), b=("size_bytes", "sum"), begin=("start_s", "min"), end=("delivered_s", "max")
    )
    found = found.sort_values("begin")
    assert found["n"].tolist() == exchanges["messages"].tolist()
    assert found["b"].tolist() == pytest.approx(exchanges["bytes_sent"].tolist(), rel=1e-12)
    assert found["begin"].tolist() == pytest.approx(exchanges["start_s"].tolist(), rel=1e-9)
    assert (found["end"] - found["begin"]).tolist() == pytest.approx(exchanges["duration_s"].tolist(), rel=1e-6)


def test_times_of_a_message_are_in_order(recorded):
    times = recorded.messages[["start_s", "flow_start_s", "drained_s", "delivered_s"]].to_numpy()
    assert (np.diff(times, axis=1) >= 0).all()


def test_recording_changes_nothing_else(recorded):
    """The same iterations as without, where nothing is played message by message."""
    without = simnet.run({**SCENARIO, "run": {"iterations": 2, "warmup": 1}})
    assert recorded.iterations["iteration_time_s"].tolist() == pytest.approx(
        without.iterations["iteration_time_s"].tolist(), rel=1e-9
    )
    with pytest.raises(ValueError, match="record: messages"):
        _ = without.messages


def test_it_is_saved_and_read_with_the_others(recorded, tmp_path):
    recorded.save(tmp_path / "result")
    again = simnet.load_result(tmp_path / "result")
    assert again.messages.equals(recorded.messages)
    # A result with messages may be replaced as any other.
    again.save(tmp_path / "result")
    assert simnet.load_result(tmp_path / "result").messages.equals(recorded.messages)
