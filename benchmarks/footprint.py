"""Print what simnet takes of a disk, with all that it needs, and how long it takes to start: ``make footprint``."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution

STARTS = {
    "import simnet": "import simnet",
    "simnet --help": "import simnet.cli.app",
    "simnet check": "import simnet.scenario",
    "simnet run": "import simnet.cli.run, simnet.experiment.run",
}
REPEATS = 5
LARGEST = 5


def main() -> None:
    """Print both."""
    sizes = {one.name: _size_mb(one) for one in _with_requirements("simnet-cluster")}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:LARGEST]
    print(f"installed: {sum(sizes.values()):.0f} MB, of {len(sizes)} packages")
    print("  of that: " + ", ".join(f"{name} {sizes[name]:.0f} MB" for name in largest))
    python = min(_start_s("pass") for _ in range(REPEATS))
    print(f"python alone: {python:.2f} s of processor time")
    for name, code in STARTS.items():
        print(f"  {name}: {min(_start_s(code) for _ in range(REPEATS)) - python:.2f} s more, to import what it needs")


def _with_requirements(name: str) -> list[Distribution]:
    """Return a package and all that it needs, whatever needs it, but no extras."""
    found: dict[str, Distribution] = {}
    names = [name]
    while names:
        key = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if key in found:
            continue
        try:
            found[key] = distribution(key)
        except PackageNotFoundError:
            # Wanted on another system only.
            continue
        for line in found[key].requires or ():
            wanted = re.match(r"[\w.-]+", line)
            if wanted and "extra ==" not in line:
                names.append(wanted[0])
    return list(found.values())


def _size_mb(one: Distribution) -> float:
    paths = {file.locate() for file in one.files or ()}
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def _start_s(code: str) -> float:
    """Return the processor time of a Python that runs some code [s]."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
