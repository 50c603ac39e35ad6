"""Generator of workers at the edge of the internet, and of a data centre on the other side of it."""

from __future__ import annotations

from simnet.topology.building import (
    DEFAULT_BANDWIDTH_BYTES_PER_S,
    DEFAULT_LATENCY_S,
    Cable,
    Checks,
    TopologyBuilder,
)
from simnet.topology.model import Topology
from simnet.units import parse_bandwidth, parse_duration

__all__ = ["edge_cloud"]


def edge_cloud(
    *,
    sites: int,
    hosts_per_site: int = 1,
    uplink_bytes_per_s: float,
    downlink_bytes_per_s: float,
    latency_s: float,
    kind: str = "wan",
    loss_probability: float | None = None,
    buffer_bytes: float | None = None,
    site_bandwidth_bytes_per_s: float = parse_bandwidth("1 Gbps"),
    site_latency_s: float = parse_duration("1 us"),
    cloud_hosts: int = 1,
    cloud_bandwidth_bytes_per_s: float = DEFAULT_BANDWIDTH_BYTES_PER_S,
    cloud_latency_s: float = DEFAULT_LATENCY_S,
    backbone_bandwidth_bytes_per_s: float | None = None,
    backbone_latency_s: float = parse_duration("5 ms"),
    name: str = "edge_cloud",
) -> Topology:
    """Return hosts at sites, each behind a line of its own to the internet, and hosts in a data centre.

    The internet is one node, at which the lines of all sites and that of the data centre end: hosts at different sites
    reach each other through it, without the data centre. A host that is alone at its site has its line itself; several
    share it behind a switch. All hosts are ranks, those at sites first.

    Parameters
    ----------
    sites : int
        At least 1.
    hosts_per_site : int
    uplink_bytes_per_s, downlink_bytes_per_s : float
        From a site to the internet and back [bytes/s].
    latency_s : float
        Between a site and the internet, each way [s].
    kind : str
        Of the line: ``wireless``, ``wan`` or another of `LINK_KINDS`.
    loss_probability, buffer_bytes : float, optional
        Of the line in each direction, as of `Cable`.
    site_bandwidth_bytes_per_s, site_latency_s : float
        Of the Ethernet cables inside of a site of several hosts [bytes/s], [s].
    cloud_hosts : int
        In the data centre; 0 where there is none.
    cloud_bandwidth_bytes_per_s, cloud_latency_s : float
        Of the Ethernet cable between each of them and the switch of the data centre [bytes/s], [s].
    backbone_bandwidth_bytes_per_s : float, optional
        Between the data centre and the internet [bytes/s]; by default what all of its hosts can send.
    backbone_latency_s : float
        The same, each way; by default that of 1000 km of fibre, at 5 us/km [s].
    name : str

    Returns
    -------
    Topology
        ``sites hosts_per_site + cloud_hosts`` hosts, which are its ranks.

    Raises
    ------
    InputError
        Every argument that is out of range.

    Examples
    --------
    >>> from simnet.units import parse_bandwidth, parse_duration
    >>> speeds = {"uplink_bytes_per_s": parse_bandwidth("10 Mbps"), "downlink_bytes_per_s": parse_bandwidth("40 Mbps")}
    >>> edge_cloud(sites=2, latency_s=parse_duration("20 ms"), **speeds).compiled.ranks
    ('edge0', 'edge1', 'cloud0')
    """
    up = Cable(uplink_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes)
    down = Cable(downlink_bytes_per_s, latency_s, kind, loss_probability, buffer_bytes)
    at_site = Cable(site_bandwidth_bytes_per_s, site_latency_s)
    in_cloud = Cable(cloud_bandwidth_bytes_per_s, cloud_latency_s)
    checks = Checks()
    checks.whole(1, sites=sites, hosts_per_site=hosts_per_site)
    checks.whole(0, cloud_hosts=cloud_hosts)
    checks.rates(uplink_bytes_per_s=uplink_bytes_per_s, downlink_bytes_per_s=downlink_bytes_per_s)
    # Of the line only what is not said of either direction above.
    checks.cable(Cable(DEFAULT_BANDWIDTH_BYTES_PER_S, latency_s, kind, loss_probability, buffer_bytes))
    checks.cable(at_site, prefix="site_")
    checks.cable(in_cloud, prefix="cloud_")
    if backbone_bandwidth_bytes_per_s is not None:
        checks.rates(backbone_bandwidth_bytes_per_s=backbone_bandwidth_bytes_per_s)
    checks.cable(Cable(DEFAULT_BANDWIDTH_BYTES_PER_S, backbone_latency_s), prefix="backbone_")
    checks.done()
    build = TopologyBuilder(name)
    hosts = [
        [build.node(f"edge{site * hosts_per_site + number}", "host") for number in range(hosts_per_site)]
        for site in range(sites)
    ]
    in_data_centre = [build.node(f"cloud{number}", "host") for number in range(cloud_hosts)]
    gates = [of_site[0] for of_site in hosts]
    if hosts_per_site > 1:
        gates = [build.node(f"site{site}", "switch") for site in range(sites)]
    internet = build.node("internet", "switch")
    for gate, of_site in zip(gates, hosts, strict=True):
        for host in of_site:
            if host != gate:
                build.cable(host, gate, at_site)
        build.cable(gate, internet, up, back=down)
    if cloud_hosts:
        data_centre = build.node("data_centre", "switch")
        for host in in_data_centre:
            build.cable(host, data_centre, in_cloud)
        if backbone_bandwidth_bytes_per_s is None:
            backbone_bandwidth_bytes_per_s = cloud_hosts * cloud_bandwidth_bytes_per_s
        build.cable(data_centre, internet, Cable(backbone_bandwidth_bytes_per_s, backbone_latency_s, "wan"))
    return build.topology()
