"""Whatever is put into a scenario, it is loaded or refused: nothing else is ever raised."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.scenario import describe, load_scenario, override_from_text, parse_yaml

RIGHT = yaml.safe_load("""
name: right
topology: {leaf_spine: {leaves: 2, hosts_per_leaf: 2, spines: 1, bandwidth: 10 Gbps, host: {gpus: 2, nics: 1}}}
protocol: {tcp: {mtu: 9000 B, connection_cap: 20 Gbps, copies_send: 1}}
fidelity: flow
workload: {model: resnet50, gpu: v100, batch_size: 64, precision: fp32}
training:
  workers: 4
  architecture: {mesh: {exchange: full}}
  bucket_size: 25 MiB
  overlap: true
  jitter: {distribution: normal, sigma: 0.1}
  speed_factors: {1: 0.5}
run: {iterations: 10, warmup: 1, seed: 0}
baseline: {samples_per_s: 100}
""")

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 20),
    st.sampled_from([10**6, 10**15, 2**63, 10**30, 10**400, -(10**400)]),
    st.floats(),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e308, 5e-324, -0.0, 1e17]),
    st.text(max_size=8),
    st.sampled_from(["0 B", "1 Gbps", "1e308 s", "-1 us", "1 us", "unlimited", "star", "tcp", "resnet50", "ring"]),
    st.sampled_from(["v100_8x4_100g", "../..", "/", ".", "/dev/zero", "\0", "x.json", "x" * 5000]),
)
KEYS = (
    st.text(max_size=6) | st.integers(-2, 5) | st.sampled_from(["star", "hosts", "file", "defaults", "workers", "<<"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)


def paths(data, path=()):
    """Return the paths of all values in some data."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(found for key, value in inside for found in paths(value, (*path, key)))]


def with_value(data, path, value):
    """Return data with another value at a path."""
    if not path:
        return value
    key, *rest = path
    if isinstance(data, list):
        return [*data[:key], with_value(data[key], rest, value), *data[key + 1 :]]
    return {**data, key: with_value(data[key], rest, value)}


def refusal(load, *arguments):
    """Return the problems with which something is refused; none where it is loaded."""
    try:
        load(*arguments)
    except InputError as error:
        refused = error
    else:
        return ()
    str(refused).encode()
    assert refused.problems
    return refused.problems


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(paths(RIGHT)[1:]), VALUES), min_size=1, max_size=3))
def test_any_value_anywhere_is_loaded_or_refused_in_plain_words(changes):
    data = RIGHT
    for path, value in changes:
        # An earlier change may have taken the place away.
        with contextlib.suppress(TypeError, KeyError, AttributeError):
            data = with_value(data, path, value)
    for problem in refusal(load_scenario, data):
        for word in ("pydantic", "Input should be", "Value error"):
            assert word not in problem.message + problem.hint


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_change_of_the_text_is_loaded_or_refused_with_its_source(tmp_path_factory, data):
    text = yaml.safe_dump(RIGHT)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 12)))
    text = text[:start] + data.draw(st.text(alphabet=" :{}[],\n-#'\"&*!01e.ab\t", max_size=6)) + text[end:]
    file = tmp_path_factory.mktemp("fuzz") / "s.yaml"
    file.write_text(text, encoding="utf-8")
    assert all(problem.source for problem in refusal(describe, file))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.sampled_from([".".join(map(str, path)) for path in paths(RIGHT)[1:]]) | st.text(max_size=10), max_size=3
    ),
    VALUES,
)
def test_any_override_is_applied_or_refused(names, value):
    written = json.dumps(value) if not isinstance(value, str) else value
    refusal(lambda: load_scenario(RIGHT, [override_from_text(f"{name}={written}") for name in names]))
    refusal(load_scenario, RIGHT, dict.fromkeys(names, value))


@pytest.mark.parametrize("name", ["resnet50_16gpu", "own_workload", "two_jobs"])
def test_what_ships_survives_any_single_replacement(name):
    folder = Path(__file__).parents[2] / "scenarios"
    data = parse_yaml((folder / f"{name}.yaml").read_text(), name).data
    for path in paths(data)[1:]:
        for value in (None, True, 0, -1, 1.5, math.nan, 10**40, "", "x", "0 B", [1], {}, {"x": 1}):
            refusal(load_scenario, with_value(data, path, value))


SPLIT = yaml.safe_load("""
topology: {star: {hosts: 8, host: {memory_bandwidth: 100 GB/s}}}
protocol: ideal
workload: {model: resnet50, gpu: v100, global_batch_size: 32}
training:
  workers: 8
  architecture: {parameter_server: {servers: 2, fan_in: 2, aggregation_rate: 1 GB/s, cores: 2, memory_accesses: 3}}
  placement: [host0, host1, host2, host3, host4, host5, host6, host7]
  parallelism: {data: 4, pipeline: 2, tensor: 1, shared_memory: 1}
  pipeline: {micro_batches: 2, order: gpipe}
  zero_stage: 0
  forward_overlap: false
dataset: {bytes_per_sample: 1 kB, storage: host1, split: sampled, samples: 100, prefetch: 1, partial_sum_size: 4 B}
background: {load: 0.1, sizes: pareto, mean_size: 1 MB, shape: 1.5, pairs: random}
reduction_rate: 10 GB/s
""")


def test_all_that_a_job_can_say_survives_any_single_replacement():
    assert refusal(load_scenario, SPLIT) == ()
    for path in paths(SPLIT)[1:]:
        for value in (None, 0, -1, 3, 7, 1.5, math.nan, 10**40, "", "x", "0 B", [1], ["host0"], {}):
            refusal(load_scenario, with_value(SPLIT, path, value))
