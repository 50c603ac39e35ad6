"""The same input gives the same bytes: compiled or not, in any process, whatever the hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .fingerprint import fingerprint


def in_another_process(count: int, **environment: str) -> str:
    """The fingerprint of so many cases, worked out by another process."""
    return subprocess.run(
        [sys.executable, str(Path(__file__).with_name("fingerprint.py")), str(count)],
        env={**os.environ, **environment},
        cwd=Path(__file__).parents[2],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def test_twice_in_one_process():
    assert fingerprint(5) == fingerprint(5)


def test_another_process_with_another_hash_seed():
    assert in_another_process(5, PYTHONHASHSEED="random") == fingerprint(5)


def test_plain_python_gives_the_same_bits_as_compiled():
    """Without numba's compiler the kernels are ordinary functions, and the oracle of the compiler."""
    assert in_another_process(5, NUMBA_DISABLE_JIT="1") == fingerprint(5)


@pytest.mark.slow
def test_plain_python_gives_the_same_bits_as_compiled_in_many_cases():
    assert in_another_process(150, NUMBA_DISABLE_JIT="1") == fingerprint(150)
