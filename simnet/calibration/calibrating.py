"""Calibrate a protocol: a log in, a protocol file out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simnet.calibration.fitting import Fit, fit_log
from simnet.calibration.iperf3 import TABLE as IPERF3
from simnet.calibration.iperf3 import is_iperf3_json, read_iperf3_json, read_iperf3_text
from simnet.calibration.log import Log, LogText, read_log_text
from simnet.calibration.nccl_tests import HEADER as NCCL_TESTS
from simnet.calibration.nccl_tests import read_nccl_tests
from simnet.calibration.osu import HEADING as OSU
from simnet.calibration.osu import read_osu
from simnet.calibration.perftest import HEADER as PERFTEST
from simnet.calibration.perftest import read_perftest
from simnet.calibration.protocol_file import base_line, protocol_file, protocol_values, source_text
from simnet.errors import InputError, Problem, attempt, nearest
from simnet.protocols import protocol_names, resolve
from simnet.scenario.fields import Name
from simnet.scenario.load import name_of
from simnet.traffic import BUS_FACTOR
from simnet.units import UnitError, format_duration, format_size, parse_bandwidth, parse_duration

__all__ = ["Calibration", "Quantity", "calibrate", "read_log"]

_MOST_FALL = 0.5  # of the time of the smallest size: more is no noise


@dataclass(frozen=True)
class Quantity:
    """One line of what was found.

    Parameters
    ----------
    quantity : str
    value : float
    standard_error : float
        nan where there is none.
    unit : str
    rows : int
        Of the log that it is from; 0: it is that of the base protocol.
    """

    quantity: str
    value: float
    standard_error: float
    unit: str
    rows: int


@dataclass(frozen=True, eq=False)
class Calibration:
    """What a log tells of a protocol.

    Parameters
    ----------
    log : Log
    fit : Fit
    quantities : tuple of Quantity
        ``pandas.DataFrame(calibration.quantities)`` is the table that `simnet calibrate` prints.
    base, name : str
        Of the protocol.
    text : str
        Of the protocol file.
    notes : tuple of str
        What the log does not tell, and what to mind.
    """

    log: Log
    fit: Fit
    quantities: tuple[Quantity, ...]
    base: str
    name: str
    text: str
    notes: tuple[str, ...]


def calibrate(
    path: str | Path,
    *,
    base: str | None = None,
    name: str | None = None,
    ranks: int | None = None,
    collective: str | None = None,
    link: str | None = None,
    path_latency: str = "0 us",
) -> Calibration:
    """Fit latency, rate and efficiency of a protocol to the output of a benchmark.

    Parameters
    ----------
    path : str or Path
        Output of nccl-tests, of an OSU micro-benchmark, of perftest or of iperf3.
    base : str, optional
        The protocol that has all other values; ``rdma`` for perftest and ``tcp`` for all else where not given.
    name : str, optional
        Of the protocol; that of the file where not given.
    ranks : int, optional
        Of a collective, where the log does not say.
    collective : str, optional
        Name out of `simnet.traffic.COLLECTIVES`, where the log does not say.
    link : str, optional
        Bandwidth of the links, such as ``100 Gbps``; for the efficiency.
    path_latency : str
        Latency of links and switches between two hosts, one way, which the topology has: it is taken off.

    Returns
    -------
    Calibration
        With the text of the protocol file, which is not written.

    Raises
    ------
    InputError
        Everything that is wrong with the log, or with the other parameters.
    """
    problems: list[Problem] = []
    if base is not None and base not in protocol_names():
        problems.append(Problem(f"there is no protocol {base!r}", nearest(base, protocol_names()), source="--base"))
    if name is not None and (not isinstance(name, str) or not Name.pattern.fullmatch(name)):
        problems.append(
            Problem(f"{name!r} is no name", "letters, digits, '_', '-', '+' and '.' are wanted", source="--name")
        )
    if collective is not None and collective not in BUS_FACTOR:
        hint = nearest(collective, BUS_FACTOR)
        problems.append(Problem(f"there is no collective {collective!r}", hint, source="--collective"))
    if ranks is not None and not 2 <= ranks <= 1_000_000:
        problems.append(Problem(f"{ranks} ranks", "from 2 to 1,000,000 are wanted", source="--ranks"))
    link_bytes_per_s = _quantity(problems, link, parse_bandwidth, "--link")
    latency_s = _quantity(problems, path_latency, parse_duration, "--path-latency") or 0.0
    log = attempt(problems, lambda: read_log(Path(path), ranks=ranks, collective=collective))
    if log is not None:
        problems += _contradictions(log, ranks, collective)
    if problems or log is None:
        raise InputError(problems)
    # rdma is what the links are, which a scenario may have otherwise.
    protocol = resolve(base or ("rdma" if log.tool == "perftest" else "tcp"), link_kinds=[log.link_kind])
    base = protocol.name
    name = name or name_of(Path(path), "calibrated")
    fit = fit_log(log, *base_line(log, protocol, latency_s), protocol.payload_bytes)
    _require_growth(log, fit)
    values = protocol_values(log, fit, protocol, latency_s)
    notes = [*log.notes, *fit.notes]
    if fit.alpha.fitted and log.measures != "stream":
        notes.append(
            "how much of alpha is work of the hosts and how much latency is not told: shares are those of the base"
        )
    if link_bytes_per_s and fit.beta.value and 1.0 / fit.beta.value > link_bytes_per_s:
        notes.append("the rate is above that of the link that was given")
    text = protocol_file(base, name, source_text(log, fit), values)
    return Calibration(log, fit, _quantities(log, fit, link_bytes_per_s), base, name, text, tuple(notes))


def _contradictions(log: Log, ranks: int | None, collective: str | None) -> Iterator[Problem]:
    """Yield what was given of a collective where the log is of none, or of another one."""
    for source, given in (("--ranks", ranks), ("--collective", collective)):
        if given is not None and log.measures != "collective":
            yield Problem(f"the log is of {log.benchmark}, which is no collective", "leave it out", source=source)
    if log.measures == "collective" and collective not in (None, log.collective):
        yield Problem(f"the log is of {log.collective}, not of {collective}", "leave it out", source="--collective")


def _require_growth(log: Log, fit: Fit) -> None:
    """Refuse times of several sizes that do not grow with them: no rate follows, and whatever was measured is no line.

    Raises
    ------
    InputError
        With the times of the smallest and of the largest size.
    """
    ordered = sorted(log.timings, key=lambda timing: timing.size_bytes)
    first, last = ordered[0], ordered[-1]
    falls = last.time_s < _MOST_FALL * first.time_s
    is_endless = fit.beta.fitted and fit.beta.value == 0
    if first.size_bytes == last.size_bytes or not (is_endless or falls):
        return
    ends = [f"{format_duration(one.time_s)} at {format_size(one.size_bytes)}" for one in (first, last)]
    message = f"times do not grow with the size, so that no rate follows: {' and '.join(ends)}"
    hint = "measure larger sizes, or leave out those whose times are not of the size"
    raise InputError(Problem(message, hint, source=log.source))


def read_log(path: Path, *, ranks: int | None = None, collective: str | None = None) -> Log:
    """Return what a log says; which benchmark it is of is told by its content.

    Parameters
    ----------
    path : Path
    ranks : int, optional
        Of a collective, where the log does not say.
    collective : str, optional
        Name out of `simnet.traffic.COLLECTIVES`, where the log does not say.

    Returns
    -------
    Log
        Sizes in bytes, times in seconds.

    Raises
    ------
    InputError
        Everything that is wrong with it.
    """
    text = read_log_text(path)
    if is_iperf3_json(text):
        return read_iperf3_json(text)
    readers: dict[str, tuple[bool, Callable[[LogText], Log]]] = {
        "nccl-tests": (
            "busbw" in text.text and NCCL_TESTS.search(text.text) is not None,
            lambda one: read_nccl_tests(one, ranks, collective),
        ),
        "OSU micro-benchmarks": (OSU.search(text.text) is not None, lambda one: read_osu(one, ranks)),
        "perftest": ("#bytes" in text.text and PERFTEST.search(text.text) is not None, read_perftest),
        "iperf3": (IPERF3.search(text.text) is not None, read_iperf3_text),
    }
    found = [name for name, (is_it, _) in readers.items() if is_it]
    if len(found) == 1:
        return readers[found[0]][1](text)
    if found:
        message, hint = f"is of {' and of '.join(found)}", "save each benchmark into a file of its own"
        raise InputError(Problem(message, hint, source=text.source))
    number = next(text.rows())[0].line
    hint = f"the output of {', '.join(readers)} is wanted, with the header of its table"
    raise InputError(text.problem_with(number, "is no log that simnet knows", hint))


def _quantity(
    problems: list[Problem], given: str | None, parse: Callable[[object], float], source: str
) -> float | None:
    try:
        value = None if given is None else parse(given)
    except UnitError as error:
        problems.append(Problem(error.message, error.hint, source=source))
        return None
    if value == 0 and parse is parse_bandwidth:
        problems.append(Problem(f"{given!r} is no bandwidth", "one above 0 is wanted", source=source))
    return value


def _quantities(log: Log, fit: Fit, link_bytes_per_s: float | None) -> tuple[Quantity, ...]:
    rows = len(log.timings)
    alpha, beta = fit.alpha, fit.beta
    nan, inf = float("nan"), float("inf")
    rate = 1.0 / beta.value if beta.value else inf
    # Of a small relative error: that of the inverse is the same.
    rate_error = beta.error / beta.value * rate if beta.value else nan
    half = alpha.value * fit.steps / (beta.value * fit.share) if beta.value else inf
    of_alpha, of_beta = (rows if one.fitted else 0 for one in (alpha, beta))
    found = [
        Quantity("alpha_s", alpha.value, alpha.error, "s", of_alpha),
        Quantity("beta_s_per_byte", beta.value, beta.error, "s/byte", of_beta),
        Quantity("rate_bytes_per_s", rate, rate_error, "bytes/s", of_beta),
        Quantity("half_rate_size_bytes", half, nan, "bytes", min(of_alpha, of_beta)),
    ]
    if link_bytes_per_s:
        efficiency, error = rate / link_bytes_per_s, rate_error / link_bytes_per_s
        found.append(Quantity("efficiency", efficiency, error, "", of_beta))
    errors = np.abs(fit.relative_errors)
    found.append(Quantity("median_relative_error", float(np.median(errors)), nan, "", rows))
    found.append(Quantity("worst_relative_error", float(errors.max()), nan, "", rows))
    return tuple(found)
