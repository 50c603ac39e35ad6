"""RDMA verbs, reliable connection: on InfiniBand, on Ethernet as RoCEv2, and on Ethernet that loses packets.

The adapter moves the data: posting and polling is all that a message costs a core, and one connection has the whole
link. The cost per byte is not work of a core but the adapter fetching the first packet before it can send it, and
writing the last before it can report it.
"""

from __future__ import annotations

from dataclasses import replace

from simnet.protocols.congestion.dcqcn_parameters import PAPER
from simnet.protocols.defaults import Default, Definition, changed
from simnet.protocols.tcp import ETHERNET_FORWARDING, ONE_PATH
from simnet.units import GIGABIT_PER_S, KIBIBYTE, MICROSECOND, MILLISECOND, NANOSECOND

__all__ = ["CREDITS", "DROPS", "INFINIBAND", "IRN", "ROCE", "ROCE_LOSSY"]

_INFINIBAND_BYTES = 8 + 12 + 4 + 2
_ROCE_BYTES = 14 + 20 + 8 + 12 + 4 + 4 + 8 + 12

_ACKNOWLEDGEMENT_BYTES = 4
_ACKNOWLEDGEMENT = "the header of any packet, and 4 that say what is acknowledged (IBTA specification 1.3, chapter 9)"

_ONE_WAY = (
    "of 0.85 us one way: 0.83 us for 32 B (ib_send_lat, D. Potter's thesis, mtu_performance.tex); a round trip of "
    "1.63 us on two directly connected hosts (IBM tulips, ConnectX-5)"
)
_FIRST_PACKET = (
    "fitted together with fetch to ib_send_lat of 1, 4 and 32 KiB, 1.58, 2.26 and 4.56 us, half on each side (D. "
    "Potter's thesis, mtu_performance.tex)"
)
_FETCH = (
    "fitted together with send_overhead_per_byte (ib_send_lat, D. Potter's thesis, mtu_performance.tex): a read of "
    "memory over PCIe, 0.4 to 0.9 us (R. Neugebauer et al., SIGCOMM 2018, from memory)"
)
_NO_CORE = "the adapter moves the data, so that no core limits it: "
_NO_CORE_MEASURED = "97.4 Gbit/s on one connection at 100 (ConnectX-5, openfabric-systems/simllm incast.csv)"

_TIMEOUT_S = 4.096 * MICROSECOND * 2**14

CREDITS = Default(
    "link_flow_control", "credit", "a packet goes when the other end has room (IBTA specification 1.3, chapter 7)"
)
DROPS = Default("link_flow_control", "none", "by name: without PFC switches drop what they cannot hold")

_BEHAVIOUR = (
    Default(
        "reliability",
        "go_back_n",
        "a receiver takes no packet out of order and asks once for the one that it misses (IBTA specification 1.3, "
        "chapter 9)",
    ),
    Default("congestion_control", "none", "off in the most common fabrics; roce may have dcqcn or dcqcn_vendor"),
    ONE_PATH,
    Default("initial_window_packets", float("inf"), "begins at the full rate of its link (DCQCN, SIGCOMM 2015)"),
    Default("window_bytes", float("inf"), "what may be under way is limited by 2**23 packet numbers alone"),
    Default(
        "acknowledge_every",
        16.0,
        "between the 1 of simulators (HPCC) and the 2**8 of mlx5 (MLX5_IB_ACK_REQ_FREQ); the last of a message always "
        "has one",
    ),
    Default("acknowledge_delay_s", 0.0, "the adapter answers at once"),
    Default("reorder_packets", 1.0, "the first packet out of order is one too many"),
    Default(
        "minimum_timeout_s",
        _TIMEOUT_S,
        "4.096 us x 2**14 = 67 ms: the exponent of perftest (DEF_QP_TIME); NCCL has 20, which is 4.3 s",
    ),
    Default("initial_timeout_s", _TIMEOUT_S, "the same: adapters measure no round trip"),
    Default(
        "adaptive_timeout_s",
        float("inf"),
        "none in the specification (IBTA 1.3, chapter 9). NVIDIA's adapters have it on Ethernet, from 8.4 ms on where "
        "that was measured: docs/packets.md",
    ),
    Default(
        "maximum_timeout_s",
        4 * _TIMEOUT_S,
        "adapters may take one to four times the timeout (IBTA specification 1.3, chapter 9; NVIDIA's adaptive "
        "retransmission doubles it up to twice)",
    ),
    Default(
        "retries",
        7.0,
        "retry_cnt, the most that its 3 bits hold (IBTA specification 1.3, chapter 9), NCCL_IB_RETRY_CNT by default. A "
        "receiver that is not ready is waited for as long as it takes: rnr_retry of 7 has no end",
    ),
    Default("connections_per_pair", 1.0, "NCCL_IB_QPS_PER_CONNECTION, 1 by default"),
    Default(
        "connection_memory_bytes",
        84.0 * KIBIBYTE,
        "queues of 256 sends (192 B), 256 receives (16 B) and 512 completions (64 B): sizes of mlx5, from memory",
    ),
    Default(
        "cached_connections",
        1024.0,
        "ConnectX-5 has halved its rate of small messages at 5000 queue pairs, and begins to lose at about a thousand "
        "(A. Kalia et al., NSDI 2019, figure 1, from memory)",
    ),
    Default(
        "cache_miss_s",
        0.5 * MICROSECOND,
        "one read of the host's memory over PCIe: 0.4 to 0.9 us (R. Neugebauer et al., SIGCOMM 2018, from memory)",
    ),
)

