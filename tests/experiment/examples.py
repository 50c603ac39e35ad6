"""Scenarios for tests, small enough to be computed by hand."""

from __future__ import annotations

from typing import Any

BANDWIDTH = 100e9 / 8  # bytes/s
LATENCY = 1e-6  # s, of one link
RATE = 250.0  # samples/s
BATCH = 64

RESNET50_BYTES = 25_557_032 * 4.0


def star_scenario(workers: int, **training: Any) -> dict[str, Any]:
    """Return ResNet-50 on a star of hosts that each are a rank, with a network that costs nothing but its links."""
    return {
        "topology": {"star": {"hosts": workers, "bandwidth": "100 Gbps", "latency": "1 us"}},
        "protocol": {"ideal": {"divisible": True}},
        "workload": {"model": "resnet50", "batch_size": BATCH, "samples_per_s": RATE},
        "training": {"workers": workers, **training},
        "run": {"iterations": 3},
    }


VARIED: dict[str, dict[str, Any]] = {
    "ring": star_scenario(4),
    "all_after_the_backward_pass": star_scenario(4, overlap=False),
    "tensor_by_tensor": star_scenario(3, bucket_size="1 B"),
    "one_bucket": star_scenario(3, bucket_size="1 GB"),
    "butterfly_with_a_fold": star_scenario(5, architecture="butterfly"),
    "tree": star_scenario(6, architecture="tree"),
    "star": star_scenario(4, architecture={"star": {"hub": 2}}),
    "mesh": star_scenario(4, architecture="mesh"),
    "stragglers": star_scenario(4, speed_factors={1: 0.5, 3: 0.9}),
    "jitter": star_scenario(4, jitter={"distribution": "lognormal", "sigma": 0.3}),
    "jitter_without_overlap": star_scenario(4, jitter={"distribution": "exponential", "scale": 0.5}, overlap=False),
    "servers": star_scenario(4, architecture={"parameter_server": {"servers": 2}})
    | {"topology": {"star": {"hosts": 6}}},
    "tcp": star_scenario(4) | {"protocol": "tcp"},
    "ipoib": star_scenario(4) | {"protocol": "ipoib"},
    "a_socket_for_each_message": star_scenario(4) | {"protocol": {"tcp": {"connection": "per_message"}}},
    "gpus_in_hosts": star_scenario(8) | {"topology": "v100_8x4_100g", "protocol": "rdma"},
    "two_sites": star_scenario(4) | {"topology": "two_sites_wan", "protocol": "tcp"},
    "one_worker": star_scenario(1),
}
"""Scenarios that differ in everything that a summary is computed from."""
