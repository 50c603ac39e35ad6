"""Uniform rings in the frame of their chunks: what is worked out for runs of chunks is what each of them would do."""

from __future__ import annotations

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.fabric.fluid import FluidFabric
from simnet.fabric.network import Network
from simnet.fabric.settings import EngineSettings
from simnet.protocols import FlowProtocol
from simnet.topology import star
from simnet.traffic import ring_all_reduce

from .building import begin


@st.composite
def uniform_rings(draw):
    """Ranks, elements, latency [s], a protocol and the time of reducing [s/byte], on links of 1 byte/s."""
    ranks = draw(st.integers(2, 200))
    elements = ranks * draw(st.integers(0, 20)) + draw(st.integers(0, ranks))
    overheads = st.sampled_from([0.0, 0.5, 3.0])
    protocol = FlowProtocol(
        send_overhead_s=draw(overheads),
        receive_overhead_s=draw(overheads),
        connection_setup_s=draw(overheads),
        connection=draw(st.sampled_from(["persistent", "per_message"])),
    )
    return ranks, elements, draw(st.floats(0, 5)), protocol, draw(st.sampled_from([0.0, 0.25, 2.0]))


def played(case, *, skip_periods: bool) -> tuple[list[float], FluidFabric]:
    """All that can be measured of two all-reduces, one after the other, and the fabric."""
    ranks, elements, latency_s, protocol, reduce_s_per_byte = case
    network = Network(star(hosts=ranks, bandwidth_bytes_per_s=1.0, latency_s=latency_s / 2), protocol)
    fabric = FluidFabric(simpy.Environment(), network, reduce_s_per_byte, EngineSettings(skip_periods=skip_periods))
    schedule = ring_all_reduce(ranks, elements, 1.0)
    measured = []
    for _ in range(2):
        play = begin(fabric, schedule)
        fabric.env.run()
        transfers = [fabric.transfer_s(node) for node in network.compiled.rank_nodes.tolist()]
        measured += [*play.rank_duration_s, *fabric.carried_bytes(), *fabric.busy_s(), *transfers]
    return measured, fabric


@given(uniform_rings())
@settings(max_examples=150, deadline=None)
def test_runs_of_chunks_do_what_each_chunk_would(case):
    """Times, bytes, busy times, transfers (with their pauses) and messages as of working out every message."""
    by_runs, fabric = played(case, skip_periods=True)
    one_by_one, plain = played(case, skip_periods=False)
    assert by_runs == pytest.approx(one_by_one, rel=1e-9, abs=1e-9)
    assert fabric.counts.messages == plain.counts.messages


def test_receivers_pause_where_a_long_chunk_follows_short_ones():
    """400 ranks, chunks of 1 and 2 bytes, latency 40 s: the short ones gain 1 s a firing, and their receivers wait."""
    case = (400, 600, 40.0, FlowProtocol(), 0.0)
    ranks = case[0]
    measured, fabric = played(case, skip_periods=True)
    transfers = np.array(measured[-ranks:])
    assert transfers.min() < 0.98 * transfers.max()
    assert measured == pytest.approx(played(case, skip_periods=False)[0], rel=1e-12)
    assert fabric.counts.simulated_messages < fabric.counts.messages / 10


def test_chunks_that_differ_by_an_element_are_not_worked_out_one_by_one():
    """2,000 ranks, 8 million messages, 1,000 chunks longer than the others: a few runs in each of 3,998 firings."""
    ranks = 2000
    _, fabric = played((ranks, 100 * ranks + 1000, 100.0, FlowProtocol(), 0.0), skip_periods=True)
    assert fabric.counts.messages == 2 * 2 * (ranks - 1) * ranks
    assert fabric.counts.simulated_messages < 100 * 2 * ranks
