"""User-space TCP over Ethernet on DPDK, as a library in the application (F-Stack, mTCP, Seastar).

The wire format is that of TCP. What goes is the kernel: a core polls the adapter's queue, so there are no interrupts,
system calls and wake-ups. What stays is a core for each connection's packets, here without segmentation offload.
"""

from __future__ import annotations

from simnet.protocols.defaults import Default, Definition, changed
from simnet.protocols.tcp import (
    CORES,
    ETHERNET_FORWARDING,
    ETHERNET_MTU,
    TCP,
    TCP_BEHAVIOUR,
    TCP_IP_HEADER_BYTES,
    ethernet_tcp_framing,
)
from simnet.units import GIGABIT_PER_S, MEBIBYTE, MICROSECOND, MILLISECOND

__all__ = ["DPDK"]

_BURST_PACKETS = 32
_CORE_RATE = 75 * GIGABIT_PER_S
_CORE_SOURCE = "75 Gbit/s on one connection and core, 8 MB messages (eRPC README; A. Kalia et al., NSDI 2019)"
_ONE_WAY = (
    "of 1.1 us one way: round trips of 2.3 us over UDP (eRPC README, ConnectX-5 class) and 1.77 us over TCP on two "
    "directly connected hosts (IBM tulips, ConnectX-5) were measured"
)
_COPIES = (
    "one copy between the application's buffers and those of the stack, as socket-like interfaces need (F-Stack, mTCP)"
)

_BEHAVIOUR = changed(
    TCP_BEHAVIOUR,
    Default("congestion_control", "cubic", "F-Stack's (config.ini, freebsd.net.inet.tcp.cc.algorithm)"),
    Default(
        "initial_window_packets",
        10.0,
        "RFC 6928; FreeBSD net.inet.tcp.initcwnd_segments, which F-Stack is made of. mTCP begins with 2",
    ),
    Default(
        "window_bytes",
        1.0 * MEBIBYTE,
        "chosen: enough for 100 Gbit/s at 84 us. F-Stack begins with 8 KiB and grows to 16 MiB, TAS has 8 KiB",
    ),
    Default(
        "acknowledge_every",
        1.0,
        "chosen: a stack that polls need not wait; F-Stack can (delayed_ack = 1 in config.ini)",
    ),
    Default("acknowledge_delay_s", 0.0, "nothing to wait for"),
    Default(
        "minimum_timeout_s",
        1 * MILLISECOND,
        "between TAS (4 intervals of 2 round trips, at least 50 us each) and F-Stack (a tick of 10 ms); mTCP ticks at "
        "1 ms",
    ),
    Default("initial_timeout_s", 500 * MILLISECOND, "mTCP (tcp_in.h)"),
    Default(
        "connection_memory_bytes", 2.0 * MEBIBYTE, "a buffer of 1 MiB each way, set aside when a connection is opened"
    ),
)

DPDK = Definition(
    name="dpdk",
    summary="user-space TCP on DPDK over Ethernet: polling, no kernel, one core a connection",
    link_kinds=("ethernet",),
    framing=ethernet_tcp_framing,
    framing_source=TCP.framing_source,
    defaults=(
        ETHERNET_MTU,
        Default("send_overhead_s", 0.15 * MICROSECOND, f"share of the stack's call and doorbell {_ONE_WAY}"),
        Default("receive_overhead_s", 0.15 * MICROSECOND, f"share of poll and stack {_ONE_WAY}"),
        Default("send_overhead_s_per_byte", 1 / _CORE_RATE, f"0.11 ns/B: {_CORE_SOURCE}"),
        Default("receive_overhead_s_per_byte", 1 / _CORE_RATE, f"0.11 ns/B: {_CORE_SOURCE}"),
        Default(
            "pipeline_bytes",
            _BURST_PACKETS * (float(ETHERNET_MTU.value) - TCP_IP_HEADER_BYTES),
            "packets are handed over in bursts of up to 32 (MAX_PKT_BURST of F-Stack and the DPDK examples)",
        ),
        Default("inline_bytes", 188.0, "as with verbs on the same adapters: their driver inlines small packets"),
        Default("fetch_s", 0.5 * MICROSECOND, "as with verbs on the same adapters"),
        Default("latency_s", 0.8 * MICROSECOND, f"share of adapters and buses {_ONE_WAY}"),
        Default("connection_cap_bytes_per_s", _CORE_RATE, _CORE_SOURCE),
        Default(
            "host_send_capacity_bytes_per_s",
            CORES * _CORE_RATE,
            f"{CORES} polling cores, as many as kernel TCP is given; throughput grows with cores in proportion "
            "(F-Stack README, 1 to 24 cores)",
        ),
        Default("host_receive_capacity_bytes_per_s", CORES * _CORE_RATE, f"{CORES} polling cores, as for sending"),
        Default("copies_send", 1.0, _COPIES),
        Default("copies_receive", 1.0, _COPIES),
        Default("connection", "persistent", "training frameworks keep their connections open"),
        Default(
            "connection_setup_s",
            0.6 * MICROSECOND,
            "SYN and SYN-ACK pass both stacks: 2 x (0.15 + 0.15) us of overheads",
        ),
        Default("connection_setup_round_trips", 1.0, "SYN, SYN-ACK, then data with the ACK (RFC 9293, section 3.5)"),
        ETHERNET_FORWARDING,
        Default("divisible", False, "elements are whole"),
        *_BEHAVIOUR,
    ),
)
