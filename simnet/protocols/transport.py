"""How a transport behaves: what it does about loss, marks and full buffers, and with which numbers.

Both fidelities read it: at packet level every value drives a state machine, at flow level start-up, loss response and
stalls follow from the same values. What a transport costs the hosts is in `simnet.protocols.flow_protocol`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["ANSWER_JITTER", "PROBE_FLOOR_S", "CongestionControl", "LinkFlowControl", "Reliability", "Transport"]

ANSWER_JITTER = 0.01
"""By so much of its own time on the last link a host with TCP notices a packet late, at the most.

Else what acknowledgements let out, a multiple of the time of a packet apart, would come to a full queue at the very
same instants, so that the order in which a simulator makes its events says who always loses (S. Floyd and V. Jacobson,
1992). Of how little it is nothing depends, and packets do not overtake each other.
"""

PROBE_FLOOR_S = 2e-3
"""What Linux adds to two round trips before it probes the tail of what it has sent (TCP_TIMEOUT_MIN_US) [s]."""

Reliability = Literal["go_back_n", "sack", "selective_repeat", "best_effort"]
"""What happens to what is lost: ``go_back_n`` sends again from there on (RoCE, InfiniBand), ``sack`` what selective
acknowledgements show to be lost (TCP), ``selective_repeat`` what is reported missing (IRN), ``best_effort`` nothing."""

CongestionControl = Literal["none", "reno", "cubic", "dctcp", "dcqcn", "dcqcn_vendor"]
"""What sets window or pace. Controls, and rules about loss, of one's own have other names: see docs/transports.md."""

LinkFlowControl = Literal["none", "pause", "credit"]
"""What switches do when a buffer is full: drop, pause the neighbour (PFC), or give it no more credit (InfiniBand)."""


@dataclass(frozen=True)
class Transport:
    """The behaviour of a transport. As it stands without arguments: reliable, lossless, and as fast as the links.

    `simnet.protocols.FIELDS` describes the fields, which a scenario may set, and completes this text by them.
    """

    reliability: Reliability | str = "go_back_n"
    congestion_control: CongestionControl | str = "none"
    link_flow_control: LinkFlowControl = "pause"
    spraying: bool = False

    # Windows and acknowledgements.
    initial_window_packets: float = math.inf
    window_bytes: float = math.inf
    acknowledge_every: float = 16.0
    acknowledge_delay_s: float = 0.0
    acknowledgement_bytes: float = 86.0
    slow_start_after_idle: bool = False
    reorder_packets: float = 1.0

    receive_ring_packets: float = math.inf

    # Timeouts.
    minimum_timeout_s: float = 0.067
    initial_timeout_s: float = 0.067
    maximum_timeout_s: float = 120.0
    adaptive_timeout_s: float = math.inf
    retries: float = math.inf
    tail_loss_probe: bool = False
    few_packets: float = 0.0
    few_packets_timeout_s: float = 0.067

    # Marks that switches make (ECN): of a queue, as the time that its link needs for it.
    mark_from_s: float = math.inf
    mark_all_s: float = math.inf
    most_marked: float = 1.0
    marks_at_departure: bool = False

    # DCQCN.
    alpha_gain: float = 1 / 256
    alpha_period_s: float = 55e-6
    loss_notification: bool = False
    notification_interval_s: float = 50e-6
    notification_delay_s: float = 0.0
    decrease_interval_s: float = 0.0
    increase_period_s: float = 55e-6
    increase_bytes: float = 10e6
    recovery_steps: float = 5.0
    additive_increase_bytes_per_s: float = 40e6 / 8
    hyper_increase_bytes_per_s: float = 200e6 / 8
    minimum_rate_bytes_per_s: float = 10e6 / 8

    # Loss that is put up with.
    loss_budget: float = 0.0
    critical_share: float = 0.0
    deadline_s: float = math.inf
    quiet_s: float = math.inf

    # Connections.
    connections_per_pair: float = 1.0
    connection_memory_bytes: float = 0.0
    cached_connections: float = math.inf
    cache_miss_s: float = 0.0

    @property
    def shortest_timeout_s(self) -> float:
        """The shortest wait for an acknowledgement, adaptive retransmission included [s]."""
        if self.reliability == "go_back_n":
            return min(self.adaptive_timeout_s, self.minimum_timeout_s)
        return self.minimum_timeout_s
