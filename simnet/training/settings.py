"""What a job is told: plain data, in SI units."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from simnet.training.communication.settings import Architecture, Compression, Scheduling, Sync
from simnet.training.computing.stragglers import Straggler
from simnet.training.recovery.settings import Checkpoint, Crash
from simnet.units import MEBIBYTE
from simnet.workload import AnyWorkload, GroupedWorkload, parts_of

__all__ = [
    "BackgroundSettings",
    "DatasetSettings",
    "Jitter",
    "JobSettings",
    "Parallelism",
    "RunSettings",
    "TrainingSettings",
]


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
    overlap_slowdown : OverlapSlowdown or None
        How computing and communicating slow each other down; None: they do not.
    step_overhead_s : float
        What a host takes for each iteration with an exchange, which it does not with one worker [s].
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
    architecture: Architecture = field(default_factory=Architecture)
    sync: Sync = field(default_factory=Sync)
    bucket_bytes: float = 25.0 * MEBIBYTE
    overlap: bool = True
    forward_overlap: bool = False
    gradient_element_bytes: float = 4.0
    jitter: Jitter | None = None
    speed_factors: tuple[float, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    overlap_slowdown: OverlapSlowdown | None = None
    step_overhead_s: float = 0.0
    accumulation: int = 1
    target_samples: float = 0.0
    placement: str | tuple[str, ...] = "in_order"
    parallelism: Parallelism | None = None
    zero_stage: int = 0
    optimizer: str = "sgd_momentum"
    allow_oversubscribed: bool = False
    compression: Compression | None = None
    scheduling: Scheduling = field(default_factory=Scheduling)
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


@dataclass(frozen=True)
class OverlapSlowdown:
    """How much longer computing and communicating take beside each other.

    Parameters
    ----------
    compute : float
        Computing takes so many times as long while something of the worker's group is exchanged; at least 1.
    communication : float
        Links of a GPU inside of its host carry so many times less while it computes; at least 1.
    """

    compute: float = 1.0
    communication: float = 1.0


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
    records_timeline : bool
        Keep what each worker does when.
    records_plays : bool
        Keep each exchange as it was played, with what it waited for, and what each worker does when.
    """

    iterations: int = 10
    warmup: int = 1
    duration_s: float | None = None
    seed: int = 0
    records_messages: bool = False
    records_timeline: bool = False
    records_plays: bool = False
