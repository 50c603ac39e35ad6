"""How often workers compute and communicate until they have gone through so many samples."""

from __future__ import annotations

import pytest

from simnet.training.laws.convergence import ROUNDS, communication_rounds, iterations_to_target


@pytest.mark.parametrize(("batch", "iterations"), [(512, 250_000), (1024, 125_000), (8192, 15_625)])
def test_a_hundred_epochs_of_imagenet(batch, iterations):
    """100 epochs of 1.28 million images are 128 million samples."""
    assert iterations_to_target(100 * 1_280_000, batch) == iterations


def test_rounds_are_those_of_the_period_and_one_at_the_end():
    assert communication_rounds(1000) == 1000
    assert communication_rounds(1000, 8) == 125
    assert communication_rounds(1001, 8) == 126
    assert communication_rounds(1000, 1000) == 1
    assert communication_rounds(1000, 1000, warmup=10) == 11


def test_no_algorithm_needs_more_rounds_than_iterations():
    for result in ROUNDS:
        if result.rounds is not None:
            assert 0 < result.rounds(16, 1e6) <= 1e6
            assert result.rounds(1e6, 100) <= 100


def test_orders_of_rounds():
    """At N = 16, T = 10^8: T; (N T)^(1/2) = 4 10^4; (N T)^(3/4) = 8 10^6; N^(3/2) T^(1/2) = 64 10^4."""
    found = {result.formula: result.rounds(16, 1e8) for result in ROUNDS if result.rounds is not None}
    assert found["T"] == 1e8
    assert found["N^(1/2) T^(1/2)"] == pytest.approx(4e4, rel=1e-12)
    assert found["N^(3/4) T^(3/4)"] == pytest.approx(8e6, rel=1e-12)
    assert found["N^(3/2) T^(1/2)"] == pytest.approx(6.4e5, rel=1e-12)
    assert found["N^(1/3) T^(1/3)"] == pytest.approx(1.6e9 ** (1 / 3), rel=1e-12)
