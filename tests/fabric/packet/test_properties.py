"""What holds on any network of packets, whatever is sent and lost: for each kind of reliability."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.topology import leaf_spine

from .building import PAYLOAD, B, Traffic, behaving, is_at_rest

MESSAGES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(4, 7), st.integers(1, 400_000), st.floats(0, 1e-3)), min_size=1, max_size=8
)
TIMEOUT_S = 1e-3
BUDGET = 0.2


def protocol(reliability, congestion, spraying):
    return behaving(
        reliability=reliability,
        congestion_control=congestion,
        link_flow_control="none",
        spraying=spraying,
        initial_window_packets=10.0 if congestion != "none" else float("inf"),
        window_bytes=500_000.0,
        acknowledge_every=2.0 if reliability == "sack" else 1.0,
        acknowledge_delay_s=100e-6 if reliability == "sack" else 0.0,
        tail_loss_probe=reliability == "sack",
        minimum_timeout_s=TIMEOUT_S,
        initial_timeout_s=TIMEOUT_S,
        maximum_timeout_s=16 * TIMEOUT_S,
        few_packets=3.0,
        few_packets_timeout_s=TIMEOUT_S / 3,
        mark_from_s=10e-6 if congestion == "dctcp" else float("inf"),
        mark_all_s=10e-6 if congestion == "dctcp" else float("inf"),
        loss_budget=BUDGET,
        quiet_s=100e-6,
    )


def played(chosen, messages, loss, seed, buffer_bytes=60e3):
    topology = leaf_spine(
        leaves=2,
        hosts_per_leaf=4,
        spines=3,
        bandwidth_bytes_per_s=B,
        latency_s=1e-6,
        loss_probability=loss,
        buffer_bytes=buffer_bytes,
    )
    traffic = Traffic(topology, chosen, seed=seed)
    for source, target, size, at_s in messages:
        traffic.send(source, target, size, at_s=at_s)
    # `Traffic` refuses a message that is over twice, and one that is never.
    traffic.finish(0.1, within_s=100.0)
    return traffic


KINDS = [
    ("go_back_n", "none"),
    ("sack", "reno"),
    ("sack", "cubic"),
    ("sack", "dctcp"),
    ("selective_repeat", "none"),
    ("best_effort", "none"),
]


@pytest.mark.parametrize(("reliability", "congestion"), KINDS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    messages=MESSAGES, loss=st.sampled_from([0.0, 0.001, 0.02, 0.1]), seed=st.integers(0, 99), spraying=st.booleans()
)
def test_all_arrives_once_and_then_there_is_rest(reliability, congestion, messages, loss, seed, spraying):
    """Each message is over once, with all or as much as is asked for; then nothing is under way and no timer runs.

    Events are few: one a packet and hop, and some for each message, timeout and pause of its connection.
    """
    # Go-back-N takes no packet out of order, so that none are sent over several paths.
    spraying = spraying and reliability != "go_back_n"
    traffic = played(protocol(reliability, congestion, spraying), messages, loss, seed)
    # The budget is one of packets.
    packets = np.ceil(np.array([size for _, _, size, _ in messages]) / PAYLOAD)
    allowed = np.floor(BUDGET * packets) * PAYLOAD if reliability == "best_effort" else 0.0 * packets
    assert (np.array(traffic.lost_bytes) <= allowed).all()
    assert is_at_rest(traffic)
    tables, clock = traffic.wire.tables, traffic.wire.tables.clock[0]
    assert clock["events"] == 0
    timeouts = int(traffic.connections["timeouts"].sum())
    assert clock["handled"] <= 2.5 * clock["hops"] + 20 * (len(messages) + timeouts) + 50
    assert tables.ports["packets"].sum() == clock["hops"]


@pytest.mark.parametrize(("reliability", "congestion"), KINDS)
def test_the_same_seed_gives_the_same(reliability, congestion):
    """When each message is over, to the picosecond, and what was lost of it; with another seed it is another time."""
    messages = [(source, 4 + source, 2_000_000, source * 1e-5) for source in range(4)]

    def run(seed):
        traffic = played(protocol(reliability, congestion, False), messages, 0.02, seed)
        return traffic.over_s, traffic.lost_bytes, traffic.counts.lost.tolist()

    assert run(1) == run(1)
    assert run(1) != run(2)
