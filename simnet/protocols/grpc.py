"""gRPC over kernel TCP, as TensorFlow's parameter servers use it.

Each pair of processes has one channel with one thread, which writes every tensor into protocol buffers, and reads it
from them again: so a channel does what one core can serialise, whatever the link.
"""

from __future__ import annotations

from dataclasses import replace

from simnet.protocols.defaults import Default, changed
from simnet.protocols.tcp import TCP
from simnet.units import GIGABIT_PER_S

__all__ = ["GRPC"]

_CHANNEL_RATE = 6.4 * GIGABIT_PER_S
_SOURCE = (
    "800 MB/s of tensors over 10 GbE since August 2017, 100 to 200 MB/s before (TensorFlow issue 6116, comments of "
    "byronyi); gRPC with GPUDirect RDMA 27.2 Gbit/s"
)

GRPC = replace(
    TCP,
    name="grpc",
    summary="gRPC over kernel TCP, as TensorFlow's parameter servers: one thread serialises for each pair of processes",
    defaults=changed(
        TCP.defaults,
        Default("send_overhead_s_per_byte", 1 / _CHANNEL_RATE, f"1.25 ns/B to write into protocol buffers: {_SOURCE}"),
        Default("receive_overhead_s_per_byte", 1 / _CHANNEL_RATE, "1.25 ns/B to read from them, as for writing"),
        Default("connection_cap_bytes_per_s", _CHANNEL_RATE, f"one thread a channel: {_SOURCE}"),
        Default("copies_send", 2.0, "one into the protocol buffer, one into the kernel"),
        Default("copies_receive", 2.0, "one out of the kernel, one out of the protocol buffer"),
    ),
)
