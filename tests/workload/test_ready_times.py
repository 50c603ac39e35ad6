"""Gradients are ready when they were on a V100: within 10 % of the backward pass, each of them."""

from __future__ import annotations

import numpy as np
import pytest

from simnet.workload import Layer, load_model, table_workload
from simnet.workload.ready_times import (
    READY_TIMES_BATCH,
    READY_TIMES_GPU,
    ReadyTimes,
    compare_ready_times,
    list_ready_times,
)
from simnet.workload.roofline import find_gpu, layer_times

MODELS = {"resnet50": 161, "resnet101": 314, "vgg16": 58}


def compared(model):
    # The time of an iteration does not matter: shares are compared.
    return compare_ready_times(
        table_workload(model=model, gpu=READY_TIMES_GPU, batch_size=READY_TIMES_BATCH, samples_per_s=100.0)
    )


def test_what_was_measured():
    """A row a gradient, in order; of the ResNets the gradients of the shipped models, byte for byte."""
    rows = list_ready_times()
    assert {model: len(of_model) for model, of_model in rows.items()} == MODELS
    for model, of_model in rows.items():
        times = [time for _, time in of_model]
        assert times == sorted(times)
        if model != "vgg16":
            assert [size for size, _ in of_model] == [4 * one.elements for one in load_model(model).tensors]


@pytest.mark.parametrize("model", list(MODELS))
def test_each_gradient_is_ready_within_a_tenth_of_the_backward_pass(model):
    found = compared(model)
    assert np.abs(found.simulated - found.measured).max() < 0.10
    assert found.largest_difference == np.abs(found.simulated - found.measured).max()


@pytest.mark.parametrize(("model", "most"), [("resnet50", 0.03), ("resnet101", 0.03), ("vgg16", 0.08)])
def test_it_stays_as_near_as_it_is(model, most):
    assert compared(model).largest_difference < most


@pytest.mark.parametrize("model", list(MODELS))
def test_the_area_between_the_curves_of_bytes_is_small(model):
    """Mean over the backward pass of the difference of ready bytes: a tenth of what the largest may be."""
    assert compared(model).mean_bytes_difference < 0.02


def test_vgg16_with_batch_normalisation_as_it_was_measured():
    """With a norm behind each convolution, which moves its output three times forward, it is nearer: below 5 %."""
    layers: list[Layer] = []
    for layer in load_model("vgg16").layers:
        layers.append(layer)
        if layer.op_class == "conv":
            layers.append(Layer(f"{layer.name}.norm", 0, memory_bytes=3.0 * layer.activation_bytes, op_class="norm"))
    _, backward_s = layer_times(layers, find_gpu(READY_TIMES_GPU), "fp32", READY_TIMES_BATCH)
    share = np.cumsum(backward_s[::-1])[::-1] / backward_s.sum()
    done = {layer.name: ready for layer, ready in zip(layers, share, strict=True)}
    found = compared("vgg16")
    simulated = [done[name.removesuffix(".weight")] for name in found.tensors]
    assert np.abs(simulated - found.measured).max() < 0.05


def test_all_weights_of_vgg16_are_found():
    """13 convolutions and 3 matrices, the last of the backward pass first."""
    found = compared("vgg16")
    assert (len(found.tensors), found.tensors[0], found.tensors[-1]) == (16, "classifier.6.weight", "features.0.weight")


def test_differences_by_hand():
    """Two gradients of 1 and 3 bytes, ready after 0.2 and 1 of the pass instead of 0.4 and 1.

    Between 0.2 and 0.4 a quarter of the bytes is ready too early: 0.25 at most, 0.05 on the mean.
    """
    found = ReadyTimes(("a", "b"), np.array([1.0, 3.0]), np.array([0.2, 1.0]), np.array([0.4, 1.0]))
    assert (found.worst, found.largest_difference) == (0, pytest.approx(0.2))
    assert found.largest_bytes_difference == pytest.approx(0.25)
    assert found.mean_bytes_difference == pytest.approx(0.05)
