"""Laws of speed-up against their limits, and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.training.laws.speedup import (
    amdahl,
    communication_bound,
    fit_amdahl,
    fit_gustafson,
    gustafson,
    karp_flatt,
    speed_ratio,
    super_linear,
    work_ratio,
)

FRACTIONS = st.floats(0.0, 1.0)
WORKERS = st.integers(2, 100_000).map(float)


@given(FRACTIONS, WORKERS)
def test_karp_flatt_is_the_inverse_of_amdahl(fraction, workers):
    assert karp_flatt(amdahl(workers, fraction), workers) == pytest.approx(fraction, abs=1e-9)


@given(FRACTIONS, WORKERS)
def test_speedups_are_between_one_and_the_workers_and_no_more_than_their_limits(fraction, workers):
    """Amdahl's is at most 1/f, Gustafson's at least as much as Amdahl's."""
    fixed, scaled = amdahl(workers, fraction), gustafson(workers, fraction)
    assert 1.0 - 1e-12 <= fixed <= workers * (1 + 1e-12)
    assert fixed * fraction <= 1.0 + 1e-12
    assert fixed <= scaled * (1 + 1e-12)
    assert scaled <= workers


@given(FRACTIONS, WORKERS)
def test_both_laws_are_ratios_of_speeds(fraction, workers):
    """One takes f + (1 - f). Fixed work: P take f + (1 - f)/P. Scaled: as long, for f + (1 - f) P of work."""
    fixed = speed_ratio(work_ratio(1.0, fraction), fraction + (1 - fraction) / workers, 1.0, 1.0)
    assert fixed == pytest.approx(amdahl(workers, fraction), rel=1e-12)
    scaled = speed_ratio(work_ratio(workers, fraction), 1.0, 1.0, 1.0)
    assert scaled == pytest.approx(gustafson(workers, fraction), rel=1e-12)


@given(FRACTIONS)
def test_fits_find_the_fraction_of_curves(fraction):
    workers = np.array([1.0, 2.0, 5.0, 64.0])
    assert fit_amdahl(workers, amdahl(workers, fraction)) == pytest.approx(fraction, abs=1e-9)
    assert fit_gustafson(workers, gustafson(workers, fraction)) == pytest.approx(fraction, abs=1e-9)


def test_one_worker_says_nothing_about_a_fraction():
    one = np.array([1.0])
    assert math.isnan(fit_amdahl(one, one))
    assert math.isnan(fit_gustafson(one, one))
    assert math.isnan(karp_flatt(1.0, 1))


@given(st.floats(1e-3, 1e3), WORKERS, st.booleans())
def test_strong_scaling_never_passes_one_and_the_ratio(ratio, workers, overlap):
    """(C + M) / M = 1 + C/M, whether communication is hidden or not; 1:1 never passes 2."""
    found = communication_bound(ratio, workers, "strong", overlap=overlap)
    assert found <= (1 + ratio) * (1 + 1e-12)
    assert communication_bound(1.0, workers, "strong", overlap=overlap) <= 2.0


@pytest.mark.parametrize(("overlap", "efficiency"), [(False, 0.5), (True, 1.0)])
def test_weak_scaling_at_one_to_one(overlap, efficiency):
    for workers in (2, 16, 1000):
        assert communication_bound(1.0, workers, "weak", overlap=overlap) == pytest.approx(efficiency * workers)


@given(st.floats(0.1, 100), st.floats(0, 100), st.floats(0, 100), WORKERS, st.floats(0, 1))
def test_the_condition_is_that_of_the_ratio(compute, memory, memory_of_one, workers, part):
    """CC_1 = CC_P (P - d): (CC_1 + MC_1) / (CC_P + MC_P) > P, where rounding does not decide."""
    overhead = part * workers
    speedup = (compute * (workers - overhead) + memory_of_one) / (compute + memory)
    if abs(speedup / workers - 1) > 1e-9:
        assert super_linear(memory_of_one, memory, compute, workers, overhead) == (speedup > workers)
