"""What goes first and what travels together, in jobs small enough to be followed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.training.communication.settings import Architecture, Scheduling
from simnet.training.settings import RunSettings, TrainingSettings
from tests.training.building import B, P, run_job, workload

LONG = RunSettings(iterations=6, warmup=3)


def training(workers=2, *, architecture="ring", forward_overlap=True, **scheduling) -> TrainingSettings:
    """Every tensor is a bucket."""
    return TrainingSettings(
        workers,
        Architecture(architecture),
        bucket_bytes=0.0,
        forward_overlap=forward_overlap,
        scheduling=Scheduling(**scheduling),
    )


def period_s(load, settings_, run=LONG, **network) -> float:
    """Time from one iteration to the next, when all has settled."""
    _, rows, _, _ = run_job(load, settings_, run, **network)
    starts = sorted(row.start_s for row in rows if row.rank == 0)
    return starts[-1] - starts[-2]


# Two layers of 12,500,000 elements, of which an all-reduce between two workers takes S / B = 50 ms; all other times are
# in multiples of a piece of 1 MB, which takes 1 ms. Forward 5 ms and backward 10 ms a layer.
C, F, BACK = 0.05, 0.005, 0.01
TWO_LAYERS = workload([12_500_000, 12_500_000], forward_s=2 * F, backward_s=2 * BACK)
PIECE = 1e6


def test_first_ready_first_leaves_the_first_layer_to_the_end():
    """The last layer goes from BACK on, the first after it, and the next forward pass begins then:
    BACK + 2 C + 2 F from one iteration to the next."""
    found_s = period_s(TWO_LAYERS, training(), latency_s=0.0)
    assert found_s == pytest.approx(BACK + 2 * C + 2 * F, rel=1e-9)


@pytest.mark.parametrize("piece_bytes", [PIECE, 2 * PIECE, 5 * PIECE])
def test_priority_lets_the_first_layer_pass_at_the_next_piece(piece_bytes):
    """The first layer is ready at 2 BACK, at the end of a piece of the other, and passes: it is over at 2 BACK + C, the
    other at BACK + 2 C as before, behind which only its own forward pass remains:
    max(2 BACK + C + F, BACK + 2 C) + F."""
    found_s = period_s(TWO_LAYERS, training(order="priority", piece_bytes=piece_bytes), latency_s=0.0)
    assert found_s == pytest.approx(max(2 * BACK + C + F, BACK + 2 * C) + F, rel=1e-9)


def test_priority_without_pieces_waits_for_what_is_under_way():
    """The last layer is under way when the first is ready, and is not interrupted: as first ready first."""
    found_s = period_s(TWO_LAYERS, training(order="priority"), latency_s=0.0)
    assert found_s == pytest.approx(BACK + 2 * C + 2 * F, rel=1e-9)


def test_three_layers_are_enough_for_priority_without_pieces():
    """Layers 3, 2, 1 are ready at BACK, 2 BACK, 3 BACK; 3 goes until BACK + C. Then 1, the first that is needed, until
    BACK + 2 C, and 2 until BACK + 3 C, while the forward pass of 1 goes on. Then F for 2 and F for 3; first ready first
    would have one F more."""
    three = workload([12_500_000] * 3, forward_s=3 * F, backward_s=3 * BACK)
    first_ready = period_s(three, training(), latency_s=0.0)
    priority = period_s(three, training(order="priority"), latency_s=0.0)
    assert first_ready == pytest.approx(BACK + 3 * C + 3 * F, rel=1e-9)
    assert priority == pytest.approx(BACK + 3 * C + 2 * F, rel=1e-9)


def test_every_piece_pays_its_latency():
    """Between two workers a piece takes 2 steps, so that n pieces take 2 (n - 1) latencies more than one."""
    whole = period_s(TWO_LAYERS, training(), latency_s=P)
    pieces = period_s(TWO_LAYERS, training(piece_bytes=5 * PIECE), latency_s=P)
    assert pieces - whole == pytest.approx(2 * (2 * 10 - 2) * P, rel=1e-6)


@pytest.mark.parametrize("negotiation_s", [0.001, 0.004])
def test_negotiation_adds_to_what_waits_for_nothing_else(negotiation_s):
    """One bucket, nothing hidden: compute + negotiation + exchange."""
    one = workload([25_000_000], forward_s=F, backward_s=BACK)
    found_s = period_s(one, training(forward_overlap=False, negotiation_s=negotiation_s), latency_s=0.0)
    assert found_s == pytest.approx(F + BACK + negotiation_s + 0.1, rel=1e-9)


def test_streams_share_the_links():
    """Two exchanges at once take as long as one after the other where nothing but bytes counts, and share latency."""
    one_by_one = period_s(TWO_LAYERS, training(forward_overlap=False), latency_s=P)
    together = period_s(TWO_LAYERS, training(forward_overlap=False, streams=2), latency_s=P)
    assert one_by_one == pytest.approx(2 * F + BACK + 2 * C + 4 * P, rel=1e-9)
    assert together < one_by_one
    # At the end the second has the links alone, but never more than them.
    assert together >= 2 * F + BACK + 2 * C


@pytest.mark.parametrize("cycle_s", [0.004, 0.025, 0.07])
def test_cycle_by_hand(cycle_s):
    """Two buckets ready at 2 F + BACK and 2 F + 2 BACK of the first iteration, of C each on their own."""
    _, _, rows, _ = run_job(
        TWO_LAYERS,
        training(forward_overlap=False, fusion="cycle", cycle_s=cycle_s),
        RunSettings(iterations=1, warmup=0),
        latency_s=0.0,
    )
    ends = [math.ceil(round((2 * F + n * BACK) / cycle_s, 9)) * cycle_s for n in (1, 2)]
    if ends[0] == ends[1]:
        [row] = rows
        assert (row.start_s, row.duration_s) == (pytest.approx(ends[0]), pytest.approx(2 * C))
    else:
        first, second = rows
        assert first.start_s == pytest.approx(ends[0])
        assert second.start_s == pytest.approx(max(ends[0] + C, ends[1]))


def test_merged_buckets_by_hand():
    """Two tensors, the second ready BACK = 10 ms after the first, before which a start-up of 2 P = 20 ms is over:
    together they take one start-up less."""
    far = 0.01
    merged = period_s(TWO_LAYERS, training(forward_overlap=False, fusion="merged"), latency_s=far)
    apart = period_s(TWO_LAYERS, training(forward_overlap=False), latency_s=far)
    assert apart == pytest.approx(2 * F + BACK + 2 * (C + 2 * far), rel=1e-9)
    assert merged == pytest.approx(2 * F + 2 * BACK + 2 * C + 2 * far, rel=1e-9)


# -- parameter servers -------------------------------------------------------------------------------------------------


def test_a_worker_pushes_one_after_the_other_with_priority():
    """One worker and one server, two layers of S / B = C' = 50 ms, 20 pieces of 2.5 ms each: pushes follow each other,
    and a pull goes beside the next push. The first layer is ready at 2 BACK, at the end of 4 pieces, and pushed until
    2 BACK + C', pulled one piece later; the other is pushed until BACK + 2 C', pulled one piece later."""
    piece = 2.5e-3
    load = workload([12_500_000, 12_500_000], forward_s=2 * F, backward_s=2 * BACK)
    found_s = period_s(
        load,
        training(1, architecture="parameter_server", order="priority", piece_bytes=piece * B),
        hosts=2,
        latency_s=0.0,
    )
    assert found_s == pytest.approx(max(2 * BACK + C + piece + F, BACK + 2 * C + piece) + F, rel=1e-9)


def test_what_waits_for_its_turn_waits_for_nobody():
    """Two workers alike, one server, pushes one by one: all of the time that they stand still is communication."""
    _, rows, _, _ = run_job(
        TWO_LAYERS, training(architecture="parameter_server", order="priority", piece_bytes=PIECE), LONG, hosts=3
    )
    assert sum(row.exposed_communication_time_s for row in rows) > 0.0
    assert sum(row.waiting_time_s for row in rows) == pytest.approx(0.0, abs=1e-9)


# -- whatever the schedule ---------------------------------------------------------------------------------------------

_SCHEDULINGS = st.builds(
    dict,
    order=st.sampled_from(["first_ready", "priority"]),
    piece_bytes=st.sampled_from([math.inf, 3000.0, 64.0]),
    negotiation_s=st.sampled_from([0.0, 1e-4]),
    credit_bytes=st.sampled_from([math.inf, 5000.0, 1.0]),
    streams=st.sampled_from([None, 1, 2, 5]),
)
_FUSIONS = st.sampled_from(
    [
        {},
        {"fusion": "merged"},
        {"fusion": "cycle", "cycle_s": 1e-3, "buffer_bytes": 4000.0},
        {"fusion": "cycle", "cycle_s": 0.01},
    ]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 2000), min_size=1, max_size=6), st.integers(2, 5), _SCHEDULINGS, _FUSIONS, st.booleans())
def test_an_all_reduce_sends_the_same_bytes_whatever_goes_first(elements, workers, scheduling, fusion, overlap):
    """2 (N - 1) S bytes of all workers in each iteration."""
    _, rows, exchanges, _ = run_job(
        workload(elements), training(workers, forward_overlap=overlap, **(scheduling | fusion))
    )
    size_bytes = 4.0 * sum(elements)
    for iteration in range(4):
        own = [row for row in exchanges if row.iteration == iteration]
        assert sum(row.size_bytes for row in own) == pytest.approx(size_bytes)
        assert sum(row.bytes_sent for row in own) == pytest.approx(2 * (workers - 1) * size_bytes)
        assert all(row.start_s >= row.announced_s + scheduling["negotiation_s"] * (1 - 1e-9) for row in own)
    assert len(rows) == 4 * workers


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 2000), min_size=1, max_size=5),
    st.integers(1, 4),
    st.sampled_from(["first_ready", "priority"]),
    st.sampled_from([math.inf, 3000.0]),
    st.sampled_from([None, 1, 3]),
    st.sampled_from(["parameter_server", "gossip"]),
)
def test_pushes_send_the_same_bytes_whatever_goes_first(elements, workers, order, piece_bytes, streams, architecture):
    """Between workers and a server 2 N S; what gossip on a ring sends to its neighbours, min(N - 1, 2) N S."""
    settings_ = training(workers, architecture=architecture, order=order, piece_bytes=piece_bytes, streams=streams)
    _, _, exchanges, _ = run_job(workload(elements), settings_, hosts=workers + 1)
    size_bytes = 4.0 * sum(elements)
    copies = 2 * workers if architecture == "parameter_server" else min(workers - 1, 2) * workers
    for iteration in range(3):
        sent = sum(row.bytes_sent for row in exchanges if row.iteration == iteration)
        assert sent == pytest.approx(copies * size_bytes)
