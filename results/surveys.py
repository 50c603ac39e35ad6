"""Reproduce what two surveys say of networks for machine learning: ``python results/surveys.py`` or ``make surveys``.

Each finding has a folder with its sweep files, which are run here or by ``simnet sweep FILE``; tables and pictures are
written beside them, and their figures into ``results/surveys/README.md``, between comments. Single findings:
``python results/surveys.py 3 7``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable

import surveys_exchanges as exchanges
import surveys_networks as networks
import surveys_scaling as scaling
import surveys_workers as workers
from surveys_tools import FOLDER, Place
from writing import filled

__all__ = ["FINDINGS", "README", "Place", "main", "reproduce"]

README = FOLDER / "README.md"

FINDINGS: dict[int, tuple[str, Callable[[Place], None]]] = {
    1: ("01_inception_v3", networks.inception_v3),
    2: ("02_large_batch", scaling.large_batch),
    3: ("03_rounds", scaling.rounds),
    4: ("04_volumes", exchanges.volumes),
    5: ("05_architectures", exchanges.architectures),
    6: ("06_synchronisation", workers.synchronisation),
    7: ("07_compression", exchanges.compression),
    8: ("08_rules", exchanges.rules),
    9: ("09_lossy", networks.lossy),
    10: ("10_ratio", scaling.ratio),
    11: ("11_heterogeneous", workers.heterogeneous),
    12: ("12_laws", scaling.laws),
    13: ("13_failures", workers.failures),
    14: ("14_rdma_at_scale", networks.rdma_at_scale),
    15: ("15_lossy_far", networks.lossy_far),
    16: ("16_lstm", exchanges.lstm),
    17: ("17_memory", workers.memory),
}
"""The folder of each finding, and what reproduces it."""


def reproduce(number: int) -> Place:
    """Run a finding, write its tables and pictures, and return its place with the parts of the paper."""
    folder, run = FINDINGS[number]
    place = Place(FOLDER / folder)
    run(place)
    return place


def main(numbers: Iterable[int]) -> None:
    """Reproduce findings, and write their figures into the paper."""
    for number in numbers:
        began = time.perf_counter()
        place = reproduce(number)
        parts = {f"finding {number}, {name}": text for name, text in place.parts.items()}
        README.write_text(filled(README.read_text(encoding="utf-8"), parts), encoding="utf-8")
        print(f"finding {number}: {time.perf_counter() - began:.0f} s, {place.folder}", flush=True)


if __name__ == "__main__":
    main(map(int, sys.argv[1:]) if len(sys.argv) > 1 else FINDINGS)
