"""What inputs are made from: every file that ships, the blocks of the documentation, and files of each format."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from simnet.scenario import topology_from_text
from simnet.topology import TOPOLOGY_SUFFIXES, save_topology

from ..calibration.measured import MEASURED
from ..calibration.writing import iperf3_json, iperf3_text, nccl_log, osu_log, perftest_log
from .mutations import damaged, invented

__all__ = ["ROOT", "Input", "Seed", "companions", "made_input", "seeds"]

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(r"^```yaml ?([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ROWS = [(8.0, 10.0), (1024.0, 10.5), (1048576.0, 110.0)]
_REST = {
    "topology": "topology: {star: {hosts: 4}}\n",
    "protocol": "protocol: tcp\n",
    "workload": "workload: {model: resnet50, gpu: v100, batch_size: 64}\n",
}
_LOGS = {
    "nccl": nccl_log(_ROWS, 4),
    "osu": osu_log(_ROWS),
    "rates": perftest_log(_ROWS, "RDMA_Write BW Test"),
    "latencies": perftest_log(_ROWS, "Send Latency Test"),
    "iperf3": iperf3_text(10.0, 9.4, [9.3, 9.5], streams=2),
    "iperf3 json": iperf3_json(10.0, 9.4, [9.3, 9.5]),
}
_TOPOLOGIES = (
    "{star: {hosts: 3}}",
    "{leaf_spine: {leaves: 2, hosts_per_leaf: 2, spines: 2, bandwidth: 10 Gbps, host: {gpus: 2, nics: 1}}}",
)
_TRACE = """iteration,rank,layer,phase,start_s,duration_s,parameters
0,0,,other,10.0,0.1,
0,0,a,forward,10.1,0.2,100
0,0,b,forward,10.35,0.15,20
0,0,b,backward,10.6,0.4,20
0,0,a,backward,11.1,0.3,100
0,0,,optimizer,11.4,0.3,
1,0,,other,20.0,0.1,
1,0,a,forward,20.1,0.2,100
1,0,b,forward,20.35,0.15,20
1,0,b,backward,20.6,0.45,20
1,0,a,backward,21.15,0.3,100
1,0,,optimizer,21.45,0.3,
"""
_GRAPH = """{"directed": true, "graph": {"name": "g"},
 "nodes": [{"id": "conv1", "device": 0, "time": "1.2 ms", "output": "4 MiB"},
  {"id": "conv2", "device": 1, "time": "3 ms", "output": "1 MiB"}, {"id": "loss", "device": 0, "time": "1 us"}],
 "edges": [{"source": "conv1", "target": "conv2"}, {"source": "conv2", "target": "loss"}]}
"""
_LAYERS_CSV = """layer,parameters,forward_s,backward_s
conv1,9408,1e-3,2e-3
fc,1000,1e-4,2e-4
"""
_LAYERS = """layers:
- {layer: conv1, parameters: 9408, forward_s: 1e-3, backward_s: 2e-3}
- {layer: fc, parameters: 1000, forward_s: 1e-4, backward_s: 2e-4, activation_bytes: 4000, memory_bytes: 8000}
"""
_PROTOCOL = """name: my_cluster
base: tcp
source: measured
mtu: 9000 B
latency: 12 us
connection_cap: 9.4 Gbps
send_overhead: 3 us
copies_send: 1
"""


@dataclass(frozen=True)
class Seed:
    """A right input: of which kind, where it is from, its text, and the suffix of its file."""

    kind: str
    name: str
    text: str
    suffix: str


@dataclass(frozen=True)
class Input:
    """What is loaded: of which kind, what it was made from, its bytes, and the suffix of its file."""

    kind: str
    name: str
    content: bytes
    suffix: str


def _files(kind: str, pattern: str) -> Iterator[Seed]:
    for path in sorted(ROOT.glob(pattern)):
        yield Seed(kind, str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"), path.suffix)


def _blocks() -> Iterator[Seed]:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for number, (_, text) in enumerate(_BLOCK.findall(path.read_text(encoding="utf-8"))):
            keys = set(re.findall(r"^(\w+):", text, re.MULTILINE))
            kind = "data_set" if "about" in keys else "sweep" if "scenario" in keys else "scenario"
            kind = "graph" if "operations" in keys else "layers" if text.startswith("-") or "layers" in keys else kind
            if kind == "scenario":
                text += "".join(line for key, line in _REST.items() if key not in keys)
            yield Seed(kind, f"{path.name}#{number}", text, ".yaml")


def companions() -> dict[str, str]:
    """Return the files that blocks of the documentation name, by name."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    named = {name: text for page in pages for name, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if name}
    return {**named, "my_model.csv": _LAYERS_CSV, "my_trace.csv": _TRACE, "roce_10g.yaml": _PROTOCOL}


