"""The parts of README and docs that follow from the code: tables of columns, keys, protocols, models and topologies.

A part stands between two comments, ``<!-- generated: NAME -->`` and ``<!-- end -->``; what is between them is
written by `with_generated`, and a test holds it in step.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from simnet.experiment.columns import columns_as_markdown
from simnet.experiment.plot_kinds import PLOT_KINDS
from simnet.protocols import FIELDS, PROTOCOLS, resolve, values
from simnet.protocols.congestion.dcqcn_parameters import PAPER, VENDOR
from simnet.scenario import scenario_keys, topology_from_text
from simnet.scenario.exchange_models import SyncSpec
from simnet.scenario.scheduling import ORDERS, FusionSpec
from simnet.scenario.sweep.models import SampleSpec, SweepSpec
from simnet.shipped import shipped_folder
from simnet.topology import GENERATORS, summary_lines
from simnet.training.communication.architectures import ARCHITECTURES
from simnet.training.communication.compression import SCHEMES, standard_costs_s_per_byte
from simnet.training.laws.convergence import ROUNDS
from simnet.workload import list_gpus, list_models, list_throughput, model_entry, table_workload
from simnet.workload.ready_times import (
    READY_TIMES_BATCH,
    READY_TIMES_GPU,
    compare_ready_times,
    list_ready_times,
)

__all__ = ["GENERATED", "pages", "with_generated"]

ROOT = Path(__file__).parents[1]

_PART = re.compile(r"(<!-- generated: (?P<name>.+?) -->\n)(?P<text>.*?)(<!-- end -->)", re.DOTALL)
_RESULT_TABLES = (
    "summary",
    "iterations",
    "workers",
    "collectives",
    "links",
    "queues",
    "connections",
    "faults",
    "staleness",
    "spans",
    "load",
    "messages",
)


def pages() -> list[Path]:
    """Return the README and every page of the docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def with_generated(text: str) -> str:
    """Return a page with its generated parts written anew."""
    return _PART.sub(lambda part: f"{part[1]}{GENERATED[part['name']]()}\n{part[4]}", text)


def _columns(tables: Iterable[str] = _RESULT_TABLES) -> str:
    return "\n\n".join(f"**{table}**\n\n{columns_as_markdown(table)}" for table in tables)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "&#124;") for cell in line) + " |" for line in lines)


