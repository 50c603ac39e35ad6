"""Compression in a scenario: mistakes at their place, every architecture, and what it gains and loses."""

from __future__ import annotations

import pytest

import simnet
from simnet.scenario import describe, load_scenario
from simnet.training.communication.architectures import ARCHITECTURES
from simnet.training.communication.compression import SCHEMES
from simnet.training.memory import largest_memory_use

from .marked import at_mark, said_of, with_changed

SHORT: dict[str, object] = {"run.iterations": 2}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{compression: »fp8}", "compression is 'fp8', known: none, fp16, bf16, quantize, sparsify, low_rank"),
        ("{compression: {quantize: {bits: »0}}}", "bits is 0, a whole number of at least 1 is wanted"),
        ("{compression: {quantize: {bits: »17}}}", "bits is 17, a whole number of at most 16 is wanted"),
        ("{compression: {sparsify: {ratio: »0}}}", "ratio is 0, a number above 0 and at most 1 is wanted"),
        ("{compression: {low_rank: {»ranks: 4}}}", "unknown key 'ranks' in low_rank, did you mean 'rank'?"),
        ("{compression: {none: {»bits: 4}}}", "unknown key 'bits' in none"),
        ("{compression: {fp16: {compress_rate: »5}}}", "compress_rate: 5 has no unit, write it like"),
        (
            "{compression: »sparsify, architecture: tree}",
            "sparsify stands beside architecture tree, workers choose different elements, which are gathered: ring, "
            "butterfly, halving_doubling, mesh; or parameter_server",
        ),
        (
            "{compression: »sparsify, architecture: in_network}",
            "sparsify stands beside architecture in_network, workers choose different elements",
        ),
        (
            "{compression: sparsify, architecture: {parameter_server: {fan_in: »4}}}",
            "sparsify stands beside architecture parameter_server with fan_in, leave it out",
        ),
        (
            "{compression: {low_rank: »{rank: 2}}, architecture: in_network}",
            "low_rank stands beside architecture in_network, switches add up numbers as they are",
        ),
        (
            "{compression: »quantize, architecture: in_network}",
            "quantize stands beside architecture in_network, switches add up numbers as they are",
        ),
        (
            "{workers: 8, compression: »low_rank, architecture: parameter_server}",
            "low_rank stands beside architecture parameter_server, the second factor is made of the sum of the first",
        ),
        ("{compression: »fp16, zero_stage: 2}", "fp16 stands beside zero_stage 2, compression is of gradients that"),
        ("{compression: »fp16, parallelism: {pipeline: 2}}", "fp16 stands beside a model that is split"),
        ("{compression: {low_rank: »{rank: 4096}}}", "no gradient of resnet50 is a matrix that two factors of rank"),
    ],
)
def test_mistakes_are_told_at_their_place(tmp_path, line, said):
    text, expected = at_mark(with_changed(training=line), said)
    [told] = said_of(tmp_path, text)
    assert told.startswith(expected)


def test_gradients_that_are_short_already(tmp_path):
    workload = "{model: resnet50, gpu: v100, batch_size: 64, gradient_dtype: »fp16}"
    said = "gradient_dtype stands beside compression fp16, what is compressed is fp32: leave one of them out"
    text, expected = at_mark(with_changed(workload=workload, training="{compression: fp16}"), said)
    assert said_of(tmp_path, text) == [expected]


REFUSED = {
    *(("sparsify", name) for name, way in ARCHITECTURES.items() if way.gather is None and name != "parameter_server"),
    *(("quantize", "in_network"), ("low_rank", "in_network"), ("low_rank", "parameter_server"), ("low_rank", "gossip")),
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_takes_a_scheme_or_refuses_it_by_name(architecture):
    """Those that take it send less than without."""
    base: dict[str, object] = {
        "topology": {"star": {"hosts": 5, "bandwidth": "10 Gbps", "latency": "1 us"}},
        "protocol": "ideal",
        "training.workers": 4,
        "training.architecture": architecture,
        **SHORT,
    }
    plain = simnet.run("resnet50_16gpu", base).summary["bytes_sent_per_worker"].item()
    for scheme in SCHEMES:
        changes = {**base, "training.compression": scheme}
        if (scheme, architecture) in REFUSED:
            with pytest.raises(simnet.InputError, match=f"{scheme} stands beside architecture {architecture}"):
                simnet.run("resnet50_16gpu", changes)
        else:
            summary = simnet.run("resnet50_16gpu", changes).summary
            assert summary["bytes_sent_per_worker"].item() < 0.51 * plain
            assert 0.0 < summary["compression_time_s"].item() < summary["compute_time_s"].item()


@pytest.mark.parametrize(
    ("scheme", "share"), [("none", 1.0), ("fp16", 0.5), ({"quantize": {"bits": 8}}, None), ("low_rank", None)]
)
def test_what_bert_large_moves(scheme, share):
    """Pushed a worker and iteration: 336,226,108 x 4 bytes = 1.345 GB without compression, half of it in fp16.

    In a ring of N, 2 (N - 1)/N of the sum of all messages.
    """
    workload = {"model": "bert_large", "gpu": "v100", "batch_size": 8, "sequence_length": 64}
    base: dict[str, object] = {"workload": workload, "training.compression": scheme, "training.workers": 8, **SHORT}
    ring = simnet.run("resnet50_16gpu", base)
    exchanged = ring.collectives.groupby("iteration")["size_bytes"].sum().loc[0]
    assert ring.summary["bytes_sent_per_worker"].item() == pytest.approx(2 * 7 / 8 * exchanged, rel=1e-12)
    if share is not None:
        assert exchanged == share * 336_226_108 * 4
        star = {"star": {"hosts": 9, "bandwidth": "100 Gbps", "latency": "1 us"}}
        served = simnet.run("resnet50_16gpu", {**base, "topology": star, "training.architecture": "parameter_server"})
        assert served.summary["bytes_sent_per_worker"].item() == share * 336_226_108 * 4


def gain(name: str) -> float:
    plain = simnet.run(name, {"training.compression": "none", **SHORT}).summary["iteration_time_s"].item()
    return plain / simnet.run(name, SHORT).summary["iteration_time_s"].item()


def test_it_gains_on_slow_ethernet_and_loses_on_nvlink():
    """Where bytes take most of the time less of them pay; where they take next to none only computing is left."""
    assert gain("compression_quantize_10g") > 2.0
    assert gain("compression_sparsify_10g") > 1.5
    assert gain("compression_low_rank_nvlink") < 0.9


def test_what_it_costs_can_be_said():
    """At 10 GB/s either way 102,228,128 bytes take 20.4456256 ms; unlimited, nothing."""
    for rate, expected_s in [("10 GB/s", 0.0204456256), ("unlimited", 0.0)]:
        scheme = {"sparsify": {"compress_rate": rate, "decompress_rate": rate}}
        summary = simnet.run("compression_low_rank_nvlink", {"training.compression": scheme, **SHORT}).summary
        assert summary["compression_time_s"].item() == pytest.approx(expected_s, rel=1e-12, abs=0.0)


def test_a_memory_of_errors_is_as_large_as_the_gradients():
    with_it, without = (
        largest_memory_use(load_scenario("compression_quantize_10g", {f"{_QUANTIZE}.error_feedback": flag}).job)
        for flag in (True, False)
    )
    assert with_it.total_bytes - without.total_bytes == 4 * 336_226_108


_QUANTIZE = "training.compression.quantize"


def test_it_is_described():
    assert any("ring, quantize (bits: 8), bsp" in line for line in describe("compression_quantize_10g"))
