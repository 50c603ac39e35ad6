"""What every generator is made of: cables, hosts, and a builder that collects them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

from simnet.errors import InputError, Problem, nearest
from simnet.reading import garbage_kept
from simnet.topology.model import LINK_KINDS, Topology
from simnet.units import parse_bandwidth, parse_duration

__all__ = [
    "DEFAULT_BANDWIDTH_BYTES_PER_S",
    "DEFAULT_LATENCY_S",
    "INTRA_HOST",
    "PLAIN_HOST",
    "Cable",
    "Checks",
    "HostSpec",
    "TopologyBuilder",
]

DEFAULT_BANDWIDTH_BYTES_PER_S = parse_bandwidth("100 Gbps")
DEFAULT_LATENCY_S = parse_duration("1 us")

INTRA_HOST = ("pcie", "nvlink")
"""How the GPUs of a host reach each other."""


@dataclass(frozen=True)
class Cable:
    """A cable, which is one link in each direction.

    Parameters
    ----------
    bandwidth_bytes_per_s : float
        In each direction [bytes/s].
    latency_s : float
        In each direction [s].
    kind : str
        One of `LINK_KINDS`.
    loss_probability : float, optional
        Of a packet.
    buffer_bytes : float, optional
        Of the queue in front of each link [bytes].
    """

    bandwidth_bytes_per_s: float = DEFAULT_BANDWIDTH_BYTES_PER_S
    latency_s: float = DEFAULT_LATENCY_S
    kind: str = "ethernet"
    loss_probability: float | None = None
    buffer_bytes: float | None = None

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Attributes of either link; not to be changed."""
        given = {
            "bandwidth_bytes_per_s": self.bandwidth_bytes_per_s,
            "latency_s": self.latency_s,
            "kind": self.kind,
            "loss_probability": self.loss_probability,
            "buffer_bytes": self.buffer_bytes,
        }
        return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True)
class HostSpec:
    """What is inside of each host.

    A host without GPUs is itself a rank, with its NICs folded in: its cables end at the host node. Otherwise its GPUs
    are the ranks, every GPU and every NIC is a node, and PCIe joins them to the host node, which is the first socket.
    Further sockets have their share of the GPUs in order. With several NICs there is a PCIe switch for each NIC and its
    share of the GPUs, so that a GPU uses the NIC next to it. With ``nvlink`` there is also an NVSwitch that joins the
    GPUs.

    Parameters
    ----------
    gpus : int
    nics : int
        0 cuts the host off; for a single host only.
    intra : str
        ``pcie`` or ``nvlink``: how the GPUs reach each other.
    pcie_bandwidth_bytes_per_s, pcie_latency_s : float
        Of each PCIe link and direction [bytes/s], [s]. By default Gen3 x16 with 13 GB/s of payload: 16 lanes of 8 GT/s,
        less coding and flow control 113.7 Gbit/s, of which packets of 256 bytes with 24 bytes of header use 256/280
        (model of Neugebauer et al., SIGCOMM 2018). 250 ns are half of 0.5 us between GPU and NIC; the same source has
        0.4 to 0.9 us for a DMA read of host memory, there and back.
    nvlink_bandwidth_bytes_per_s, nvlink_latency_s : float
        Of the link between a GPU and the NVSwitch, in each direction [bytes/s], [s]. By default a V100: 6 NVLinks of
        20 GB/s usable (``SM70_NVLINK_BW`` in NCCL, ``src/graph/topo.h``), and half of 1 us for a load from the memory
        of a peer.
    sockets : int
        Processors that GPUs and NICs hang off; a bus joins each to the first.
    socket_bandwidth_bytes_per_s : float
        Of that bus, in each direction [bytes/s]. By default 10 GB/s, UPI of Skylake (``SKL_QPI_BW`` in NCCL,
        ``src/graph/topo.h``, where QPI of Broadwell has 6); its latency is that of a PCIe link.
    pcie_switches : int
        PCIe switches between sockets and GPUs, each with its share of them; one for each NIC where there are more NICs.
    memory_bandwidth_bytes_per_s : float, optional
        Of the host, reading and writing together [bytes/s]; without it host memory never limits.
    gpu_model : str
        Kept as the attribute ``model`` of the GPU nodes; of the host node where there are none.
    """

    gpus: int = 0
    nics: int = 1
    intra: str = "pcie"
    pcie_bandwidth_bytes_per_s: float = parse_bandwidth("13 GB/s")
    pcie_latency_s: float = parse_duration("250 ns")
    nvlink_bandwidth_bytes_per_s: float = parse_bandwidth("120 GB/s")
    nvlink_latency_s: float = parse_duration("500 ns")
    sockets: int = 1
    socket_bandwidth_bytes_per_s: float = parse_bandwidth("10 GB/s")
    pcie_switches: int = 0
    memory_bandwidth_bytes_per_s: float | None = None
    gpu_model: str = ""


