"""From a fit to a protocol file: the values of a protocol with which the simulated benchmark takes what was measured.

A fitted line has no bends, so everything of the base that bends it is left out: work for the first bytes, rendezvous,
fetching, batches, storing and forwarding are all in alpha and beta as they were measured. Alpha is shared out over the
overheads of both sides and latency as in the base, since a log does not tell these apart. Of a stream alpha is the
overhead of the sender: messages are behind one another, and latency does not count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simnet.calibration.fitting import Fit
from simnet.calibration.log import Log
from simnet.protocols import FIELDS, FlowProtocol, lead_time_s
from simnet.scenario import write_yaml
from simnet.scenario.protocol_models import values_data
from simnet.units import BITS_PER_BYTE, format_bandwidth, format_duration, format_size

__all__ = ["base_line", "protocol_file", "protocol_values", "source_text"]

_STRAIGHT: Mapping[str, Any] = {
    "send_overhead_s_per_byte": 0.0,
    "receive_overhead_s_per_byte": 0.0,
    "verb": "write",
    "rendezvous_bytes": math.inf,
    "fetch_s": 0.0,
    "batch_packets": 0.0,
    "forwarding": "cut_through",
}
"""With these values the time of a message is a line in its size."""

_DIGITS = 5


def base_line(log: Log, base: FlowProtocol, path_latency_s: float) -> tuple[float, float]:
    """Return the alpha [s] and beta [s/byte] that a protocol has itself, of the smallest size of a log."""
    size = min(timing.size_bytes for timing in log.timings)
    first = min(size, base.pipeline_bytes)
    lead_s = float(lead_time_s(base, size, base.latency_s + path_latency_s))
    sending = base.send_overhead_s + first * base.send_overhead_s_per_byte + lead_s
    beta = 1.0 / _rate(base)
    if log.measures == "stream":
        return sending, beta
    one_way = sending + base.receive_overhead_s + first * base.receive_overhead_s_per_byte + base.latency_s
    return one_way + path_latency_s, beta


def protocol_values(log: Log, fit: Fit, base: FlowProtocol, path_latency_s: float) -> dict[str, Any]:
    """Return what differs from the base protocol, by the names of the fields.

    Parameters
    ----------
    log : Log
    fit : Fit
    base : FlowProtocol
    path_latency_s : float
        Of links and switches, one way, which count besides [s].
    """
    values: dict[str, Any] = {}
    if fit.alpha.fitted:
        values |= _costs(log, fit.alpha.value, base, path_latency_s)
    rate = 1.0 / fit.beta.value if fit.beta.value else math.inf
    if fit.beta.fitted:
        values |= _rates(log, rate, base)
    one_way_s = path_latency_s + sum(
        values.get(name, FIELDS[name].of(base)) for name in ("send_overhead_s", "receive_overhead_s", "latency_s")
    )
    window = base.transport.window_bytes
    # What was measured did not wait for its window.
    if fit.beta.fitted and window < 2.0 * one_way_s * rate:
        values["window_bytes"] = math.inf
    values = {name: _rounded(name, value) for name, value in values.items()}
    return {name: values[name] for name in FIELDS if name in values and values[name] != FIELDS[name].of(base)}


def _costs(log: Log, alpha_s: float, base: FlowProtocol, path_latency_s: float) -> dict[str, Any]:
    """Return what messages cost whatever their size."""
    if log.measures == "stream":
        # What else happens to each message would hold the stream up; of a single one it is latency as before.
        receiving = min(base.receive_overhead_s, alpha_s)
        latency_s = base.latency_s + base.receive_overhead_s - receiving + base.fetch_s
        return {
            **_STRAIGHT,
            "verb": base.verb,
            "forwarding": base.forwarding,
            "send_overhead_s": alpha_s,
            "receive_overhead_s": receiving,
            "latency_s": latency_s,
        }
    is_read = log.measures == "read"
    # A read is a request and what comes back, of the same cost each.
    each_s = max(alpha_s / (2.0 if is_read else 1.0) - path_latency_s, 0.0)
    parts = {name: FIELDS[name].of(base) for name in ("send_overhead_s", "receive_overhead_s", "latency_s")}
    total_s = sum(parts.values())
    # Of messages sent all at once the overheads would add up.
    if total_s == 0.0 or log.collective == "all_to_all":
        shared = dict.fromkeys(parts, 0.0) | {"latency_s": each_s}
    else:
        shared = {name: part * (each_s / total_s) for name, part in parts.items()}
    return {**shared, **_STRAIGHT, "verb": "read" if is_read else "write"}


def _rates(log: Log, rate: float, base: FlowProtocol) -> dict[str, Any]:
    """Return the limits with which a connection, or a host, has a rate [bytes/s]."""
    at_once = log.ranks - 1 if log.collective == "all_to_all" else log.connections
    hosts = ("host_send_capacity_bytes_per_s", "host_receive_capacity_bytes_per_s")
    cap = base.connection_cap_bytes_per_s
    if at_once > 1:
        each = rate / at_once
        return dict.fromkeys(hosts, rate) | ({"connection_cap_bytes_per_s": each} if cap < each else {})
    return {"connection_cap_bytes_per_s": rate} | {name: rate for name in hosts if FIELDS[name].of(base) < rate}


def source_text(log: Log, fit: Fit) -> str:
    """Return where the values are from, in a sentence."""
    sizes = sorted({timing.size_bytes for timing in log.timings})
    span = f" of {format_size(sizes[0])}" + (f" to {format_size(sizes[-1])}" if len(sizes) > 1 else "")
    who = f" on {log.ranks} ranks" if log.measures == "collective" else ""
    who += f" over {log.connections} connections" if log.connections > 1 else ""
    count = len(log.timings)
    told = []
    if fit.alpha.fitted:
        told.append(f"{format_duration(fit.alpha.value)} a message")
    if fit.beta.fitted:
        told.append(format_bandwidth(1.0 / fit.beta.value) if fit.beta.value else "no limit of the rate")
    errors = np.abs(fit.relative_errors)
    misses = f"; the fit misses {np.median(errors):.2g} at the median, {errors.max():.2g} at worst" if count > 1 else ""
    date = f", {log.date}" if log.date else ""
    name = log.source.replace("\\", "/").rpartition("/")[2][:100]
    return (
        f"simnet calibrate: {' and '.join(told)}, from {log.benchmark} ({log.tool}){who} in {name}{date}, "
        f"{count} row{'s' * (count > 1)}{span}{misses}"
    )


def protocol_file(base: str, name: str, source: str, values: Mapping[str, Any]) -> str:
    """Return the text of a protocol file.

    Parameters
    ----------
    base : str
        One of `simnet.protocols.protocol_names`.
    name : str
    source : str
    values : mapping
        As of `protocol_values`.
    """
    return write_yaml({"name": name, "base": base, "source": source} | values_data(values))


def _rate(protocol: FlowProtocol) -> float:
    """Return the most that one message gets [bytes/s]."""
    return min(
        protocol.connection_cap_bytes_per_s,
        protocol.host_send_capacity_bytes_per_s,
        protocol.host_receive_capacity_bytes_per_s,
    )


def _rounded(name: str, value: Any) -> Any:
    """Return a number with as many digits as mean something, so that the file can be read; a rate in bits."""
    if not isinstance(value, float) or not math.isfinite(value) or value == FIELDS[name].least:
        return value
    unit = 1.0 / BITS_PER_BYTE if FIELDS[name].quantity == "bandwidth" else 1.0
    return float(f"{value / unit:.{_DIGITS}g}") * unit
