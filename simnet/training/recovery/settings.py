"""What a job is told of checkpoints and crashes: plain data, in SI units."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["DETECT_AFTER_S", "DISK_BYTES_PER_S", "Checkpoint", "Crash", "ServerCrash", "WorkerCrash"]

DETECT_AFTER_S = 15.0
"""From a crash until the others know of it [s]: three heartbeats of 5 s each that do not come, as in the rendezvous of
PyTorch's elastic launcher (``keep_alive_interval=5``, ``keep_alive_max_attempt=3``)."""


DISK_BYTES_PER_S = 1.8e9
"""At which a worker's own disk is written [bytes/s]: an SSD Intel DC P4500 of 4 TB, by its data sheet."""


@dataclass(frozen=True)
class Checkpoint:
    """How the state of training is kept for the case of a crash.

    Parameters
    ----------
    every : int
        Iterations from one to the next; under ``asp`` and ``ssp`` those of all together, over the workers.
    storage : str or None
        Name of the node that it is written to; None: each writes to its own disk.
    blocking : bool
        Training waits until it is written.
    size_bytes : float or None
        Of the state of a whole model; None: parameters and what the optimizer remembers [bytes].
    bytes_per_s : float
        Of a worker's own disk, to write and to read [bytes/s].
    """

    every: int
    storage: str | None = None
    blocking: bool = True
    size_bytes: float | None = None
    bytes_per_s: float = DISK_BYTES_PER_S


@dataclass(frozen=True)
class WorkerCrash:
    """The process of a worker that dies.

    Attributes
    ----------
    kind, what : for tables and messages
    worker : which one
    begin_s, end_s : when it dies, and when it is there again; infinite: never [s]
    detect_after_s : until those who work in step with it know [s]
    """

    kind: str
    what: str
    worker: int
    begin_s: float
    end_s: float = math.inf
    detect_after_s: float = DETECT_AFTER_S


@dataclass(frozen=True)
class ServerCrash:
    """A parameter server that dies.

    Attributes
    ----------
    kind, what, begin_s, detect_after_s : as of `WorkerCrash`
    server : which one
    back_s : when it is there again itself; infinite: never [s]
    failover_s : until its replica has taken over; None where it has none [s]
    replica : node index of its replica
    """

    kind: str
    what: str
    server: int
    begin_s: float
    back_s: float = math.inf
    detect_after_s: float = DETECT_AFTER_S
    failover_s: float | None = None
    replica: int = -1

    @property
    def end_s(self) -> float:
        """When there is a server again [s]."""
        return self.back_s if self.failover_s is None else self.begin_s + self.failover_s


Crash = WorkerCrash | ServerCrash
