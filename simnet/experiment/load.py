"""How busy resources are in the course of a run, sampled as it goes."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pandas as pd
import simpy
from numpy.typing import NDArray

from simnet.engine.alarm import LATE, Tick, only_ticks
from simnet.experiment.tables import ordered
from simnet.fabric.interface import Fabric
from simnet.fabric.network import Network

__all__ = ["LoadSamples", "sample_load"]

_MOST_SAMPLES = 1000
_MOST_RESOURCES = 24


class LoadSamples:
    """What resources have carried at some instants, equally far apart.

    The interval is doubled, and every other sample dropped, whenever there are too many: so a run of any length has
    some hundred.

    Parameters
    ----------
    fabric : Fabric
    interval_s : float
        The first interval [s].
    """

    def __init__(self, fabric: Fabric, interval_s: float) -> None:
        self.interval_s = interval_s
        self._fabric = fabric
        self._times_s: list[float] = []
        self._carried: list[NDArray[np.float64]] = []

    def take(self, now_s: float) -> None:
        """Take a sample."""
        self._times_s.append(now_s)
        self._carried.append(self._fabric.carried_bytes().copy())
        if len(self._times_s) > _MOST_SAMPLES:
            self._times_s, self._carried = self._times_s[::2], self._carried[::2]
            self.interval_s *= 2.0

    def table(self, network: Network) -> pd.DataFrame:
        """Return the load of the busiest resources in each interval, those that carry nothing left out."""
        times_s = np.array(self._times_s)
        carried = np.diff(np.array(self._carried), axis=0)
        could = np.diff(times_s)[:, np.newaxis] * network.capacity[np.newaxis, :]
        share = np.divide(carried, could, out=np.zeros_like(carried), where=np.isfinite(could) & (could > 0))
        order = np.argsort(-share.sum(axis=0), kind="stable")[:_MOST_RESOURCES]
        busiest = [resource for resource in order.tolist() if share[:, resource].any()]
        frames = [
            pd.DataFrame(
                {
                    "time_s": times_s[:-1],
                    "duration_s": np.diff(times_s),
                    "resource": network.resource_names[resource],
                    "utilisation": share[:, resource],
                }
            )
            for resource in busiest
        ]
        empty = pd.DataFrame({"time_s": [], "duration_s": [], "resource": [], "utilisation": []})
        return ordered("load", pd.concat(frames, ignore_index=True) if frames else empty)


def sample_load(env: simpy.Environment, fabric: Fabric, done: simpy.Event, interval_s: float) -> LoadSamples:
    """Sample what resources carry until a run is over.

    Parameters
    ----------
    env : simpy.Environment
    fabric : Fabric
    done : Event
        The end of the run.
    interval_s : float
        From one sample to the next at first [s].
    """
    samples = LoadSamples(fabric, interval_s)

    def sampling() -> Generator[simpy.Event, object, None]:
        while not done.triggered:
            samples.take(env.now)
            yield Tick(env).set(samples.interval_s, LATE)
            if only_ticks(env):
                return

    env.process(sampling())
    done.callbacks.append(lambda _: samples.take(env.now))
    return samples
