"""``python -m tests.fuzz``: damaged inputs for a set time; status 1 and a folder of what failed where something did.

Input N of seed S is always the same: ``--seed S --only N`` makes it again.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import resource
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from .corpus import Input, made_input, seeds
from .targets import LONGEST_S, TARGETS, Fault, loaded, workplace, write_input

MOST_MEMORY = 2 << 30  # bytes, beside what is mapped when everything is imported


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _keep(folder: Path, name: str, one: Input, error: Fault, again: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}{one.suffix}").write_bytes(one.content)
    said = "".join(traceback.format_exception(error))
    (folder / f"{name}.txt").write_text(
        f"{one.kind} from {one.name}\n{again}\n\n{said}", encoding="utf-8", errors="replace"
    )
    print(f"{again}: {one.kind} from {one.name}: {error}", flush=True)


def main() -> int:
    """Run for a time; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--inputs", type=int, help="stop after so many")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", type=int, help="one input alone")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="folder for inputs that fail")
    options = parser.parse_args()
    keep = options.keep.resolve()
    first, last = (0, options.inputs) if options.only is None else (options.only, options.only + 1)
    counts: Counter[str] = Counter()
    unplaced: Counter[str] = Counter()
    slowest, failed, number = (0.0, 0), 0, first
    with TemporaryDirectory() as folder, workplace(Path(folder)) as work:
        for seed in seeds():  # what is imported, and cached, when first needed
            loaded(seed.kind, write_input(work, Input(seed.kind, seed.name, seed.text.encode(), seed.suffix)), 1000)
        _limit_memory()
        begin = time.perf_counter()
        while (last is None or number < last) and (options.only or time.perf_counter() - begin < options.seconds):
            one = made_input(options.seed, number)
            again = f"--seed {options.seed} --only {number}"
            path = write_input(work, one)
            # Should a compiled library hang or crash, this is all that is left to be told.
            (work.parent / "current").write_text(again, encoding="ascii")
            faulthandler.dump_traceback_later(3 * LONGEST_S, exit=True)
            start = time.perf_counter()
            try:
                outcome = loaded(one.kind, path)
                counts[f"{one.kind} {'loaded' if outcome.is_loaded else 'refused'}"] += 1
                unplaced.update(f"{one.kind}: {message[:60]!a}" for message in outcome.without_line)
            except Fault as error:
                failed += 1
                _keep(keep, f"{options.seed}-{number}", one, error, again)
            faulthandler.cancel_dump_traceback_later()
            slowest = max(slowest, (time.perf_counter() - start, number))
            path.unlink(missing_ok=True)
            number += 1
        took_s = time.perf_counter() - begin
    made = number - first
    print(f"{made} inputs in {took_s:.0f} s ({made / took_s:.0f} a second), seed {options.seed}; {failed} failed")
    print(f"slowest: input {slowest[1]}, {slowest[0]:.2f} s")
    for kind in TARGETS:
        print(f"{kind:>13}: {counts[f'{kind} loaded']} loaded, {counts[f'{kind} refused']} refused")
    print("most frequent problems without a line:", *(f"\n  {n} {said}" for said, n in unplaced.most_common(15)))
    return 1 if failed else 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
