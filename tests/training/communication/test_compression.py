"""What travels of compressed gradients, from the shapes of the tensors; and what compressing takes of a worker."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from simnet.traffic import parameter_server_push_pull, with_pulls
from simnet.training.communication.buckets import make_buckets
from simnet.training.communication.compression import SCHEMES, compressed, standard_costs_s_per_byte
from simnet.training.communication.settings import Architecture, Compression
from simnet.training.computing.compute import compute_times
from simnet.training.plan import plan_iteration
from simnet.training.settings import Jitter, JobSettings, TrainingSettings
from simnet.units import MEBIBYTE
from simnet.workload import GradientTensor, load_model
from tests.training.building import B, P, iteration_s, ring_s, run_job, workload

RESNET50, BERT_LARGE = load_model("resnet50"), load_model("bert_large")
MODELS = pytest.mark.parametrize("model", [RESNET50, BERT_LARGE], ids=lambda model: model.name)


def sizes_of(model, name, workers=16, served=False, **options):
    return [message[1:] for message in SCHEMES[name].messages(model.tensors, workers, served, **options)]


@MODELS
def test_half_precision_is_two_bytes_an_element(model):
    for name in ("fp16", "bf16"):
        assert sizes_of(model, name) == [(2 * model.parameters, None)]


@MODELS
@pytest.mark.parametrize("bits", [1, 3, 8, 16])
def test_few_bits_are_whole_bytes_and_a_scale_a_tensor(model, bits):
    """Sum over tensors of ceil(n b / 8) + 4 bytes."""
    expected = sum(math.ceil(tensor.elements * bits / 8) + 4 for tensor in model.tensors)
    assert sizes_of(model, "quantize", bits=bits) == [(expected, None)]


@MODELS
@pytest.mark.parametrize(("ratio", "one_in"), [(0.01, 100), (0.1, 10), (1.0, 1)])
def test_few_elements_are_values_and_places(model, ratio, one_in):
    """k = ceil(r n) elements of a tensor, at least one, with 4 bytes each for value and place: N 8 k are gathered.

    Servers are sent 8 k and send back the union, at most N k elements, and no more bytes than the tensor has.
    """
    own = [8 * -(-tensor.elements // one_in) for tensor in model.tensors]
    assert sizes_of(model, "sparsify", ratio=ratio) == [(16 * sum(own), None)]
    union = sum(min(16 * size, 4 * tensor.elements) for size, tensor in zip(own, model.tensors, strict=True))
    assert sizes_of(model, "sparsify", served=True, ratio=ratio) == [(sum(own), union)]


def test_one_element_at_least():
    tensors = [GradientTensor("a", 3, 0, (3,)), GradientTensor("b", 1, 0, (1,))]
    assert SCHEMES["sparsify"].messages(tensors, 4, False, ratio=1e-9)[0].size_bytes == 4 * 2 * 8


@MODELS
@pytest.mark.parametrize("rank", [1, 4, 32])
def test_low_rank_is_two_factors_of_each_matrix_that_is_larger(model, rank):
    """P of r n elements and Q of r m for an n x m matrix with r (n + m) < n m; all else goes with P; 4 bytes each."""
    p = q = rest = 0
    for tensor in model.tensors:
        n, m = tensor.shape[0], tensor.elements // tensor.shape[0]
        if len(tensor.shape) > 1 and rank * (n + m) < n * m:
            p, q = p + rank * n, q + rank * m
        else:
            rest += tensor.elements
    assert sizes_of(model, "low_rank", rank=rank) == [(4 * (p + rest), None), (4 * q, None)]


def test_a_rank_that_shrinks_nothing_sends_all_at_once():
    """No matrix has r (n + m) < n m from the larger side on: one message of 4 bytes an element, as without."""
    assert sizes_of(RESNET50, "low_rank", rank=4096) == [(4 * RESNET50.parameters, None)]


def test_pulls_are_cut_among_servers_as_pushes_are():
    """3 workers push 10 bytes to 2 servers, 5 each, and pull 7 back: 4 of the first, 3 of the second."""
    schedule = with_pulls(parameter_server_push_pull(3, 2, 10, 1.0), 3, 7)
    assert np.bincount(schedule.operations.source, schedule.flow_bytes(), 5).tolist() == [10, 10, 10, 12, 9]


def test_standard_costs_are_those_measured_on_a_v100():
    """Together, over the 97.5 MiB of ResNet-50: 45 ms at rank 4, 54.5 ms half way to 64 ms at 8; top 1 % 240 ms."""
    for name, options, expected_s in [
        ("low_rank", {"rank": 4}, 0.045),
        ("low_rank", {"rank": 6}, 0.0545),
        ("low_rank", {"rank": 32}, 0.260),
        ("low_rank", {"rank": 1}, 0.045),
        ("sparsify", {"ratio": 0.01}, 0.240),
        ("quantize", {"bits": 8}, 0.01634),
    ]:
        assert 97.5 * MEBIBYTE * sum(standard_costs_s_per_byte(name, options)) == pytest.approx(expected_s, rel=1e-12)


# -- the time of a worker ----------------------------------------------------------------------------------------------

LOAD = workload([250_000, 1_000_000], forward_s=0.01, backward_s=[0.01, 0.01])  # 1 MB ready at 20 ms, 4 MB at 30 ms
HALF = Compression("fp16", {}, 2e-9, 1e-9)  # 2 ns a byte before the exchange, 1 ns behind it
JOB = TrainingSettings(4, bucket_bytes=1.0, compression=HALF)


def timeline(training, rank=0):
    buckets = make_buckets(LOAD.model.tensors, 4.0, training.bucket_bytes)
    plan = compressed(plan_iteration(LOAD.model, buckets, training), LOAD.model, training)
    return compute_times(JobSettings("job", LOAD, training), plan, 0).timeline(0, rank)


def test_compressing_delays_what_is_computed_after_it():
    """Announced at 20 + 2 = 22 ms and 30 + 2 + 8 = 40 ms, where backward ends; then 5 ms of decompressing."""
    assert timeline(JOB) == pytest.approx([0.022, 0.040, 0.040, 0.045], rel=1e-12)
    assert timeline(replace(JOB, workers=1)) == pytest.approx([0.02, 0.03, 0.03, 0.03], rel=1e-12)


def test_a_slow_worker_compresses_slowly_too():
    slow = replace(JOB, speed_factors=(1.0, 0.5, 1.0, 1.0))
    assert timeline(slow, 1) == pytest.approx([2 * time for time in timeline(slow, 0)], rel=1e-12)


def test_without_overlap_an_iteration_is_computing_compressing_and_half_of_the_bytes():
    """30 ms, 5 MB at 3 ns a byte, and two ring all-reduces of 0.5 and 2 MB."""
    training = replace(JOB, overlap=False)
    _, rows, collectives, _ = run_job(LOAD, training)
    for row in rows:
        assert row.compute_time_s == pytest.approx(0.03 + 15e-3, rel=1e-9)
        assert iteration_s(row) == pytest.approx(0.045 + ring_s(4, 0.5e6) + ring_s(4, 2e6), rel=1e-9)
    assert [row.size_bytes for row in collectives[:2]] == [0.5e6, 2e6]


def test_the_second_factor_goes_after_the_first():
    """A 1000 x 500 matrix at rank 2: all-reduces of 4 x 2 x 1000 and 4 x 2 x 500 bytes, one after the other."""
    model = replace(LOAD.model, tensors=(GradientTensor("w", 500_000, 0, (1000, 500)),))
    load = replace(LOAD, model=model)
    training = replace(JOB, compression=Compression("low_rank", {"rank": 2}))
    _, rows, collectives, _ = run_job(load, training)
    p, q = collectives[:2]
    assert (p.size_bytes, q.size_bytes, p.bucket, q.bucket) == (8000, 4000, 0, 0)
    assert q.start_s == pytest.approx(p.start_s + ring_s(4, 8000.0), rel=1e-9)
    assert iteration_s(rows[0]) == pytest.approx(0.03 + ring_s(4, 8000.0) + ring_s(4, 4000.0), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "expected_s"),
    [
        ("ring", lambda n, s: (n - 1) * (s / B + P)),
        ("mesh", lambda n, s: (n - 1) * s / B + P),
        ("halving_doubling", lambda n, s: (n - 1) * s / B + math.log2(n) * P),
        ("butterfly", lambda n, s: (n - 1) * s / B + math.log2(n) * P),
    ],
)
def test_few_elements_are_gathered_as_the_architecture_does_it(name, expected_s):
    """All-gather of s = 8 (2,500 + 10,000) bytes of each of N = 4: each receives (N - 1) s, whatever the way."""
    training = replace(
        JOB, architecture=Architecture(name), bucket_bytes=1e9, compression=Compression("sparsify", {"ratio": 0.01})
    )
    job, rows, collectives, _ = run_job(LOAD, training)
    own = 8.0 * 12_500
    assert (collectives[0].what, collectives[0].algorithm, collectives[0].size_bytes) == ("all_gather", name, 4 * own)
    assert job.sent.payload_bytes == pytest.approx([3 * 3 * own] * 4, rel=1e-12)  # in 3 iterations
    assert iteration_s(rows[0]) == pytest.approx(0.03 + expected_s(4, own), rel=1e-9)


def test_servers_are_pushed_few_elements_and_pulled_the_union_of():
    """4 workers, one server: 4 s into its link and 4 times min(4 s, all) out of it, with s = 8 x 12,500 bytes."""
    training = replace(
        JOB,
        architecture=Architecture("parameter_server"),
        bucket_bytes=1e9,
        compression=Compression("sparsify", {"ratio": 0.01}),
    )
    _, rows, collectives, _ = run_job(LOAD, training, hosts=5)
    own = 8.0 * 12_500
    assert collectives[0].bytes_sent == pytest.approx(4 * own + 4 * 4 * own, rel=1e-12)
    assert iteration_s(rows[0]) == pytest.approx(0.03 + 4 * own / B + P + 16 * own / B + P, rel=1e-9)


@pytest.mark.parametrize("forward_overlap", [False, True])
def test_with_jitter_and_forward_overlap_parts_still_add_up(forward_overlap):
    training = replace(JOB, forward_overlap=forward_overlap, jitter=Jitter("lognormal", 0.3))
    _, rows, _, _ = run_job(LOAD, training)
    for rank in range(4):
        own = [row for row in rows if row.rank == rank]
        for row, following in pairwise(own):
            assert row.start_s + iteration_s(row) == pytest.approx(following.start_s, rel=1e-9)
            assert min(row.exposed_communication_time_s, row.waiting_time_s) >= 0.0
