"""Print the lowest version that pyproject.toml allows of each dependency, as constraints for pip."""

from __future__ import annotations

import tomllib
from pathlib import Path

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

for line in (*_PROJECT["dependencies"], *_PROJECT["optional-dependencies"]["dev"]):
    name, bound, version = line.partition(">=")
    if not bound:
        raise ValueError(f"{line!r} has no lower bound")
    print(f"{name}=={version}")
