"""The parameter server: workers push gradients to servers and pull what has become of them."""

from __future__ import annotations

import numpy as np

from simnet.traffic.schedule import Partition, Schedule, ScheduleBuilder

__all__ = ["parameter_server_push_pull"]


def parameter_server_push_pull(
    workers: int, servers: int, elements: int, element_bytes: float, *, divisible: bool = False
) -> Schedule:
    """One synchronous round: every worker pushes its buffer, the servers sum, every worker pulls the sum.

    The buffer is cut into one contiguous shard a server. A server answers when all workers have pushed its shard; the
    shards do not wait for each other. Servers contribute nothing themselves.

    Steps 2; messages 2WM for W workers and M servers; a worker sends S, a server WS/M.
    Time on an uncontended star with equal shards 2(max(W/M, 1) S/B + p): with one server 2(WS/B + p), from M = W on
    the links of the workers are the bottleneck. M. Li et al., "Scaling distributed machine learning with the parameter
    server", OSDI 2014.

    Parameters
    ----------
    workers, servers : int
        Ranks 0 .. W - 1 are the workers, W .. W + M - 1 the servers.
    elements : int
        Elements in the buffer.
    element_bytes : float
        Size of one element [bytes].
    divisible : bool
        Cut elements too, so that shards are exactly equal.
    """
    if workers < 1 or servers < 1:
        raise ValueError(f"a parameter server needs at least one worker and one server: {workers}, {servers}")
    partition = Partition(elements, element_bytes, servers, divisible)
    build = ScheduleBuilder("parameter server push and pull", workers + servers, partition)
    summed = build.calc(workers + np.arange(servers))
    # Each worker begins with another shard, so that no server is everybody's first.
    worker = np.repeat(np.arange(workers), servers)
    shard = (worker + np.tile(np.arange(servers), workers)) % servers
    push = build.send(worker, workers + shard, chunk=shard, reduce=1)
    pull = build.send(workers + shard, worker, chunk=shard)
    build.depend(push, summed[shard])
    build.depend(summed[shard], pull)
    return build.schedule()
