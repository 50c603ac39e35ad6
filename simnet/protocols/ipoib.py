"""Kernel TCP over IP over InfiniBand (RFC 4391), in datagram and in connected mode.

The stack is that of kernel TCP, above a driver with fewer offloads than Ethernet's, so a core does less. In datagram
mode a packet is one InfiniBand packet; in connected mode (RFC 4755) an IP packet of 64 KiB is one message that the
adapter cuts. ConnectX-4 and later offer datagram mode only, which is what ``ipoib`` means.
"""

from __future__ import annotations

import math

from simnet.protocols.defaults import Default, Definition, changed
from simnet.protocols.rdma import CREDITS
from simnet.protocols.tcp import COPIES, CORES, TCP_BEHAVIOUR, TCP_IP_HEADER_BYTES
from simnet.units import GIGABIT_PER_S, KIBIBYTE, MICROSECOND, NANOSECOND

__all__ = ["IPOIB_CONNECTED", "IPOIB_DATAGRAM"]

_ENCAPSULATION_BYTES = 4
_DATAGRAM_BYTES = 8 + 12 + 8 + 4 + 2
_RELIABLE_BYTES = 8 + 12 + 4 + 2
_INFINIBAND_MTU_BYTES = 4096

_CONNECTION_RATE = 20.9 * GIGABIT_PER_S
_SEND_RATE = 1 / (0.08 * NANOSECOND)
_ONE_WAY = (
    "of 9.7 us one way: 7.9 to 10.5 us up to 512 B (IMB PingPong over IPoIB, jebtang/RDMA-Experiment, ConnectX-3) and "
    "13.5 us (qperf tcp_lat, P. Stine, ConnectX) were measured"
)
_FEWER_PACKETS = "1.2 times datagram mode, as packets are fewer and larger; estimated, no measured pair was found"


def _datagram_framing(mtu_bytes: float) -> tuple[float, float]:
    """Return payload and header of a TCP segment in one unreliable datagram [bytes]."""
    return mtu_bytes - TCP_IP_HEADER_BYTES, float(TCP_IP_HEADER_BYTES + _ENCAPSULATION_BYTES + _DATAGRAM_BYTES)


def _connected_framing(mtu_bytes: float) -> tuple[float, float]:
    """Return payload and header of a TCP segment in one message of as many packets as it takes [bytes]."""
    packets = math.ceil((mtu_bytes + _ENCAPSULATION_BYTES) / _INFINIBAND_MTU_BYTES)
    header = TCP_IP_HEADER_BYTES + _ENCAPSULATION_BYTES + packets * _RELIABLE_BYTES
    return mtu_bytes - TCP_IP_HEADER_BYTES, float(header)


_SHARED = (
    Default("send_overhead_s", 3.0 * MICROSECOND, f"share of system call, stack and driver {_ONE_WAY}"),
    Default("receive_overhead_s", 5.5 * MICROSECOND, f"share of interrupt, stack and wake-up {_ONE_WAY}"),
    Default("send_overhead_s_per_byte", 1 / _SEND_RATE, "0.08 ns/B: kernel TCP's 0.06 and a third more for the driver"),
    Default(
        "pipeline_bytes",
        64.0 * KIBIBYTE,
        "the stack hands over at most 64 KiB at once, by large-send offload or as one packet (Linux ipoib driver)",
    ),
    Default("copies_send", 1.0, COPIES),
    Default("copies_receive", 1.0, COPIES),
    Default("connection", "persistent", "training frameworks keep their sockets open"),
    Default(
        "connection_setup_s", 17 * MICROSECOND, "SYN and SYN-ACK pass both stacks: 2 x (3.0 + 5.5) us of overheads"
    ),
    Default("connection_setup_round_trips", 1.0, "SYN, SYN-ACK, then data with the ACK (RFC 9293, section 3.5)"),
    Default(
        "forwarding", "cut_through", "InfiniBand switches pass packets on as they come in (IBTA specification 1.3)"
    ),
    Default("divisible", False, "elements are whole"),
    Default("host_send_capacity_bytes_per_s", CORES * _SEND_RATE, f"{CORES} cores at 0.08 ns/B each"),
    Default(
        "host_receive_capacity_bytes_per_s",
        CORES * _CONNECTION_RATE,
        f"{CORES} cores at what one connection gets, 83.6 Gbit/s: ten processes together were measured to get over 80 "
        "(open-mpi/ompi issue 9087, ConnectX-4). Connected mode does not scale better (Cornelis CN5000 tuning guide)",
    ),
    *changed(TCP_BEHAVIOUR, CREDITS),
)

