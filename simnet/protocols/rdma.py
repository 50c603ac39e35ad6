"""RDMA verbs, reliable connection: on InfiniBand, and on Ethernet as RoCEv2. Lossless, with no congestion.

The adapter moves the data: posting and polling is all that a message costs a core, and one connection has the whole
link. The cost per byte is not work of a core but the adapter fetching the first packet before it can send it, and
writing the last before it can report it.
"""

from __future__ import annotations

from simnet.protocols.defaults import Default, Definition
from simnet.protocols.tcp import ETHERNET_FORWARDING
from simnet.units import MICROSECOND, MILLISECOND, NANOSECOND

__all__ = ["INFINIBAND", "ROCE"]

_INFINIBAND_BYTES = 8 + 12 + 4 + 2
_ROCE_BYTES = 14 + 20 + 8 + 12 + 4 + 4 + 8 + 12

_ONE_WAY = (
    "of 0.85 us one way: 0.83 us for 32 B (ib_send_lat, D. Potter's thesis, mtu_performance.tex); a round trip of "
    "1.63 us on two directly connected hosts (IBM tulips, ConnectX-5)"
)
_FIRST_PACKET = (
    "fitted to ib_send_lat of 4 KiB and 32 KiB, 2.26 and 4.56 us, half on each side (D. Potter's thesis, "
    "mtu_performance.tex; 1 KiB comes out 23 % low)"
)
_NO_CORE = "the adapter moves the data, so that no core limits it: "
_NO_CORE_MEASURED = "97.4 Gbit/s on one connection at 100 (ConnectX-5, openfabric-systems/simllm incast.csv)"

_SHARED = (
    Default("send_overhead_s", 0.15 * MICROSECOND, f"share of posting and doorbell {_ONE_WAY}"),
    Default("receive_overhead_s", 0.10 * MICROSECOND, f"share of polling {_ONE_WAY}"),
    Default("send_overhead_s_per_byte", 0.132 * NANOSECOND, _FIRST_PACKET),
    Default("receive_overhead_s_per_byte", 0.132 * NANOSECOND, _FIRST_PACKET),
    Default("pipeline_bytes", 4096.0, "one packet: the adapter works on the others meanwhile"),
    Default("latency_s", 0.6 * MICROSECOND, f"share of adapters and buses {_ONE_WAY}"),
    Default("copies_send", 0.0, "the adapter reads the application's memory"),
    Default("copies_receive", 0.0, "the adapter writes the application's memory"),
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
        *_SHARED,
    ),
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
        *_SHARED,
    ),
)
