"""What switches do at packet level: plain data. What connections do is the protocol's."""

from __future__ import annotations

from dataclasses import dataclass

from simnet.units import KIBIBYTE, MEBIBYTE

__all__ = ["DEFAULT_PACKETS", "PacketSettings"]


@dataclass(frozen=True)
class PacketSettings:
    """Switches and queues.

    Parameters
    ----------
    packet_bytes : float
        Payload of a full packet where the protocol has no limit [bytes].
    buffer_bytes : float
        Of each port of a switch whose link does not say [bytes].
    shared_buffer_bytes : float
        That all ports of a switch share instead; 0: each port has its own [bytes].
    threshold_shift : int
        Of a shared buffer a queue, or what came by one port, may hold what is free / 2^shift (dynamic threshold; A.
        Choudhury and E. Hahne 1998).
    pause_at_bytes, resume_at_bytes : float
        Of what came by one port and is still held, where the buffer is not shared [bytes].
    headroom_bytes : float
        For what still comes after a pause; 0: as much as that can be [bytes].
    credit_bytes : float
        Room for each class of each link with credits [bytes].
    data_class, control_class : int
        Traffic classes.
    class_weights : tuple of float
        Shares of the classes from 1 on, which then are of one level; empty: the lower number goes first.
    input_round_robin : bool
        At each output, the inputs take turns, also where links have no credits.
    """

    packet_bytes: float = 4.0 * KIBIBYTE
    buffer_bytes: float = MEBIBYTE
    shared_buffer_bytes: float = 0.0
    threshold_shift: int = 3
    pause_at_bytes: float = 64.0 * KIBIBYTE
    resume_at_bytes: float = 56.0 * KIBIBYTE
    headroom_bytes: float = 0.0
    credit_bytes: float = 128.0 * KIBIBYTE
    data_class: int = 1
    control_class: int = 0
    class_weights: tuple[float, ...] = ()
    input_round_robin: bool = False


DEFAULT_PACKETS = PacketSettings()