def _code(words: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _names() -> str:
    """Return every name that a scenario may use, by key."""
    rows = [
        ["`topology`, shipped", _code(_shipped("topologies"))],
        ["`topology`, generator", _code(tuple(GENERATORS))],
        ["`protocol`", _code(PROTOCOLS)],
        ["`training.architecture`", _code(tuple(ARCHITECTURES))],
        ["`training.sync`", _code(tuple(SyncSpec.model_fields))],
        ["`training.compression`", _code(("none", *SCHEMES))],
        ["`training.scheduling.order`, `fusion`", _code(ORDERS) + "; " + _code(tuple(FusionSpec.model_fields))],
        ["`workload.model`", _code(list_models())],
        ["`workload.gpu`", _code(_gpu_families()) + ", or one variant by its full name"],
    ]
    return _table(["key", "names"], rows)


def _shipped(kind: str) -> tuple[str, ...]:
    return tuple(sorted({file.stem for file in shipped_folder(kind).iterdir()}))


def _gpu_families() -> tuple[str, ...]:
    return tuple(dict.fromkeys(gpu.name.split("_")[0] for gpu in list_gpus()))


# -- scenario --------------------------------------------------------------------------------------------------------


def _keys() -> str:
    """Return one table a section; what is the same for all protocols, or for all hosts, stands once."""
    sections: dict[str, list[list[str]]] = {}
    lists = set()
    for key in scenario_keys():
        if key.is_list:
            lists.add(f"`{key.path}`")
        parts = key.path.split(".")
        if parts[0] == "protocol" and len(parts) == 3:
            if parts[1] != "tcp":
                continue
            parts[1] = "NAME"
        if parts[0] == "topology" and "host" in parts[2:-1]:
            if parts[1] != "star":
                continue
            parts[1] = "GENERATOR"
        section = "the scenario" if len(parts) == 1 else f"`{'.'.join(parts[:-1])}`"
        default = "required" if key.required else "" if key.default in (None, "", {}) else f"`{_plain(key.default)}`"
        sections.setdefault(section, []).append([f"`{parts[-1]}`", default, key.description])
    head = ["key", "default", "meaning"]
    return "\n\n".join(
        f"### Keys of {section}\n\n{_A_LIST if section in lists else ''}{_table(head, rows)}"
        for section, rows in sections.items()
    )


_A_LIST = "A list; each element is a mapping, with keys out of these.\n\n"


def _sweep_keys() -> str:
    """Return the keys of a sweep file."""
    rows = []
    for section, model in (("", SweepSpec), ("sample.", SampleSpec)):
        for name, field in model.model_fields.items():
            default = "required" if field.is_required() else f"`{field.default}`" if field.default is not None else ""
            rows.append([f"`{section}{name}`", default, str(field.description)])
    return _table(["key", "default", "meaning"], rows)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- protocols -------------------------------------------------------------------------------------------------------


def _protocols() -> str:
    """Return each protocol with every value and its source."""
    parts = []
    for name in PROTOCOLS:
        protocol = resolve(name)
        if protocol.name != name:
            continue
        native = f" Made for {' or '.join(protocol.link_kinds)} links." if protocol.link_kinds else ""
        rows = [
            [f"`{FIELDS[value.field].key}`", FIELDS[value.field].written(value.value), value.source]
            for value in values(name)
            if name != "ideal"
        ]
        about = f"### `{name}`\n\n{protocol.summary[:1].upper()}{protocol.summary[1:]}.{native}"
        parts.append(f"{about}\n\n{_table(['key', 'value', 'source'], rows)}" if rows else about)
    return "\n\n".join(parts)


def _fields() -> str:
    rows = [[f"`{field.key}`", field.quantity.replace("_", " "), field.meaning] for field in FIELDS.values()]
    return _table(["key", "kind of value", "meaning"], rows)


def _dcqcn() -> str:
    rows = [
        [f"`{field.key}`", field.written(paper.value), paper.source, field.written(vendor.value), vendor.source]
        for paper, vendor in zip(PAPER, VENDOR, strict=True)
        for field in [FIELDS[paper.field]]
    ]
    return _table(["key", "`dcqcn`", "source", "`dcqcn_vendor`", "source"], rows)


# -- compression ------------------------------------------------------------------------------------------------------


def _compression() -> str:
    """Return what compressing takes, for each measured value of an option."""
    rows = []
    for name, scheme in SCHEMES.items():
        for value, seconds in scheme.measured_s.items():
            option = f": {{{scheme.option}: {value:g}}}" if scheme.option else ""
            costs = standard_costs_s_per_byte(name, {scheme.option: value})
            rates = [f"{1e-9 / cost:.3g} GB/s" for cost in costs]
            rows.append([f"`{name}{option}`", f"{seconds * 1e3:.3g} ms", *rates])
    return _table(["scheme", "ResNet-50", "`compress_rate`", "`decompress_rate`"], rows)


# -- workloads and topologies ----------------------------------------------------------------------------------------


def _models() -> str:
    rows = []
    for name in list_models():
        entry = model_entry(name)
        tokens = f", {entry.default_sequence_length} tokens" if entry.default_sequence_length else ""
        rows.append([f"`{name}`", entry.title + tokens, f"{entry.parameters:,}", str(entry.tensors)])
    return _table(["model", "what it is", "parameters", "gradients"], rows)


def _rates() -> str:
    """Return for which model, GPU and precision there are measured rates, and at which batches."""
    batches: dict[tuple[str, str, str, str], set[int]] = {}
    for row in list_throughput():
        tokens = str(row.sequence_length or "")
        batches.setdefault((row.model, row.gpu, row.precision, tokens), set()).add(row.batch_size)
    rows = [
        [f"`{model}`", f"`{gpu}`", precision, tokens, ", ".join(map(str, sorted(sizes)))]
        for (model, gpu, precision, tokens), sizes in sorted(batches.items())
    ]
    return _table(["model", "GPU", "precision", "tokens", "measured batches"], rows)


def _ready_times() -> str:
    """Return how far gradients are from when they were ready on a V100."""
    rows = []
    for model in list_ready_times():
        found = compare_ready_times(
            table_workload(model=model, gpu=READY_TIMES_GPU, batch_size=READY_TIMES_BATCH, samples_per_s=100.0)
        )
        worst, share = found.worst, found.size_bytes.max() / found.size_bytes.sum()
        both = f"{100 * found.simulated[worst]:.1f} % for {100 * found.measured[worst]:.1f} %"
        differences = (found.largest_difference, found.mean_bytes_difference, found.largest_bytes_difference, share)
        first, *others = (f"{100 * one:.1f} %" for one in differences)
        rows.append([f"`{model}`", str(len(found.tensors)), first, f"`{found.tensors[worst]}`, {both}", *others])
    head = ["model", "gradients", "largest difference", "of which, simulated for measured"]
    return _table([*head, "difference of ready bytes, mean", "largest", "largest gradient"], rows)


def _topologies() -> str:
    rows = []
    for name in _shipped("topologies"):
        first, *others = summary_lines(topology_from_text(name))
        links = "; ".join(line.strip().removeprefix("links: ") for line in others if line.strip().startswith("links"))
        rows.append([f"`{name}`", first.partition(": ")[2], links])
    return _table(["topology", "ranks", "links"], rows)


# -- results ---------------------------------------------------------------------------------------------------------


def _rows_of(name: str, folder: str = "protocols") -> list[dict[str, str]]:
    """Return the rows of a table in a folder of the results."""
    with (ROOT / "results" / folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _each_protocol(exchange: str) -> str:
    """Return what an iteration takes over each protocol at both fidelities, and what packets tell."""
    rows: dict[str, dict[str, dict[str, str]]] = {}
    for row in _rows_of("inception_v3_16.csv"):
        if row["exchange"] == exchange:
            rows.setdefault(row["protocol"], {})[row["fidelity"]] = row
    lines = []
    for name, both in rows.items():
        flow, packet = both["flow"], both["packet"]
        exposed = [f"{1e3 * float(one['exposed_communication_time_s']):.2f}" for one in (flow, packet)]
        efficiency = [f"{float(one['scaling_efficiency']):.4f}" for one in (flow, packet)]
        counts = [packet[column] for column in ("dropped", "retransmitted", "timeouts")]
        lines.append([f"`{name}`", *exposed, *efficiency, *counts, f"{float(packet['lost_bytes']) / 1e6:.1f}"])
    head = ["", "exposed, flow [ms]", "packet [ms]", "efficiency, flow", "packet"]
    return _table([*head, "dropped", "sent again", "timeouts", "lost [MB]"], lines)


def _lossy() -> str:
    """Return efficiency by loss, flow level, and what best effort loses."""
    rows = [row for row in _rows_of("lossy.csv") if row["fidelity"] == "flow"]
    losses = list(dict.fromkeys(row["loss"] for row in rows))
    lines: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        found = lines.setdefault((row["network"], row["protocol"]), [])
        found.append(f"{float(row['scaling_efficiency']):.3f}")
    table = [[network, f"`{protocol}`", *values] for (network, protocol), values in lines.items()]
    first = rows[0]["network"]
    lost = [row for row in rows if (row["network"], row["protocol"]) == (first, "best-effort")]
    table.append(["all", "lost, `best-effort` [MB]", *(f"{float(row['lost_bytes']) / 1e6:.1f}" for row in lost)])
    return _table(["network", "protocol", *losses], table)


def _priority_latency() -> str:
    """Return what priority gains and loses by latency."""
    head = ["latency of a link [us]", "whole tensors [ms]", "pieces", "pieces, by priority", "whole / by priority"]
    lines = [
        [row["latency_us"], *_milliseconds(row, ("whole_s", "pieces_s", "priority_s")), f"{float(row['gain']):.2f}"]
        for row in _rows_of("priority_latency.csv", "scheduling")
    ]
    return _table(head, lines)


def _fusion() -> str:
    """Return what ways to put tensors together take, by bandwidth."""
    rows = _rows_of("fusion_resnet50.csv", "scheduling")
    ways = list(rows[0])[1:]
    lines = [[row["bandwidth_Gbps"], *_milliseconds(row, ways)] for row in rows]
    return _table(["Gbit/s", *ways], lines)


def _incast() -> str:
    """Return how many timeouts of Reno rounds of incast have, at both fidelities."""
    lines = [
        [
            f"{float(row['buffer_bytes']) / 1024:.0f} KiB",
            row["senders"],
            "yes" if row["probes_tail"] == "True" else "no",
            row["seeds"],
            *(f"{float(row[f'{level}_timeouts']):.3g}" for level in ("flow", "packet")),
            *(f"{1e3 * float(row[f'{level}_time_s']):.3g}" for level in ("flow", "packet")),
        ]
        for row in _rows_of("fidelity.csv", "fidelity")
        if row["kind"] == "incast" and row["protocol"] == "tcp-reno" and float(row["packet_timeouts"]) > 0
    ]
    heads = ("timeouts: flow", "packet", "mean [ms]: flow", "packet")
    return _table(["buffer", "senders", "probe of the tail", "seeds", *heads], lines)


def _milliseconds(row: dict[str, str], columns: Iterable[str]) -> list[str]:
    return [f"{1e3 * float(row[column]):.1f}" for column in columns]


def _losses() -> str:
    """Return what the loss of a worker or a server costs."""
    rows = [
        [
            row["exchange"],
            row["lost"],
            *(f"{float(row[column]):.0f}" for column in ("without_samples_per_s", "throughput_samples_per_s")),
            f"{float(row['longer_s']):.1f}",
            f"{float(row['lost_iterations']):g}",
        ]
        for row in _rows_of("losses.csv", "recovery")
    ]
    head = ["exchange", "lost", "without the loss [samples/s]", "with it", "takes longer [s]", "lost iterations"]
    return _table(head, rows)


def _errors(use: str) -> str:
    head = ["data set", "rows", "median error", "90th percentile", "worst"]
    lines = [
        [f"`{row['data_set']}`", row["rows"], *(_per_cent(row[f"{name}_error"]) for name in ("median", "p90", "worst"))]
        for row in _rows_of("errors.csv", "validation")
        if row["use"] == use
    ]
    return _table(head, lines)


def _beside_simpler() -> str:
    head = ["data set", "median error: simnet", "linear", "constant"]
    head += ["lost time: rows", "simnet", "linear", "constant", "pairs in the wrong order"]
    lines = [
        [
            f"`{row['data_set']}`",
            *(_per_cent(row[name]) for name in ("median_error", "linear_median_error", "constant_median_error")),
            f"{float(row['lossy_rows']):.0f}",
            *(_per_cent(row[f"{name}_lost_time_error"]) for name in ("simnet", "linear", "constant")),
            f"{float(row['misranked_pairs']):.0f} of {float(row['ranked_pairs']):.0f}",
        ]
        for row in _rows_of("errors.csv", "validation")
        if row["use"] == "validation"
    ]
    return _table(head, lines)


def _predicted_cases() -> pd.DataFrame:
    frame = pd.read_csv(ROOT / "results" / "validation" / "cases.csv")
    return frame[frame.use == "validation"]


def _too_fast() -> str:
    """Return in which share of its rows each data set is predicted faster than it was measured."""
    frame = _predicted_cases()
    too_fast = frame.error > 0
    shares = [f"`{name}` {share:.0%}" for name, share in too_fast.groupby(frame.data_set).mean().items()]
    return f"Of all rows {too_fast.mean():.0%} are predicted faster than they were measured: {', '.join(shares)}."


def _simpler_is_nearer() -> str:
    """Return where a simpler prediction is nearer."""
    found: dict[str, list[str]] = {"median error": [], "lost time": []}
    for row in _rows_of("errors.csv", "validation"):
        for words, own, other in (
            ("median error", "median_error", "median_error"),
            ("lost time", "simnet_lost_time_error", "lost_time_error"),
        ):
            for simpler in ("linear", "constant"):
                if row["use"] == "validation" and float(row[f"{simpler}_{other}"]) < float(row[own]):
                    found[words].append(f"{simpler} on `{row['data_set']}`")
    told = [f"by {words}: {', '.join(names)}" for words, names in found.items() if names]
    return f"Nearer than simnet are, {'; '.join(told)}."


def _misses() -> str:
    groups = _predicted_cases().groupby(["data_set", "setting", "model", "workers"], sort=True).error
    table = groups.agg(rows="size", least="min", most="max", off=lambda error: error.abs().median()).reset_index()
    table = table[table.off > 0.15].sort_values("off", ascending=False)
    lines = [
        [
            f"`{row.data_set}`",
            row.setting.split(",")[0],
            row.model,
            f"{row.workers:.0f}",
            f"{row.rows}",
            f"{row.least:+.0%}" if row.rows == 1 else f"{row.least:+.0%} to {row.most:+.0%}",
        ]
        for row in table.itertuples()
    ]
    return _table(["data set", "setting", "model", "GPUs", "rows", "predicted / measured - 1"], lines)


def _per_cent(text: str) -> str:
    return f"{float(text):.1%}" if text else ""


def _intervals() -> str:
    """Return how long training takes by the interval of checkpoints."""
    rows = [
        [
            f"{float(row['interval_s']):g}",
            *(f"{float(row[key]):.3f}" for key in ("time_over_work", "standard_error", "formula")),
        ]
        for row in _rows_of("intervals.csv", "recovery")
    ]
    return _table(["t [s]", "time / work", "standard error", "formula"], rows)


def _rounds() -> str:
    """Return what papers prove about rounds of communication."""
    head = ["algorithm", "rounds, order of", "assumes", "paper", "order found stated in"]
    rows = [[one.algorithm, one.formula, one.assumes, one.paper, one.checked or "not found"] for one in ROUNDS]
    return _table(head, rows)


def _plot_kinds() -> str:
    """Return the kinds of pictures of a sweep."""
    return _table(["kind", "what it shows"], [[f"`{name}`", meaning] for name, meaning in PLOT_KINDS.items()])


GENERATED: dict[str, Callable[[], str]] = {
    "rounds": _rounds,
    "columns of scaling": lambda: columns_as_markdown("scaling"),
    "columns of an explanation": lambda: _columns(("explanation", "critical_path", "sensitivity")),
    "columns of a comparison": lambda: _columns(("compared_settings", "compared_results", "compared_parts")),
    "columns": _columns,
    "columns of a calibration": lambda: columns_as_markdown("calibration"),
    "columns of a collective": lambda: columns_as_markdown("collective_sizes"),
    "names": _names,
    "keys": _keys,
    "sweep keys": _sweep_keys,
    "plot kinds": _plot_kinds,
    "protocols": _protocols,
    "protocol fields": _fields,
    "dcqcn": _dcqcn,
    "compression": _compression,
    "priority_latency": _priority_latency,
    "fusion": _fusion,
    "incast": _incast,
    "models": _models,
    "rates": _rates,
    "ready times": _ready_times,
    "topologies": _topologies,
    "Inception-V3, ring": lambda: _each_protocol("ring"),
    "Inception-V3, parameter server": lambda: _each_protocol("1 parameter server"),
    "lossy training": _lossy,
    "losses": _losses,
    "checkpoint intervals": _intervals,
    "calibration errors": lambda: _errors("calibration"),
    "validation errors": lambda: _errors("validation"),
    "beside simpler predictions": _beside_simpler,
    "misses": _misses,
    "too fast": _too_fast,
    "simpler is nearer": _simpler_is_nearer,
}
"""What writes each part, by its name."""
