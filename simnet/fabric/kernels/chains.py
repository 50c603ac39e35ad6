"""When each firing of a schedule would be over if no flow shared anything; compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simnet.fabric.kernels.compiled import kernel
from simnet.fabric.kernels.tables import Table

__all__ = ["follow_chains"]


@kernel
def follow_chains(
    operations: Table,
    dependencies: Table,
    outgoing: Table,
    costs: Table,
    s_per_byte: NDArray[np.float64],
    first: NDArray[np.int64],
    drained: NDArray[np.float64],
    delivered: NDArray[np.float64],
    done: NDArray[np.int64],
    waiting: NDArray[np.int64],
    listed: NDArray[np.bool_],
) -> int:
    """Write when each firing drains and is delivered; return how many firings could be evaluated."""
    size = len(operations)
    total = 0
    while size > 0:
        size -= 1
        row = waiting[size]
        listed[row] = False
        operation = operations[row]
        cost = costs[operation.cost]
        while done[row] < operation.firings:
            firing = done[row]
            start = 0.0
            if firing > 0:
                start = drained[first[row] + firing - 1]
            ready = True
            for edge in range(operation.first_in, operation.first_in + operation.ins):
                dependency = dependencies[edge]
                needed = firing - dependency.offset
                if needed < 0:
                    continue
                before = dependency.before
                needed = min(needed, operations[before].firings - 1)
                if needed >= done[before]:
                    ready = False
                    break
                met = drained[first[before] + needed]
                if dependency.until_delivered:
                    met = delivered[first[before] + needed]
                start = max(start, met + dependency.delay)
            if not ready:
                break
            end = start + operation.seconds
            arrival = end
            if operation.is_flow:
                # The shorter of the chunk sizes, so that it stays a bound.
                amount = operation.chunk_bytes
                paying = min(amount, cost.pipeline_bytes)
                begin = start + cost.send + cost.send_per_byte * paying + operation.each_setup
                end = begin + amount * s_per_byte[row]
                arrival = end + operation.latency + operation.forward_per_byte * min(amount, cost.packet_bytes)
                arrival += cost.receive + cost.receive_per_byte * paying
                if firing < operation.reduce_firings:
                    arrival += cost.reduce_per_byte * amount
                if firing > 0:
                    arrival = max(arrival, delivered[first[row] + firing - 1])
            drained[first[row] + firing] = end
            delivered[first[row] + firing] = arrival
            done[row] = firing + 1
            total += 1
            for edge in range(operation.first_out, operation.first_out + operation.outs):
                after = dependencies[outgoing[edge].row].after
                if not listed[after]:
                    listed[after] = True
                    waiting[size] = after
                    size += 1
    return total
