"""What all that trains and measures asks of a fabric, whichever way it simulates the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.fabric.network import Network
from simnet.traffic.schedule import Schedule

if TYPE_CHECKING:
    from simnet.fabric.bounds import Bound
    from simnet.fabric.conditions import Conditions
    from simnet.fabric.play import Play

__all__ = ["Counts", "Fabric", "Placed"]


@dataclass(frozen=True)
class Counts:
    """What a fabric has done so far.

    Attributes
    ----------
    messages : begun; those of a play that is foreseen count when it is over
    simulated_messages : whose times were worked out one by one; the others are like one of these, or repeat a period or
        an earlier play
    solves : times that rates were solved
    passes : of these, until all rates fitted together
    touched_flows : flows whose rates were solved in them
    """

    messages: int
    simulated_messages: int
    solves: int
    passes: int
    touched_flows: int


class Placed(Protocol):
    """A schedule laid out on the nodes of a network, by the fabric that is to play it."""

    @property
    def schedule(self) -> Schedule:
        """What is laid out."""

    @property
    def nodes(self) -> NDArray[np.int64]:
        """Node index of each rank, shape (ranks,)."""

    @property
    def payload_bytes_sent(self) -> NDArray[np.float64]:
        """What each rank sends to other nodes, shape (ranks,) [bytes]."""

    @property
    def wire_bytes_sent(self) -> NDArray[np.float64]:
        """The same with packet headers, shape (ranks,) [bytes]."""

    @property
    def core_s(self) -> dict[tuple[int, int], float]:
        """For how long one playing keeps each core busy, by node and stream [s]."""


class Fabric(Protocol):
    """Plays schedules on a network, in simulated time."""

    env: simpy.Environment
    network: Network
    conditions: Conditions

    def place(self, schedule: Schedule, nodes: Sequence[int] | NDArray[np.int64], *, owner: str = "") -> Placed:
        """Lay an owner's schedule out, once for the same schedule and nodes; refuse one that would deadlock."""

    def play(self, placement: Any, name: str, *, gates_open: bool = True) -> Play:
        """Begin to play what `place` has laid out; with closed gates each rank waits for `Play.open`."""

    def cancel(self, play: Play) -> None:
        """End a play where it stands; what it has not delivered is lost, and nobody waiting for it is served."""

    def bound(self, placement: Any) -> Bound:
        """Return lower bounds on the time of a play."""

    def cut_together_s(self, placements: Sequence[Any], senders: int | None = None) -> float:
        """Return for how long the busiest resource or core works for several plays; see `simnet.fabric.bounds` [s]."""

    @property
    def counts(self) -> Counts:
        """What was done so far."""

    def carried_bytes(self) -> NDArray[np.float64]:
        """Return what each resource has carried, shape (resources,) [bytes]."""

    def busy_s(self) -> NDArray[np.float64]:
        """Return for how long each resource had something to carry, shape (resources,) [s]."""

    def transfer_s(self, node: int) -> float:
        """Return for how long a node had a transfer of its own under way [s]."""

    def require_conservation(self) -> None:
        """Check what every run must satisfy; raise an `InvariantError` where it does not hold."""

    def close(self) -> None:
        """Hand on what messages are recorded and not handed on yet; nothing is to be played after that."""
