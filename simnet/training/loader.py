"""Training data on its way from storage to the workers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import simpy
from numpy.typing import NDArray

from simnet.engine.waits import Waits
from simnet.fabric.interface import Fabric, Placed
from simnet.traffic import Partition, ScheduleBuilder, direct_all_to_all, ring_all_reduce
from simnet.training.communication.under_way import stopped
from simnet.training.records import Sent
from simnet.training.settings import DatasetSettings

__all__ = ["Loader"]

_SUM_BYTES = 4.0  # a partial sum is a number in single precision


class Loader:
    """Reads the samples of all workers of a job.

    Parameters
    ----------
    env : simpy.Environment
    fabric : Fabric
    job : str
        Name of the job.
    dataset : DatasetSettings
    nodes : ndarray of int, shape (workers,)
        Node of each worker that reads.
    readers : ndarray of int, shape (readers,)
        Workers that read, each for its replica.
    samples : sequence of int, shape (readers,)
        That each reads for an iteration.
    sent : Sent
    """

    def __init__(
        self,
        env: simpy.Environment,
        fabric: Fabric,
        job: str,
        dataset: DatasetSettings,
        nodes: NDArray[np.int64],
        readers: NDArray[np.int64],
        samples: Sequence[int],
        sent: Sent,
    ) -> None:
        self._env, self._fabric, self._job, self._dataset = env, fabric, job, dataset
        self._readers, self._nodes = readers, nodes[readers]
        self._samples, self._sent = samples, sent
        index = fabric.network.compiled.node_index
        self._storage = [index[name] for name in dataset.storage]
        self._member = {int(rank): member for member, rank in enumerate(readers.tolist())}
        self._room: dict[int, simpy.Container] = {}
        self._ready: dict[int, simpy.Container] = {}
        self._readings: dict[int, Placed] = {}
        self._reading: dict[int, simpy.Process] = {}
        self._together: dict[tuple[str, int], tuple[list[int], simpy.Event]] = {}
        self._placements: dict[str, Placed] = {}

    @property
    def readings(self) -> list[Placed]:
        """What is read for an iteration, one reading for each reader; none where nothing is."""
        return list(self._readings.values())

    def prepare(self, rank: int) -> Waits:
        """Begin to read ahead, or wait until the worker has its share of the data set."""
        member = self._member.get(rank)
        if member is None:
            return
        if self._dataset.split == "sampled":
            self._room[member] = simpy.Container(self._env, init=self._dataset.prefetch)
            self._ready[member] = simpy.Container(self._env)
            self._reading[member] = self._env.process(self._read_ahead(member))
        elif self._storage:
            yield from self._all_together("scatter", 0, member)

    def next_batch(self, rank: int, iteration: int) -> Waits:
        """Wait until the samples of an iteration are there."""
        member = self._member.get(rank)
        if member is None:
            return
        dataset = self._dataset
        if dataset.split == "sampled":
            if dataset.prefetch == 0:
                yield self._room[member].put(1)
            yield self._ready[member].get(1)
            if dataset.prefetch > 0:
                yield self._room[member].put(1)
            return
        if dataset.split == "features" and dataset.partial_sum_bytes > 0.0:
            yield from self._all_together("partial sums", iteration, member)
        elif dataset.reshuffle and self._begins_epoch(iteration):
            yield from self._all_together("reshuffle", iteration, member)

    def leave(self, rank: int) -> None:
        """Read nothing more for a worker that is not there any more; `prepare` begins anew."""
        reading = self._reading.pop(self._member.get(rank, -1), None)
        if reading is not None:
            reading.interrupt()

    def _begins_epoch(self, iteration: int) -> bool:
        """Tell whether the samples that an iteration reads are the first of another epoch than the first."""
        each = sum(self._samples)
        return iteration > 0 and iteration * each // self._dataset.samples > (iteration - 1) * each // (
            self._dataset.samples
        )

    def _read_ahead(self, member: int) -> Waits:
        """Read one batch after another, as long as there is room for it."""
        build = ScheduleBuilder("read samples", 2, Partition(1, 1.0))
        build.send(0, 1, width=0, fixed_bytes=self._samples[member] * self._dataset.bytes_per_sample)
        storage = self._storage[member % len(self._storage)]
        placement = self._fabric.place(build.schedule(), [storage, int(self._nodes[member])])
        self._readings[member] = placement
        play = None
        try:
            while True:
                yield self._room[member].get(1)
                play = self._fabric.play(placement, f"{self._job}: samples of worker {self._readers[member]}")
                yield play.complete
                yield self._ready[member].put(1)
        except simpy.Interrupt:
            if play is not None:
                stopped(self._fabric, play)

    def _all_together(self, what: str, number: int, member: int) -> Waits:
        """Take part in an exchange of all readers, which begins when the last of them is there."""
        key = (what, number)
        if key not in self._together:
            self._together[key] = ([], self._env.event())
        there, over = self._together[key]
        there.append(member)
        if len(there) == len(self._readers):
            del self._together[key]
            if what not in self._placements:
                self._placements[what] = self._place(what)
            placement = self._placements[what]
            play = self._fabric.play(placement, f"{self._job}: {what}")
            yield play.complete
            self._sent.add(number, self._readers, placement)
            over.succeed()
        else:
            yield over

    def _place(self, what: str) -> Placed:
        """Lay out what all readers do together."""
        dataset, readers = self._dataset, len(self._readers)
        share_bytes = dataset.samples * dataset.bytes_per_sample / readers
        if what == "partial sums":
            elements = max(1, round(max(self._samples) * dataset.partial_sum_bytes / _SUM_BYTES))
            return self._fabric.place(ring_all_reduce(readers, elements, _SUM_BYTES), self._nodes)
        if what == "reshuffle":
            return self._fabric.place(direct_all_to_all(readers, 1, share_bytes, divisible=True), self._nodes)
        build = ScheduleBuilder("scatter the data set", readers + len(self._storage), Partition(1, 1.0))
        reader = np.arange(readers)
        build.send(readers + reader % len(self._storage), reader, width=0, fixed_bytes=share_bytes)
        return self._fabric.place(build.schedule(), np.concatenate([self._nodes, self._storage]))
