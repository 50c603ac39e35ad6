"""Kernel TCP over Ethernet, as Linux does it with the offloads that are on by default.

What is per message: a system call and a pass down the stack; an interrupt, a wake-up and a pass up. What is per byte:
one copy on each side, by the core that the connection is steered to, so one connection cannot have more than a core's
worth; a host has several.
"""

from __future__ import annotations

from dataclasses import replace

from simnet.protocols.defaults import Default, Definition, changed
from simnet.units import GIGABIT_PER_S, KIBIBYTE, MEBIBYTE, MICROSECOND, MILLISECOND

__all__ = [
    "COPIES",
    "CORES",
    "DCTCP",
    "ETHERNET_FORWARDING",
    "ETHERNET_MTU",
    "ONE_PATH",
    "TCP",
    "TCP_BEHAVIOUR",
    "TCP_IP_HEADER_BYTES",
    "TCP_RENO",
    "ethernet_tcp_framing",
]

TCP_IP_HEADER_BYTES = 20 + 20 + 12
"""IPv4 (RFC 791), TCP (RFC 9293) and its timestamps (RFC 7323) [bytes]."""
_ETHERNET_BYTES = 14 + 4 + 8 + 12

CORES = 4
"""Cores of a host that work for its connections."""

ETHERNET_MTU = Default(
    "mtu_bytes", 1500.0, "IEEE 802.3, RFC 894: the default of Ethernet; 9000 where jumbo frames are on"
)
ETHERNET_FORWARDING = Default(
    "forwarding",
    "cut_through",
    "the default of data centre switches such as Cisco Nexus 3000 and 9000 (Layer 2 Switching Configuration Guide, "
    "Switching Modes); Juniper QFX stores and forwards, which takes 0.12 us a hop for 1538 B at 100 Gbit/s",
)
COPIES = "one copy between the buffers of application and kernel (Cai et al., SIGCOMM 2021, section 3.1)"

ONE_PATH = Default("spraying", False, "switches choose a path by a hash of addresses and ports (RFC 2992)")

TCP_BEHAVIOUR = (
    Default("reliability", "sack", "selective acknowledgements are on (RFC 2018, 6675; Linux tcp_sack)"),
    Default("congestion_control", "cubic", "the default of Linux since 2.6.19 (RFC 9438)"),
    Default("link_flow_control", "none", "switches drop what they cannot hold"),
    ONE_PATH,
    Default("initial_window_packets", 10.0, "RFC 6928; Linux TCP_INIT_CWND"),
    Default(
        "window_bytes",
        3.0 * MEBIBYTE,
        "half of the largest receive buffer, tcp_rmem[2] of 6 MiB (Linux ip-sysctl.rst; 32 MiB in the newest); the "
        "rest is for what the kernel keeps of each packet (tcp_adv_win_scale)",
    ),
    Default("acknowledge_every", 2.0, "every second full segment (RFC 9293, section 3.8.6.3)"),
    Default("acknowledge_delay_s", 40 * MILLISECOND, "Linux TCP_DELACK_MIN, which holds where round trips are short"),
    Default("acknowledgement_bytes", 90.0, "a segment without data: the header of any other, 52, and 38 of Ethernet"),
    Default("slow_start_after_idle", True, "RFC 2861; Linux tcp_slow_start_after_idle (ip-sysctl.rst)"),
    Default("reorder_packets", 3.0, "RFC 5681, 6675; Linux TCP_FASTRETRANS_THRESH"),
    Default("minimum_timeout_s", 200 * MILLISECOND, "Linux TCP_RTO_MIN; RFC 6298 asks for 1 s"),
    Default("initial_timeout_s", 1.0, "RFC 6298; Linux TCP_TIMEOUT_INIT"),
    Default("maximum_timeout_s", 120.0, "Linux TCP_RTO_MAX"),
    Default("retries", 15.0, "Linux tcp_retries2 (ip-sysctl.rst), which at 200 ms are 924.6 s"),
    Default("tail_loss_probe", True, "RFC 8985, section 7; on in Linux (tcp_early_retrans)"),
    Default("connections_per_pair", 1.0, "NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD, 1 by default; AWS 16"),
    Default(
        "connection_memory_bytes",
        147456.0,
        "what a socket may hold before buffers grow: 131072 to receive and 16384 to send (Linux tcp_rmem[1], "
        "tcp_wmem[1])",
    ),
)
"""What Linux does, on any link."""

_ONE_WAY = (
    "of 9 us one way, as MPI ping-pong over kernel TCP shows up to 512 B (7.9 to 10.5 us: IMB PingPong, "
    "jebtang/RDMA-Experiment, 2 nodes with ConnectX-3); sockperf on two PCs shows 18 us (F-Stack issue 540)"
)
_RECEIVE_RATE = 42 * GIGABIT_PER_S
_SEND_RATE = 40 * GIGABIT_PER_S / 0.3


