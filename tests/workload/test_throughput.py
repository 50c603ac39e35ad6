"""Measured rates: each has a source, the time of an iteration is batch / rate, and linear in between."""

from __future__ import annotations

import math
from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.workload import (
    PRECISIONS,
    Throughput,
    list_gpus,
    list_models,
    list_throughput,
    load_model,
    model_entry,
    table_workload,
    throughput_curve,
)

ROWS = list_throughput()


def _curves() -> list[tuple[str, str, str, int | None]]:
    """Every case as a scenario can ask for it: by family (v100), form (v100_sxm2) and full name."""
    cases = {
        (row.model, "_".join(row.gpu.split("_")[:parts]), row.precision, row.sequence_length)
        for row in ROWS
        for parts in range(1, row.gpu.count("_") + 2)
    }
    return sorted(cases, key=str)


CURVES = _curves()


def test_each_row_has_a_model_a_gpu_a_rate_and_a_source() -> None:
    gpus = {gpu.name: gpu for gpu in list_gpus()}
    for row in ROWS:
        assert row.model in list_models()
        assert row.precision in PRECISIONS
        assert gpus[row.gpu].peak(row.precision)
        assert row.batch_size >= 1
        assert math.isfinite(row.samples_per_s)
        assert row.samples_per_s > 0
        assert row.source
        assert row.url.startswith("https://")
        assert (row.sequence_length is None) == (model_entry(row.model).default_sequence_length is None)


def test_rates_are_below_what_the_gpu_can_do_at_its_peak() -> None:
    """Rate < peak / FLOPs per sample; in fp32 minimal filtering saves at most 3/4 of the multiplications."""
    gpus = {gpu.name: gpu for gpu in list_gpus()}
    for row in ROWS:
        layers = load_model(row.model, row.sequence_length).layers
        flops = sum(
            (layer.forward_flops + layer.backward_flops)
            * (0.25 if row.precision == "fp32" and (layer.kernel, layer.stride) == ("3x3", 1) else 1.0)
            for layer in layers
        )
        peak = gpus[row.gpu].peak(row.precision)
        assert peak is not None
        assert row.samples_per_s < peak / flops, row


@pytest.mark.parametrize("case", CURVES, ids=lambda case: "-".join(map(str, case)))
def test_compute_time_is_batch_by_rate_and_grows_with_the_batch(case: tuple[str, str, str, int | None]) -> None:
    model, gpu, precision, length = case
    curve = throughput_curve(*case)
    assert curve
    for row in curve:
        workload = table_workload(
            model=model, gpu=gpu, batch_size=row.batch_size, precision=precision, sequence_length=length
        )
        assert workload.compute_time_s == pytest.approx(row.batch_size / row.samples_per_s, rel=1e-12)
        assert row.source in workload.source
    for low, high in pairwise(curve):
        assert low.batch_size < high.batch_size
        assert low.iteration_time_s < high.iteration_time_s


def test_every_row_can_be_used_by_giving_its_rate() -> None:
    for row in ROWS:
        workload = table_workload(
            model=row.model,
            gpu=row.gpu,
            batch_size=row.batch_size,
            precision=row.precision,
            sequence_length=row.sequence_length,
            samples_per_s=row.samples_per_s,
        )
        assert workload.compute_time_s == pytest.approx(row.iteration_time_s, rel=1e-12)
        assert workload.samples_per_s == pytest.approx(row.samples_per_s, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "gpu", "precision", "batch", "length", "rate"),
    [
        ("resnet50", "v100", "fp32", 64, None, 253.1),  # HKBU
        ("bert_base", "v100", "fp32", 64, 64, 212.8),  # HKBU
        ("bert_large", "v100", "fp32", 8, 64, 49.0),  # HKBU
        ("inception_v3", "v100", "fp32", 64, None, 247.43),  # MXNet performance FAQ
        ("inception_v3_noaux", "v100", "fp32", 64, None, 247.43),
        ("inception_v3", "p100", "fp32", 64, None, 142.0),  # TensorFlow benchmarks
        ("bert_base", "v100", "fp32", 32, None, 119.6),  # DLPerf, NGC PyTorch
        ("bert_large", "v100", "fp32", 32, None, 50.0),  # NVIDIA DeepLearningExamples
        ("bert_large", "a100", "amp", 256, None, 580.0),
        ("resnet50", "a100_sxm4", "tf32", 256, None, 938.0),
        ("vgg16", "p100", "fp32", 32, None, 144.0),
    ],
)
def test_published_rates(model: str, gpu: str, precision: str, batch: int, length: int | None, rate: float) -> None:
    workload = table_workload(model=model, gpu=gpu, batch_size=batch, precision=precision, sequence_length=length)
    assert workload.samples_per_s == pytest.approx(rate, rel=1e-12)
    assert (workload.gpu, workload.precision, workload.batch_size) == (gpu, precision, batch)


