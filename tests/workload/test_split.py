"""Splits of a model: the longest stage is the shortest possible, and nothing is lost or counted twice."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.workload import (
    GradientTensor,
    Layer,
    Model,
    Workload,
    describe_stages,
    list_models,
    load_model,
    matrix_layers,
    output_bytes_per_sample,
    split_into_stages,
    table_workload,
)


def workload_of(forward_s: list[float], backward_s: list[float] | None = None) -> Workload:
    layers = tuple(Layer(f"layer{index}", index % 3, activation_bytes=100.0 * index) for index in range(len(forward_s)))
    tensors = tuple(
        GradientTensor(layer.name, layer.parameters, index)
        for index, layer in reversed(list(enumerate(layers)))
        if layer.parameters
    )
    backward = forward_s if backward_s is None else backward_s
    return Workload(Model("m", layers, tensors), "", "fp32", 8, np.array(forward_s), np.array(backward), "test")


def longest(times: list[float], cuts: tuple[int, ...]) -> float:
    return max(sum(times[begin:end]) for begin, end in pairwise((0, *cuts, len(times))))


@given(times=st.lists(st.integers(0, 20).map(float), min_size=1, max_size=9), data=st.data())
@settings(deadline=None)
def test_no_other_split_has_a_shorter_longest_stage(times: list[float], data: st.DataObject) -> None:
    """All C(L-1, p-1) ways to cut L layers into p stages, one by one."""
    count = data.draw(st.integers(1, len(times)))
    stages = split_into_stages(workload_of(times, [0.0] * len(times)), count)
    assert [layer for stage in stages for layer in stage] == list(range(len(times)))
    assert len(stages) == count
    assert all(stages)
    best = min(longest(times, cuts) for cuts in combinations(range(1, len(times)), count - 1))
    assert max(sum(times[layer] for layer in stage) for stage in stages) == best


def test_equal_layers_are_split_evenly() -> None:
    """12 layers of 0.1 s in 4 stages: 3 each; forward and backward count together."""
    assert [len(stage) for stage in split_into_stages(workload_of([0.1] * 12), 4)] == [3, 3, 3, 3]
    # 1 + 1, 1 + 1, 1 + 9: the last alone is the longest whatever is done.
    stages = split_into_stages(workload_of([1.0, 1.0, 1.0], [1.0, 1.0, 9.0]), 2)
    assert stages == (range(2), range(2, 3))


@pytest.mark.parametrize("count", [1, 2, 4, 7, 16])
@pytest.mark.parametrize("name", ["resnet50", "bert_base", "alexnet"])
def test_stages_hold_what_the_model_holds(name: str, count: int) -> None:
    """Times, tensors and parameters add up; between stages goes the output of the last layer, none after the end."""
    workload = table_workload(model=name, batch_size=8, samples_per_s=100.0)
    model = workload.model
    stages = describe_stages(workload, split_into_stages(workload, count))
    assert sum(stage.forward_s for stage in stages) == pytest.approx(workload.forward_s.sum(), rel=1e-12)
    assert sum(stage.backward_s for stage in stages) == pytest.approx(workload.backward_s.sum(), rel=1e-12)
    assert sorted(tensor for stage in stages for tensor in stage.tensors) == list(range(len(model.tensors)))
    for stage in stages:
        assert list(stage.tensors) == sorted(stage.tensors)
        assert {model.tensors[tensor].layer for tensor in stage.tensors} <= set(stage.layers)
        last = model.layers[stage.layers[-1]]
        assert stage.output_bytes_per_sample == (0.0 if stage is stages[-1] else last.activation_bytes)
    # The longest stage takes at least its share, and with one layer more than that it would be enough.
    times = [stage.forward_s + stage.backward_s for stage in stages]
    layer_s = (workload.forward_s + workload.backward_s).max()
    assert workload.compute_time_s / count <= max(times) * (1 + 1e-12)
    assert max(times) <= workload.compute_time_s / count + layer_s


def test_mixed_precision_halves_what_crosses() -> None:
    """ResNet-50 after its first pooling: 64 channels of 56 x 56, 2 or 4 bytes each."""
    model = load_model("resnet50")
    pooled = next(index for index, layer in enumerate(model.layers) if layer.op_class == "pool")
    assert output_bytes_per_sample(model, "fp32")[pooled] == 64 * 56 * 56 * 4
    assert output_bytes_per_sample(model, "tf32")[pooled] == 64 * 56 * 56 * 4
    assert output_bytes_per_sample(model, "amp")[pooled] == 64 * 56 * 56 * 2


def test_in_place_layers_pass_on_what_they_changed() -> None:
    workload = table_workload(model="vgg16", batch_size=8, samples_per_s=100.0)
    in_place = next(index for index, layer in enumerate(workload.model.layers) if layer.in_place)
    stages = describe_stages(workload, (range(in_place + 1), range(in_place + 1, len(workload.model.layers))))
    assert stages[0].output_bytes_per_sample == 64 * 224 * 224 * 4


@pytest.mark.parametrize("stages", [0, -1, 4])
def test_more_stages_than_layers(stages: int) -> None:
    with pytest.raises(InputError) as caught:
        split_into_stages(workload_of([1.0, 2.0, 3.0]), stages)
    assert str(caught.value) == (
        f"m has 3 layers, which cannot be split into {stages} stages, 1 to 3 stages are possible"
    )


@pytest.mark.parametrize("stages", [(), (range(2),), (range(3), range(2, 3)), (range(3), range(3, 3))])
def test_stages_are_all_layers_in_order(stages: tuple[range, ...]) -> None:
    with pytest.raises(ValueError, match="not the 3 layers"):
        describe_stages(workload_of([1.0, 2.0, 3.0]), stages)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        # torchvision: 53 convolutions and a classifier; 5 and 3; 13 and 3; 96 and 2 (with the auxiliary head's).
        ("resnet50", 54),
        ("alexnet", 8),
        ("vgg16", 16),
        ("inception_v3", 98),
        # Six products in each of 24 layers, pooler and heads (4, one with tied weights), three embeddings.
        ("bert_large", 24 * 6 + 4 + 3),
        # Four in each of 12, the head that shares the embedding's weights, two embeddings.
        ("gpt2_small", 12 * 4 + 1 + 2),
    ],
)
def test_layers_with_matrices(name: str, count: int) -> None:
    assert len(matrix_layers(load_model(name))) == count


@pytest.mark.parametrize("name", list_models())
def test_matrices_hold_nearly_all_parameters(name: str) -> None:
    """What is left are the scales and shifts of normalisation: below 1 %."""
    model = load_model(name)
    assert sum(model.layers[index].parameters for index in matrix_layers(model)) > 0.99 * model.parameters


def test_layers_of_own_workloads_are_taken_by_their_parameters() -> None:
    assert matrix_layers(workload_of([1.0] * 5).model) == (1, 2, 4)
