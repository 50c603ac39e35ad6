"""What is inside of a host: sockets, PCIe switches and NVLinks."""

from __future__ import annotations

import pytest

from simnet.errors import InputError
from simnet.topology import HostSpec, star
from simnet.topology.routing import Router


def names_of(host: HostSpec, source: str, target: str) -> list[str]:
    """Return the nodes of the path between two nodes of a star of two such hosts."""
    topology = star(hosts=2, host=host)
    nodes = list(topology.compiled.node_names)
    links = Router(topology).path(nodes.index(source), nodes.index(target))
    return [nodes[topology.compiled.link_target[link]] for link in links]


def test_gpus_of_two_sockets_meet_over_the_bus_between_them():
    host = HostSpec(gpus=4, sockets=2)
    assert names_of(host, "host0.gpu0", "host0.gpu1") == ["host0", "host0.gpu1"]
    assert names_of(host, "host0.gpu1", "host0.gpu2") == ["host0", "host0.socket1", "host0.gpu2"]
    assert names_of(host, "host0.gpu3", "host1.gpu0")[:3] == ["host0.socket1", "host0", "host0.nic0"]


def test_pcie_switches_are_shared_out_among_the_sockets():
    host = HostSpec(gpus=8, sockets=2, pcie_switches=4)
    assert names_of(host, "host0.gpu0", "host0.gpu1") == ["host0.pcie0", "host0.gpu1"]
    path = names_of(host, "host0.gpu0", "host0.gpu7")
    assert path == ["host0.pcie0", "host0", "host0.socket1", "host0.pcie3", "host0.gpu7"]


@pytest.mark.parametrize("other", range(1, 8))
def test_nvlinks_are_preferred_to_a_pcie_switch_that_is_as_near(other):
    host = HostSpec(gpus=8, sockets=2, pcie_switches=4, intra="nvlink")
    assert names_of(host, "host0.gpu0", f"host0.gpu{other}") == ["host0.nvswitch", f"host0.gpu{other}"]


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"sockets": 0}, "host.sockets"),
        ({"pcie_switches": -1}, "host.pcie_switches"),
        ({"socket_bandwidth_bytes_per_s": 0.0}, "host.socket_bandwidth_bytes_per_s"),
    ],
)
def test_what_cannot_be_is_refused(wrong, argument):
    with pytest.raises(InputError) as refused:
        star(hosts=2, host=HostSpec(gpus=2, **wrong))
    assert argument.split(".")[1].removesuffix("_bytes_per_s") in str(refused.value)
