"""Time training jobs on thousands of workers: ``python benchmarks/large_jobs.py [NAME ...]``.

One line a job: seconds of the whole process (kernels compiled before), the highest memory, the simulated time of an
iteration, messages, and how many of them were worked out one by one; the others are like one of these, or repeat a
period or an earlier exchange.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

STAR = {"bandwidth": "100 Gbps", "latency": "1 us"}
RACKS = {"leaves": 64, "hosts_per_leaf": 16, "spines": 8, "oversubscription": 2, **STAR}
TEN, ONE = {"iterations": 10, "warmup": 1}, {"iterations": 1, "warmup": 0}

JOBS: dict[str, dict[str, Any]] = {
    "star_4096": {"topology": {"star": {"hosts": 4096, **STAR}}, "run": TEN},
    "star_4096_jitter": {
        "topology": {"star": {"hosts": 4096, **STAR}},
        "training": {"jitter": {"distribution": "normal", "sigma": 0.01}},
        "run": TEN,
    },
    "star_16384": {"topology": {"star": {"hosts": 16384, **STAR}}, "run": ONE},
    "leaf_spine_1024": {"topology": {"leaf_spine": RACKS}, "run": TEN},
    "leaf_spine_1024_random": {
        "topology": {"leaf_spine": RACKS},
        "training": {"placement": "random"},
        "run": ONE,
    },
}
"""Inception-V3 on V100, RDMA, ring, one all-reduce a bucket of 25 MiB; all ranks of the topology are workers."""


def scenario(name: str) -> dict[str, Any]:
    """Return the scenario of a job."""
    workload = {"model": "inception_v3", "gpu": "v100", "batch_size": 64}
    return {"name": name, "protocol": "rdma", "workload": workload, **JOBS[name]}


def run_here(name: str) -> None:
    """Run a job and print what it says as JSON."""
    import simnet

    result = simnet.run(scenario(name))
    row = result.summary.iloc[0]
    numbers = {"workers": int(row["workers"]), "iteration_time_s": float(row["iteration_time_s"])}
    print(json.dumps(numbers | {key: result.about[key] for key in ("messages", "messages_simulated")}))


def main() -> None:
    """Run the jobs, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(JOBS), help=f"{', '.join(JOBS)}; all by default")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in JOBS]
    if unknown:
        parser.error(f"no job is called {', '.join(unknown)}; there are {', '.join(JOBS)}")
    if arguments.here:
        run_here(arguments.names[0])
        return
    from simnet.fabric.warm_up import compile_kernels

    compile_kernels(lambda line: print(line, file=sys.stderr))
    heads = ("workers", "elapsed", "memory", "iteration", "messages", "worked out")
    print("{:<24} {:>7} {:>8} {:>8} {:>10} {:>14} {:>12}".format("job", *heads))
    for name in arguments.names:
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, __file__, "--here", name], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        elapsed_s = time.perf_counter() - began
        if status:
            raise SystemExit(f"{name} failed")
        found = json.loads(said)
        memory = f"{used.ru_maxrss / 1024:.0f} MiB"
        print(
            f"{name:<24} {found['workers']:>7,} {elapsed_s:>6.1f} s {memory:>8} {found['iteration_time_s']:>8.4f} s "
            f"{found['messages']:>14,} {found['messages_simulated']:>12,}",
            flush=True,
        )


if __name__ == "__main__":
    main()