def _topologies() -> Iterator[Seed]:
    with TemporaryDirectory() as folder:
        for spec in _TOPOLOGIES:
            for suffix in TOPOLOGY_SUFFIXES:
                path = Path(folder, f"made{suffix}")
                save_topology(topology_from_text(spec), path)
                yield Seed("topology", f"{spec} as {suffix}", path.read_text(encoding="utf-8"), suffix)


@cache
def seeds() -> tuple[Seed, ...]:
    """Return all right inputs, in an order that is always the same."""
    profile = ROOT / "tests" / "workload" / "data" / "profile_modules.json"
    return (
        *_files("scenario", "scenarios/*.yaml"),
        *_files("layers", "scenarios/*.csv"),
        *_files("topology", "topologies/*"),
        *_files("graph", "workloads/dataflow/*.yaml"),
        *_files("table", "workloads/*.csv"),
        *_files("table", "workloads/models/*.csv"),
        *_files("sweep", "benchmarks/*.yaml"),
        *_files("data_set", "validation/*.yaml"),
        *_files("measurements", "validation/measurements.csv"),
        *_blocks(),
        *_topologies(),
        Seed("trace", "trace", _TRACE, ".csv"),
        Seed("graph", "graph", _GRAPH, ".json"),
        Seed("layers", "layers", _LAYERS, ".yaml"),
        Seed("protocol", "protocol", _PROTOCOL, ".yaml"),
        Seed("profile", "profile", profile.read_text(encoding="utf-8"), ".json"),
        *(Seed("log", name, text, ".log") for name, text in _LOGS.items()),
        *(Seed("log", name, one.log, ".log") for name, one in MEASURED.items()),
    )


@cache
def _kinds() -> dict[str, tuple[Seed, ...]]:
    return {
        kind: tuple(seed for seed in seeds() if seed.kind == kind) for kind in {seed.kind: None for seed in seeds()}
    }


@cache
def _words() -> tuple[str, ...]:
    text = "".join(seed.text for seed in seeds() if seed.suffix == ".yaml")
    return tuple(sorted(set(re.findall(r"[a-z_]{2,}(?:\.[a-z_]+)*", re.sub(r"#.*", "", text)))))


_WEIGHTS = {"scenario": 10, "topology": 5, "sweep": 4, "data_set": 2, "layers": 3, "log": 3, "table": 1, "profile": 1}
_OF_WHOLE = 40_000  # characters: of longer texts now and then a part is left out first, so that more are tried


def made_input(seed: int, number: int) -> Input:
    """Return an input: the same for the same two numbers."""
    rng = random.Random(f"{seed}/{number}")
    kinds = _kinds()
    one = rng.choice(kinds[rng.choices(list(kinds), [_WEIGHTS.get(kind, 2) for kind in kinds])[0]])
    if rng.random() < 0.05 and one.suffix in (".yaml", ".json"):
        return Input(one.kind, "invented", invented(rng, _words()).encode("utf-8", "surrogatepass"), one.suffix)
    text = one.text
    if len(text) > _OF_WHOLE and rng.random() < 0.9 and one.suffix == ".csv":
        lines = text.splitlines(keepends=True)
        start = rng.randrange(1, len(lines))
        text = "".join([lines[0], *lines[start : start + 20]])
    content = damaged(rng, text)
    if one.kind == "profile" and rng.random() < 0.3:
        packed = bytearray(gzip.compress(content, 1, mtime=0))
        packed[rng.randrange(len(packed))] ^= rng.choice((0, 0, 1, 255))
        return Input(one.kind, one.name, bytes(packed[: rng.choice((None, None, -3))]), ".json.gz")
    return Input(one.kind, one.name, content, one.suffix)
