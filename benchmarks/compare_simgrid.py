"""Run the same work in simnet and in SimGrid, side by side, and compare times and results.

    python benchmarks/compare_simgrid.py --work W1 --hosts 64 256 1024
    python benchmarks/compare_simgrid.py --work W4 W4w

W1   ring all-reduce of 100 MB on a star, 100 Gbit/s and 1 us a link
W2   the same on leaf-spine with 2:1 oversubscription, ranks in order
W2p  the same, ranks permuted
W3   workers push 100 MB to one server and pull it back, on a star
W4   10,000 flows on a fat tree k=8, only the links of the hosts have latency
W4w  the same, all links have latency, and flows share in inverse proportion to it

Times are of whole processes: user and system CPU time and elapsed time as the operating system counts them. The
simulators take turns. Exit status 0: results agree; 1: they do not; 2: SimGrid is not there. See docs/simgrid.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from works import WORKS, write_work

from simnet.fabric.settings import EngineSettings

HERE = Path(__file__).parent
BUILD = HERE / "build"

HOW_TO_INSTALL = """\
SimGrid is not installed, so there is nothing to compare simnet with. On Debian and Ubuntu:

    apt-get install g++ libsimgrid-dev

Elsewhere build SimGrid 3.32 or later from https://simgrid.org, and set CXX, CXXFLAGS and LDFLAGS so that g++ finds it.
To measure simnet alone: --only simnet."""

SIMGRID_OPTIONS = (
    "network/model:CM02",
    "network/crosstraffic:0",
    # What CM02 of this version has anyway; other versions and models have other defaults.
    "network/latency-factor:1",
    "network/bandwidth-factor:1",
    "network/weight-S:0",
    # No TCP window, which would cap a flow at gamma / (2 latency).
    "network/TCP-gamma:0",
    # SimGrid takes instants closer than this for one [s]; by default 1e-9, which adds up over thousands of rounds.
    "surf/precision:1e-12",
)
FASTER_OPTIM = {"ring": "Lazy", "push_pull": "Lazy", "flows": "Full"}
"""How SimGrid updates its flows: the one of its two ways that is faster for this work."""

MOST_DIFFERENCE = {"simulated time": 1e-3, "mean flow": 1e-3, "99 % of the flows": 1e-2}
"""What the results may differ by, relative."""


@dataclass(frozen=True)
class Run:
    """One process, from its start to its end."""

    cpu_s: float
    wall_s: float
    memory_bytes: float
    result: dict[str, Any]


@dataclass
class Runs:
    """Repetitions of the same process."""

    runs: list[Run] = field(default_factory=list)

    @property
    def result(self) -> dict[str, Any]:
        return self.runs[-1].result

    def cpu_s(self) -> list[float]:
        return [run.cpu_s for run in self.runs]

    def wall_s(self) -> list[float]:
        return [run.wall_s for run in self.runs]

    def memory_mb(self) -> float:
        """Largest resident set; Linux does not go below that of the parent, which is about 60 MB."""
        return max(run.memory_bytes for run in self.runs) / 1e6

    def phase_s(self, *names: str) -> list[float]:
        """CPU time of some phases that simnet reports."""
        return [sum(run.result["cpu_s"].get(name, 0.0) for name in names) for run in self.runs]


def run_process(command: Sequence[str]) -> Run:
    """Run a process that prints one JSON object; measure it by what the operating system counts."""
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - begun
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}")
    # Linux counts the largest resident set in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * unit, json.loads(output or "{}"))


def simgrid_program() -> Path:
    """Build the SimGrid side if it is older than its source; end with status 2 where that is impossible."""
    source, program = HERE / "simgrid_workloads.cpp", BUILD / "simgrid_workloads"
    if program.exists() and program.stat().st_mtime >= source.stat().st_mtime:
        return program
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        no_simgrid("no C++ compiler was found")
    BUILD.mkdir(exist_ok=True)
    flags, libraries = os.environ.get("CXXFLAGS", "-O2").split(), os.environ.get("LDFLAGS", "").split()
    command = [compiler, "-std=c++17", *flags, str(source), "-o", str(program), *libraries, "-lsimgrid"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        no_simgrid(built.stderr.strip() or f"{compiler} failed")
    return program


def no_simgrid(why: str) -> NoReturn:
    """End the program where SimGrid cannot be had."""
    print(f"{why}\n\n{HOW_TO_INSTALL}", file=sys.stderr)
    raise SystemExit(2)


def spread(values: Sequence[float]) -> str:
    """Write a median with the least and the most."""
    return f"{statistics.median(values):9.3f} [{min(values):.3f} .. {max(values):.3f}]"


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    return statistics.median(one) / statistics.median(other)


def print_simnet(simnet: Runs) -> None:
    result = simnet.result
    print(f"  simnet   CPU s, whole process     {spread(simnet.cpu_s())}")
    print(f"           of it start and imports  {spread(simnet.phase_s('start'))}")
    print(f"           loading kernels          {spread(simnet.phase_s('kernels'))}")
    print(f"           reading the work         {spread(simnet.phase_s('read'))}")
    print(f"           topology                 {spread(simnet.phase_s('topology'))}")
    print(f"           routes and placing       {spread(simnet.phase_s('place'))}")
    print(f"           playing                  {spread(simnet.phase_s('play'))}")
    print(f"           elapsed s, whole process {spread(simnet.wall_s())}")
    counts = [f"{value} {name.replace('_', ' ')}" for name, value in result.items() if isinstance(value, int)]
    print(f"           {', '.join(counts)}")
    print(f"           {simnet.memory_mb():.0f} MB")
    print(f"           simulated {result['simulated_s']:.12g} s")


def print_simgrid(simgrid: Runs) -> None:
    result = simgrid.result
    print(f"  SimGrid  CPU s, whole process     {spread(simgrid.cpu_s())}")
    print(f"           of it the simulation     {spread([run.result['simulate_cpu_s'] for run in simgrid.runs])}")
    print(f"           elapsed s, whole process {spread(simgrid.wall_s())}")
    print(f"           {result['messages']} messages")
    print(f"           simulated {result['simulated_s']:.12g} s")


def print_ratios(simnet: Runs, simgrid: Runs) -> None:
    after_start = simnet.phase_s("read", "topology", "place", "play")
    print(f"  SimGrid takes {ratio(simgrid.cpu_s(), simnet.cpu_s()):.2f} times the CPU time, whole processes;")
    print(f"                {ratio(simgrid.cpu_s(), after_start):.2f} times, without simnet's imports and kernels")
    print(f"                {ratio(simgrid.wall_s(), simnet.wall_s()):.2f} times the elapsed time, whole processes")


def differences(simnet: Runs, simgrid: Runs) -> dict[str, float]:
    """Return how far the results are apart, relative to those of SimGrid."""
    one, other = simnet.result, simgrid.result
    found = {"simulated time": one["simulated_s"] / other["simulated_s"] - 1.0}
    ours, theirs = np.array(one["flow_duration_s"]), np.array(other["flow_duration_s"])
    if len(ours):
        found["mean flow"] = float(ours.mean() / theirs.mean() - 1.0)
        found["99 % of the flows"] = float(np.quantile(np.abs(ours / theirs - 1.0), 0.99))
    return found


def compare(file: Path, collective: str, arguments: argparse.Namespace) -> bool:
    """Run one work in both, print what came of it, and tell whether the results agree."""
    commands: dict[str, list[str]] = {}
    if arguments.only != "simgrid":
        without = ["--without", *arguments.without] if arguments.without else []
        commands["simnet"] = [sys.executable, str(HERE / "simnet_workloads.py"), str(file), *without]
    if arguments.only != "simnet":
        options = (*SIMGRID_OPTIONS, f"network/optim:{arguments.optim or FASTER_OPTIM[collective]}", *arguments.cfg)
        configured = [f"--cfg={option}" for option in options]
        commands["simgrid"] = [str(simgrid_program()), str(file), "--log=root.thres:critical", *configured]
    found = {name: Runs() for name in commands}
    for _ in range(arguments.repetitions):
        for name, command in commands.items():
            found[name].runs.append(run_process(command))
    if "simnet" in found:
        print_simnet(found["simnet"])
    if "simgrid" in found:
        print_simgrid(found["simgrid"])
    if len(found) < 2:
        return True
    print_ratios(found["simnet"], found["simgrid"])
    agree = True
    for what, difference in differences(found["simnet"], found["simgrid"]).items():
        good = abs(difference) <= MOST_DIFFERENCE[what]
        agree &= good
        verdict = "" if good else f"  MORE THAN {MOST_DIFFERENCE[what]:g}"
        print(f"  {what} differs by {difference:+.1e}{verdict}")
    return agree


def print_start(repetitions: int) -> None:
    """Print what starting Python and importing simnet and its libraries costs, alone."""
    runs = Runs([run_process([sys.executable, "-c", "import simpy, simnet.fabric.fluid"]) for _ in range(repetitions)])
    print("python -c 'import simpy, simnet.fabric.fluid'")
    print(f"           CPU s                    {spread(runs.cpu_s())}")
    print(f"           elapsed s                {spread(runs.wall_s())}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--work", nargs="+", choices=list(WORKS), default=list(WORKS), metavar="WORK", help=", ".join(WORKS))
    add("--hosts", nargs="+", type=int, default=[64, 256, 1024], help="of W1 to W3 (default: 64 256 1024)")
    add("--flows", type=int, default=10_000, help="of W4 (default: 10000)")
    add("--skew-s", type=float, default=0.0, help="ranks of W1 and W2 begin at random up to then (default: 0)")
    add("--divisible", action="store_true", help="equal chunks in W1 and W2, even of fractions of bytes; simnet only")
    add("--seed", type=int, default=1, help="of everything random (default: 1)")
    add("--repetitions", type=int, default=3, help="of each process (default: 3)")
    add("--only", choices=["simnet", "simgrid"], help="leave the other out")
    add("--without", nargs="+", choices=list(vars(EngineSettings())), default=[], help="switch off in simnet")
    add("--optim", choices=["Lazy", "Full"], help="of SimGrid's network (default: the faster one for the work)")
    add("--cfg", nargs="+", default=[], metavar="OPTION:VALUE", help="further options of SimGrid")
    add("--keep", type=Path, metavar="FOLDER", help="write the files that carry the works there, and leave them")
    arguments = parser.parse_args()
    if arguments.divisible and arguments.only != "simnet":
        parser.error("--divisible needs --only simnet: SimGrid sends whole bytes")
    return arguments


def main() -> int:
    arguments = parse_arguments()
    if arguments.only != "simnet":
        simgrid_program()
    agree = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        # Compiles the kernels where that was never done.
        run_process([sys.executable, str(HERE / "simnet_workloads.py")])
        print_start(arguments.repetitions)
        for name in arguments.work:
            for hosts in arguments.hosts if name in ("W1", "W2", "W2p", "W3") else [0]:
                work = WORKS[name](hosts, arguments.flows, arguments.skew_s, arguments.seed)
                work = replace(work, divisible=arguments.divisible)
                file = folder / f"{name}_{hosts or arguments.flows}.txt"
                write_work(work, file)
                print(f"\n{name}, {f'{hosts} hosts' if hosts else f'{arguments.flows} flows'}")
                agree &= compare(file, work.collective, arguments)
                sys.stdout.flush()
    return 0 if agree else 1


if __name__ == "__main__":
    raise SystemExit(main())
