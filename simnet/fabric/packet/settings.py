"""What switches and transports are told at packet level: plain data."""

from __future__ import annotations

from dataclasses import dataclass

from simnet.units import KIBIBYTE, MEBIBYTE

__all__ = ["DEFAULT_PACKETS", "PacketSettings"]


@dataclass(frozen=True)
class PacketSettings:
    """Switches, queues and the transport.

    Parameters
    ----------
    packet_bytes : float
        Payload of a full packet where the protocol has no limit [bytes].
    largest_packet_bytes : float
        On the wire [bytes].
    buffer_bytes : float
        Of each port of a switch whose link does not say [bytes].
    lossless : bool
        Switches pause instead of dropping.
    pause_at_bytes, resume_at_bytes : float
        Of what came by one port and is still held [bytes].
    marks : bool
        Packets can be marked.
    mark_from_bytes, mark_all_bytes, most_marked : float
        RED [bytes], [bytes], probability.
    marks_at_departure : bool
    data_class, control_class : int
    acknowledge_every : int
        Packets.
    acknowledgement_bytes : int
        On the wire [bytes].
    window_packets : int
        Beyond what is acknowledged.
    timeout_s : float
        Until a sender begins again where it was acknowledged last [s].
    """

    packet_bytes: float = 4.0 * KIBIBYTE
    largest_packet_bytes: float = 4.5 * KIBIBYTE
    buffer_bytes: float = MEBIBYTE
    lossless: bool = True
    pause_at_bytes: float = 64.0 * KIBIBYTE
    resume_at_bytes: float = 56.0 * KIBIBYTE
    marks: bool = False
    mark_from_bytes: int = 1 << 60
    mark_all_bytes: int = 1 << 60
    most_marked: float = 1.0
    marks_at_departure: bool = False
    data_class: int = 1
    control_class: int = 0
    acknowledge_every: int = 16
    acknowledgement_bytes: int = 86
    window_packets: int = 1 << 40
    timeout_s: float = 0.067


DEFAULT_PACKETS = PacketSettings()
