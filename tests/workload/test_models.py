"""Shipped models: published totals, gradients in reverse order of the layers, costs by sequence length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from simnet.errors import InputError
from simnet.workload import list_models, load_model, model_entry

# Parameters are the published counts (torchvision's model pages; 110 and 336 million for BERT with its pre-training
# heads; 124 million for GPT-2 small). FLOPs are those of PyTorch's FLOP counter, a multiply-add being two.
TOTALS = [
    # model, sequence length, parameters, tensors, layers, forward FLOPs, backward FLOPs, memory bytes, activation bytes
    ("alexnet", None, 61_100_840, 16, 22, 1_428_376_960, 2_716_200_320, 253_804_524, 2_420_132),
    ("bert_base", 128, 110_106_428, 206, 256, 28_500_298_752, 57_000_597_504, 796_195_088, 165_841_936),
    ("bert_base", 384, 110_106_428, 206, 256, 89_122_409_472, 178_244_818_944, 2_095_966_480, 780_629_008),
    ("bert_base", 512, 110_106_428, 206, 256, 121_245_404_160, 242_490_808_320, 3_038_404_880, 1_229_580_304),
    ("bert_base_encoder", 128, 109_482_240, 199, 251, 22_348_431_360, 44_696_862_720, 666_319_880, 149_035_016),
    ("bert_base_encoder", 384, 109_482_240, 199, 251, 70_666_813_440, 141_333_626_880, 1_898_861_576, 730_208_264),
    ("bert_base_encoder", 512, 109_482_240, 199, 251, 96_637_943_808, 193_275_887_616, 2_807_685_128, 1_162_352_648),
    ("bert_large", 128, 336_226_108, 398, 496, 87_191_719_936, 174_383_439_872, 2_230_895_888, 410_948_624),
    ("bert_large", 384, 336_226_108, 398, 496, 271_234_633_728, 542_469_267_456, 5_564_183_824, 1_987_804_176),
    ("bert_large", 512, 336_226_108, 398, 496, 368_087_928_832, 736_175_857_664, 8_009_395_472, 3_153_719_312),
    ("bert_large_encoder", 128, 335_141_888, 391, 491, 78_922_121_216, 157_844_242_432, 2_067_139_592, 393_748_488),
    ("bert_large_encoder", 384, 335_141_888, 391, 491, 246_425_845_760, 492_851_691_520, 5_331_624_968, 1_936_203_784),
    ("bert_large_encoder", 512, 335_141_888, 391, 491, 335_009_546_240, 670_019_092_480, 7_742_435_336, 3_084_918_792),
    ("gpt2_small", None, 124_439_808, 148, 223, 291_648_307_200, 583_296_614_400, 8_865_821_700, 4_034_203_652),
    ("inception_v3", None, 27_161_264, 292, 324, 11_437_798_592, 22_837_233_856, 434_372_224, 93_398_596),
    ("inception_v3_noaux", None, 23_834_568, 284, 314, 11_426_432_192, 22_814_501_056, 419_884_440, 93_282_980),
    ("resnet101", None, 44_549_160, 314, 345, 15_602_810_880, 30_969_593_856, 731_300_844, 130_670_500),
    ("resnet50", None, 25_557_032, 161, 175, 8_178_368_512, 16_120_709_120, 470_668_268, 89_726_884),
    ("vgg16", None, 138_357_544, 32, 40, 30_940_528_640, 61_707_649_024, 783_449_068, 60_481_444),
]


@pytest.mark.parametrize("expected", TOTALS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_totals(expected: tuple[object, ...]) -> None:
    name, length, *_ = expected
    model = load_model(str(name), length if isinstance(length, int) else None)
    layers = model.layers
    assert expected[2:] == (
        model.parameters,
        len(model.tensors),
        len(layers),
        sum(layer.forward_flops for layer in layers),
        sum(layer.backward_flops for layer in layers),
        sum(layer.memory_bytes for layer in layers),
        model.activation_bytes,
    )
    entry = model_entry(str(name))
    assert (entry.parameters, entry.tensors, entry.layers) == expected[2:5]


def test_every_shipped_model_is_in_the_totals() -> None:
    assert list_models() == tuple(sorted({name for name, *_ in TOTALS}))


@pytest.mark.parametrize("name", list_models())
def test_each_parameter_has_one_gradient_of_its_layer(name: str) -> None:
    model = load_model(name)
    held = np.zeros(len(model.layers), dtype=np.int64)
    for tensor in model.tensors:
        assert tensor.elements == np.prod(tensor.shape)
        held[tensor.layer] += tensor.elements
    assert held.tolist() == [layer.parameters for layer in model.layers]
    assert len({tensor.name for tensor in model.tensors}) == len(model.tensors)


@pytest.mark.parametrize("name", list_models())
def test_gradients_become_ready_from_the_last_layer_to_the_first(name: str) -> None:
    layers = load_model(name).tensor_layers
    assert np.all(np.diff(layers) <= 0)


def test_tied_embeddings_are_ready_last_in_one_piece() -> None:
    # 30,522 words of 768 numbers: 21.3 % of BERT-base.
    last = load_model("bert_base").tensors[-1]
    assert (last.name, last.elements) == ("bert.embeddings.word_embeddings.weight", 30_522 * 768)


def test_the_auxiliary_head_stands_between_two_blocks() -> None:
    names = [tensor.name.split(".")[0] for tensor in load_model("inception_v3").tensors]
    blocks = list(dict.fromkeys(names))
    assert blocks[blocks.index("AuxLogits") - 1 : blocks.index("AuxLogits") + 2] == [
        "Mixed_7a",
        "AuxLogits",
        "Mixed_6e",
    ]


def test_bert_costs_are_a_quadratic_of_the_sequence_length() -> None:
    """f(s) = a + b s + c s^2, so the third difference on equal steps is 0: f(4h) - 3 f(3h) + 3 f(2h) - f(h)."""
    for cost in ("forward_flops", "backward_flops", "memory_bytes", "activation_bytes"):
        at = [sum(getattr(layer, cost) for layer in load_model("bert_large", 100 * n).layers) for n in (1, 2, 3, 4)]
        assert at[3] - 3 * at[2] + 3 * at[1] - at[0] == 0
        assert at[3] - 2 * at[2] + at[1] > 0


def test_attention_flops_by_hand() -> None:
    # QK^T and AV: 2 products of s x s x 768 multiply-adds in each of 12 layers, 2 FLOPs each.
    layers = load_model("bert_base", 200).layers
    attention = sum(layer.forward_flops for layer in layers if layer.op_class == "attn_matmul")
    assert attention == 12 * 2 * 2 * 200 * 200 * 768


@pytest.mark.parametrize(
    ("name", "length", "message"),
    [
        ("resnet5", None, "model: unknown model 'resnet5', did you mean 'resnet50'?"),
        ("resnet50", 128, "sequence_length: samples of resnet50 have no sequence length, leave it out"),
        ("bert_base", 513, "sequence_length: sequence length 513 does not fit bert_base, it takes 1 to 512 tokens"),
        ("bert_base", 0, "sequence_length: sequence length 0 does not fit bert_base, it takes 1 to 512 tokens"),
        ("gpt2_small", 512, "sequence length 512 does not fit gpt2_small, its table holds for 1024 tokens"),
    ],
)
def test_wrong_names_and_lengths(name: str, length: int | None, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_model(name, length)
    assert message in str(caught.value)


def _reference_name(name: str, length: int | None) -> str:
    if name.startswith("bert"):
        head = "" if name.endswith("encoder") else "_pretrain"
        return f"{name}{head}_s{length}"
    return {"inception_v3": "inception_v3_aux", "gpt2_small": "gpt2_small_s1024"}.get(name, name)


@pytest.mark.parametrize(("name", "length"), [row[:2] for row in TOTALS])
def test_equal_to_the_reference_tables_row_by_row(
    name: str, length: int | None, reference_rows: Callable[[str], list[dict[str, str]]]
) -> None:
    table = _reference_name(name, length)
    model = load_model(name, length)
    rows = reference_rows(f"models/{table}.layers.csv")
    assert [
        (
            layer.name,
            layer.op_class,
            layer.parameters,
            layer.forward_flops,
            layer.backward_flops,
            layer.memory_bytes,
            layer.parameter_memory_bytes,
            layer.activation_bytes,
            layer.in_place,
        )
        for layer in model.layers
    ] == [
        (
            row["name"],
            row["op_class"],
            int(row["n_parameters"]),
            int(row["fwd_flops"]),
            int(row["bwd_flops"]),
            int(row["memory_bytes"]),
            int(row["mem_param_bytes"]),
            int(row["activation_bytes"]),
            row["inplace"] == "1",
        )
        for row in rows
    ]
    gradients = reference_rows(f"models/{table}.grad_order.csv")
    assert [(tensor.name, tensor.elements, tensor.layer) for tensor in model.tensors] == [
        (row["tensor"], int(row["numel"]), int(row["layer_index"])) for row in gradients
    ]
