"""Variance explained by main effects: what theory says of functions whose effects are known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from simnet.experiment.effects import CHANCE, INTERACTIONS, main_effects


def grid(function, *values) -> pd.DataFrame:
    names = [f"p{number}" for number in range(len(values))]
    frame = pd.DataFrame(list(product(*values)), columns=names)
    return frame.assign(y=[function(*row) for row in frame.itertuples(index=False)])


def test_an_additive_function_is_explained_whole():
    """y = a + b: var(y) = var(a) + var(b), so each explains its own part, and nothing is left.

    a of 1, 2, 3 has the variance 2/3, b of 10, 14 has 4.
    """
    found = main_effects(grid(lambda a, b: a + b, [1, 2, 3], [10, 14]), ["p0", "p1"], "y")
    assert found is not None
    assert not found.is_log
    whole = 2 / 3 + 4
    assert found.shares == pytest.approx({"p0": 2 / 3 / whole, "p1": 4 / whole, INTERACTIONS: 0.0}, abs=1e-12)
    assert found.order == ["p1", "p0"]


def test_a_pure_interaction_is_not_explained_at_all():
    """y = a b with a, b of -1, 1: the mean over either is 0 at any value of the other."""
    found = main_effects(grid(lambda a, b: a * b, [-1, 1], [-1, 1]), ["p0", "p1"], "y")
    assert found is not None
    assert found.shares == pytest.approx({"p0": 0.0, "p1": 0.0, INTERACTIONS: 1.0}, abs=1e-12)


def test_a_product_over_decades_is_additive_in_its_logarithm():
    """log(a b) = log a + log b; both spread alike, so each explains half."""
    found = main_effects(grid(lambda a, b: a * b, [1, 10, 100], [1, 10, 100]), ["p0", "p1"], "y")
    assert found is not None
    assert found.is_log
    assert found.shares == pytest.approx({"p0": 0.5, "p1": 0.5, INTERACTIONS: 0.0}, abs=1e-12)


def test_holes_in_the_grid_leave_an_additive_function_explained_whole():
    """Least squares finds it from any points; what the two explain together is 1, however that is shared."""
    frame = grid(lambda a, b, c: a + 2 * b + c, [1, 2, 3], [0, 1, 2], [5, 7]).drop(index=[0, 4, 9, 16])
    found = main_effects(frame, ["p0", "p1", "p2"], "y")
    assert found is not None
    assert found.shares[INTERACTIONS] == pytest.approx(0.0, abs=1e-9)
    assert sum(found.shares.values()) == pytest.approx(1.0, abs=1e-9)
    assert min(found.shares.values()) >= 0


def test_what_goes_together_shares_what_it_explains():
    """Two parameters that always go together cannot be told apart: half each."""
    frame = pd.DataFrame({"p0": [1, 2, 3], "p1": ["a", "b", "c"], "y": [1.0, 5.0, 6.0]})
    found = main_effects(frame, ["p0", "p1"], "y")
    assert found is not None
    assert found.shares == pytest.approx({"p0": 0.5, "p1": 0.5, INTERACTIONS: 0.0}, abs=1e-9)


def test_seeds_of_a_point_are_chance():
    """y = a + e, e of -1, 1 at each point: var(a) = 4, var(e) = 1, and nothing is interaction."""
    one = grid(lambda a, _: a, [10, 14], [1, 2])
    frame = pd.concat([one.assign(y=one["y"] + e) for e in (-1.0, 1.0)], ignore_index=True)
    found = main_effects(frame, ["p0", "p1"], "y")
    assert found is not None
    expected = {"p0": 0.8, "p1": 0.0, INTERACTIONS: 0.0, CHANCE: 0.2}
    assert found.shares == pytest.approx(expected, abs=1e-12)


def test_a_parameter_drawn_at_random_is_put_into_groups():
    """With a value of its own at each point it would explain all, whatever the number is."""
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"p0": random.random(60), "p1": [1, 2, 3] * 20, "y": random.random(60)})
    found = main_effects(frame, ["p0", "p1"], "y")
    assert found is not None
    assert found.grouped == ("p0",)
    assert found.shares["p0"] < 0.3
    texts = frame.assign(p0=[f"{1 + place:.3f} Gbps" for place in frame["p0"]])
    same = main_effects(texts, ["p0", "p1"], "y")
    assert same is not None
    assert same.shares == pytest.approx(found.shares, abs=0.02)


@pytest.mark.parametrize("values", [[3.0, 3.0, 3.0], [np.nan, 1.0, np.nan]])
def test_nothing_is_explained_where_nothing_varies(values):
    assert main_effects(pd.DataFrame({"p0": [1, 2, 3], "y": values}), ["p0"], "y") is None


@pytest.mark.parametrize("lacking", [None, float("nan")])
def test_a_value_that_some_points_lack_is_one_more_value(lacking):
    """Points of a list need not give what others vary."""
    frame = grid(lambda a, b: (a or 3) + b, [1, 2, 0], [10, 14])
    named = frame.assign(p0=frame["p0"].map({1: 1, 2: 2, 0: lacking}))
    found, expected = main_effects(named, ["p0", "p1"], "y"), main_effects(frame, ["p0", "p1"], "y")
    assert found is not None
    assert expected is not None
    assert found.shares == pytest.approx(expected.shares, abs=1e-12)
