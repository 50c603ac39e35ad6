"""``simnet collective``: what it prints, where, and how it refuses."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from simnet.traffic import COLLECTIVES
from simnet.workload import DTYPE_BYTES

STAR = "{star: {hosts: 4, bandwidth: 100 Gbps, latency: 1 us}}"
KEYS = [
    "size_bytes",
    "time_us",
    "algbw_GBps",
    "busbw_GBps",
    "bound_time_us",
    "steps",
    "transfers",
    "bytes_sent",
    "bytes_sent_by_busiest",
]


@pytest.fixture
def collective(command):
    """Run the command; return exit status, standard output and standard error."""
    return lambda *arguments: command("collective", *arguments)


def on_star(*arguments: str) -> list[str]:
    return [*arguments, "--topology", STAR, "--protocol", "ideal"]


def test_json_is_one_list_of_objects_with_these_keys(collective):
    status, out, _ = collective(*on_star("all_reduce", "--algorithm", "ring", "--sizes", "1MB,8B", "--json"))
    rows = json.loads(out)
    assert status == 0
    assert [list(row) for row in rows] == [KEYS, KEYS]
    assert [row["size_bytes"] for row in rows] == [1_000_000, 8]
    assert rows[0]["time_us"] == pytest.approx(6 * (20 + 2), rel=1e-9)  # 2(N - 1)(S/(NB) + p), in us
    assert isinstance(rows[0]["steps"], int)


def test_a_bandwidth_that_there_is_none_of_is_null_nothing_or_a_dash(collective):
    one = on_star("all_reduce", "--ranks", "1", "--sizes", "8B")
    assert json.loads(collective(*one, "--json")[1])[0]["algbw_GBps"] is None
    assert collective(*one, "--csv")[1].splitlines()[1] == "8,0.0,,,0.0,0,0,0,0"
    assert collective(*one)[1].splitlines()[-1].split() == ["8", "0.000", "-", "-", "0.000", *["0"] * 4]


def test_csv_has_a_line_of_names_and_one_a_size(collective):
    status, out, _ = collective(*on_star("all_gather", "--sizes", "8B:32B:x2", "--csv"))
    rows = list(csv.DictReader(io.StringIO(out)))
    assert status == 0
    assert list(rows[0]) == KEYS
    assert [row["size_bytes"] for row in rows] == ["8", "16", "32"]


def test_text_is_aligned_below_a_line_that_says_what_it_is(collective):
    status, out, _ = collective(*on_star("reduce", "--algorithm", "{tree: {root: 1}}", "--sizes", "8B,1GiB"))
    lines = out.splitlines()
    assert status == 0
    assert lines[0] == "# reduce, tree, root 1: 4 ranks of star, ideal, fp32"
    assert lines[1].split() == KEYS
    assert len({len(line) for line in lines[1:]}) == 1
    assert [line.split()[0] for line in lines[2:]] == ["8", "1073741824"]


def test_without_sizes_they_go_from_8_bytes_to_a_gibibyte(collective):
    rows = json.loads(collective(*on_star("send_recv", "--json"))[1])
    assert [row["size_bytes"] for row in rows] == [2**power for power in range(3, 31)]


def test_ranks_are_all_by_default_and_the_first_so_many_otherwise(collective):
    steps = [
        json.loads(collective(*on_star("all_gather", "--sizes", "8B", "--json", *some))[1])[0]["steps"]
        for some in ([], ["--ranks", "3"])
    ]
    assert steps == [3, 2]


def test_a_protocol_may_be_changed(collective):
    """4 MB in packets of 1448 B with 90 B more on the wire, or of 8948 B."""
    times = []
    for protocol in ("tcp", "{tcp: {mtu: 9000 B}}"):
        arguments = ["send_recv", "--topology", STAR, "--protocol", protocol, "--sizes", "4MB", "--json"]
        times.append(json.loads(collective(*arguments)[1])[0]["time_us"])
    assert times[1] <= times[0]


def test_what_is_odd_goes_to_standard_error(collective):
    status, out, err = collective("send_recv", "--topology", STAR, "--protocol", "ipoib", "--sizes", "8B", "--json")
    assert status == 0
    assert len(json.loads(out)) == 1
    assert "warning: ipoib is made for infiniband links" in err


def test_everything_that_is_wrong_is_said_at_once_with_place_and_hint(collective):
    status, out, err = collective(
        "allreduce", "--topology", "{star: {hosts: 4, bandwith: 1 Gbps}}", "--protocol", "{tcp: {mtu: 9000}}",
        "--ranks", "none", "--sizes", "8B:1GiB:2", "--dtype", "float", "--seed", "-1",
    )  # fmt: skip
    assert status == 2
    assert out == ""
    heads = [line for line in err.splitlines() if not line.startswith(" ")]
    assert [line.split(": ")[0] for line in heads[:-1]] == [
        "COLLECTIVE:1:1",
        "--topology:1:19",
        "--protocol:1:13",
        "--ranks:1:1",
        "--sizes:1:9",
        "--dtype:1:1",
        "--seed:1:1",
    ]
    assert "did you mean 'all_reduce'?" in err
    assert "did you mean 'bandwidth'?" in err
    assert heads[-1] == "7 problems"
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["all_reduce", "--algorithm", "rings"], "--algorithm:1:1: algorithm is 'rings', did you mean 'ring'?"),
        (["all_gather", "--algorithm", "tree"], "algorithm is 'tree', known: ring, direct"),
        (["all_reduce", "--algorithm", "{mesh: {exchange: half}}"], "--algorithm:1:19: exchange is 'half'"),
        (["all_reduce", "--algorithm", "{star: {hub: 4}}"], "--algorithm:1:14: hub 4 is not one of the 4 ranks"),
        (["reduce", "--algorithm", "{tree: {root: 3}}", "--ranks", "3"], "root 3 is not one of the 3 ranks"),
        (["all_reduce", "--ranks", "5"], "--ranks:1:1: 5 ranks are more than topology star has, at most 4"),
        (["all_reduce", "--ranks", "0"], "--ranks:1:1: ranks is 0, a whole number of at least 1 is wanted"),
        (["all_reduce", "--sizes", "8"], "--sizes:1:1: '8' has no unit"),
        (["all_reduce", "--json", "--csv"], "--csv and --json exclude each other"),
    ],
)
def test_impossible_requests_are_refused(collective, arguments, said):
    status, out, err = collective(*on_star(*arguments))
    assert (status, out) == (2, "")
    assert said in err


def test_a_protocol_and_a_topology_are_needed(collective):
    status, _, err = collective("all_reduce", "--protocol", "ideal")
    assert status == 2
    assert "--topology" in err


def test_the_help_names_every_collective_and_every_type(collective):
    status, out, _ = collective("--help")
    assert status == 0
    for word in (*COLLECTIVES, *DTYPE_BYTES):
        assert word in out


def test_the_documentation_says_of_every_collective_what_its_size_is_and_how_it_can_be_done():
    page = (Path(__file__).parents[2] / "docs" / "collective.md").read_text(encoding="utf-8")
    for name, about in COLLECTIVES.items():
        algorithms = ", ".join(f"`{algorithm}`" for algorithm in about.algorithms)
        assert re.search(
            rf"^\| `{name}` \| {re.escape(about.size)} \| .* \| {re.escape(algorithms)} \|$", page, re.MULTILINE
        )
