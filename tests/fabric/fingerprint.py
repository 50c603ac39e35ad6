"""Prints a digest of everything that some random cases come to, to the last bit; for other processes to compare."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import astuple
from random import Random

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())  # noqa: PTH109

from simnet.fabric.settings import EngineSettings
from simnet.traffic import ALL_REDUCE
from tests.fabric.cases import PLAIN, play_compiled
from tests.fabric.random_cases import Numbers, random_case


def fingerprint(count: int) -> str:
    """Return the digest of so many cases of each kind."""
    digest = hashlib.sha256()
    for seed in range(count):
        for servers in (False, True):
            for changes in (False, True):
                case = random_case(Numbers(Random(seed), ties=not servers), servers=servers, changes=changes)
                for engine in (EngineSettings(), PLAIN):
                    outcome, fabric = play_compiled(case, engine=engine)
                    for part in astuple(outcome):
                        rows = part if isinstance(part, list) and part and isinstance(part[0], list) else [part]
                        for row in rows:
                            digest.update(np.asarray(row, dtype=np.float64).tobytes())
                    digest.update(np.float64(fabric.env.now).tobytes())
    digest.update(",".join(ALL_REDUCE).encode())
    return digest.hexdigest()


if __name__ == "__main__":
    print(fingerprint(int(sys.argv[1])))