def test_which_row_of_several_is_used() -> None:
    """For ResNet-50 on V100 in fp32 at 64 there are HKBU (rank 1) and MXNet (rank 6); on SXM2 only MXNet's is left."""
    rates = {row.samples_per_s for row in list_throughput("resnet50", "v100", "fp32") if row.batch_size == 64}
    assert rates == {253.1, 343.19}
    assert (
        next(row for row in throughput_curve("resnet50", "v100", "fp32") if row.batch_size == 64).samples_per_s == 253.1
    )
    on_sxm2 = throughput_curve("resnet50", "v100_sxm2", "fp32")
    assert next(row for row in on_sxm2 if row.batch_size == 64).samples_per_s == 343.19


def test_rows_of_a_case_stand_in_order_of_preference() -> None:
    key = lambda row: (row.model, row.gpu.split("_")[0], row.precision, row.sequence_length, row.batch_size)  # noqa: E731
    for _, rows in groupby(ROWS, key=key):
        ranks = [row.preference for row in rows]
        assert ranks == sorted(ranks)


@given(share=st.floats(0.0, 1.0), data=st.data())
def test_time_per_iteration_is_linear_between_measured_batches(share: float, data: st.DataObject) -> None:
    """t(b) = t_0 + (b - b_0) / (b_1 - b_0) (t_1 - t_0)."""
    case = data.draw(st.sampled_from([case for case in CURVES if len(throughput_curve(*case)) > 1]))
    low, high = data.draw(st.sampled_from(list(pairwise(throughput_curve(*case)))))
    batch = low.batch_size + round(share * (high.batch_size - low.batch_size))
    model, gpu, precision, length = case
    workload = table_workload(model=model, gpu=gpu, batch_size=batch, precision=precision, sequence_length=length)
    expected = np.interp(batch, [low.batch_size, high.batch_size], [low.iteration_time_s, high.iteration_time_s])
    assert workload.compute_time_s == pytest.approx(float(expected), rel=1e-12)


def test_doubling_the_batch_costs_more_but_not_more_than_twice_for_one_source() -> None:
    """A bigger batch uses a GPU better: t(b) < t(2b) <= 2 t(b), for all rates of MXNet's series on a V100."""
    series = throughput_curve("inception_v3", "v100", "fp32")
    times: dict[int, Throughput] = {row.batch_size: row for row in series}
    doubled = [(times[batch], times[2 * batch]) for batch in times if 2 * batch in times]
    assert len(doubled) == 7
    for once, twice in doubled:
        assert once.iteration_time_s < twice.iteration_time_s <= 2 * once.iteration_time_s


def test_outside_the_measured_batches_the_error_lists_them() -> None:
    with pytest.raises(InputError) as caught:
        table_workload(model="inception_v3", gpu="v100", batch_size=129)
    assert str(caught.value) == (
        "batch_size: no rate of inception_v3 on v100 in fp32 was measured around batch 129, "
        "measured: 1, 2, 4, 8, 16, 32, 64, 128; or give samples_per_s, the rate of one worker without communication"
    )
    assert table_workload(model="inception_v3", gpu="v100", batch_size=129, samples_per_s=250).samples_per_s == 250


@pytest.mark.parametrize(
    ("settings", "path", "listed"),
    [
        ({"model": "resnet101", "gpu": "a100", "batch_size": 32}, "gpu", "v100 fp32: 32"),
        ({"model": "resnet50", "gpu": "p100", "batch_size": 32, "precision": "amp"}, "precision", "p100 fp32: 32, 64"),
        (
            {"model": "bert_large", "gpu": "v100", "batch_size": 8, "sequence_length": 384},
            "sequence_length",
            "v100 fp32 with 64 tokens: 8",
        ),
        ({"model": "gpt2_small", "gpu": "v100", "batch_size": 8}, "gpu", "give samples_per_s"),
    ],
)
def test_what_was_not_measured_is_told_with_what_was(settings: dict[str, object], path: str, listed: str) -> None:
    with pytest.raises(InputError) as caught:
        table_workload(**settings)  # type: ignore[arg-type]
    (problem,) = caught.value.problems
    assert problem.path == (path,)
    assert listed in problem.hint


def test_all_wrong_settings_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        table_workload(model="vgg61", gpu="v1000", batch_size=0, precision="fp23", samples_per_s=math.nan)
    assert [problem.path for problem in caught.value.problems] == [
        ("model",),
        ("batch_size",),
        ("samples_per_s",),
        ("precision",),
        ("gpu",),
    ]
    hints = " ".join(problem.hint for problem in caught.value.problems)
    for word in ("'vgg16'", "'fp32'", "'v100'"):
        assert f"did you mean {word}?" in hints


def test_a_rate_needs_no_gpu_but_a_gpu_needs_its_precision() -> None:
    workload = table_workload(model="resnet50", batch_size=64, precision="tf32", samples_per_s=253.1)
    assert (workload.gpu, workload.compute_time_s) == ("", pytest.approx(64 / 253.1, rel=1e-12))
    with pytest.raises(InputError, match="gpu is missing"):
        table_workload(model="resnet50", batch_size=64)
    with pytest.raises(InputError, match="k80 does not compute in amp, it knows fp32"):
        table_workload(model="resnet50", gpu="k80", batch_size=64, precision="amp", samples_per_s=10.0)