PLAIN_HOST = HostSpec()
"""A host that is one rank, with one NIC."""


class TopologyBuilder:
    """Collects nodes and cables.

    Parameters
    ----------
    name : str
        Of the topology.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[tuple[str, dict[str, Any]]] = []
        self._links: list[tuple[str, str, dict[str, Any]]] = []

    def node(self, name: str, kind: str, **attributes: Any) -> str:
        """Add a node and return its name."""
        self._nodes.append((name, {"kind": kind, **attributes}))
        return name

    def cable(self, one: str, other: str, cable: Cable, back: Cable | None = None) -> None:
        """Join two nodes by a link in each direction; the one back may differ."""
        self._links += [(one, other, cable.attributes), (other, one, (back or cable).attributes)]

    def host(self, name: str, spec: HostSpec) -> tuple[str, ...]:
        """Add a host with all that is inside, and return the node of each NIC: without GPUs, the host."""
        attributes: dict[str, Any] = {}
        if spec.memory_bandwidth_bytes_per_s is not None:
            attributes["memory_bandwidth_bytes_per_s"] = spec.memory_bandwidth_bytes_per_s
        model = {"model": spec.gpu_model} if spec.gpu_model else {}
        if not spec.gpus:
            self.node(name, "host", **attributes, **model)
            return (name,) * spec.nics
        self.node(name, "host", **attributes)
        pcie = Cable(spec.pcie_bandwidth_bytes_per_s, spec.pcie_latency_s, "pcie")
        bus = Cable(spec.socket_bandwidth_bytes_per_s, spec.pcie_latency_s, "upi")
        sockets = [name]
        for number in range(1, spec.sockets):
            sockets.append(self.node(f"{name}.socket{number}", "switch", host=name))
            self.cable(name, sockets[-1], bus)
        roots = sockets
        count = max(spec.pcie_switches, min(spec.gpus, spec.nics) if spec.nics > 1 and spec.gpus > 1 else 0)
        if count:
            roots = [self.node(f"{name}.pcie{number}", "switch", host=name) for number in range(count)]
            for number, root in enumerate(roots):
                self.cable(root, sockets[number * len(sockets) // count], pcie)
        gpus = [self.node(f"{name}.gpu{number}", "gpu", host=name, **model) for number in range(spec.gpus)]
        for number, gpu in enumerate(gpus):
            self.cable(gpu, roots[number * len(roots) // spec.gpus], pcie)
        nics = tuple(self.node(f"{name}.nic{number}", "nic", host=name) for number in range(spec.nics))
        for number, nic in enumerate(nics):
            self.cable(nic, roots[number * len(roots) // spec.nics], pcie)
        if spec.intra == "nvlink":
            nvlink = Cable(spec.nvlink_bandwidth_bytes_per_s, spec.nvlink_latency_s, "nvlink")
            nvswitch = self.node(f"{name}.nvswitch", "switch", host=name)
            for gpu in gpus:
                self.cable(gpu, nvswitch, nvlink)
        return nics

    def topology(self) -> Topology:
        """Return what was collected."""
        with garbage_kept():
            place = {name: number for number, (name, _) in enumerate(self._nodes)}
            first: dict[tuple[str, str], int] = {}
            for number, (source, target, _) in enumerate(self._links):
                first.setdefault((source, target), number)
            links = sorted(self._links, key=lambda link: (place[link[0]], first[link[0], link[1]]))
        return Topology(self.name, self._nodes, links)


class Checks:
    """Collects what is wrong with the arguments of a generator.

    The path of each problem is the argument without its unit (``bandwidth``, ``host.pcie_latency``), as it is called
    where quantities are text.
    """

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    def wrong(self, argument: str, message: str, hint: str = "") -> None:
        """Note a problem with one argument; a dot separates the fields of a `HostSpec`."""
        for unit in ("_bytes_per_s", "_bytes", "_s"):
            argument = argument.removesuffix(unit)
        self._problems.append(Problem(message, hint, path=tuple(argument.split("."))))

    def whole(self, least: int, **arguments: int) -> None:
        """Expect whole numbers of at least `least`."""
        for argument, value in arguments.items():
            if isinstance(value, bool) or not isinstance(value, Integral):
                self.wrong(argument, f"{argument} is {value!r}", "a whole number is wanted")
            elif value < least:
                self.wrong(argument, f"{argument} is {value}", f"at least {least} is wanted")

    def rates(self, **arguments: float) -> None:
        """Expect bandwidths that can carry something."""
        self._quantities({argument: (value, False) for argument, value in arguments.items()})

    def cable(self, cable: Cable, prefix: str = "") -> None:
        """Expect a cable that can carry something."""
        self._quantities(
            {
                f"{prefix}bandwidth_bytes_per_s": (cable.bandwidth_bytes_per_s, False),
                f"{prefix}latency_s": (cable.latency_s, True),
                f"{prefix}buffer_bytes": (cable.buffer_bytes, False),
            }
        )
        if cable.loss_probability is not None and not 0 <= cable.loss_probability < 1:
            self.wrong(f"{prefix}loss_probability", f"loss_probability is {cable.loss_probability!r}", "0 <= it < 1")
        if cable.kind not in LINK_KINDS:
            self.wrong(f"{prefix}kind", f"unknown kind of link {cable.kind!r}", nearest(cable.kind, LINK_KINDS))

    def host(self, spec: HostSpec, nics: int = 1) -> None:
        """Expect a host with at least so many NICs."""
        self.whole(0, **{"host.gpus": spec.gpus})
        self.whole(nics, **{"host.nics": spec.nics})
        self.whole(1, **{"host.sockets": spec.sockets})
        self.whole(0, **{"host.pcie_switches": spec.pcie_switches})
        if spec.intra not in INTRA_HOST:
            self.wrong("host.intra", f"unknown intra {spec.intra!r}", nearest(spec.intra, INTRA_HOST))
        self._quantities(
            {
                "host.pcie_bandwidth_bytes_per_s": (spec.pcie_bandwidth_bytes_per_s, False),
                "host.pcie_latency_s": (spec.pcie_latency_s, True),
                "host.nvlink_bandwidth_bytes_per_s": (spec.nvlink_bandwidth_bytes_per_s, False),
                "host.nvlink_latency_s": (spec.nvlink_latency_s, True),
                "host.socket_bandwidth_bytes_per_s": (spec.socket_bandwidth_bytes_per_s, False),
                "host.memory_bandwidth_bytes_per_s": (spec.memory_bandwidth_bytes_per_s, False),
            }
        )

    def done(self) -> None:
        """Raise everything that was noted.

        Raises
        ------
        InputError
        """
        if self._problems:
            raise InputError(self._problems)

    def _quantities(self, quantities: Mapping[str, tuple[float | None, bool]]) -> None:
        for argument, (value, zero_allowed) in quantities.items():
            if value is None or (0 <= value < math.inf and (value > 0 or zero_allowed)):
                continue
            least = "of at least 0" if zero_allowed else "above 0"
            self.wrong(argument, f"{argument} is {value!r}", f"a finite number {least} is wanted")
