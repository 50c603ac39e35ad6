"""A timeline says the same as the tables: times add up, loads carry the bytes, and nothing on a thread overlaps."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise

import pytest

import simnet
from simnet.experiment.timeline import trace_events, write_timeline

from .examples import star_scenario

JITTER = {"distribution": "lognormal", "sigma": 0.2}
SCENARIOS = {
    "ring": star_scenario(4, jitter=JITTER),
    "forward_overlap": star_scenario(4, forward_overlap=True, bucket_size="4 MiB"),
    "servers": star_scenario(3, architecture="parameter_server", jitter=JITTER) | {"topology": {"star": {"hosts": 4}}},
    "asynchronous": star_scenario(3, architecture="parameter_server", sync="asp")
    | {"topology": {"star": {"hosts": 4}}},
}


@pytest.fixture(scope="module", params=SCENARIOS)
def result(request):
    scenario = SCENARIOS[request.param] | {"run": {"iterations": 3, "warmup": 0}}
    return simnet.run(scenario, timeline=True)


def test_what_a_worker_does_adds_up_to_its_iterations(result):
    """Spans of an iteration together are as long as it, and computing as long as compute_time_s."""
    spans = result.spans.groupby(["iteration", "rank"])
    for row in result.iterations.itertuples():
        own = spans.get_group((row.iteration, row.rank))
        stalls = row.exposed_communication_time_s + row.waiting_time_s
        computing = own["what"] == "compute"
        assert own.loc[computing, "duration_s"].sum() == pytest.approx(row.compute_time_s, rel=1e-9)
        assert own.loc[~computing, "duration_s"].sum() == pytest.approx(stalls, rel=1e-9, abs=1e-12)


def test_a_worker_does_one_thing_at_a_time(result):
    for _, own in result.spans.groupby("rank"):
        ends = own["start_s"] + own["duration_s"]
        assert (own["start_s"].to_numpy()[1:] >= ends.to_numpy()[:-1] - 1e-12).all()


def test_load_carries_the_bytes(result):
    """Utilisation x capacity x time is what the table of links has carried, of each resource that is shown."""
    links = result.links.set_index("resource")
    for name, own in result.load.groupby("resource"):
        carried = (own["utilisation"] * own["duration_s"]).sum() * links.loc[name, "bandwidth_bytes_per_s"]
        assert carried == pytest.approx(links.loc[name, "wire_bytes"], rel=1e-6)
    assert result.load["utilisation"].between(0.0, 1.0 + 1e-9).all()


def test_the_tables_are_as_without_it(result):
    plain = simnet.run({**result.scenario})
    for name in ("iteration_time_s", "exposed_communication_time_s", "bytes_sent_per_worker"):
        assert result.summary[name].item() == pytest.approx(plain.summary[name].item(), rel=1e-9)
    assert plain.spans is None


def test_threads_of_exchanges_do_not_overlap(result):
    events = [event for event in trace_events(result) if event["ph"] == "X" and "bucket" in event["name"]]
    assert len(events) == len(result.collectives)
    for thread in {event["tid"] for event in events}:
        own = sorted((event for event in events if event["tid"] == thread), key=lambda event: event["ts"])
        assert all(first["ts"] + first["dur"] <= second["ts"] + 1e-6 for first, second in pairwise(own))


def test_a_file_that_perfetto_opens(result, tmp_path):
    """JSON with a list of events, each with a phase; the same bytes again."""
    for number in (1, 2):
        write_timeline(result, tmp_path / f"t{number}.json.gz")
    assert (tmp_path / "t1.json.gz").read_bytes() == (tmp_path / "t2.json.gz").read_bytes()
    trace = json.loads(gzip.decompress((tmp_path / "t1.json.gz").read_bytes()))
    assert {event["ph"] for event in trace["traceEvents"]} == {"M", "X", "C"}
    write_timeline(result, tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()) == trace


def test_faults_are_instants():
    scenario = SCENARIOS["ring"] | {
        "faults": [
            {"link_degraded": {"between": ["host0", "switch"], "at": "10 ms", "for": "20 ms", "bandwidth_factor": 0.5}}
        ]
    }
    events = [event for event in trace_events(simnet.run(scenario, timeline=True)) if event["ph"] == "i"]
    assert [event["ts"] for event in events] == pytest.approx([1e4, 3e4])


def test_a_run_without_a_timeline_has_none():
    with pytest.raises(ValueError, match="has no timeline"):
        list(trace_events(simnet.run(SCENARIOS["ring"])))
