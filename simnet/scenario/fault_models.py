"""The section of faults: what goes wrong, and when.

With `simnet.scenario.models`, the single source for validation, for ``simnet schema`` and for the documentation.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainValidator, TypeAdapter, WithJsonSchema, create_model

from simnet.fabric.faults import REROUTE_AFTER_S
from simnet.scenario.algorithm_options import MOST_WORKERS
from simnet.scenario.fields import Quantity, Real, Text, Whole, refuse, shown
from simnet.scenario.sections import Choice, Section
from simnet.training.recovery.settings import DETECT_AFTER_S

__all__ = ["FaultSpec"]

_DETECTION = "until paths are computed anew, after it went down or came back"


def _ends(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        refuse(f"is {shown(value)}", "a list of two nodes is wanted, like [leaf0, spine0]")
    return _NODE_NAMES.validate_python(value)


_NODE_NAMES: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[Annotated[str, Text("the name of a node")], ...])
_ENDS_SCHEMA = {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}
_Ends = Annotated[tuple[str, ...], PlainValidator(_ends), WithJsonSchema(_ENDS_SCHEMA)]
_Reroute = Annotated[float, Quantity("duration")]
_Duration = Annotated[float, Quantity("duration", positive=True)]

# "for" is a word of Python's own, so that no class can have a field of that name.
_TIMES: dict[str, Any] = {
    "at": (Annotated[float, Quantity("duration")], Field(description="When it begins, from the start of the run.")),
    "for": (_Duration | None, Field(None, description="How long it lasts; for ever where not given.")),
}
_Timed: Any = create_model("_Timed", __base__=Section, __module__=__name__, **_TIMES)


class _OfLink(_Timed):
    """What happens to the cables between two nodes."""

    between: _Ends = Field(description="The two nodes that a cable connects; both directions are concerned.")
    parallel: Annotated[int, Whole(0, 1_000_000)] | None = Field(
        None, description="Which one of several cables between them, from 0 on; all where not given."
    )


class LinkDownSpec(_OfLink):
    """A cable through which nothing gets."""

    reroute_after: _Reroute = Field(REROUTE_AFTER_S, description=f"Time {_DETECTION}.")


class LinkDegradedSpec(_OfLink):
    """A cable with less bandwidth."""

    bandwidth_factor: Annotated[float, Real(above=0.0, maximum=1.0)] = Field(
        description="What is left of its bandwidth; 1 is all of it."
    )


class PacketLossSpec(_OfLink):
    """A cable that loses packets at random."""

    loss_rate: Annotated[float, Real(above=0.0, maximum=0.5)] = Field(
        description="Share of packets that each direction loses, beside what it loses anyway."
    )


class SwitchDownSpec(_Timed):
    """A switch through which nothing gets."""

    switch: Annotated[str, Text("the name of a switch")] = Field(description="The switch.")
    reroute_after: _Reroute = Field(REROUTE_AFTER_S, description=f"Time {_DETECTION}.")


class NicFlappingSpec(_Timed):
    """The network links of a host, down and up by turns; down first, and up at the end."""

    host: Annotated[str, Text("the name of a host")] = Field(description="The host, or one of its NICs.")
    up: _Duration = Field(description="How long they are up each time.")
    down: _Duration = Field(description="How long they are down each time.")
    reroute_after: _Reroute = Field(REROUTE_AFTER_S, description=f"Time {_DETECTION}.")


class HostSlowSpec(_Timed):
    """A host that is slow: what computes on it, its protocol stack and its memory."""

    host: Annotated[str, Text("the name of a host")] = Field(description="The host.")
    factor: Annotated[float, Real(above=0.0, maximum=1.0)] = Field(description="Of its usual speed.")


class _OfProcess(_Timed):
    """A process of a job that dies."""

    detect_after: Annotated[float, Quantity("duration")] = Field(
        DETECT_AFTER_S,
        description="From the crash until those who work in step with it know, and stop: three heartbeats of 5 s, as "
        "PyTorch's elastic launcher has them.",
    )
    job: Annotated[str, Text("the name of a job")] | None = Field(
        None, description="Which job, where there are several."
    )


class WorkerCrashSpec(_OfProcess):
    """The process of a worker dies, and is there again when repaired; never where for is not given."""

    worker: Annotated[int, Whole(0, MOST_WORKERS)] = Field(description="Number of the worker.")


class ServerCrashSpec(_OfProcess):
    """A parameter server dies, and is there again when repaired, or replaced; never where neither is given."""

    server: Annotated[int, Whole(0, MOST_WORKERS)] = Field(description="Number of the server.")
    failover: Annotated[float, Quantity("duration")] | None = Field(
        None,
        description="Time until a replica has taken over, which has what the server had: in the whole run the server "
        "sends it all updates. Where not given there is no replica, and the server reads its last checkpoint.",
    )
    replica: Annotated[str, Text("the name of a host")] | None = Field(
        None, description="Host of the replica; the first that nobody is on where not given."
    )


class FaultSpec(Choice):
    """Something that goes wrong."""

    link_down: LinkDownSpec | None = Field(None, description="Nothing gets through a cable.")
    link_degraded: LinkDegradedSpec | None = Field(None, description="A cable has less bandwidth.")
    switch_down: SwitchDownSpec | None = Field(None, description="Nothing gets through a switch.")
    nic_flapping: NicFlappingSpec | None = Field(
        None, description="The network links of a host are down and up by turns."
    )
    packet_loss: PacketLossSpec | None = Field(None, description="A cable loses packets at random.")
    host_slow: HostSlowSpec | None = Field(
        None, description="What computes on a host, its protocol stack and its memory are slow."
    )
    worker_crash: WorkerCrashSpec | None = Field(None, description="The process of a worker dies.")
    server_crash: ServerCrashSpec | None = Field(None, description="A parameter server dies.")
