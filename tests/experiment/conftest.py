"""Fixtures of the experiment tests: runs that several tests look at are made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

import simnet
from simnet import Result


@pytest.fixture(scope="session")
def shipped() -> Callable[[str], Result]:
    """Return the result of a scenario that ships."""
    return cache(simnet.run)