IPOIB_DATAGRAM = Definition(
    name="ipoib",
    summary="kernel TCP over InfiniBand, datagram mode: one core a connection, few offloads",
    link_kinds=("infiniband",),
    framing=_datagram_framing,
    framing_source=(
        "IPv4 20, TCP 20, timestamps 12 (RFC 791, 9293, 7323); encapsulation 4 (RFC 4391); InfiniBand local route 8, "
        "base transport 12, datagram 8, check sums 4 and 2 (IBTA specification 1.3, chapters 7 and 9)"
    ),
    defaults=(
        Default("mtu_bytes", 4092.0, "InfiniBand's 4096 less 4 of encapsulation (Linux ipoib documentation, RFC 4391)"),
        Default(
            "receive_overhead_s_per_byte",
            1 / _CONNECTION_RATE,
            "0.38 ns/B: what one connection gets (20.9 Gbit/s, see connection_cap)",
        ),
        Default("latency_s", 1.2 * MICROSECOND, f"share of adapters and buses {_ONE_WAY}"),
        Default(
            "connection_cap_bytes_per_s",
            _CONNECTION_RATE,
            "20.9 Gbit/s (qperf tcp_bw on one connection, P. Stine). About 20 on ConnectX-4 at 100 Gbit/s "
            "(open-mpi/ompi issue 9087), 14 with MPI on ConnectX-3 (IMB PingPong of 4 MiB, jebtang/RDMA-Experiment)",
        ),
        *changed(
            _SHARED,
            Default(
                "acknowledgement_bytes",
                float(TCP_IP_HEADER_BYTES + _ENCAPSULATION_BYTES + _DATAGRAM_BYTES),
                "a segment without data: the header of any other",
            ),
        ),
        Default("receive_ring_packets", 256.0, "Linux ipoib, IPOIB_RX_RING_SIZE, the default of recv_queue_size"),
    ),
)

IPOIB_CONNECTED = Definition(
    name="ipoib-connected",
    summary="kernel TCP over InfiniBand, connected mode: IP packets of 64 KiB, for adapters before ConnectX-4",
    link_kinds=("infiniband",),
    framing=_connected_framing,
    framing_source=(
        "IPv4 20, TCP 20, timestamps 12 (RFC 791, 9293, 7323); encapsulation 4 (RFC 4391); for each 4096 B InfiniBand "
        "local route 8, base transport 12, check sums 4 and 2 (IBTA specification 1.3, chapters 7 and 9)"
    ),
    defaults=(
        Default("mtu_bytes", 65520.0, "the largest of connected mode (Linux ipoib documentation, RFC 4755)"),
        Default(
            "receive_overhead_s_per_byte",
            1 / (1.2 * _CONNECTION_RATE),
            "0.32 ns/B: what one connection gets (25.1 Gbit/s, see connection_cap)",
        ),
        Default(
            "latency_s",
            1.7 * MICROSECOND,
            f"share of adapters and buses {_ONE_WAY}; connected mode adds about 5 % (AUR package ipoibmodemtu)",
        ),
        Default("connection_cap_bytes_per_s", 1.2 * _CONNECTION_RATE, _FEWER_PACKETS),
        *changed(
            _SHARED,
            Default(
                "acknowledgement_bytes",
                float(TCP_IP_HEADER_BYTES + _ENCAPSULATION_BYTES + _RELIABLE_BYTES),
                "a segment without data: the header of any other, in one packet",
            ),
            Default(
                "initial_window_packets", 10.0, "RFC 6928; Linux TCP_INIT_CWND. Here 640 KiB: it begins at full rate"
            ),
        ),
    ),
)
