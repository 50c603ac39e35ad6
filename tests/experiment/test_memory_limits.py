"""Whether a job fits into the memory of its GPUs: the column, the refusal, and what is said to fit."""

from __future__ import annotations

import re

import pytest
import yaml

import simnet
from simnet.errors import InputError
from simnet.scenario import load_scenario

from .building import layers, scenario, star, within

MIB = 2**20

TOO_LARGE = {
    "topology": {"star": {"hosts": 4, "host": {"gpus": 4}}},
    "protocol": "ideal",
    "workload": {"model": "bert_large", "gpu": "v100", "batch_size": 128, "samples_per_s": 30},
    "training": {"workers": 16, "optimizer": "adam"},
    "run": {"iterations": 1, "warmup": 0},
}
"""V100 have 32 GiB at most."""


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize(("optimizer", "numbers"), [("sgd", 0), ("sgd_momentum", 1), ("adam", 2)])
def test_what_a_worker_holds(tmp_path, stage, optimizer, numbers):
    """In fp32, P parameters in two equal layers, N workers: 4P of parameters (/N in stage 3), 4P of gradients (/N from
    stage 2 on), 4P for each number that the optimizer remembers (/N from stage 1 on), what each of b samples leaves
    until the backward pass, two buckets of 1 MiB on their way, and in stage 3 one layer that is gathered, 2P."""
    parameters, workers, batch, per_sample = 1_000_000, 4, 24, 5000.0
    rows = [{"parameters": parameters // 2, "activation_bytes": per_sample}] * 2
    training = {"workers": workers, "zero_stage": stage, "optimizer": optimizer, "bucket_size": "1 MiB"}
    held = simnet.run(scenario(layers(tmp_path, rows), star(workers), training)).summary.memory_bytes_per_worker[0]
    shares = [workers if stage >= least else 1 for least in (1, 2, 3)]
    states = 4 * parameters * (numbers / shares[0] + 1 / shares[1] + 1 / shares[2])
    gathered = 2 * parameters if stage == 3 else 0
    assert held == within(states + 2 * per_sample * batch + 2 * MIB + gathered)


@pytest.mark.parametrize("split", [{"tensor": 4}, {"pipeline": 2}, {"pipeline": 2, "tensor": 2}])
def test_a_model_that_is_split_takes_a_share_of_the_memory(tmp_path, split):
    """Without activations: 12P/n on n workers for parameters, gradients and momentum, of which there is one replica."""
    workers = split.get("pipeline", 1) * split.get("tensor", 1)
    file = layers(tmp_path, [{"parameters": 500_000}] * 2)
    held = simnet.run(scenario(file, star(workers), {"parallelism": split})).summary.memory_bytes_per_worker[0]
    assert held == within(12 * 1_000_000 / workers)


def test_a_job_that_does_not_fit_is_refused_with_the_sum():
    """336,226,108 parameters of 4 bytes are 1.345 GB, and so are gradients; Adam has twice that; two buckets."""
    with pytest.raises(InputError) as caught:
        load_scenario(TOO_LARGE)
    [problem] = caught.value.problems
    assert problem.path == ("workload", "gpu")
    parts = r"1\.345 GB parameters, 1\.345 GB gradients, 2\.69 GB optimizer, ([\d.]+) GB activations, 50 MiB buffers"
    said = re.fullmatch(rf"([\d.]+) GB a worker do not fit into the 32 GiB of v100: {parts}", problem.message)
    assert said is not None, problem.message
    held, activations = (float(number) for number in said.groups())
    assert held == pytest.approx(16 * 336_226_108 / 1e9 + activations + 50 * MIB / 1e9, abs=0.01)


def splits_of(hint):
    """Yield the splits that a hint names, as sections of ``training`` and ``workload``."""
    for words in re.split(r"; |, or ", hint.removeprefix("these would fit: ").partition(" would fit")[0]):
        if "allow_oversubscribed" not in words:
            yield words, yaml.safe_load("\n".join(words.split(" with ")))


def test_every_split_that_is_said_to_fit_does():
    """Each that the hint names is tried; it holds no more than the 32 GiB. What changes less than it does not fit."""
    with pytest.raises(InputError) as caught:
        load_scenario(TOO_LARGE)
    hint = caught.value.problems[0].hint
    assert "allow_oversubscribed" in hint
    found = dict(splits_of(hint))
    assert {next(iter(split)) for split in found.values()} == {"batch_size", "parallelism"}
    for words, split in found.items():
        batch = {"batch_size": split.pop("batch_size")} if "batch_size" in split else {}
        changed = {**TOO_LARGE, "workload": TOO_LARGE["workload"] | batch, "training": TOO_LARGE["training"] | split}
        assert load_scenario(changed).job.workload.batch_size <= 128, words
    half = next(split["batch_size"] for words, split in dict(splits_of(hint)).items() if "batch_size" in split)
    with pytest.raises(InputError, match="do not fit into the 32 GiB"):
        load_scenario(TOO_LARGE, {"workload.batch_size": 2 * half})


def test_sharding_is_offered_where_it_is_enough(tmp_path):
    """1.2 billion parameters take 16 bytes each with Adam, 19.2 GB, and K80 have 12 GiB: 4 workers that share the state
    of the optimizer hold 4 + 4 + 8/4 bytes of each, 12 GB; two shares or two stages hold 8."""
    file = layers(tmp_path, [{"parameters": 600_000_000}] * 2)
    training = {"workers": 4, "optimizer": "adam", "bucket_size": "1 MB"}
    job = scenario(file, star(4), training, workload={"file": file, "gpu": "k80", "batch_size": 1})
    with pytest.raises(InputError) as caught:
        load_scenario(job)
    offered = [split for _, split in splits_of(caught.value.problems[0].hint)]
    assert offered == [
        {"zero_stage": 1},
        {"parallelism": {"tensor": 2}},
        {"parallelism": {"pipeline": 2}, "pipeline": {"micro_batches": 1}},
    ]
    for split, parameter_bytes in zip(offered, (10, 8, 8), strict=True):
        held = simnet.run({**job, "training": training | split}).summary.memory_bytes_per_worker[0]
        assert held == within(parameter_bytes * 1.2e9 + 2e6)


def test_it_goes_on_if_that_is_wanted():
    """With a note in the warnings of the result, that has the same sum; times and bytes are as if it fitted."""
    with pytest.raises(InputError) as caught:
        load_scenario(TOO_LARGE)
    workload = {"model": "bert_large", "batch_size": 128, "samples_per_s": 30}  # whose GPU is not known
    anyway = simnet.run(TOO_LARGE, {"training.allow_oversubscribed": True})
    assert anyway.warnings == (f"{caught.value.problems[0].message}, which is allowed",)
    free = simnet.run({**TOO_LARGE, "workload": workload})
    assert free.warnings == ()
    assert anyway.summary.iteration_time_s[0] == free.summary.iteration_time_s[0]
    assert anyway.summary.memory_bytes_per_worker[0] == free.summary.memory_bytes_per_worker[0] > 32 * 2**30
