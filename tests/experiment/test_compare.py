"""Two scenarios, or results, side by side."""

from __future__ import annotations

import json
import math

import pytest

import simnet
from simnet.errors import InputError

from .building import C, P, X, layers, scenario, star, within


@pytest.fixture
def both(tmp_path):
    """Return a ring of four, and the same on links of twice the bandwidth with another collective."""
    file = layers(tmp_path)
    one = scenario(file, star(4), {"workers": 4})
    other = scenario(file, star(4, bandwidth="20 Gbps"), {"workers": 4, "architecture": "halving_doubling"})
    return one, other


def test_what_differs_stands_side_by_side(both):
    found = simnet.compare(*both, explain=False)
    settings = found.settings.set_index("key")
    assert list(settings.index) == ["topology.star.bandwidth", "training.architecture"]
    assert tuple(settings.loc["topology.star.bandwidth"]) == ("10 Gbps", "20 Gbps")
    assert settings.loc["training.architecture", "a"].startswith("ring")
    assert settings.loc["training.architecture", "b"] == "halving_doubling"
    assert found.parts is None


def test_another_protocol_is_named_without_its_costs(both):
    one, _ = both
    found = simnet.compare(one, one | {"protocol": "tcp"}, explain=False)
    assert found.settings.to_dict(orient="records") == [{"key": "protocol", "a": "ideal", "b": "tcp"}]


def test_results_are_those_of_the_runs(both):
    """T = C + 6 (X/4 + P) against C + 4 P + 2 (1/2 + 1/4) X/2."""
    found = simnet.compare(*both).results.set_index("column")
    one, other = C + 6 * (X / 4 + P), C + 4 * P + 0.75 * X
    assert float(found.loc["iteration_time_s", "a"]) == pytest.approx(one, rel=1e-5)
    assert found.loc["iteration_time_s", "effect"] == within(other / one - 1)
    assert found.loc["compute_time_s", "effect"] == within(0.0)
    assert math.isnan(found.loc["bottleneck", "effect"])
    assert "waiting_time_s" not in found.index


def test_parts_add_up_to_the_difference(both):
    found = simnet.compare(*both)
    parts = found.parts.set_index("part")
    assert parts.loc["latency", "difference_s"] == within(-2 * P)
    assert parts.loc["serialisation: host link (NIC)", "difference_s"] == within(-0.75 * X)
    assert math.fsum(parts["difference_s"]) == within(-2 * P - 0.75 * X)


def test_results_on_disk_are_compared_as_they_are(both, tmp_path):
    one, other = both
    simnet.run(one).save(tmp_path / "one")
    stored = simnet.compare(tmp_path / "one", other)
    assert stored.parts is None
    assert stored.results.equals(simnet.compare(one, other, explain=False).results)
    again = simnet.compare(tmp_path / "one", other, explain=True)
    assert again.parts is not None
    assert again.parts.equals(simnet.compare(one, other).parts)


def test_nothing_differs_from_itself(both):
    one, _ = both
    found = simnet.compare(one, one)
    assert "what differs in the scenarios:\nnothing" in str(found)
    assert (found.results["effect"].dropna() == 0.0).all()
    data = json.loads(found.as_json())
    assert data["settings"] == []
    assert all(row["difference_s"] == 0.0 for row in data["parts"])


def test_jobs_are_compared_by_name():
    found = simnet.compare("two_jobs", "two_jobs", explain=False)
    assert set(found.results["job"]) == {"images", "larger_model"}
    assert "images: iteration_time_s" in str(found)


def test_what_is_no_scenario_and_no_result_is_refused(tmp_path, both):
    with pytest.raises(InputError, match="no result"):
        simnet.compare(tmp_path, both[0])
    with pytest.raises(InputError):
        simnet.compare(both[0], "no_such_scenario")
