"""The keys of a topology: a file, or a generator with its options.

Generators and their options are those of `simnet.topology`; here stands what each option means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Annotated, Any

from pydantic import Field, GetJsonSchemaHandler, create_model, model_serializer, model_validator
from pydantic_core import CoreSchema
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from simnet.errors import InputError, Problem
from simnet.scenario.fields import Quantity, Real, Text, Whole, Word
from simnet.scenario.natural import About, made_model, made_on_demand, si_arguments
from simnet.scenario.sections import Choice, Section, one_key
from simnet.topology import (
    GENERATORS,
    LINK_KINDS,
    NODE_KINDS,
    HostSpec,
    Topology,
    generated,
    generator_function,
    generator_names,
)
from simnet.topology.building import INTRA_HOST
from simnet.topology.generators import EXTENSIONS

__all__ = ["GeneratorSpec", "LinkDefaults", "TopologySpec", "generate"]

MOST_PIECES = 2_000_000  # nodes and cables; beyond that memory runs out before anything is learnt
_COUNT = Whole(1, MOST_PIECES)

_HOST = {
    "gpus": About("GPUs in each host; 0: the host itself is a rank.", Whole(0, 1024)),
    "nics": About("NICs of each host.", Whole(0, 1024)),
    "intra": About("How the GPUs of a host reach each other.", Word(INTRA_HOST)),
    "pcie_bandwidth": About("Of each PCIe link and direction."),
    "pcie_latency": About("Of each PCIe link."),
    "nvlink_bandwidth": About("Of the link between a GPU and the NVSwitch, each direction."),
    "nvlink_latency": About("Of the link between a GPU and the NVSwitch."),
    "sockets": About("Processors of each host, with the GPUs shared out among them.", Whole(1, 1024)),
    "socket_bandwidth": About("Of the bus that joins a socket to the first, each direction."),
    "pcie_switches": About("PCIe switches of each host, between sockets and GPUs.", Whole(0, 1024)),
    "memory_bandwidth": About("Of a host, reading and writing together; never limits where not given."),
    "gpu_model": About("Model of the GPUs, kept with the nodes."),
}

_OPTIONS = {
    "hosts": About("Number of hosts.", _COUNT),
    "leaves": About("Number of leaf switches, which is the number of racks.", _COUNT),
    "hosts_per_leaf": About("Hosts in each rack.", _COUNT),
    "spines": About("Number of spine switches.", Whole(0, MOST_PIECES)),
    "uplinks": About("Cables between each leaf and each spine.", _COUNT),
    "oversubscription": About(
        "What the NICs of a rack can send, divided by what its uplinks carry; gives the bandwidth of an uplink.",
        Real(above=0.0),
    ),
    "uplink_bandwidth": About("Of the cables between switches; as of the hosts' cables where not given."),
    "uplink_latency": About("Of the cables between switches; as of the hosts' cables where not given."),
    "k": About("Ports of a switch, even: k³/4 hosts.", Whole(2, 256)),
    "hosts_per_unit": About("Hosts that share rail switches; all where not given. Divides the hosts.", _COUNT),
    "routers_per_group": About("Routers in each group.", _COUNT),
    "hosts_per_router": About("Hosts at each router.", _COUNT),
    "global_links_per_router": About("Cables of each router to other groups.", _COUNT),
    "groups": About("Number of groups; as many as can be joined directly where not given.", _COUNT),
    "local_bandwidth": About("Of cables inside a group; as of the hosts' cables where not given."),
    "local_latency": About("Of cables inside a group; as of the hosts' cables where not given."),
    "global_bandwidth": About("Of cables between groups; as of the hosts' cables where not given."),
    "global_latency": About("Of cables between groups; as of the hosts' cables where not given."),
    "dims": About("Length in each dimension, such as [4, 4, 4].", _COUNT),
    "bandwidth": About("Of each cable and direction."),
    "latency": About("Of each cable: propagation and switching, one way."),
    "kind": About("Kind of the cables.", Word(LINK_KINDS)),
    "loss_probability": About("Probability that a packet is lost on a link.", Real(minimum=0.0, maximum=1.0)),
    "buffer": About("Of the queue in front of each link; unlimited where not given.", Quantity("size", positive=True)),
    "host": About("What is inside each host.", fields=_HOST),
}
_OF_EDGE_CLOUD = _OPTIONS | {
    "sites": About("Sites at the edge, each with a line of its own to the internet.", _COUNT),
    "hosts_per_site": About("Hosts at each site, which share its line.", _COUNT),
    "uplink": About("Of a site's line, towards the internet."),
    "downlink": About("Of a site's line, from the internet."),
    "latency": About("Of a site's line, each way."),
    "kind": About("Kind of the lines of sites.", Word(LINK_KINDS)),
    "loss_probability": About("Probability that a packet is lost on a site's line.", Real(minimum=0.0, maximum=1.0)),
    "buffer": About(
        "Of the queue in front of a site's line; unlimited where not given.", Quantity("size", positive=True)
    ),
    "site_bandwidth": About("Of cables inside of a site, where it has several hosts."),
    "site_latency": About("Of cables inside of a site."),
    "cloud_hosts": About("Hosts in the data centre; 0: there is none.", Whole(0, MOST_PIECES)),
    "cloud_bandwidth": About("Of the cable of each host in the data centre."),
    "cloud_latency": About("Of the cable of each host in the data centre."),
    "backbone_bandwidth": About("Between data centre and internet; what its hosts can send where not given."),
    "backbone_latency": About("Between data centre and internet, each way."),
}
_OF_NVLINK_NODE = _OPTIONS | _HOST | {"gpus": About("GPUs of the node.", Whole(1, 1024))}

_SUMMARIES = {
    "star": "Hosts around one switch.",
    "leaf_spine": "Racks of hosts; every leaf switch is joined to every spine switch.",
    "fat_tree": "Three-level fat tree of switches with k ports.",
    "ring": "Hosts in a ring, without switches.",
    "torus": "Hosts on a grid that wraps around, without switches.",
    "full_mesh": "A cable between every two hosts, without switches.",
    "dragonfly": "Groups of fully meshed routers, and cables between all groups.",
    "rail_optimised": "NIC number r of every host at rail switch number r.",
    "nvlink_node": "One host whose GPUs are joined by an NVSwitch.",
    "edge_cloud": "Hosts at sites behind slow lines to the internet, and hosts in a data centre.",
}

_GENERATOR_FIELDS: dict[str, Any] = {
    name: (
        made_model(
            "".join(word.capitalize() for word in name.split("_")),
            function,
            {"nvlink_node": _OF_NVLINK_NODE, "edge_cloud": _OF_EDGE_CLOUD}.get(name, _OPTIONS),
            description=_SUMMARIES[name],
            leave_out=("name",),
        )
        | None,
        Field(None, description=_SUMMARIES[name]),
    )
    for name, function in GENERATORS.items()
} | {
    name: (
        made_on_demand(name, partial(generator_function, name), EXTENSIONS, _OPTIONS, ("name",)) | None,
        Field(None, description="Added by an installed package."),
    )
    for name in EXTENSIONS.names(GENERATORS)
}

_GeneratorSpec: Any = create_model("_GeneratorSpec", __base__=Choice, __module__=__name__, **_GENERATOR_FIELDS)
_TopologySpec: Any = create_model("_TopologySpec", __base__=Section, __module__=__name__, **_GENERATOR_FIELDS)


class GeneratorSpec(_GeneratorSpec):
    """A generator with its options."""


class LinkDefaults(Section):
    """What links of a file have where it does not say."""

    bandwidth: Annotated[float, Quantity("bandwidth", positive=True)] | None = Field(
        None, description="Of each link without a bandwidth."
    )
    latency: Annotated[float, Quantity("duration")] | None = Field(None, description="Of each link without a latency.")
    kind: Annotated[str, Word(LINK_KINDS)] | None = Field(None, description="Of each link without a kind.")
    loss_probability: Annotated[float, Real(minimum=0.0, maximum=1.0)] | None = Field(
        None, description="That a packet is lost, of each link without one."
    )
    buffer: Annotated[float, Quantity("size", positive=True)] | None = Field(
        None, description="Of the queue in front of each link without a buffer."
    )
    node_kind: Annotated[str, Word(NODE_KINDS)] | None = Field(None, description="Of each node without a kind.")


class TopologySpec(_TopologySpec):
    """The cluster: a shipped name or a file, or a generator with its options."""

    file: Annotated[str, Text("a shipped name or a file name")] | None = Field(
        None, description="A shipped name, or a file: node-link JSON, GraphML, GML, or YAML with a generator."
    )
    defaults: LinkDefaults | None = Field(None, description="With file: what its links have where it does not say.")

    @model_validator(mode="before")
    @classmethod
    def _one_key(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"file": value}
        return one_key(value, [name for name in cls.model_fields if name != "defaults"], beside={"defaults": "file"})

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        keys = handler.resolve_ref_schema(handler(schema))["properties"]
        of_file = {key: keys[key] for key in ("file", "defaults")}
        generators = {key: keys[key] for key in generator_names()}
        closed = {"type": "object", "additionalProperties": False}
        return {
            "title": "Topology",
            "anyOf": [
                {"type": "string", "minLength": 1},
                closed | {"properties": of_file, "required": ["file"]},
                closed | {"properties": generators, "minProperties": 1, "maxProperties": 1},
            ],
        }

    @property
    def generator(self) -> str:
        """Name of the generator; empty where it is a file."""
        return next((name for name in generator_names() if getattr(self, name) is not None), "")

    @model_serializer(mode="wrap")
    def _short(self, handler: SerializerFunctionWrapHandler) -> Any:
        data = {key: value for key, value in handler(self).items() if value}
        return self.file if list(data) == ["file"] else data


def generate(generator: str, options: Section, name: str) -> Topology:
    """Return the topology that a generator makes.

    Parameters
    ----------
    generator : str
    options : Section
        The generator's model.
    name : str
        Of the topology.

    Raises
    ------
    InputError
        What the generator refuses; paths of problems start below the generator's name.
    """
    function = generator_function(generator)
    arguments = si_arguments(function, options)
    if isinstance(arguments.get("host"), Section):
        arguments["host"] = HostSpec(**si_arguments(HostSpec, arguments["host"]))
    pieces = _pieces(generator, arguments) if generator in GENERATORS else 0.0
    if pieces > MOST_PIECES:
        message = f"{generator} would have about {pieces:,.0f} nodes and cables"
        raise InputError(Problem(message, f"at most {MOST_PIECES:,} are possible"))
    return _made(generator, _Arguments(repr(arguments), arguments), name)


@dataclass(frozen=True)
class _Arguments:
    """Arguments of a generator; the same where they read the same."""

    text: str
    values: dict[str, Any] = field(compare=False)


@lru_cache(maxsize=8)
def _made(generator: str, arguments: _Arguments, name: str) -> Topology:
    """Return what a generator makes; points of a sweep have it in common."""
    return generated(generator, **arguments.values, name=name)


def _pieces(generator: str, arguments: Mapping[str, Any]) -> float:
    """Estimate the number of nodes and cables before anything is made."""
    host = arguments.get("host") or HostSpec()
    inside = 1 + 4 * host.gpus + 3 * host.nics
    count: dict[str, Callable[..., tuple[float, float]]] = {
        "star": lambda hosts, **_: (hosts, hosts * host.nics),
        "ring": lambda hosts, **_: (hosts, hosts),
        "full_mesh": lambda hosts, **_: (hosts, hosts * hosts / 2),
        "torus": lambda dims, **_: (math.prod(dims), math.prod(dims) * len(dims)),
        "leaf_spine": lambda leaves, hosts_per_leaf, spines, uplinks, **_: (
            leaves * hosts_per_leaf,
            leaves * hosts_per_leaf * host.nics + leaves * (1 + spines * uplinks) + spines,
        ),
        "fat_tree": lambda k, **_: (k**3 / 4, k**3 / 4 * (host.nics + 2) + 5 * k**2 / 4),
        "dragonfly": lambda routers_per_group, hosts_per_router, global_links_per_router, groups=0, **_: (
            (routers := routers_per_group * (groups or routers_per_group * global_links_per_router + 1))
            * hosts_per_router,
            routers * (hosts_per_router * host.nics + routers_per_group / 2 + global_links_per_router + 1),
        ),
        "rail_optimised": lambda hosts, spines, hosts_per_unit=0, **_: (
            hosts,
            hosts * host.nics + hosts / (hosts_per_unit or hosts) * host.nics * (1 + spines) + spines,
        ),
        "nvlink_node": lambda gpus, **_: (1, 4 * gpus),
        "edge_cloud": lambda sites, hosts_per_site, cloud_hosts, **_: (
            (hosts := sites * hosts_per_site + cloud_hosts),
            hosts + 2 * sites,
        ),
    }
    hosts, cables = count[generator](**arguments)
    return hosts * inside + cables
