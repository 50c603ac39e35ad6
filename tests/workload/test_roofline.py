"""The split of an iteration over its layers: roofline, forward to backward, and when gradients are ready."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.workload import Gpu, Layer, Workload, layer_times, list_gpus, list_models, load_model, table_workload

GPU = Gpu("test", 16e9, 1e12, (("fp32", 1e13), ("amp", 1e14)), "", "")

costs = st.integers(0, 10**12).map(float)
layers = st.builds(
    lambda forward, backward, moved, fixed, kind, kernel: Layer(
        "layer", 1, forward, backward, moved + fixed, 0.0, fixed, kind, kernel
    ),
    costs,
    costs,
    costs,
    costs,
    st.sampled_from(["conv", "gemm", "norm", "act", "add", ""]),
    st.sampled_from(["", "1x1", "3x3"]),
)


def _times(layer: Layer, gpu: Gpu = GPU, precision: str = "fp32", batch: float = 1) -> tuple[float, float]:
    forward, backward = layer_times([layer], gpu, precision, batch)
    return float(forward[0]), float(backward[0])


def test_arithmetic_and_traffic_by_hand() -> None:
    """The longer of FLOPs / peak and bytes / bandwidth; backward a matrix product moves twice the bytes."""
    # 32 samples of 1e9 FLOPs at 1e13 FLOP/s: 3.2 ms; 32 * 1 MB + 4 MB at 1 TB/s: 36 us.
    heavy = Layer("gemm", 1, 1e9, 2e9, 5e6, 0.0, 4e6, "gemm")
    assert _times(heavy, batch=32) == pytest.approx((3.2e-3, 6.4e-3))
    # 32 samples of 1e6 FLOPs: 3.2 us, so traffic counts: 36 us forward and 72 us backward.
    light = replace(heavy, forward_flops=1e6, backward_flops=2e6)
    assert _times(light, batch=32) == pytest.approx((36e-6, 72e-6))
    # Mixed precision: a tenth of the arithmetic, half of the bytes.
    assert _times(heavy, precision="amp", batch=32) == pytest.approx((0.32e-3, 0.64e-3))
    assert _times(light, precision="amp", batch=32) == pytest.approx((18e-6, 36e-6))


def test_minimal_filtering_by_hand() -> None:
    """F(4x4, 3x3): a quarter of the multiplications; 1 + 2 * 2.25 times the traffic of input and output."""
    conv = Layer("conv", 1, 4e10, 8e10, 3e8, 0.0, 0.0, "conv", "3x3")
    assert _times(conv)[0] == pytest.approx(max(1e10 / 1e13, 5.5 * 3e8 / 1e12))
    assert _times(replace(conv, stride=2))[0] == pytest.approx(4e10 / 1e13)
    assert _times(replace(conv, kernel="1x7"))[0] == pytest.approx(4e10 / 1e13)
    assert _times(conv, precision="amp")[0] == pytest.approx(4e10 / 1e14)
    # Where the tiles cost more than they save, the direct way is taken.
    assert _times(replace(conv, memory_bytes=3.9e9))[0] == pytest.approx(4e10 / 1e13)


@given(layer=layers, batch=st.floats(1.0, 4096.0), factor=st.floats(1.0, 64.0))
def test_faster_hardware_is_never_slower_and_all_faster_is_exactly_so(
    layer: Layer, batch: float, factor: float
) -> None:
    """t(peak, bandwidth) does not grow with either, and t(f peak, f bandwidth) = t(peak, bandwidth) / f."""
    before = np.array(_times(layer, batch=batch))
    more_peak = replace(GPU, peak_flops_per_s=(("fp32", 1e13 * factor),))
    more_memory = replace(GPU, memory_bandwidth_bytes_per_s=1e12 * factor)
    both = replace(more_peak, memory_bandwidth_bytes_per_s=1e12 * factor)
    assert np.all(np.array(_times(layer, more_peak, batch=batch)) <= before * (1 + 1e-12))
    assert np.all(np.array(_times(layer, more_memory, batch=batch)) <= before * (1 + 1e-12))
    assert np.array(_times(layer, both, batch=batch)) * factor == pytest.approx(before, rel=1e-12)


@given(layer=layers, batch=st.floats(1.0, 4096.0))
def test_never_below_either_roof_of_the_fewest_operations_and_bytes(layer: Layer, batch: float) -> None:
    forward, backward = _times(layer, batch=batch)
    moved = batch * (layer.memory_bytes - layer.parameter_memory_bytes) + layer.parameter_memory_bytes
    for time, flops in ((forward, layer.forward_flops), (backward, layer.backward_flops)):
        assert time >= batch * flops / 4 / 1e13 * (1 - 1e-12)
        assert time >= moved / 1e12 * (1 - 1e-12)


@given(layer=layers, batch=st.floats(1.0, 2048.0))
def test_twice_the_batch_takes_at_least_as_long_and_at_most_twice(layer: Layer, batch: float) -> None:
    once, twice = (np.array(_times(layer, batch=factor * batch)) for factor in (1, 2))
    assert np.all(once <= twice * (1 + 1e-12))
    assert np.all(twice <= 2 * once * (1 + 1e-12))


@given(
    model=st.sampled_from(list_models()),
    gpu=st.sampled_from([gpu for gpu in list_gpus() if gpu.peak("amp")]),
    precision=st.sampled_from(["fp32", "amp"]),
    batch=st.integers(1, 512),
    rate=st.floats(1e-3, 1e6),
)
def test_layers_add_up_to_the_measured_time_and_gradients_become_ready_in_order(
    model: str, gpu: Gpu, precision: str, batch: int, rate: float
) -> None:
    workload = table_workload(model=model, gpu=gpu.name, batch_size=batch, precision=precision, samples_per_s=rate)
    assert workload.compute_time_s == pytest.approx(batch / rate, rel=1e-12)
    ready = workload.tensor_ready_s
    assert ready.shape == (len(workload.model.tensors),)
    assert np.all(np.diff(ready) >= 0)
    assert ready[0] > 0
    assert ready[-1] <= workload.backward_s.sum() * (1 + 1e-12)
    assert np.array_equal(workload.tensor_elements, [tensor.elements for tensor in workload.model.tensors])


def test_a_gradient_is_ready_when_the_backward_pass_of_its_layer_is_over() -> None:
    """Layers of 1, 2, 4 s backward: the last is done after 4 s, the middle after 6, the first after 7."""
    model = replace(
        load_model("alexnet"),
        layers=tuple(Layer(name, 1) for name in "abc"),
        tensors=tuple(replace(load_model("alexnet").tensors[0], name=name, layer="abc".index(name)) for name in "cba"),
    )
    workload = Workload(model, "", "fp32", 1, np.array([1.0, 1.0, 1.0]), np.array([1.0, 2.0, 4.0]), "")
    assert workload.tensor_ready_s.tolist() == [4.0, 6.0, 7.0]
    assert workload.compute_time_s == 10.0
    with pytest.raises(ValueError, match="layer times"):
        Workload(model, "", "fp32", 1, np.array([1.0, 1.0]), np.array([1.0, 2.0, 4.0]), "")
    with pytest.raises(ValueError, match="layer times"):
        Workload(model, "", "fp32", 1, np.array([1.0, 1.0, np.nan]), np.array([1.0, 2.0, 4.0]), "")


@pytest.mark.parametrize(
    ("model", "ratio"),
    # cnn-benchmarks, GTX 1080 Ti, cuDNN 5.1: backward by forward.
    [
        ("resnet50", 67.06 / 34.14),
        ("resnet101", 102.08 / 52.18),
        ("vgg16", 86.91 / 41.23),
        ("inception_v3", 25.37 / 11.5),
    ],
)
def test_forward_and_backward_are_as_measured(model: str, ratio: float) -> None:
    workload = table_workload(model=model, gpu="v100", batch_size=32, samples_per_s=100.0)
    assert workload.backward_s.sum() / workload.forward_s.sum() == pytest.approx(ratio, rel=1e-12)


def test_the_roofline_alone_comes_near_the_measured_ratio_of_the_passes() -> None:
    """So it can stand in where there is no measurement: within 15 % for the CNNs."""
    for model, ratio in (("resnet50", 1.964), ("resnet101", 1.956), ("vgg16", 2.108)):
        forward, backward = layer_times(load_model(model).layers, GPU, "fp32", 16)
        assert backward.sum() / forward.sum() == pytest.approx(ratio, rel=0.15)
