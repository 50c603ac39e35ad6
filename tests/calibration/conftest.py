"""Fixtures of the calibration tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simnet.calibration import Calibration, calibrate


@pytest.fixture
def calibrated(tmp_path: Path) -> Callable[..., Calibration]:
    """Calibrate with a log of that text."""

    def run(text: str | bytes, **options: Any) -> Calibration:
        path = tmp_path / "my cluster.log"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return calibrate(path, **options)

    return run
