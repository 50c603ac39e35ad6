"""Memory of training: ZeRO's table, the formula of a transformer layer, and that fits what was measured to fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.units import GIGA, MEBIBYTE
from simnet.workload import (
    OPTIMIZERS,
    GradientTensor,
    Layer,
    MemoryUse,
    Model,
    gpu_memory_bytes,
    kept_activation_bytes,
    list_gpus,
    list_models,
    list_throughput,
    load_model,
    training_memory,
)

FP32: dict[str, Any] = {"precision": "fp32", "gradient_bytes_per_element": 4.0}
MIXED: dict[str, Any] = {"precision": "amp", "gradient_bytes_per_element": 2.0, "optimizer": "adam"}


def model_of(parameters: int, activation_bytes: float = 0.0) -> Model:
    return Model(
        "m", (Layer("a", parameters, activation_bytes=activation_bytes),), (GradientTensor("a", parameters, 0),)
    )


@pytest.mark.parametrize(("stage", "expected_gb"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_the_table_of_zero(stage: int, expected_gb: float) -> None:
    """7.5 billion parameters, 64 ranks: 16 bytes each; 4 + 12/64; 2 + 14/64; 16/64 (figure 1 of the paper)."""
    use = training_memory(model_of(7_500_000_000), 1, **MIXED, zero_stage=stage, data_parallel=64)
    assert round(use.model_states_bytes / GIGA, 1) == expected_gb


@pytest.mark.parametrize(
    ("precision", "optimizer", "parameter", "state"),
    [
        ("fp32", "sgd", 4, 0),
        ("fp32", "sgd_momentum", 4, 4),
        ("tf32", "adam", 4, 8),
        ("amp", "sgd", 2, 4),
        ("amp", "sgd_momentum", 2, 8),
        ("amp", "adam", 2, 12),
    ],
)
def test_bytes_of_a_parameter(precision: str, optimizer: str, parameter: int, state: int) -> None:
    """Mixed precision has a master copy of 4 bytes; every number that the optimizer remembers takes 4."""
    use = training_memory(
        model_of(1000), 1, precision=precision, optimizer=optimizer, gradient_bytes_per_element=1.0, bucket_bytes=0.0
    )
    assert use == MemoryUse(1000.0 * parameter, 1000.0, 1000.0 * state, 0.0, 0.0)


def test_activations_by_hand() -> None:
    """3 micro-batches of 8 samples of 100 bytes in fp32, half of it in mixed precision, shared by 2 ranks."""
    model = model_of(10, activation_bytes=100.0)
    assert training_memory(model, 8, **FP32).activations_bytes == 800.0
    assert training_memory(model, 8, **MIXED, micro_batches_in_flight=3, tensor_parallel=2).activations_bytes == 600.0


def test_buffers_by_hand() -> None:
    """Two buckets of 1000 bytes, but no more than there are gradients; stage 3 gathers the largest layer."""
    layers = (Layer("a", 100), Layer("b", 300))
    model = Model("m", layers, (GradientTensor("b", 300, 1), GradientTensor("a", 100, 0)))
    assert training_memory(model, 1, **FP32, bucket_bytes=1000.0).buffers_bytes == 0.0
    assert training_memory(model, 1, **FP32, bucket_bytes=500.0, data_parallel=2).buffers_bytes == 1000.0
    assert training_memory(model, 1, **FP32, bucket_bytes=1000.0, data_parallel=2).buffers_bytes == 1600.0
    gathered = training_memory(model, 1, **FP32, bucket_bytes=500.0, data_parallel=2, zero_stage=3)
    assert gathered.buffers_bytes == 1000.0 + 300 * 4
    assert training_memory(model, 1, **FP32, bucket_bytes=500.0, zero_stage=3).buffers_bytes == 0.0


def test_a_transformer_layer() -> None:
    """In mixed precision s h (34 + 5 a s / h) bytes a sample (Korthikanti et al., equation 1); the table is not above
    by more than embeddings and heads, and its two masks.
    """
    s, h, a, layers = 512, 1024, 16, 24
    model = load_model("bert_large", s)
    kept = kept_activation_bytes(model, "amp")
    in_layer = [index for index, layer in enumerate(model.layers) if ".layer.7." in layer.name]
    assert kept[in_layer].sum() == pytest.approx(s * h * (34 + 5 * a * s / h), rel=0.03)
    assert kept.sum() == pytest.approx(layers * s * h * (34 + 5 * a * s / h), rel=0.05)


@pytest.mark.parametrize(
    ("classes", "kept"),
    [
        # A product keeps its input, and so does an activation function, which also keeps its output.
        (["conv", "norm", "act", "conv"], [1, 1, 1, 0]),
        # Nothing reads what is only added, scaled or copied.
        (["attn_matmul", "scale", "add", "softmax", "add"], [0, 0, 0, 1, 0]),
        # An output that is overwritten is kept if its place is.
        (["norm", "add!", "act!", "conv"], [1, 0, 0, 0]),
        # A mask is a byte a value, beside or instead of the output of 4.
        (["gemm", "dropout", "gemm"], [0, 1.25, 0]),
        (["gemm", "dropout", "add"], [0, 0.25, 0]),
        # What an own workload does not say may be anything.
        (["", "", ""], [1, 1, 1]),
    ],
)
def test_what_is_kept(classes: list[str], kept: list[float]) -> None:
    layers = tuple(
        Layer(name, 0, activation_bytes=4.0, op_class=name.rstrip("!"), in_place=name.endswith("!")) for name in classes
    )
    assert kept_activation_bytes(Model("m", layers, ()), "fp32").tolist() == [4.0 * part for part in kept]


@pytest.mark.parametrize("name", list_models())
def test_no_more_is_kept_than_there_is(name: str) -> None:
    """All outputs and a mask for each dropout; in CNNs, which keep nearly all, not less than 0.9 of them."""
    model = load_model(name)
    masks = sum(layer.activation_bytes / 4 for layer in model.layers if layer.op_class == "dropout")
    kept = kept_activation_bytes(model, "fp32").sum()
    assert kept <= model.activation_bytes + masks
    if model.sequence_length is None:
        assert kept >= 0.9 * model.activation_bytes


def test_what_was_measured_fits() -> None:
    """Whoever measured a rate had the memory for it, but for one who must have kept less than all."""
    too_large = set()
    for row in list_throughput():
        use = training_memory(
            load_model(row.model, row.sequence_length),
            row.batch_size,
            precision=row.precision,
            gradient_bytes_per_element=4.0,
        )
        if use.total_bytes > (gpu_memory_bytes(row.gpu) or 0.0):
            too_large.add((row.model, row.gpu, row.precision, row.batch_size))
    assert too_large == {("resnet50", "v100_sxm2_16gb", "fp32", 256)}


@pytest.mark.parametrize("name", ["resnet50", "bert_base", "gpt2_small"])
@given(data=st.data())
def test_parts_add_up_to_the_whole(name: str, data: st.DataObject) -> None:
    """Wherever a model is cut, its parts hold what the whole holds, buffers aside."""
    model = load_model(name)
    cut = data.draw(st.integers(0, len(model.layers)))
    options = {"zero_stage": data.draw(st.integers(0, 3)), "data_parallel": 4, "micro_batches_in_flight": 2}
    whole, before, after = (
        training_memory(model, 8, **MIXED, layers=layers, **options)
        for layers in (None, range(cut), range(cut, len(model.layers)))
    )
    for field in ("parameters_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes"):
        assert getattr(before, field) + getattr(after, field) == pytest.approx(getattr(whole, field), rel=1e-12)
    # Of an even split over t ranks each has 1/t.
    split = training_memory(model, 8, **MIXED, tensor_parallel=4, bucket_bytes=0.0, **options)
    assert 4 * split.model_states_bytes == pytest.approx(whole.model_states_bytes, rel=1e-12)
    assert 4 * split.activations_bytes == pytest.approx(whole.activations_bytes, rel=1e-12)


@given(
    batch=st.integers(1, 512),
    stage=st.integers(0, 3),
    ranks=st.integers(1, 64),
    tensor=st.integers(1, 8),
    precision=st.sampled_from(["fp32", "amp"]),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    flight=st.integers(1, 8),
)
def test_more_of_anything_takes_no_less_and_sharing_no_more(
    batch: int, stage: int, ranks: int, tensor: int, precision: str, optimizer: str, flight: int
) -> None:
    given_: dict[str, Any] = {
        "precision": precision,
        "optimizer": optimizer,
        "gradient_bytes_per_element": 2.0,
        "zero_stage": stage,
        "data_parallel": ranks,
        "tensor_parallel": tensor,
        "micro_batches_in_flight": flight,
        "bucket_bytes": float(MEBIBYTE),
    }
    model = load_model("alexnet")
    use = training_memory(model, batch, **given_)
    parts = [getattr(use, name) for name in MemoryUse.__dataclass_fields__]
    assert use.total_bytes == pytest.approx(sum(parts), rel=1e-12)
    assert min(parts) >= 0.0
    for key, value in (("micro_batches_in_flight", flight + 1), ("bucket_bytes", 2.0 * MEBIBYTE)):
        assert training_memory(model, batch, **given_ | {key: value}).total_bytes >= use.total_bytes
    assert training_memory(model, batch + 1, **given_).total_bytes > use.total_bytes
    for key, value in (
        ("data_parallel", 2 * ranks),
        ("zero_stage", min(stage + 1, 3)),
        ("tensor_parallel", 2 * tensor),
    ):
        shared = training_memory(model, batch, **given_ | {key: value})
        assert shared.model_states_bytes <= use.model_states_bytes
        assert shared.activations_bytes <= use.activations_bytes


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("precision", "fp64"),
        ("optimizer", "lion"),
        ("zero_stage", 4),
        ("data_parallel", 0),
        ("tensor_parallel", 0),
        ("micro_batches_in_flight", 0),
        ("gradient_bytes_per_element", -1.0),
        ("bucket_bytes", -1.0),
    ],
)
def test_out_of_range(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"at least 1|unknown|not negative"):
        training_memory(model_of(1), 1, **FP32 | {key: value})
    with pytest.raises(ValueError, match="at least 1"):
        training_memory(model_of(1), 0, **FP32)


def test_gpu_memory() -> None:
    """Data sheets: 12 GiB for each GPU of a K80, 16 for a P100, 80 for an H100; a V100 has 16 or 32."""
    gib = 2.0**30
    assert [gpu_memory_bytes(gpu) for gpu in ("k80", "p100", "v100", "v100_sxm2_16gb", "a100_sxm4_40gb", "h100")] == [
        *(12 * gib, 16 * gib, 32 * gib, 16 * gib, 40 * gib, 80 * gib)
    ]
    assert gpu_memory_bytes("v10") is None
    assert gpu_memory_bytes("") is None
    assert all(gpu_memory_bytes(gpu.name) == gpu.memory_bytes for gpu in list_gpus())


def test_layers_may_be_none_and_in_any_order() -> None:
    model = load_model("alexnet")
    assert training_memory(model, 4, **FP32, layers=()).total_bytes == 0.0
    some = training_memory(model, 4, **FP32, layers=[5, 2, 9])
    assert some == training_memory(model, 4, **FP32, layers=np.array([2, 5, 9]))
    assert some.parameters_bytes == 4.0 * sum(model.layers[index].parameters for index in (2, 5, 9))
