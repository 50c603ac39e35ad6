"""The state of training, which a crash takes away: who holds how much of it, and how it gets from node to node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import simpy

from simnet.engine.waits import Waits
from simnet.fabric.interface import Fabric
from simnet.fabric.play import Play
from simnet.traffic import Partition, ScheduleBuilder
from simnet.training.communication.under_way import stopped
from simnet.training.recovery.settings import Checkpoint

__all__ = ["Holder", "Move", "Share", "State", "Store", "played"]


class Holder(NamedTuple):
    """A process that holds state.

    Attributes
    ----------
    kind : ``worker`` or ``server``
    number : among those
    """

    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


class Share(NamedTuple):
    """How much of the state one holds, or needs [bytes]."""

    holder: Holder
    size_bytes: float


class Move(NamedTuple):
    """Bytes that go from one node to another, by their indices."""

    source: int
    target: int
    size_bytes: float


@dataclass(frozen=True, eq=False)
class State:
    """The state of a job.

    Parameters
    ----------
    node : dict
        Node index of each holder; the one thing here that changes, when a replica takes over.
    written : tuple of Share
        Who writes how much of it into a checkpoint.
    read : tuple of Share
        Who reads how much of it when all begin again.
    pulled : tuple of (Holder, Holder, float)
        Of which server each worker then pulls how many bytes of parameters; empty where workers hold them themselves.
    parameters_bytes : float
        Of the parameters of a whole model [bytes].
    first_replica : int
        Number of the first replica of a server, counted on from servers and what else is behind the workers.
    """

    node: dict[Holder, int]
    written: tuple[Share, ...]
    read: tuple[Share, ...]
    pulled: tuple[tuple[Holder, Holder, float], ...]
    parameters_bytes: float
    first_replica: int = 0

    def pulls(self, workers: Iterable[int]) -> list[Move]:
        """Return what some workers pull of servers when they begin again."""
        wanted = {Holder("worker", worker) for worker in workers}
        return [Move(self.node[server], self.node[to], size) for server, to, size in self.pulled if to in wanted]

    def share_of(self, holder: Holder) -> float:
        """Return how much of the state one holds [bytes]."""
        return sum(share.size_bytes for share in self.read if share.holder == holder)


@dataclass
class Store:
    """Where checkpoints are: on a node of the network, or on the disk of whoever writes.

    Parameters
    ----------
    env : simpy.Environment
    fabric : Fabric
    job : str
        For names.
    settings : Checkpoint
    """

    env: simpy.Environment
    fabric: Fabric
    job: str
    settings: Checkpoint
    _node: int | None = field(init=False)

    def __post_init__(self) -> None:
        name = self.settings.storage
        self._node = None if name is None else self.fabric.network.compiled.node_index[name]

    def write(self, node: int, size_bytes: float) -> Waits:
        """Write what a node has; whoever is interrupted meanwhile has written nothing."""
        if self._node is None:
            yield self.env.timeout(size_bytes / self.settings.bytes_per_s)
            return
        yield from played(self.fabric, [Move(node, self._node, size_bytes)], f"{self.job}: checkpoint")

    def read(self, wanted: Sequence[tuple[int, float]]) -> Waits:
        """Read what some nodes want, all at the same time: node and size [bytes] of each."""
        if self._node is None:
            yield self.env.timeout(max((size for _, size in wanted), default=0.0) / self.settings.bytes_per_s)
            return
        moves = [Move(self._node, node, size) for node, size in wanted]
        yield from played(self.fabric, moves, f"{self.job}: reading a checkpoint")


def played(fabric: Fabric, moves: Sequence[Move], name: str) -> Waits:
    """Move bytes, and wait until all have arrived; whoever is interrupted stops them."""
    if not moves:
        return
    play = _transfer(fabric, moves, name)
    try:
        yield play.complete
    except simpy.Interrupt:
        stopped(fabric, play)
        raise


def _transfer(fabric: Fabric, moves: Sequence[Move], name: str) -> Play:
    """Begin to move bytes, all at the same time."""
    nodes = list(dict.fromkeys(node for move in moves for node in (move.source, move.target)))
    rank = {node: number for number, node in enumerate(nodes)}
    build = ScheduleBuilder("transfer of state", len(nodes), Partition(1, 1.0))
    source, target = [rank[move.source] for move in moves], [rank[move.target] for move in moves]
    build.send(source, target, width=0, fixed_bytes=[move.size_bytes for move in moves])
    return fabric.play(fabric.place(build.schedule(), nodes), name)
