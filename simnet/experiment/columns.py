"""Every column of every table: the one place that says what it is.

The README's table of columns is made from here, and a test holds the two in step.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COLUMNS", "Column", "columns_as_markdown"]


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
    Column("compute_time_s", "float", "s", "forward and backward pass"),
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
        Column("batch_size_per_worker", "int", "samples", "per worker, or replica of a split model, and iteration"),
        Column("iterations", "int", "", "measured iterations"),
        Column(
            "iteration_time_s",
            "float",
            "s",
            "mean over workers and measured iterations "
            "= compute_time_s + exposed_communication_time_s + waiting_time_s + input_time_s",
        ),
        Column("iteration_time_p95_s", "float", "s", "95th percentile over workers and measured iterations"),
        *_TIMES,
        Column("communication_compute_ratio", "float", "", "communication_time_s / compute_time_s"),
        Column(
            "throughput_samples_per_s",
            "float",
            "samples/s",
            "of all together = workers or replicas * batch_size_per_worker / iteration_time_s",
        ),
        Column(
            "speedup",
            "float",
            "",
            "throughput_samples_per_s / that of the baseline: one worker of the fastest group without communication",
        ),
        Column("scaling_efficiency", "float", "", "speedup / workers"),
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
            "compute_time_s + exposed_communication_time_s + waiting_time_s + input_time_s",
        ),
        *_TIMES,
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
        Column("bytes_sent", "float", "bytes", "payload sent per iteration"),
        Column("wire_bytes", "float", "bytes", "the same with packet headers"),
    ),
    "collectives": (
        _JOB,
        Column("iteration", "int", "", "number of the iteration; the warm-up has those below 0"),
        Column("bucket", "int", "", "number of the bucket, in the order in which gradients become ready"),
        Column("what", "str", "", "all_reduce of gradients, reduce_scatter of them, or all_gather of parameters"),
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
        Column("what", "str", "", "link, switch or host that it happened to"),
        Column("begin_s", "float", "s", "when it began"),
        Column("end_s", "float", "s", "when it was over; inf: never"),
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
    "collective_sizes": (
        Column(
            "size_bytes",
            "int",
            "bytes",
            "size S of the collective, in whole elements; what it is the size of depends on the collective",
        ),
        Column("time_us", "float", "us", "from the start, on all ranks at once, until the last rank is complete"),
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