def ethernet_tcp_framing(mtu_bytes: float) -> tuple[float, float]:
    """Return payload and header of a full TCP segment in an Ethernet frame [bytes]."""
    return mtu_bytes - TCP_IP_HEADER_BYTES, float(TCP_IP_HEADER_BYTES + _ETHERNET_BYTES)


TCP = Definition(
    name="tcp",
    summary="kernel TCP over Ethernet: interrupts, one copy a side, one core a connection",
    link_kinds=("ethernet", "wan", "wireless"),
    framing=ethernet_tcp_framing,
    framing_source=(
        "Ethernet header 14, check sum 4, preamble 8 and gap 12 (IEEE 802.3); IPv4 20, TCP 20, timestamps 12 "
        "(RFC 791, 9293, 7323)"
    ),
    defaults=(
        ETHERNET_MTU,
        Default("send_overhead_s", 2.5 * MICROSECOND, f"share of system call and stack {_ONE_WAY}"),
        Default("receive_overhead_s", 5.0 * MICROSECOND, f"share of interrupt, stack and wake-up {_ONE_WAY}"),
        Default(
            "send_overhead_s_per_byte",
            1 / _SEND_RATE,
            "0.06 ns/B: 40 Gbit/s with segmentation offload take 30 % of a core (Gloo docs/latency.md)",
        ),
        Default(
            "receive_overhead_s_per_byte",
            1 / _RECEIVE_RATE,
            "0.19 ns/B: a core receives 42 Gbit/s (Cai et al., SIGCOMM 2021, section 3.1)",
        ),
        Default(
            "pipeline_bytes",
            64.0 * KIBIBYTE,
            "segmentation and receive offload hand over at most 64 KiB at once (Linux GSO_MAX_SIZE; Cai et al., "
            "SIGCOMM 2021, section 3.1)",
        ),
        Default("latency_s", 1.5 * MICROSECOND, f"share of adapters and buses {_ONE_WAY}"),
        Default(
            "connection_cap_bytes_per_s",
            _RECEIVE_RATE,
            "one connection, one receiving core: 42 Gbit/s at best (Cai et al., SIGCOMM 2021, section 3.1, with jumbo "
            "frames). Lower where tuned less: 35.2 (esnet/iperf issue 286), 25.2 and 27.9 (Mellanox/libvma issue 836)",
        ),
        Default(
            "host_send_capacity_bytes_per_s",
            CORES * _SEND_RATE,
            f"{CORES} cores at what one core sends: 40 Gbit/s / 30 % (Gloo docs/latency.md)",
        ),
        Default(
            "host_receive_capacity_bytes_per_s",
            CORES * _RECEIVE_RATE,
            f"{CORES} cores at 42 Gbit/s each. Several connections fill a 100G link: 96.4 (esnet/iperf issue 286, 16 "
            "streams) and 87.2 Gbit/s (issue 1664) were measured, which takes 3 cores or more",
        ),
        Default("copies_send", 1.0, COPIES),
        Default("copies_receive", 1.0, COPIES),
        Default("connection", "persistent", "training frameworks keep their sockets open"),
        Default(
            "connection_setup_s", 15 * MICROSECOND, "SYN and SYN-ACK pass both stacks: 2 x (2.5 + 5.0) us of overheads"
        ),
        Default("connection_setup_round_trips", 1.0, "SYN, SYN-ACK, then data with the ACK (RFC 9293, section 3.5)"),
        ETHERNET_FORWARDING,
        Default("divisible", False, "elements are whole"),
        *TCP_BEHAVIOUR,
    ),
)

TCP_RENO = replace(
    TCP,
    name="tcp-reno",
    summary="kernel TCP over Ethernet with Reno's congestion control instead of CUBIC's",
    defaults=changed(
        TCP.defaults, Default("congestion_control", "reno", "by name (RFC 5681, 6582); Linux tcp_congestion_control")
    ),
)

# 65 packets of 1538 B at 10 Gbit/s are 80 us; one more is 81.2.
_MARK_S = 80 * MICROSECOND
_MARK_SOURCE = (
    "65 packets at 10 Gbit/s (M. Alizadeh et al., SIGCOMM 2010, from memory), as the time that the link needs for it; "
    "20 packets at 1 Gbit/s, which are 246 us"
)

DCTCP = replace(
    TCP,
    name="dctcp",
    summary="kernel TCP over Ethernet with DCTCP: switches mark, senders slow down by how much was marked",
    link_kinds=("ethernet",),
    defaults=changed(
        TCP.defaults,
        Default("congestion_control", "dctcp", "by name (RFC 8257)"),
        Default("mark_from_s", _MARK_S, _MARK_SOURCE),
        Default("mark_all_s", _MARK_S, "one threshold: all or none (RFC 8257, section 3.1)"),
        Default("most_marked", 1.0, "one threshold: all or none (RFC 8257, section 3.1)"),
        Default("marks_at_departure", False, "by the queue that a packet finds (M. Alizadeh et al., SIGCOMM 2010)"),
    ),
)
