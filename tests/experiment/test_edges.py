"""Numbers at the edge: nothing and next to nothing, links of 1 bit/s and 1 Pbit/s, and more nanoseconds than 2^53."""

from __future__ import annotations

import math

import pytest

import simnet
from simnet.errors import InputError
from simnet.experiment.collective import run_collective
from simnet.experiment.telling import tell_nobody
from simnet.scenario import load_collective
from simnet.units import parse_bandwidth, parse_duration

from .building import C, P, X, layers, scenario, star, within


def run(tmp_path, elements, workers=2, bandwidth="10 Gbps", latency="2 us", **sections):
    file = layers(tmp_path, [{"parameters": elements}])
    training = {"workers": workers, "architecture": "ring", "bucket_size": "100 TB"}
    return simnet.run(scenario(file, star(2, bandwidth=bandwidth, latency=latency), training, **sections)).summary.iloc[
        0
    ]


@pytest.mark.parametrize("elements", [1, 2_500_000_000_000])
def test_one_worker_exchanges_nothing(tmp_path, elements):
    """An iteration takes what computing does, whatever the gradients are: 4 bytes or 10 TB."""
    found = run(tmp_path, elements, workers=1)
    assert found.iteration_time_s == within(C)
    assert found.exposed_communication_time_s == 0


@pytest.mark.parametrize("latency", ["0 us", "2 us", "10 s"])
@pytest.mark.parametrize("bandwidth", ["1 bps", "1 Mbps", "10 Gbps", "1 Pbps"])
@pytest.mark.parametrize("elements", [2, 2_500_000_000_000])
def test_a_ring_of_two_at_any_rate(tmp_path, elements, bandwidth, latency):
    """Two steps, each of half of the gradients over two links of the star: S/B + 4 latencies.

    10 TB at 1 bit/s are 8e13 s, or 8e22 ns, beyond 2^53 ns as at 1 Mbit/s; at 10 Gbit/s they are beyond 2^31 ns.
    """
    expected = 4.0 * elements / parse_bandwidth(bandwidth) + 4 * parse_duration(latency)
    found = run(tmp_path, elements, bandwidth=bandwidth, latency=latency)
    assert found.iteration_time_s == within(C + expected, rel=1e-9)
    # Times are differences of a clock: of a long run a short one is known to the last digits of the clock.
    clock_s = 10 * (C + expected)
    assert found.exposed_communication_time_s == within(expected, rel=1e-9, abs=4 * math.ulp(clock_s))


def test_one_byte_is_sent_whole(tmp_path):
    """A broadcast of 1 byte over two links: 8 bits at 10 Gbit/s, and both latencies; all in microseconds."""
    topology = "{star: {hosts: 2, bandwidth: 10 Gbps, latency: 2 us}}"
    settings = load_collective("broadcast", topology=topology, protocol="ideal", sizes="1B", dtype="fp8")
    [found] = run_collective(settings, say=tell_nobody).time_us
    assert found == within(8e-4 + 4, rel=1e-6)


def test_a_model_without_gradients_is_refused(tmp_path):
    """0 bytes: there is nothing to train."""
    with pytest.raises(InputError, match="no layer has parameters"):
        run(tmp_path, 0)


def test_a_layer_without_gradients_is_none_to_exchange(tmp_path):
    """Of two layers one has 0 bytes: S/B + 4 latencies of the other, and twice the time of computing."""
    file = layers(tmp_path, [{"parameters": 0}, {}])
    found = simnet.run(scenario(file, star(2), {"workers": 2, "architecture": "ring"})).summary.iloc[0]
    assert found.iteration_time_s == within(2 * C + X + 2 * P)


def test_many_iterations_of_what_repeats(tmp_path):
    """2,000 iterations take as long each as a few: nothing drifts, and times still add up to 1e-9."""
    few = run(tmp_path, 240_000, run={"iterations": 10, "warmup": 0})
    many = run(tmp_path, 240_000, run={"iterations": 2_000, "warmup": 0})
    assert many.iteration_time_s == within(few.iteration_time_s, rel=1e-9)
