"""Gradients over Ethernet where what is lost stays lost, within bounds.

After Celeris, OptiReduce, MLT and LTP: packets say where in the message they belong, a receiver takes a message once
enough of it has arrived, and reads what is missing as 0. Training puts up with some of that. Costs are those of RDMA:
the adapter moves the data, as in Celeris.
"""

from __future__ import annotations

from dataclasses import replace

from simnet.protocols.defaults import Default, changed
from simnet.protocols.rdma import DROPS, ROCE
from simnet.units import MICROSECOND

__all__ = ["BEST_EFFORT"]

BEST_EFFORT = replace(
    ROCE,
    name="best-effort",
    summary="RDMA-like, over Ethernet without pauses: what is lost stays lost, up to a share of each message",
    defaults=changed(
        ROCE.defaults,
        DROPS,
        Default("reliability", "best_effort", "by name (Celeris, 2025: no retransmission and no order)"),
        Default(
            "loss_budget",
            0.1,
            "p of MLT (H. Wang et al., NSDI 2024), from memory; LTP takes a message at about 0.2. What goes beyond is "
            "sent again",
        ),
        Default("critical_share", 0.0, "chosen: all of a gradient alike; DGT and LTP single out what is large"),
        Default("deadline_s", float("inf"), "chosen: OptiReduce takes the 95th percentile of times that it measured"),
        Default(
            "quiet_s",
            100 * MICROSECOND,
            "chosen: some round trips of a data centre, as RTO_low of IRN; longer where paths are",
        ),
    ),
)
