"""Who holds how much of the state of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from simnet.training.communication.servers import server_of_each
from simnet.training.group import Group
from simnet.training.memory import state_bytes
from simnet.training.recovery.state import Holder, Share, State
from simnet.training.settings import JobSettings

__all__ = ["lay_out_state"]


def lay_out_state(settings: JobSettings, nodes: NDArray[np.int64], groups: Mapping[tuple[int, int], Group]) -> State:
    """Return who holds how much of the state of a job.

    Parameters of a model that is split, and the state of the optimizer with them, are where their gradients are
    exchanged. Servers hold them where there are any. Where workers share them (ZeRO) each writes its share; where they
    differ from each other (gossip, and between averages) each writes all of its own; else one writes for all.

    Parameters
    ----------
    settings : JobSettings
    nodes : ndarray of int, shape (workers,)
        Node index of each worker.
    groups : mapping
        Those that exchange gradients, by stage and place in it.
    """
    training = settings.training
    has_servers = training.architecture.servers > 0
    parameters, optimizer = state_bytes(settings)
    checkpoint = training.checkpoint
    whole = parameters + optimizer
    if checkpoint is not None and checkpoint.size_bytes is not None:
        whole = checkpoint.size_bytes
    node = {Holder("worker", rank): int(place) for rank, place in enumerate(nodes.tolist())}
    elements = {key: sum(bucket.elements for bucket in group.buckets) for key, group in groups.items()}
    everything = max(sum(elements.values()), 1)
    written: list[Share] = []
    read: list[Share] = []
    pulled: list[tuple[Holder, Holder, float]] = []
    for key, group in groups.items():
        part = elements[key] / everything
        members = [Holder("worker", rank) for rank in group.members.tolist()]
        for number, held in enumerate(_of_servers(group, settings) if has_servers else ()):
            server = Holder("server", number)
            node[server] = int(group.nodes[len(members) + number])
            if not _differ(settings):
                written.append(Share(server, whole * part * held))
                pulled += [(server, one, parameters * part * held) for one in members]
        if has_servers and not _differ(settings):
            continue
        each = 1.0 / len(members) if training.zero_stage else 1.0
        read += [Share(one, whole * part * each) for one in members]
        writers = members if training.zero_stage or _differ(settings) else members[:1]
        if checkpoint is not None and checkpoint.storage is None:
            # Each on a disk of its own.
            writers = members
        written += [Share(one, whole * part * each) for one in writers]
    together = dict.fromkeys((share.holder for share in written), 0.0)
    for share in written:
        together[share.holder] += share.size_bytes
    written = [Share(holder, size) for holder, size in together.items()]
    read += [share for share in written if share.holder.kind == "server"]
    first_replica = len(groups[next(iter(groups))].nodes) - len(groups[next(iter(groups))].members)
    first_replica -= len(training.architecture.options.get("replicas", {}))
    return State(node, tuple(written), tuple(read), tuple(pulled), parameters, first_replica)


def _differ(settings: JobSettings) -> bool:
    """Tell whether workers have parameters of their own, at least for a while."""
    training = settings.training
    return training.architecture.name == "gossip" or training.sync.name in ("local_sgd", "one_shot")


def _of_servers(group: Group, settings: JobSettings) -> Iterator[float]:
    """Yield which part of a group's parameters each server holds."""
    architecture = settings.training.architecture
    servers = architecture.servers
    elements = [bucket.elements for bucket in group.buckets]
    only = server_of_each(elements, servers, str(architecture.options.get("shards", "even")))
    held = np.zeros(servers)
    for size, server in zip(elements, only, strict=True):
        held[slice(None) if server is None else server] += size / servers if server is None else size
    yield from (held / max(sum(elements), 1)).tolist()