_SHARED = (
    Default("send_overhead_s", 0.15 * MICROSECOND, f"share of posting and doorbell {_ONE_WAY}"),
    Default("receive_overhead_s", 0.10 * MICROSECOND, f"share of polling {_ONE_WAY}"),
    Default("send_overhead_s_per_byte", 0.07 * NANOSECOND, _FIRST_PACKET),
    Default("receive_overhead_s_per_byte", 0.07 * NANOSECOND, _FIRST_PACKET),
    Default("pipeline_bytes", 4096.0, "one packet: the adapter works on the others meanwhile"),
    Default("latency_s", 0.6 * MICROSECOND, f"share of adapters and buses {_ONE_WAY}"),
    Default("copies_send", 0.0, "the adapter reads the application's memory"),
    Default("copies_receive", 0.0, "the adapter writes the application's memory"),
    Default("inline_bytes", 188.0, "what fits into a request of verbs (D. Potter's thesis, mtu_performance.tex)"),
    Default("fetch_s", 0.5 * MICROSECOND, _FETCH),
    Default("verb", "write", "NCCL's network plug-in writes (net_ib, IBV_WR_RDMA_WRITE)"),
    Default(
        "rendezvous_bytes",
        float("inf"),
        "NCCL's receivers say where data goes before it is there to be sent; MPI and UCX ask from some KB on",
    ),
    Default("connection", "persistent", "queue pairs are made once"),
    Default(
        "connection_setup_s",
        2 * MILLISECOND,
        "making and connecting a pair of queues takes milliseconds in driver and adapter (X. Wei et al., KRCORE, "
        "USENIX ATC 2022); the order of magnitude, from memory",
    ),
    Default(
        "connection_setup_round_trips",
        1.0,
        "request and reply, then data after ready-to-use (IBTA specification 1.3, chapter 12)",
    ),
    Default("divisible", False, "elements are whole"),
    Default("host_send_capacity_bytes_per_s", float("inf"), f"{_NO_CORE}{_NO_CORE_MEASURED}"),
    Default("host_receive_capacity_bytes_per_s", float("inf"), f"{_NO_CORE}{_NO_CORE_MEASURED}"),
    *_BEHAVIOUR,
)

INFINIBAND = Definition(
    name="infiniband",
    summary="RDMA verbs over InfiniBand: the adapter moves the data, credits keep the links lossless",
    link_kinds=("infiniband",),
    framing=lambda mtu: (mtu, float(_INFINIBAND_BYTES)),
    framing_source=(
        "local route 8, base transport 12, check sums 4 and 2 (IBTA specification 1.3, chapters 7 and 9); the 16 of "
        "the first packet of a write are left out"
    ),
    defaults=(
        Default("mtu_bytes", 4096.0, "the largest of InfiniBand (IBTA specification 1.3), the default since FDR"),
        Default(
            "connection_cap_bytes_per_s",
            float("inf"),
            f"{_NO_CORE}24.6 GB/s both ways together at 2 x 100 Gbit/s (osu_bibw, openucx/ucx issue 7245, ConnectX-6)",
        ),
        Default(
            "forwarding", "cut_through", "InfiniBand switches pass packets on as they come in (IBTA specification 1.3)"
        ),
        CREDITS,
        Default("acknowledgement_bytes", float(_INFINIBAND_BYTES + _ACKNOWLEDGEMENT_BYTES), _ACKNOWLEDGEMENT),
        *_SHARED,
    ),
)

