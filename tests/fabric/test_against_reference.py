"""The kernel inside SimPy against an obvious simulator, on random schedules, networks and happenings."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from simnet.fabric.settings import EngineSettings

from .cases import PLAIN, Case, play_compiled, play_reference
from .random_cases import cases


def require_same(case: Case) -> None:
    """Completion of each rank, bytes and busy time of each resource, transfers of each node: within 1e-9."""
    expected = play_reference(case)
    close = {"rel": 1e-9, "abs": 1e-9}
    for engine in (EngineSettings(), PLAIN):
        found, fabric = play_compiled(case, engine=engine)
        for play, durations in enumerate(expected.durations):
            assert found.durations[play] == pytest.approx(durations, **close), f"play {play}"
        assert found.carried == pytest.approx(expected.carried, **close)
        assert found.busy == pytest.approx(expected.busy, **close)
        assert found.transfer == pytest.approx(expected.transfer, **close)
        assert found.sent == pytest.approx(expected.sent, **close)
        assert found.lost == pytest.approx(expected.lost, **close)
        assert found.messages == expected.messages
        fabric.require_conservation()


def example_settings(count: int):
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))


@given(cases(servers=False, changes=False))
@example_settings(60)
def test_much_at_once(case):
    """Whole numbers, so that starts, drains and deliveries fall on the same instants all the time."""
    require_same(case)


@given(cases(servers=True, changes=False))
@example_settings(60)
def test_overheads_and_streams(case):
    """Servers that are first in, first out, at both ends and for calculations."""
    require_same(case)


@given(cases(servers=True, changes=True))
@example_settings(60)
def test_changing_capacities_caps_paths_deadlines_and_cancelling(case):
    require_same(case)


@pytest.mark.slow
@given(cases(servers=False, changes=False, plays=5))
@example_settings(400)
def test_much_at_once_in_many_cases(case):
    require_same(case)


@pytest.mark.slow
@given(cases(servers=True, changes=False, plays=5))
@example_settings(400)
def test_overheads_and_streams_in_many_cases(case):
    require_same(case)


@pytest.mark.slow
@given(cases(servers=True, changes=True, plays=5))
@example_settings(400)
def test_changes_in_many_cases(case):
    require_same(case)
