"""Numbers that others measured and published, and what each may be used for."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from simnet.errors import InputError, Problem, nearest
from simnet.units import parse_bandwidth, parse_duration
from simnet.workload.csv_table import COUNT_WANTED, NUMBER_WANTED, Table, parse_count, parse_number, read_table, shown

__all__ = ["BANDWIDTH_UNITS", "METRICS", "RATE_UNITS", "TIME_UNITS", "USES", "Measurement", "read_measurements"]

USES = ("calibration", "input", "validation")
"""Calibration: parameters may be fitted to it. Input: a rate of one GPU, from which others are predicted. Validation:
only ever predicted."""

TIME_UNITS = {unit: parse_duration(f"1 {unit}") for unit in ("s", "ms", "us")}
"""Units of times, in seconds."""

RATE_UNITS = {"samples/s": 1.0, "images/s": 1.0, "sentences/s": 1.0}
BANDWIDTH_UNITS = {unit: parse_bandwidth(f"1 {unit.replace('bit', 'b')}") for unit in ("GB/s", "MB/s", "Gbit/s")}
_UNITS = (*TIME_UNITS, *RATE_UNITS, *BANDWIDTH_UNITS, "s/byte")


@dataclass(frozen=True)
class Measurement:
    """One number that somebody measured.

    Parameters
    ----------
    row : int
        By which reports refer to it.
    data_set : str
        Rows of one source, which are predicted with one description of their cluster.
    use : str
        Out of `USES`.
    hardware, network, protocol, setting, model, precision : str
        As the source names them; empty where they play no part. `setting` is the algorithm, framework or architecture.
    batch : int or None
        Samples of each worker.
    workers, hosts : int or None
        GPUs, and machines, where the source says.
    metric : str
        What was measured.
    size_bytes : int or None
        Size of the message or of the buffer of a collective [bytes].
    value : float
    unit : str
        Of the value, as `samples/s` or `us`.
    source, where, how_read, url : str
        Who measured; in which table; `primary`, `secondary`, `digitised` or `derived`; where it is published.
    """

    row: int
    data_set: str
    use: str
    hardware: str
    network: str
    protocol: str
    setting: str
    model: str
    batch: int | None
    precision: str
    workers: int | None
    hosts: int | None
    metric: str
    size_bytes: int | None
    value: float
    unit: str
    source: str
    where: str
    how_read: str
    url: str

    @property
    def si_value(self) -> float:
        """The value in seconds, bytes per second or samples per second."""
        scale: float = {**TIME_UNITS, **RATE_UNITS, **BANDWIDTH_UNITS}.get(self.unit, 1.0)
        return self.value * scale


_COLLECTIVES = ("allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall", "sendrecv", "p2p")
_TIMES = ("time", "time_in_place", "time_out_of_place", "latency_p50")
_BANDWIDTHS = ("algbw", "busbw", "busbw_plateau", "bandwidth")
_SINGLE_TIMES = ("allreduce_alpha", "ib_send_lat", "imb_pingpong_time", "one_way_latency", "rpc_rtt_min", "rtt_1500B")
_SINGLE_BANDWIDTHS = (
    *(
        "aggregate_steady_goodput",
        "aggregate_throughput",
        "effective_bandwidth",
        "ib_write_bw_avg",
        "iperf_single_stream",
    ),
    *("kv_goodput", "large_rpc_one_connection_one_core", "osu_bibw", "osu_put_bw", "recv_tensor_rate"),
    "single_conn_bandwidth",
)

METRICS = {
    **dict.fromkeys(("throughput", "throughput_real", "throughput_synthetic"), tuple(RATE_UNITS)),
    **{f"{of}_{what}": tuple(TIME_UNITS) for of in _COLLECTIVES for what in _TIMES},
    **{f"{of}_{what}": tuple(BANDWIDTH_UNITS) for of in _COLLECTIVES for what in _BANDWIDTHS},
    **dict.fromkeys(_SINGLE_TIMES, tuple(TIME_UNITS)),
    **dict.fromkeys(_SINGLE_BANDWIDTHS, tuple(BANDWIDTH_UNITS)),
    "allreduce_beta": ("s/byte",),
}
"""What is measured, and the units that it may have: samples a second of all workers, times, bandwidths."""

_COUNTS = ("batch", "workers", "hosts", "size_bytes")


def read_measurements(path: Path) -> tuple[Measurement, ...]:
    """Read a table of measurements; its columns are the fields of `Measurement`.

    Raises
    ------
    InputError
        Everything that is wrong with the file.
    """
    names = [field.name for field in fields(Measurement)]
    problems: list[Problem] = []
    table = read_table(path, names, problems=problems)
    made = [_measurement(table, number, cells, problems) for number, cells in enumerate(table)]
    seen: dict[str, int] = {}
    for number, cells in enumerate(table):
        if cells["row"] in seen:
            message = f"row {cells['row']} is there twice"
            problems.append(table.problem(number, "row", message, "another number is wanted"))
        seen[cells["row"]] = number
    if problems:
        raise InputError(problems)
    return tuple(one for one in made if one is not None)


def _measurement(table: Table, number: int, cells: dict[str, str], problems: list[Problem]) -> Measurement | None:
    before = len(problems)

    def wrong(name: str, hint: str) -> None:
        problems.append(table.problem(number, name, f"{name} is {shown(cells[name])}", hint))

    counts: dict[str, int | None] = {}
    for name in ("row", *_COUNTS):
        counts[name] = parse_count(cells[name]) if cells[name] else None
        if counts[name] is None and (cells[name] or name == "row"):
            wrong(name, COUNT_WANTED)
        elif counts[name] == 0 and name in ("batch", "workers", "hosts"):
            wrong(name, "at least 1 is wanted, or nothing where the source does not say")
    value = parse_number(cells["value"])
    if value is None or value <= 0:
        wrong("value", f"{NUMBER_WANTED}, and above 0")
    for name, known in (("use", USES), ("unit", _UNITS), ("metric", METRICS)):
        if cells[name] not in known:
            wrong(name, nearest(cells[name], known))
    units = METRICS.get(cells["metric"], _UNITS)
    if cells["unit"] in _UNITS and cells["unit"] not in units:
        wrong("unit", f"a {cells['metric']} is in {' or '.join(units)}")
    if len(problems) > before:
        return None
    return Measurement(**{**cells, **counts, "value": value})  # type: ignore[arg-type]  # all cells are checked above
