"""The rows that a job records; the experiment layer makes tables of them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CollectiveRow", "IterationRow"]


class IterationRow(NamedTuple):
    """One iteration of one worker; times in seconds.

    Attributes
    ----------
    start_s : when it began
    compute_s : forward and backward
    exposed_communication_s : stood still while its group was communicating
    waiting_s : stood still while its group was not, for a peer
    communication_s : with at least one transfer of its own under way
    """

    job: str
    iteration: int
    rank: int
    start_s: float
    compute_s: float
    exposed_communication_s: float
    waiting_s: float
    communication_s: float


class CollectiveRow(NamedTuple):
    """One exchange of one bucket.

    Attributes
    ----------
    size_bytes : of the bucket
    announced_s : when the last rank had it ready
    start_s : when it began, after those before it
    duration_s : until its last rank was complete
    messages : sent for it
    bytes_sent : payload sent by all ranks together
    """

    job: str
    iteration: int
    bucket: int
    algorithm: str
    size_bytes: float
    announced_s: float
    start_s: float
    duration_s: float
    messages: int
    bytes_sent: float
