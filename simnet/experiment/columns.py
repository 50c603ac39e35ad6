"""Every column of every table: the one place that says what it is.

The README's table of columns is made from here, and a test holds the two in step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

__all__ = ["COLUMNS", "DTYPES", "Column", "columns_as_markdown"]

DTYPES: Mapping[str, Any] = MappingProxyType({"str": "str", "int": "int64", "float": "float64"})
"""What pandas calls the types of columns."""


@dataclass(frozen=True)
class Column:
    """A column of a result table.

    Parameters
    ----------
    name : str
    dtype : str
        ``str``, ``int`` or ``float``.
    unit : str
        Empty where it has none.
    meaning : str
        What it is, with its formula.
    """

    name: str
    dtype: str
    unit: str
    meaning: str


_JOB = Column("job", "str", "", "name of the job")

_TIMES = (
    Column("compute_time_s", "float", "s", "forward and backward pass, and compressing gradients"),
    Column(
        "exposed_communication_time_s",
        "float",
        "s",
        "standing still while the group communicates: communication that computing does not hide",
    ),
    Column(
        "waiting_time_s",
        "float",
        "s",
        "standing still while the group does not communicate: waiting for peers (stragglers, pipeline bubbles)",
    ),
    Column("input_time_s", "float", "s", "standing still for training data"),
    Column("checkpoint_time_s", "float", "s", "standing still until a checkpoint is written, at its beginning"),
    Column(
        "communication_time_s",
        "float",
        "s",
        "time with at least one transfer of the worker's own under way, hidden or not; two at once count once",
    ),
)

COLUMNS: dict[str, tuple[Column, ...]] = {
    "summary": (
        Column("scenario", "str", "", "name of the scenario"),
        _JOB,
        Column("model", "str", "", "name of the model"),
        Column("gpu", "str", "", "GPU that the compute time is for; empty where it was measured by the user"),
        Column("workers", "int", "", "number of workers"),
        Column("parallelism", "str", "", "how work is split among them"),
        Column("protocol", "str", "", "transport"),
        Column("architecture", "str", "", "how gradients are exchanged"),
        Column("sync", "str", "", "way of synchronising"),
        Column("fidelity", "str", "", "how the network is simulated"),
        Column(
            "batch_size_per_worker",
            "int",
            "samples",
            "of one pass of a worker, or replica of a split model; where groups differ, the largest",
        ),
        Column("samples_per_iteration", "int", "samples", "of all workers, and all passes of an iteration, together"),
        Column("iterations", "int", "", "measured iterations of a worker, mean"),
        Column(
            "iteration_time_s",
            "float",
            "s",
            "mean over workers and measured iterations = compute_time_s + exposed_communication_time_s + "
            "waiting_time_s + input_time_s + checkpoint_time_s + recovery_time_s",
        ),
        Column("iteration_time_p95_s", "float", "s", "95th percentile over workers and measured iterations"),
        *_TIMES,
        Column(
            "compression_time_s",
            "float",
            "s",
            "compressing and decompressing gradients, which is part of compute_time_s",
        ),
        Column("communication_compute_ratio", "float", "", "communication_time_s / compute_time_s"),
        Column(
            "throughput_samples_per_s",
            "float",
            "samples/s",
            "of all together = samples_per_iteration / iteration_time_s",
        ),
        Column(
            "speedup",
            "float",
            "",
            "throughput_samples_per_s / that of the baseline: one worker of the fastest group without communication",
        ),
        Column("scaling_efficiency", "float", "", "speedup / workers"),
        Column(
            "updates_per_s",
            "float",
            "1/s",
            "updates of the model: 1 / iteration_time_s where all update together, else iterations of all workers per "
            "time",
        ),
        Column(
            "staleness_updates",
            "float",
            "",
            "updates of other workers between the reading of parameters and one's own update, mean; 0 where all update "
            "together",
        ),
        Column("staleness_max_updates", "float", "", "the most of these"),
        Column("ahead_max_iterations", "float", "", "most iterations that a worker began ahead of the slowest"),
        Column(
            "straggler_cost", "float", "", "waiting_time_s / iteration_time_s: what standing still for others takes"
        ),
        Column("checkpoints", "int", "", "written to their ends in the measured time"),
        Column(
            "recovery_time_s",
            "float",
            "s",
            "what crashes take of an iteration: the time that was no part of an iteration that counts, over the "
            "measured iterations; where workers go on by themselves, the time for which some were away",
        ),
        Column(
            "lost_iterations",
            "float",
            "",
            "iterations of all workers that were done for nothing, warm-up counted, over their number: done again, or "
            "updates that a server has lost",
        ),
        Column(
            "goodput_ratio",
            "float",
            "",
            "1 - (checkpoint_time_s + recovery_time_s) / iteration_time_s: time that counts",
        ),
        Column("iterations_to_target", "int", "", "of the whole training, to training.target; 0 where none is given"),
        Column("rounds_to_target", "int", "", "how often workers communicate until then"),
        Column(
            "time_to_target_s",
            "float",
            "s",
            "startup_time_s + iterations_to_target * samples_per_iteration / throughput; 0 where no target is given",
        ),
        Column("bytes_sent_per_worker", "float", "bytes", "payload that a worker sends per iteration, mean"),
        Column("wire_bytes", "float", "bytes", "the same with packet headers; none within a host"),
        Column(
            "lost_bytes",
            "float",
            "bytes",
            "payload of all workers together that was lost per iteration, and not sent again, mean",
        ),
        Column(
            "startup_time_s",
            "float",
            "s",
            "from the start of the job until the last worker begins its first iteration: the first scatter of data",
        ),
        Column(
            "memory_bytes_per_worker",
            "float",
            "bytes",
            "parameters, gradients, state of the optimizer, activations and buckets under way, of the worker with "
            "most; nan where the model does not say",
        ),
        Column(
            "bound_iteration_time_s",
            "float",
            "s",
            "lower bound on iteration_time_s, from chains of latencies and from bytes over bandwidth of each resource",
        ),
        Column(
            "bound_ratio", "float", "", "iteration_time_s / bound_iteration_time_s; NaN where nothing is bound to take"
        ),
        Column(
            "carrying_time_s",
            "float",
            "s",
            "for how long the busiest resource or core works on what is exchanged in an iteration: in the long run no "
            "iteration is shorter",
        ),
        Column(
            "bottleneck",
            "str",
            "",
            "resource that would be busy for the longest time at its full bandwidth: the first of those with the "
            "highest utilisation in links; empty where none is used",
        ),
        Column("messages", "int", "", "messages simulated, warm-up included"),
        Column("wall_time_s", "float", "s", "time that the simulation took; differs from run to run"),
    ),
    "iterations": (
        _JOB,
        Column("iteration", "int", "", "number of the iteration; the warm-up has those below 0"),
        Column("rank", "int", "", "number of the worker"),
        Column("start_s", "float", "s", "simulated time at which it began"),
        Column(
            "iteration_time_s",
            "float",
            "s",
            "compute_time_s + exposed_communication_time_s + waiting_time_s + input_time_s + checkpoint_time_s",
        ),
        *_TIMES,
        Column("staleness_updates", "int", "", "updates of others that its own did not know of"),
        Column("ahead_iterations", "int", "", "iterations that it began ahead of the slowest"),
        Column(
            "attempt",
            "int",
            "",
            "how often the worker had begun again after a crash; what was done for nothing has no row",
        ),
    ),
    "workers": (
        _JOB,
        Column("rank", "int", "", "number of the worker"),
        Column("stage", "int", "", "pipeline stage, or device of a dataflow graph, that it computes"),
        Column("replica", "int", "", "copy of the model that it is part of"),
        Column("part", "int", "", "its number among those that compute the same stage of the same replica"),
        Column("node", "str", "", "node of the topology that it runs on"),
        Column("host", "str", "", "host that the node is in"),
        Column("iteration_time_s", "float", "s", "mean over measured iterations; so are the other times"),
        *_TIMES,
        Column("iterations", "int", "", "measured iterations; not the same for all under asp and ssp"),
        Column("staleness_updates", "float", "", "updates of others that an update did not know of, mean"),
        Column("bytes_sent", "float", "bytes", "payload sent per iteration"),
        Column("wire_bytes", "float", "bytes", "the same with packet headers"),
    ),
    "collectives": (
        _JOB,
        Column("iteration", "int", "", "number of the iteration; the warm-up has those below 0"),
        Column("bucket", "int", "", "number of the bucket, in the order in which gradients become ready"),
        Column(
            "what",
            "str",
            "",
            "all_reduce of gradients, reduce_scatter of them, or all_gather of parameters; push or pull of one worker",
        ),
        Column("worker", "int", "", "whose it was; -1 where all take part together"),
        Column("algorithm", "str", "", "how the bucket was exchanged"),
        Column("size_bytes", "float", "bytes", "size of the bucket"),
        Column("announced_s", "float", "s", "when the last worker had the bucket ready"),
        Column(
            "start_s",
            "float",
            "s",
            "when the exchange began: after those before it; with parameter servers, when "
            "the first worker had it ready",
        ),
        Column("duration_s", "float", "s", "from then until the last rank was complete"),
        Column("bound_time_s", "float", "s", "lower bound on duration_s"),
        Column("algbw_GBps", "float", "GB/s", "size_bytes / duration_s / 1e9"),
        Column(
            "steps", "int", "", "messages in the longest chain of messages that wait for each other; -1: not counted"
        ),
        Column("messages", "int", "", "messages sent for it"),
        Column("bytes_sent", "float", "bytes", "payload sent by all ranks together, servers and switches included"),
        Column("bytes_sent_by_busiest", "float", "bytes", "payload sent by the rank that sends most"),
        Column("lost_bytes", "float", "bytes", "payload of it that was lost, and not sent again"),
    ),
    "staleness": (
        _JOB,
        Column(
            "of",
            "str",
            "",
            "updates: of others, between the reading of parameters and one's own update; iterations: ahead of the "
            "slowest when an iteration began",
        ),
        Column("staleness", "int", "", "how many of those"),
        Column("count", "int", "", "measured iterations of all workers that were so stale"),
    ),
    "links": (
        Column("job", "str", "", "name of the job; all, where there are several"),
        Column("resource", "str", "", "name: link source->target, or what of a host"),
        Column("kind", "str", "", "kind of link; stack or memory of a host; core of a server that adds up"),
        Column("bandwidth_bytes_per_s", "float", "bytes/s", "capacity; 0 of cores"),
        Column("latency_s", "float", "s", "one way; 0 for what is not a link"),
        Column("wire_bytes", "float", "bytes", "carried in the measured iterations, headers and copies included"),
        Column("busy_time_s", "float", "s", "time with at least one flow in the measured iterations"),
        Column(
            "utilisation",
            "float",
            "",
            "wire_bytes / (bandwidth_bytes_per_s * duration of the measured iterations)",
        ),
    ),
    "queues": (
        Column("resource", "str", "", "link in front of which packets wait"),
        Column("packets", "int", "", "that have left by it, warm-up included; so are all numbers of this table"),
        Column("mean_queue_bytes", "float", "bytes", "of whole packets, until their last bit has left, mean over time"),
        Column("p99_queue_bytes", "float", "bytes", "no more than that for 99 % of the time, to within a third"),
        Column("highest_queue_bytes", "int", "bytes", "the most of them at once"),
        Column("dropped", "int", "", "packets for which there was no room"),
        Column("marked", "int", "", "packets marked because of the queue (ECN)"),
        Column("lost", "int", "", "packets lost on the link at random"),
        Column("paused_time_s", "float", "s", "for how long the other end has paused it (PFC), sum over classes"),
    ),
    "connections": (
        Column("source", "str", "", "node that sends; one row a connection, warm-up included"),
        Column("target", "str", "", "node that receives"),
        Column("packets", "int", "", "of data that were sent"),
        Column("retransmitted", "int", "", "of these, sent again"),
        Column("timeouts", "int", "", "how often nothing was heard for too long"),
        Column("notifications", "int", "", "congestion that the receiver has reported (CNP)"),
        Column("wire_bytes", "float", "bytes", "sent, with packet headers and all that was sent again"),
        Column("goodput_bytes", "float", "bytes", "payload that has arrived, each byte once"),
        Column("lost_bytes", "float", "bytes", "payload that was lost, and not sent again"),
        Column("round_trip_s", "float", "s", "smoothed, at the end; nan where none was measured"),
        Column("window_packets", "float", "", "that congestion control allows to be on their way, at the end"),
        Column("pace_bytes_per_s", "float", "bytes/s", "that congestion control allows, at the end; inf: no limit"),
    ),
    "faults": (
        Column("kind", "str", "", "what went wrong; one row a fault, in the order of the scenario"),
        Column("what", "str", "", "link, switch, host, worker or server that it happened to"),
        Column("begin_s", "float", "s", "when it began"),
        Column("end_s", "float", "s", "when it was over: of a crash, when there was somebody again; inf: never"),
    ),
    "spans": (
        _JOB,
        Column("iteration", "int", "", "number of the iteration; the warm-up has those below 0"),
        Column("rank", "int", "", "number of the worker"),
        Column(
            "what",
            "str",
            "",
            "compute, exposed communication, waiting, input, checkpoint, step overhead; step: of several together",
        ),
        Column("start_s", "float", "s", "simulated time at which it began"),
        Column("duration_s", "float", "s", "for how long it went on"),
    ),
    "load": (
        Column("time_s", "float", "s", "simulated time at which an interval begins"),
        Column("duration_s", "float", "s", "length of the interval"),
        Column("resource", "str", "", "link, or stack or memory of a host"),
        Column("utilisation", "float", "", "what it carried in the interval, over what it could"),
    ),
    "messages": (
        Column("job", "str", "", "name of the job; empty for background traffic"),
        Column("collective", "str", "", "which exchange it belongs to"),
        Column("operation", "int", "", "operation of the schedule that sent it"),
        Column("firing", "int", "", "how often that operation had sent before"),
        Column("source", "int", "", "rank that sent it"),
        Column("target", "int", "", "rank that received it"),
        Column("size_bytes", "float", "bytes", "payload"),
        Column("start_s", "float", "s", "when it waited for nothing more"),
        Column("flow_start_s", "float", "s", "when its payload began to flow, after overheads and connection set-up"),
        Column("drained_s", "float", "s", "when its last byte had left"),
        Column("delivered_s", "float", "s", "when it was received, and reduced; NaN where it never was"),
    ),
    "explanation": (
        Column("group", "str", "", "computing, communication or waiting"),
        Column("part", "str", "", "what takes time; docs/explain.md says what each part is"),
        Column("time_s", "float", "s", "of an iteration; all parts add up to it"),
        Column("share", "float", "", "time_s over that of the iteration"),
        Column(
            "about", "str", "", "which resource, worker or fault most of it is about; empty where that says nothing"
        ),
    ),
    "critical_path": (
        Column("start_s", "float", "s", "from the beginning of the iteration on"),
        Column("duration_s", "float", "s", "for how long it lasts; all of them together are the iteration"),
        Column("worker", "int", "", "who computes or stands still; -1 of an exchange"),
        Column("what", "str", "", "compute, input, checkpoint, negotiation, waiting, step, or what is exchanged"),
        Column("bucket", "int", "", "of an exchange; -1 where it is of none"),
        Column("iteration", "int", "", "which it belongs to; the first measured one is 0"),
    ),
    "sensitivity": (
        Column("change", "str", "", "the one thing that is changed"),
        Column("iteration_time_s", "float", "s", "with it; NaN where it cannot be run"),
        Column("effect", "float", "", "of the iteration time: -0.31 is 31 % less"),
        Column("failed", "str", "", "why it cannot be run; empty where it can"),
    ),
    "compared_settings": (
        Column("key", "str", "", "dotted path of a value that differs"),
        Column("a", "str", "", "as the one scenario has it; empty where it has none"),
        Column("b", "str", "", "as the other has it"),
    ),
    "compared_results": (
        Column("job", "str", "", "name of the job"),
        Column("column", "str", "", "of the summary"),
        Column("unit", "str", "", "of its values"),
        Column("a", "str", "", "of the one"),
        Column("b", "str", "", "of the other"),
        Column("effect", "float", "", "b / a - 1; NaN of what is no number"),
    ),
    "compared_parts": (
        Column("group", "str", "", "as of the explanation"),
        Column("part", "str", "", "likewise"),
        Column("a_time_s", "float", "s", "of an iteration of the one"),
        Column("b_time_s", "float", "s", "of the other"),
        Column("difference_s", "float", "s", "b - a; all of them add up to that of the iterations"),
    ),
    "scaling": (
        Column("workers", "int", "", "P, number of workers"),
        Column("scaling", "str", "", "strong: all share the samples of an iteration; weak: each has as many"),
        Column("samples_per_iteration", "int", "samples", "n_P, of all workers together"),
        Column("iteration_time_s", "float", "s", "T_P, as in the summary; so are the two below"),
        Column("compute_time_s", "float", "s", "forward and backward pass"),
        Column("throughput_samples_per_s", "float", "samples/s", "samples_per_iteration / iteration_time_s"),
        Column(
            "speedup",
            "float",
            "",
            "(W_P / T_P) / (W_1 / T_1), with work in proportion to the samples, and serial_time counted once",
        ),
        Column("efficiency", "float", "", "speedup / workers"),
        Column(
            "karp_flatt_serial_fraction",
            "float",
            "",
            "(1/speedup - 1/workers) / (1 - 1/workers); nan for one worker, below 0 where speed-up is super-linear",
        ),
        Column("amdahl_serial_fraction", "float", "", "f of the nearest curve of Amdahl: least squares of 1/speedup"),
        Column("amdahl_speedup", "float", "", "that curve, 1 / (f + (1 - f)/workers)"),
        Column("gustafson_serial_fraction", "float", "", "f of the nearest curve of Gustafson: least squares"),
        Column("gustafson_speedup", "float", "", "that curve, workers - f (workers - 1)"),
    ),
    "calibration": (
        Column("quantity", "str", "", "what it is; docs/calibration.md has the meaning of each"),
        Column("value", "float", "", "its value, in its unit"),
        Column(
            "standard_error",
            "float",
            "",
            "of the value, as of linear least squares; of one rate that of the mean of its intervals; none where the "
            "log has no more rows than unknowns",
        ),
        Column("unit", "str", "", "of value and standard_error"),
        Column("rows", "int", "", "rows of the log that it is from; 0: the value is that of the base protocol"),
    ),
    "collective_sizes": (
        Column(
            "size_bytes",
            "int",
            "bytes",
            "size S of the collective, in whole elements; what it is the size of depends on the collective",
        ),
        Column("time_us", "float", "us", "from the call, on all ranks at once, until the last rank is complete"),
        Column("algbw_GBps", "float", "GB/s", "algorithm bandwidth = size_bytes / time / 1e9; none where time is 0"),
        Column(
            "busbw_GBps",
            "float",
            "GB/s",
            "bus bandwidth = algbw_GBps * 2(n - 1)/n (all_reduce), (n - 1)/n (reduce_scatter, all_gather, all_to_all) "
            "or 1 (broadcast, reduce, send_recv), on n ranks",
        ),
        Column(
            "bound_time_us",
            "float",
            "us",
            "lower bound on time_us, from chains of latencies and from bytes over bandwidth of each resource",
        ),
        Column("steps", "int", "", "messages in the longest chain of messages that wait for each other"),
        Column("transfers", "int", "", "messages in all"),
        Column("bytes_sent", "int", "bytes", "payload sent by all ranks together"),
        Column("bytes_sent_by_busiest", "int", "bytes", "payload sent by the rank that sends most"),
    ),
}
"""Columns by table, in their order."""


def columns_as_markdown(table: str) -> str:
    """Return the columns of a table as a Markdown table."""
    lines = ["| column | unit | what it is |", "|---|---|---|"]
    lines += [
        f"| `{column.name}` | {column.unit} | {column.meaning.replace('|', '&#124;')} |" for column in COLUMNS[table]
    ]
    return "\n".join(lines)