_MARK_RATE = 100 * GIGABIT_PER_S
_MARKS = (
    "at 100 Gbit/s (aliyun/SimAI, SimAI.conf), as the time that the link needs for it; heeded by dcqcn alone. Its "
    "paper has 5 kB, 200 kB and 0.01 at 40 Gbit/s"
)

ROCE = Definition(
    name="roce",
    summary="RDMA verbs over Ethernet (RoCEv2): the adapter moves the data, pauses keep the links lossless",
    link_kinds=("ethernet",),
    framing=lambda mtu: (mtu, float(_ROCE_BYTES)),
    framing_source=(
        "Ethernet header 14, check sum 4, preamble 8 and gap 12 (IEEE 802.3); IPv4 20, UDP 8, base transport 12, check "
        "sum 4 (IBTA annex A17); the 16 of the first packet of a write are left out"
    ),
    defaults=(
        Default(
            "mtu_bytes",
            4096.0,
            "the largest of the transport (IBTA annex A17), on Ethernet with jumbo frames: 97.4 Gbit/s of data in 99.1 "
            "on the wire are this (ConnectX-5, openfabric-systems/simllm incast.csv); 1024 with frames of 1500",
        ),
        Default("connection_cap_bytes_per_s", float("inf"), f"{_NO_CORE}{_NO_CORE_MEASURED}"),
        ETHERNET_FORWARDING,
        Default("link_flow_control", "pause", "priority flow control (IEEE 802.1Qbb)"),
        Default("acknowledgement_bytes", float(_ROCE_BYTES + _ACKNOWLEDGEMENT_BYTES), _ACKNOWLEDGEMENT),
        Default("mark_from_s", 400e3 / _MARK_RATE, f"400 kB {_MARKS}"),
        Default("mark_all_s", 1600e3 / _MARK_RATE, f"1600 kB {_MARKS}"),
        Default("most_marked", 0.2, f"P_max {_MARKS}"),
        Default(
            "marks_at_departure",
            False,
            "by the queue that a packet finds (Y. Zhu et al., CoNEXT 2016); ns-3 and htsim mark as it leaves",
        ),
        *PAPER,
        *_SHARED,
    ),
)

ROCE_LOSSY = replace(
    ROCE,
    name="roce-lossy",
    summary="RDMA verbs over Ethernet without pauses: a loss has everything after it sent again",
    defaults=changed(ROCE.defaults, DROPS),
)

_IRN = "R. Mittal et al., SIGCOMM 2018, from memory"

IRN = replace(
    ROCE,
    name="irn",
    summary="RDMA verbs over Ethernet without pauses: what is lost is sent again, and no more (IRN)",
    defaults=changed(
        ROCE.defaults,
        DROPS,
        Default("reliability", "selective_repeat", f"a bitmap of what has arrived ({_IRN})"),
        Default(
            "window_bytes",
            120e3,
            f"once what is under way in 24 us at 40 Gbit/s ({_IRN}), or in 9.6 us at 100. Counted from the first "
            "missing packet, so that a loss costs up to a round trip; twice as much makes up for it",
        ),
        Default("acknowledge_every", 1.0, f"each packet, out of order as well ({_IRN})"),
        Default("minimum_timeout_s", 320 * MICROSECOND, f"RTO_high ({_IRN})"),
        Default("initial_timeout_s", 320 * MICROSECOND, f"RTO_high ({_IRN})"),
        Default("few_packets", 3.0, f"N ({_IRN})"),
        Default("few_packets_timeout_s", 100 * MICROSECOND, f"RTO_low ({_IRN})"),
    ),
)
