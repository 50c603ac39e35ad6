"""What max-min fair rates are: an obvious solver and a validator, sharing nothing with `simnet.fabric`.

Definition (D. Bertsekas and R. Gallager, *Data Networks*, 2nd ed., section 6.5.2), with weights w, coefficients a and
caps: rates x are max-min fair if they are feasible and every flow is at its cap or crosses a full resource on which no
flow has a higher level x/w.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Number = float | Fraction


@dataclass(frozen=True)
class Flow:
    """A flow of rate x takes coefficient * x of each resource of its path, as often as that stands there."""

    path: tuple[tuple[int, Number], ...]
    weight: Number = 1.0
    cap: Number = math.inf


def fair_rates(flows: Sequence[Flow], capacity: Sequence[Number]) -> list[Number]:
    """Raise the level of all flows together; fix whoever meets a full resource or its cap; go on with the rest."""
    rates: dict[int, Number] = {}
    while len(rates) < len(flows):
        rising = [i for i in range(len(flows)) if i not in rates]
        full_at: dict[int, Number] = {}
        for resource, room in enumerate(capacity):
            taken = sum(a * rates[i] for i in rates for r, a in flows[i].path if r == resource)
            slope = sum(a * flows[i].weight for i in rising for r, a in flows[i].path if r == resource)
            if slope > 0:
                full_at[resource] = max(room - taken, 0) / slope
        capped_at = {i: flows[i].cap / flows[i].weight for i in rising if flows[i].cap < math.inf}
        level = min([*full_at.values(), *capped_at.values()], default=math.inf)
        for i in rising:
            if capped_at.get(i) == level:
                rates[i] = flows[i].cap
            elif level == math.inf or any(full_at[resource] == level for resource, _ in flows[i].path):
                rates[i] = level * flows[i].weight
    return [rates[i] for i in range(len(flows))]


def unfairness(
    flows: Sequence[Flow], capacity: Sequence[Number], rates: Sequence[Number], tolerance: float = 1e-9
) -> list[str]:
    """Say in which way rates are not the max-min fair ones; nothing if they are."""
    more, less = 1 + tolerance, 1 - tolerance
    found = [f"flow {i} has rate {x}" for i, x in enumerate(rates) if not x >= 0]
    load = [
        sum(a * x for f, x in zip(flows, rates, strict=True) for r, a in f.path if r == q) for q in range(len(capacity))
    ]
    found += [f"resource {r} carries {load[r]} of {room}" for r, room in enumerate(capacity) if load[r] > room * more]
    for i, (flow, rate) in enumerate(zip(flows, rates, strict=True)):
        if rate > flow.cap * more:
            found.append(f"flow {i} has rate {rate} above its cap {flow.cap}")
        bottlenecks = [
            r
            for r, _ in flow.path
            if load[r] >= capacity[r] * less
            and all(
                x / f.weight <= rate / flow.weight * more
                for f, x in zip(flows, rates, strict=True)
                if any(q == r for q, _ in f.path)
            )
        ]
        if rate < flow.cap * less and not bottlenecks:
            found.append(f"flow {i} could have more than {rate}: no bottleneck, and its cap is {flow.cap}")
    return found
