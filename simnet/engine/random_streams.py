"""Random numbers by name: each use has a stream of its own, which nothing else can disturb."""

from __future__ import annotations

import hashlib

import numpy as np

__all__ = ["random_stream"]


def random_stream(seed: int, *name: str | int) -> np.random.Generator:
    """Return the generator that belongs to a name under a seed; the same each time it is asked for.

    Parameters
    ----------
    seed : int
        Seed of the run, at least 0.
    *name : str or int
        Parts of the name, for example ``"jitter", job, iteration``.
    """
    digest = hashlib.sha256("/".join(str(part) for part in name).encode()).digest()
    words = np.frombuffer(digest[:16], dtype="<u4")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words.tolist()])))
