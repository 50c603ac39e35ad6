"""What a job is told: plain data, in SI units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from simnet.training.computing.stragglers import Straggler
from simnet.units import MEBIBYTE
from simnet.workload import AnyWorkload, GroupedWorkload, parts_of

__all__ = [
    "DETECT_AFTER_S",
    "DISK_BYTES_PER_S",
    "Architecture",
    "BackgroundSettings",
    "Checkpoint",
    "Compression",
    "Crash",
    "DatasetSettings",
    "Jitter",
    "JobSettings",
    "Parallelism",
    "RunSettings",
    "Scheduling",
    "ServerCrash",
    "Sync",
    "TrainingSettings",
    "WorkerCrash",
]

DETECT_AFTER_S = 15.0
"""From a crash until the others know of it [s]: three heartbeats of 5 s each that do not come, as in the rendezvous of
PyTorch's elastic launcher (``keep_alive_interval=5``, ``keep_alive_max_attempt=3``)."""

DISK_BYTES_PER_S = 1.8e9
"""At which a worker's own disk is written [bytes/s]: an SSD Intel DC P4500 of 4 TB, by its data sheet."""


@dataclass(frozen=True)
class Architecture:
    """How the data-parallel group exchanges gradients.

    Parameters
    ----------
    name : str
        One of `simnet.training.communication.architectures.ARCHITECTURES`.
    options : mapping
        Its options, in SI units.
    """

    name: str = "ring"
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Compression:
    """How gradients are compressed before they are exchanged.

    Parameters
    ----------
    name : str
        One of `simnet.training.communication.compression.SCHEMES`.
    options : mapping
        Its options.
    compress_s_per_byte, decompress_s_per_byte : float
        What it takes for each byte of fp32 gradients [s].
    error_feedback : bool
        Keep what was lost, to add it to the next gradients.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    compress_s_per_byte: float = 0.0
    decompress_s_per_byte: float = 0.0
    error_feedback: bool = False


@dataclass(frozen=True)
class Jitter:
    """A random factor on the compute time of each worker in each iteration.

    Parameters
    ----------
    distribution : str
        Each has mean 1. With parameter p: ``lognormal``: exp(p z - p² / 2); ``normal``: 1 + p z, at least 0;
        ``uniform``: between 1 - p and 1 + p; ``exponential``: 1 - p + p x; ``pareto``: (p - 1) / p times what has
        P(y > t) = t^-p from 1 on. z is standard normal, x exponential with mean 1.
    parameter : float
        At least 0, relative; at most 1 of ``uniform`` and ``exponential``; the shape of ``pareto``, above 1.
    """

    distribution: str = "lognormal"
    parameter: float = 0.0


@dataclass(frozen=True)
class Parallelism:
    """How work is split among workers, whose number is the product of the four.

    Worker ``(stage * data + replica) * inner + i`` is member i of what computes one stage of one replica, with
    ``inner = tensor * shared_memory``: as in Megatron-LM the tensor-parallel group is closest together, and pipeline
    stages are farthest apart (D. Narayanan et al., SC 2021).

    Parameters
    ----------
    data : int
        Replicas of the model, each with samples of its own.
    pipeline : int
        Stages that the layers of a replica are cut into.
    tensor : int
        Workers that share each layer of a stage, and add up their activations after each.
    shared_memory : int
        Workers on one host that share the samples of a replica, and the bandwidth of the host's memory.
    micro_batches : int
        Pieces that the samples of a replica go through the stages in.
    order : str
        ``gpipe``: forward passes of all micro-batches, then backward passes; ``1f1b``: alternately.
    all_reduces_per_layer : int
        Of the tensor-parallel group, in each pass of a layer with parameters.
    """

    data: int = 1
    pipeline: int = 1
    tensor: int = 1
    shared_memory: int = 1
    micro_batches: int = 1
    order: Literal["gpipe", "1f1b"] = "1f1b"
    all_reduces_per_layer: int = 1

    @property
    def workers(self) -> int:
        """All of them."""
        return self.data * self.replica

    @property
    def replica(self) -> int:
        """Workers that a model is split over."""
        return self.pipeline * self.inner

    @property
    def inner(self) -> int:
        """Workers that compute one stage of one replica."""
        return self.tensor * self.shared_memory

    def place_of(self, rank: int) -> tuple[int, int, int]:
        """Return stage, replica and place within them of a worker."""
        outer, inner = divmod(rank, self.inner)
        return (*divmod(outer, self.data), inner)

    def rank_of(self, stage: int, replica: int, inner: int) -> int:
        """Return the worker with a stage, a replica and a place within them."""
        return (stage * self.data + replica) * self.inner + inner


@dataclass(frozen=True)
class Scheduling:
    """What travels together, and what goes first.

    Parameters
    ----------
    order : str
        ``first_ready``: in the order in which all have announced it; ``priority``: what the forward pass needs first.
    fusion : str
        What travels together. ``size``: tensors in buckets that are large enough; ``merged``: tensors in buckets whose
        exchange, one after the other, is over first; ``cycle``: tensors that are ready when a cycle ends.
    cycle_s : float
        With ``cycle``: its length, above 0 [s].
    buffer_bytes : float
        With ``cycle``: what travels together is at most so much [bytes].
    piece_bytes : float
        Buckets are cut into pieces of at most so much [bytes].
    negotiation_s : float
        From the announcement of the last worker until all know of it [s].
    streams : float or None
        Exchanges that may be under way at once; with parameter servers, those that a worker may be pushing. None: as
        many as the architecture usually has.
    """

    order: Literal["first_ready", "priority"] = "first_ready"
    fusion: Literal["size", "merged", "cycle"] = "size"
    cycle_s: float = math.inf
    buffer_bytes: float = math.inf
    piece_bytes: float = math.inf
    negotiation_s: float = 0.0
    streams: float | None = None

    def streams_of(self, usual: float, *, joins_late: bool) -> float:
        """Return how many streams an architecture has that has so many as a rule.

        Where workers take part as they are ready, all at once as a rule, no order means anything; with priority they
        push one after the other, as in P3 (A. Jayarajan et al., "Priority-based parameter propagation for distributed
        DNN training", MLSys 2019).
        """
        if self.streams is not None:
            return self.streams
        return 1 if self.order == "priority" and joins_late else usual


@dataclass(frozen=True)
class Sync:
    """When workers synchronise.

    Parameters
    ----------
    name : str
        ``bsp``: bulk synchronous, all with all in each iteration; ``asp``: asynchronous, each goes on when its own
        exchange is over; ``ssp``: stale synchronous, likewise, but nobody gets more than `staleness` iterations ahead
        (Q. Ho et al., NIPS 2013); ``local_sgd``: as bsp, but only each `period`-th iteration exchanges anything (S.
        Stich, ICLR 2019); ``one_shot``: only the last one does (M. Zinkevich et al., NIPS 2010).
    staleness : int
        Of ``ssp``, at least 0.
    period : int
        Of ``local_sgd``, at least 1.
    """

    name: str = "bsp"
    staleness: int = 0
    period: int = 1

    @property
    def waits_alone(self) -> bool:
        """Whether each worker exchanges by itself, instead of all together."""
        return self.name in ("asp", "ssp")

    @property
    def bound(self) -> float:
        """How many iterations a worker may be ahead of another."""
        return math.inf if self.name == "asp" else self.staleness

    @property
    def label(self) -> str:
        """What tables call it."""
        numbers = {"ssp": f" {self.staleness}", "local_sgd": f" {self.period}"}
        return self.name + numbers.get(self.name, "")

    def rounds_period(self, iterations: int) -> int:
        """Return how many iterations there are from one exchange to the next, in a training of so many."""
        return max(iterations, 1) if self.name == "one_shot" else self.period

    def exchanges_in(self, iteration: int, last: int) -> bool:
        """Tell whether an iteration ends with an exchange, so that the `last` one always does."""
        if self.name == "one_shot":
            return iteration == last
        return (last - iteration) % self.period == 0


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


@dataclass(frozen=True)
class TrainingSettings:
    """Who trains, and how they keep in step.

    Parameters
    ----------
    workers : int
        They are the first ranks of the topology.
    architecture : Architecture
    sync : Sync
    bucket_bytes : float
        A bucket is sent when it holds at least so much [bytes].
    overlap : bool
        Send a bucket when it is ready, during the backward pass; otherwise all after it.
    forward_overlap : bool
        Begin the next iteration before all is exchanged: the forward pass of a layer waits for its own parameters only.
    gradient_element_bytes : float
        Size of one gradient element on the wire [bytes].
    jitter : Jitter or None
    speed_factors : tuple of float, shape (workers,)
        Relative speed of each worker: 0.5 computes twice as long. Empty: all the same.
    stragglers : tuple of Straggler
        Workers that are slower than that.
    accumulation : int
        Forward and backward passes of an iteration; gradients are exchanged in the last.
    target_samples : float
        What the whole training goes through; 0 where not known.
    placement : str or tuple of str
        ``in_order``: rank r is the r-th node of the topology; ``by_host``: round robin over the hosts; ``random``: the
        nodes of ``in_order`` in random order, as of a job whose scheduler does not know the network; or their names.
    parallelism : Parallelism or None
        None: all data-parallel.
    zero_stage : int
        What replicas share instead of each holding it: 1 the optimizer's state, 2 gradients too, 3 parameters too.
    optimizer : str
        ``sgd``, ``sgd_momentum`` or ``adam``: how much memory its state takes.
    allow_oversubscribed : bool
        Go on where the memory of a GPU does not suffice.
    compression : Compression or None
        None: gradients travel as they are.
    scheduling : Scheduling
    checkpoint : Checkpoint or None
        None: nothing is kept, and after a crash training begins anew.
    """

    workers: int
    architecture: Architecture = Architecture()
    sync: Sync = Sync()
    bucket_bytes: float = 25.0 * MEBIBYTE
    overlap: bool = True
    forward_overlap: bool = False
    gradient_element_bytes: float = 4.0
    jitter: Jitter | None = None
    speed_factors: tuple[float, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    accumulation: int = 1
    target_samples: float = 0.0
    placement: str | tuple[str, ...] = "in_order"
    parallelism: Parallelism | None = None
    zero_stage: int = 0
    optimizer: str = "sgd_momentum"
    allow_oversubscribed: bool = False
    compression: Compression | None = None
    scheduling: Scheduling = Scheduling()
    checkpoint: Checkpoint | None = None

    @property
    def grid(self) -> Parallelism:
        """How work is split."""
        return self.parallelism or Parallelism(data=self.workers)


@dataclass(frozen=True)
class DatasetSettings:
    """Where training data comes from.

    Parameters
    ----------
    bytes_per_sample : float
        [bytes]
    storage : tuple of str
        Names of the nodes that hold it; worker r reads from the one with number r modulo their number.
    split : str
        ``sampled``: workers read the samples of each iteration from storage; ``sharded``: each gets its share at the
        beginning, and reads it from its own disk; ``features``: likewise, but each has a part of every sample, so that
        in each iteration partial sums are added up.
    samples : int
        In the data set.
    prefetch : int
        Batches that a worker reads ahead.
    reshuffle : bool
        With ``sharded``: exchange samples between workers after each epoch.
    partial_sum_bytes : float
        With ``features``: what is added up for each sample [bytes].
    """

    bytes_per_sample: float
    storage: tuple[str, ...]
    split: str = "sampled"
    samples: int = 0
    prefetch: int = 2
    reshuffle: bool = False
    partial_sum_bytes: float = 0.0


@dataclass(frozen=True)
class BackgroundSettings:
    """Traffic of others on the same links.

    Parameters
    ----------
    load : float
        Mean rate at which a host sends, as a part of the bandwidth of its slowest way out.
    sizes : str
        ``fixed``, ``exponential``, or ``pareto``.
    mean_bytes : float
        Mean size of a flow [bytes].
    pairs : str
        ``random``: any host to any other; ``permutation``: each host to one other, always the same.
    shape : float
        Of the Pareto distribution, above 1.
    """

    load: float
    sizes: str = "exponential"
    mean_bytes: float = MEBIBYTE
    pairs: str = "random"
    shape: float = 1.5


@dataclass(frozen=True, eq=False)
class JobSettings:
    """A workload that is trained on ranks.

    Parameters
    ----------
    name : str
    workload : Workload, GroupedWorkload, RecordedTrace or DataflowWorkload
    training : TrainingSettings
    dataset : DatasetSettings or None
        None: samples are there when they are needed.
    start_s : float
        When its workers begin [s].
    crashes : tuple of Crash
        Which of its processes die, and when.
    """

    name: str
    workload: AnyWorkload
    training: TrainingSettings
    dataset: DatasetSettings | None = None
    start_s: float = 0.0
    crashes: tuple[Crash, ...] = ()

    def part_of(self, rank: int) -> int:
        """Return the number of the workload of a worker, of those of `simnet.workload.parts_of`."""
        return self.workload.part_of(rank) if isinstance(self.workload, GroupedWorkload) else 0

    def samples_of(self, rank: int) -> int:
        """Return the samples of an iteration of a worker, or of the replica that it is part of."""
        return self.training.accumulation * parts_of(self.workload)[self.part_of(rank)].batch_size

    @property
    def samples_per_iteration(self) -> int:
        """Samples of an iteration of all together."""
        grid = self.training.grid
        return sum(self.samples_of(grid.rank_of(0, replica, 0)) for replica in range(grid.data))


@dataclass(frozen=True)
class RunSettings:
    """How long is simulated and measured.

    Parameters
    ----------
    iterations : int
        Measured iterations, at least 1. Where workers exchange by themselves, it is over when all together have done
        so many times the workers.
    warmup : int
        Iterations before those, not measured; counted likewise.
    duration_s : float or None
        Measure for so long instead [s].
    seed : int
        Of all random streams.
    records_messages : bool
        Keep every single message.
    """

    iterations: int = 10
    warmup: int = 1
    duration_s: float | None = None
    seed: int = 0
    records_messages: bool = False
