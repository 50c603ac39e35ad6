"""Several jobs at once on one cluster: what each gets of a link that they share, and whose rows are whose."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import simnet

from .building import C, P, S, X, layers, within

TRUNK = {"leaf_spine": {"leaves": 2, "hosts_per_leaf": 3, "spines": 1, "bandwidth": "10 Gbps", "latency": "1 us"}}
"""One cable between two racks, as fast as that of a host; hosts 0 to 2 are in the first, 3 to 5 in the second."""

TIMES = ["compute_time_s", "exposed_communication_time_s", "waiting_time_s", "input_time_s", "communication_time_s"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return layers(tmp_path_factory.mktemp("workload"))


def job(file, name, nodes, **sections):
    training = {"placement": nodes, "overlap": False, "bucket_size": "1 GB"}
    return {"name": name, "workload": {"file": file, "batch_size": 24}, "training": training, **sections}


def run(jobs, **sections):
    protocol = {"ideal": {"divisible": True}}
    usual = {"topology": TRUNK, "protocol": protocol, "run": {"iterations": 3, "warmup": 1}}
    return simnet.run({**usual, "jobs": jobs, **sections})


@pytest.fixture(scope="module")
def both(file):
    """Return two jobs of two workers each, which both exchange over the one cable between the racks."""
    return [job(file, "one", ["host0", "host3"]), job(file, "other", ["host1", "host4"])]


def test_two_jobs_on_one_bottleneck_get_half_of_it_each(both):
    """Alone a ring of two takes 2(x/2 + 2p) over four links, together 2(x + 2p): the trunk gives each B/2."""
    for alone in both:
        assert run([alone]).summary.exposed_communication_time_s[0] == within(2 * (X / 2 + P))
    together = run(both).summary
    assert together["exposed_communication_time_s"].to_numpy() == within([2 * (X + P)] * 2)
    assert together["iteration_time_s"].to_numpy() == within([C + 2 * (X + P)] * 2)


def test_who_begins_later_is_disturbed_later(file):
    """The second begins when the first is through its first iteration, which takes as long as alone; of the others each
    is as long as that of both at once, as they begin together."""
    alone_s = C + 2 * (X / 2 + P)
    late = job(file, "late", ["host1", "host4"], start=f"{alone_s * 1e6!r} us")
    result = run([job(file, "early", ["host0", "host3"]), late], run={"iterations": 3, "warmup": 0})
    times = result.iterations.set_index(["job", "iteration", "rank"])["iteration_time_s"]
    assert times["early"].to_numpy() == within([alone_s] * 2 + [C + 2 * (X + P)] * 4)
    assert result.iterations.groupby("job")["start_s"].min().to_dict() == within({"early": 0.0, "late": alone_s})
    # The first goes on, unmeasured, until the second is through.
    assert times["late"].to_numpy() == within([C + 2 * (X + P)] * 6)


@pytest.mark.parametrize("longer", ["0 ms", "0.5 ms", "2 ms"])
def test_what_the_next_iteration_waits_for_is_sent_in_the_one_before(file, longer):
    """A ring of two sends each byte once, whenever the other job ends: also what is still under way when the last
    measured iteration has been computed."""
    one = job(file, "one", ["host0", "host3"])
    one["training"] |= {"forward_overlap": True, "bucket_size": "1 B", "scheduling": {"order": "priority"}}
    other = job(file, "other", ["host1", "host2"])
    other["training"] |= {"step_overhead": longer}
    sent = run([one, other], run={"iterations": 2, "warmup": 0}).summary["bytes_sent_per_worker"]
    assert sent.to_numpy() == within([S, S])


def test_of_three_flows_each_gets_a_third(file):
    """Max-min counts flows, not jobs: of one job two neighbours talk over the trunk each way, of the other one.

    A ring of four in the order 0, 3, 1, 4 crosses twice each way in each of 6 steps of x/4, a ring of two once in 2
    steps of x/2. Each flow gets B/3: the ring of two takes 3x. Meanwhile the other has done 4 steps of 3x/4; with B/2
    for each flow it takes x more for the other two. Without latencies.
    """
    jobs = [job(file, "four", ["host0", "host3", "host1", "host4"]), job(file, "two", ["host2", "host5"])]
    topology = {"leaf_spine": {**TRUNK["leaf_spine"], "latency": "0 s"}}
    summary = run(jobs, topology=topology, run={"iterations": 1, "warmup": 0}).summary
    assert summary["exposed_communication_time_s"].to_numpy() == within([4 * X, 3 * X])


def test_alone_a_job_is_as_a_scenario_of_its_own(file):
    """Bit for bit, in all tables."""
    alone = run([job(file, "train", ["host0", "host4", "host2"])])
    plain = job(file, "train", ["host0", "host4", "host2"])
    protocol = {"ideal": {"divisible": True}}
    sections = {"topology": TRUNK, "protocol": protocol, "run": {"iterations": 3, "warmup": 1}}
    own = simnet.run({**sections, "workload": plain["workload"], "training": plain["training"]})
    for table in ("summary", "iterations", "workers", "collectives", "links"):
        found, expected = getattr(alone, table), getattr(own, table)
        if table == "summary":
            found, expected = (frame.drop(columns="wall_time_s") for frame in (found, expected))
        pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_jobs_that_share_no_link_are_as_alone(file):
    """One in each rack: times as alone; only the links are counted together."""
    jobs = [job(file, "one", ["host0", "host1"]), job(file, "other", ["host3", "host4", "host5"])]
    together = run(jobs)
    for own in jobs:
        alone, name = run([own]), own["name"]
        for table in ("iterations", "workers", "collectives"):
            found = getattr(together, table).query("job == @name").reset_index(drop=True)
            pd.testing.assert_frame_equal(found, getattr(alone, table), rtol=1e-9, atol=1e-12)
        summary = together.summary.set_index("job").loc[name]
        for column in (*TIMES, "iteration_time_s", "throughput_samples_per_s", "bytes_sent_per_worker"):
            assert summary[column] == within(alone.summary[column][0]), column
    assert set(together.links["job"]) == {"all"}


def test_each_job_has_its_own_rows(both, file):
    """Two of 2 workers and one of 1: a row each in the summary, in the others as many as workers and exchanges."""
    result = run([*both, job(file, "small", ["host5"])])
    assert result.summary[["job", "workers"]].to_numpy().tolist() == [["one", 2], ["other", 2], ["small", 1]]
    assert result.iterations.groupby("job").size().to_dict() == {"one": 8, "other": 8, "small": 4}
    assert result.workers[["job", "rank", "node"]].to_numpy().tolist() == [
        *(["one", 0, "host0"], ["one", 1, "host3"]),
        *(["other", 0, "host1"], ["other", 1, "host4"], ["small", 0, "host5"]),
    ]
    assert result.collectives.groupby("job").size().to_dict() == {"one": 4, "other": 4}
    assert result.workers.groupby("job")["bytes_sent"].first().to_dict() == within({"one": S, "other": S, "small": 0.0})


def test_messages_say_whose_they_are(both):
    """As many and as many bytes of each job as its exchanges have; those of background traffic have no job."""
    background = {"load": 0.1, "mean_size": "1 MB"}
    run_section = {"iterations": 2, "warmup": 1, "record": "messages"}
    result = run(both, background=background, run=run_section)
    messages, exchanges = result.messages, result.collectives
    assert set(messages["job"]) == {"one", "other", ""}
    for name in ("one", "other"):
        own = messages[messages["job"] == name]
        assert len(own) == exchanges.query("job == @name")["messages"].sum() == 3 * 4
        assert own["size_bytes"].sum() == within(exchanges.query("job == @name")["bytes_sent"].sum())
        assert own["collective"].str.startswith(f"{name}: ring").all()
    others = messages[messages["job"] == ""]
    assert others["collective"].str.startswith("background traffic").all()
    assert len(messages) == result.summary["messages"].iloc[0]


def test_jobs_vary_each_by_itself(file):
    """Jitter is drawn by the name of the job: the same with another one beside it, and not that of the other."""
    jitter = {"distribution": "lognormal", "sigma": 0.2}
    jobs = [job(file, name, nodes) for name, nodes in (("one", ["host0", "host1"]), ("other", ["host3", "host4"]))]
    for each in jobs:
        each["training"]["jitter"] = jitter
    together, alone = run(jobs).iterations, run(jobs[:1]).iterations
    computed = {name: rows["compute_time_s"].to_numpy() for name, rows in together.groupby("job")}
    np.testing.assert_array_equal(computed["one"], alone["compute_time_s"].to_numpy())
    assert not np.isclose(computed["one"], computed["other"]).any()
