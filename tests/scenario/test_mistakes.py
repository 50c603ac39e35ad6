"""Every mistake is told at its place, in plain words, and all of them at once.

Each case is a scenario and what is said of it, as ``line:column: what is wrong, what would be right``.
"""

from __future__ import annotations

import pytest

from simnet.errors import InputError
from simnet.scenario import load_scenario

from .marked import RIGHT, at_mark, said_of, with_changed


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "»protocl: tcp",
            "unknown key 'protocl', did you mean 'protocol'? known: name, topology, protocol",
        ),
        (
            "run: {»iteration: 3}",
            "unknown key 'iteration' in run, did you mean 'iterations'? known: iterations, warmup, duration, seed",
        ),
        ("run: {»iterations:3}", "unknown key 'iterations:3' in run, write 'iterations: 3', with a space"),
        ("run: {»<<: {seed: 1}}", "unknown key '<<' in run, YAML 1.2 has no merge keys"),
        ("run: {seed: 1, »seed: 2}", "the key 'seed' is given twice, it was given on line 1 before"),
        ("run: {»1: 2}", "unknown key 1 in run, known: iterations, warmup, duration, seed"),
        ("run: {iterations: »abc}", "iterations is 'abc', a whole number of at least 1 is wanted"),
        ("run: {iterations: »0}", "iterations is 0, a whole number of at least 1 is wanted"),
        ("run: {iterations: »1.5}", "iterations is 1.5, a whole number of at least 1 is wanted"),
        ("run: {iterations: »'3'}", "iterations is '3', a whole number of at least 1 is wanted"),
        ("run: {iterations: »true}", "iterations is true, a whole number of at least 1 is wanted"),
        ("run: {iterations: ».nan}", "iterations is nan, a whole number of at least 1 is wanted"),
        ("run: {iterations: »1e300}", "iterations is 1e+300, a whole number of at most 1000000 is wanted"),
        ("run: {iterations: »10000000}", "iterations is 10000000, a whole number of at most 1000000 is wanted"),
        (
            "run: {seed: »99999999999999999999999999999999999999999999999999}",
            "seed is a number of more than 30 digits, a whole number of at most",
        ),
        ("run: {warmup: »-1}", "warmup is -1, a whole number of at least 0 is wanted"),
        ("run: {warmup: »[1]}", "warmup is a list, a whole number of at least 0 is wanted"),
        ("run: »3", "run is 3, a mapping is wanted, with keys out of iterations, warmup, duration, seed"),
        ("workload: »resnet50", "workload is 'resnet50', a mapping is wanted, with keys out of model, file"),
        ("training: {bucket_size: »25}", "bucket_size: 25 has no unit, write it like '25 MiB', '25 MB' or '4096 B'"),
        (
            "training: {stragglers: »{workers: [1]}}",
            "stragglers is a mapping, a list is wanted, like [{workers: …, pattern: …}]",
        ),
        ("faults: »{}", "faults is a mapping, a list is wanted, like [{link_down: …}]"),
        ("training: {bucket_size: »0 B}", "bucket_size is '0 B', a size above 0 is wanted"),
        ("training: {bucket_size: »25 Gbps}", "bucket_size: '25 Gbps' is a bandwidth, not a size, write it"),
        ("training: {bucket_size: »-1 MB}", "bucket_size: '-1 MB' is negative, write it like '25 MiB'"),
        ("training: {bucket_size: »1e9 TB}", "bucket_size is '1e9 TB', a size of at most 1e6 TB is wanted"),
        ("training: {bucket_size: »true}", "bucket_size is true, a size such as '25 MiB' is wanted"),
        (
            "topology: {star: {hosts: 2, bandwidth: »100 gbps}}",
            "bandwidth: 'gbps' in '100 gbps' is not a unit, did you mean 'Gbps' or 'GBps'? (b is a bit, B a byte)",
        ),
        ("topology: {star: {hosts: 2, bandwidth: »0 Gbps}}", "bandwidth is '0 Gbps', a bandwidth above 0 is wanted"),
        (
            "topology: {star: {hosts: 2, bandwidth: »1e-30 Gbps}}",
            "bandwidth is '1e-30 Gbps', a bandwidth of at least 1 bps is wanted",
        ),
        ("training: {sync: »bps}", "sync is 'bps', did you mean 'bsp'"),
        (
            "training: {sync: »asp}",
            "sync asp stands beside architecture ring, architecture: parameter_server",
        ),
        ("training: {architecture: gossip, sync: {»ssp: {}}}", "'staleness' is missing in ssp"),
        ("training: {sync: {local_sgd: {period: »0}}}", "period is 0, a whole number of at least 1 is wanted"),
        (
            "training: {architecture: {gossip: {partners: »one}}}",
            "partners: one stands beside sync bsp, say sync: asp or ssp, or partners: all",
        ),
        (
            "training: {sync: asp, architecture: {parameter_server: {fan_in: »2}}}",
            "fan_in stands beside sync asp, leave it out",
        ),
        ("training: {sync: one_shot, zero_stage: »1}", "zero_stage stands beside sync one_shot"),
        ("training: {sync: one_shot, forward_overlap: »true}", "forward_overlap stands beside sync one_shot"),
        (
            "training: {sync: one_shot, compression: »fp16}",
            "compression fp16 stands beside sync one_shot, leave it out",
        ),
        ("fidelity: »fluid", "fidelity is 'fluid', known: flow, packet"),
        ("training: {overlap: »yes}", "overlap is 'yes', true or false is wanted; YAML 1.2 reads yes as text"),
        ("training: {overlap: »1}", "overlap is 1, true or false is wanted"),
        ("name: »../up", "name is '../up', a name of letters, digits, '_', '-', '+' and '.' is wanted"),
        ("name: »7", "name is 7, a name of letters"),
        (f"name: »{'x' * 300}", f"name is '{'x' * 56}…, a name of at most 100 characters is wanted"),
        ("name: »-x", "name is '-x', a name that begins with a letter, a digit or '_' is wanted"),
        ("run: {iterations: »1e18}", "iterations is 1e+18, a whole number of at most 1000000 is wanted"),
        (f"workload: {{file: »{'x' * 5000}, batch_size: 1}}", f"file is '{'x' * 56}…, a file name of at most 4000"),
        ("training: {speed_factors: {»'00': 1}}", "speed_factors has the key '00', a whole number of at least 0"),
        ("training: {speed_factors: {»'\u0663': 1}}", "speed_factors has the key '\u0663', a whole number"),
        (
            "training: {architecture: »rng}",
            "architecture is 'rng', did you mean 'ring'? known: ring, star, tree, double_tree, butterfly",
        ),
        ("training: {architecture: »spiral}", "architecture is 'spiral', known: ring, star, tree, double_tree"),
        (
            "training: {architecture: {ring: {}, »tree: {}}}",
            "architecture names both 'ring' and 'tree', one of them is wanted",
        ),
        ("training: {architecture: {mesh: {exchange: »half}}}", "exchange is 'half', known: scatter, full"),
        ("training: {architecture: {»mash: {}}}", "architecture does not know 'mash', did you mean 'mesh'?"),
        ("training: {architecture: »{}}", "architecture is empty, a name, or {name: {option: value}}, is wanted"),
        ("training: {architecture: »0}", "architecture is 0, a name, or {name: {option: value}}, is wanted"),
        ("training: {architecture: »false}", "architecture is false, a name, or {name: {option: value}}, is wanted"),
        ("training: {architecture: »3}", "architecture is 3, a name, or {name: {option: value}}, is wanted"),
        (
            "training: {architecture: {butterfly: {»chunks: 2}}}",
            "unknown key 'chunks' in butterfly, there are none here",
        ),
        (
            "training: {architecture: {torus: {rows: »3}}}",
            "16 ranks do not stand in 3 rows, divisors of 16 are 1, 2, 4, 8, 16",
        ),
        (
            "training: {architecture: {torus: {rows: »3, columns: 4}}}",
            "3 rows of 4 are not the 16 ranks, leave one of them out",
        ),
        (
            "training: {architecture: {hierarchical: {group: »5}}}",
            "16 ranks cannot be cut into groups of 5, divisors of 16 are 1, 2, 4, 8, 16",
        ),
        (
            "training: {architecture: {star: {hub: »16}}}",
            "hub 16 is not one of the 16 ranks, a rank from 0 to 15 is wanted",
        ),
        (
            "training: {workers: »32}",
            "32 workers do not fit on the 16 ranks of topology star, at most 16 workers are possible",
        ),
        ("training: {»jitter: {distribution: normal}}", "'sigma' is missing in jitter, normal needs it"),
        (
            "training: {jitter: {distribution: uniform, half_width: 0.1, »sigma: 1}}",
            "uniform jitter has no 'sigma', its parameter is 'half_width'",
        ),
        (
            "training: {jitter: {distribution: »weibull}}",
            "distribution is 'weibull', known: lognormal, normal, uniform, exponential, pareto",
        ),
        ("training: {jitter: {sigma: »-1}}", "sigma is -1, a number of at least 0 and at most 10 is wanted"),
        ("training: {jitter: {sigma: ».inf}}", "sigma is inf, a number of at least 0 and at most 10 is wanted"),
        (
            "training: {speed_factors: »[1, 2]}",
            "speed_factors has 2 elements for 16 workers, one each is wanted, or a mapping {rank: factor}",
        ),
        (
            "training: {speed_factors: {16: »0.5}}",
            "speed_factors names rank 16, of 16 workers, ranks from 0 to 15 are there",
        ),
        ("training: {speed_factors: {1: »0}}", "speed_factors[1] is 0, a number above 0 and at most 1e+06 is wanted"),
        ("training: {speed_factors: {»a: 1}}", "speed_factors has the key 'a', a whole number of at least 0"),
        ("training: {speed_factors: »2}", "speed_factors is 2, a list with one speed a worker, or a mapping"),
        ("workload: {model: »resnet51, gpu: v100, batch_size: 64}", "unknown model 'resnet51', did you mean"),
        ("workload: {model: resnet50, gpu: »v101, batch_size: 64}", "unknown GPU 'v101', did you mean 'v100'?"),
        (
            "»workload: {model: resnet50, batch_size: 64}",
            "'gpu' is missing in workload, name the GPU, or give samples_per_s, the measured rate of one worker",
        ),
        (
            "»workload: {gpu: v100, batch_size: 64}",
            "workload has none of model, file, trace and graph, give one of them",
        ),
        (
            "»workload: {model: resnet50, gpu: v100}",
            "workload has none of batch_size and global_batch_size, give one of them",
        ),
        (
            "workload: {model: resnet50, gpu: v100, batch_size: 64, »global_batch_size: 1024}",
            "workload has both 'batch_size' and 'global_batch_size', leave one of them out, or empty",
        ),
        (
            "workload: {model: resnet50, »file: a.csv, gpu: v100, batch_size: 64}",
            "workload has both 'model' and 'file', leave one of them out, or empty",
        ),
        (
            "workload: {model: resnet50, gpu: v100, global_batch_size: »1000}",
            "global_batch_size is 1000, which 16 workers cannot share evenly, a multiple of 16 is wanted",
        ),
        (
            "workload: {model: resnet50, gpu: v100, batch_size: »100000}",
            "no rate of resnet50 on v100 in fp32 was measured around batch 100000, measured: ",
        ),
        (
            "workload: {model: resnet50, gpu: v100, global_batch_size: »1600000}",
            "no rate of resnet50 on v100 in fp32 was measured around batch 100000, measured: ",
        ),
        (
            "workload: {model: resnet50, gpu: v100, batch_size: 64, precision: »fp16}",
            "precision is 'fp16', known: fp32, tf32, amp",
        ),
        (
            "workload: {model: resnet50, gpu: v100, batch_size: 64, gradient_dtype: »int8}",
            "gradient_dtype is 'int8', known: ",
        ),
        (
            "workload: {model: resnet50, gpu: v100, batch_size: 64, sequence_length: »128}",
            "samples of resnet50 have no sequence length, leave it out",
        ),
        (
            "workload: {model: resnet50, batch_size: 64, samples_per_s: »0}",
            "samples_per_s is 0, a number of at least 1e-06 and at most 1e+12 is wanted",
        ),
        ("workload: {file: »nope.csv, batch_size: 64}", "there is no file 'nope.csv' beside the scenario"),
        ("workload: {file: »'.', batch_size: 64}", "'.' is a directory, a file is wanted"),
        (
            "workload: {trace: t.csv, batch_size: 64, »samples_per_s: 3}",
            "samples_per_s stands beside a trace, which is replayed as recorded, leave it out",
        ),
        (
            "workload: {file: w.csv, batch_size: 64, »sequence_length: 128}",
            "sequence_length stands beside no model, only shipped models have one",
        ),
        ("protocol: »tpc", "protocol is 'tpc', did you mean 'tcp'? known: "),
        ("protocol: {tcp: {mtu: »9000}}", "mtu: 9000 has no unit, write it like '25 MiB', '25 MB' or '4096 B'"),
        ("protocol: {tcp: {»mtuu: 9000 B}}", "unknown key 'mtuu' in tcp, did you mean 'mtu'?"),
        ("protocol: {tcp: {mtu: 9000 B}, »rdma: {}}", "protocol names both 'tcp' and 'rdma', one of them"),
        ("protocol: {tcp: {connection: »pooled}}", "connection is 'pooled', known: persistent, per_message"),
        (
            "protocol: {tcp: {connection_cap: »unlimted}}",
            "connection_cap: 'unlimted' is not a bandwidth, write it like '100 Gbps' (bits) or '12.5 GB/s' (bytes), "
            "or 'unlimited'",
        ),
        ("protocol: {tcp: {mtu: »30 B}}", "an MTU of 30 B leaves no payload"),
        ("protocol: {tcp: {copies_send: »-1}}", "copies_send is -1, a number of at least 0"),
        (
            "protocol: {tcp: {send_overhead_per_byte: »1 us}}",
            "send_overhead_per_byte: '1 us' is a duration, not a duration per byte, write it like '0.09 ns/B'",
        ),
        ("topology: »v100", "there is no file 'v100' beside the scenario"),
        ("topology: »star", "there is no file 'star' beside the scenario"),
        ("topology: »''", "topology is '', a shipped name or a file name is wanted"),
        ("topology: {»strr: {hosts: 2}}", "topology does not know 'strr', did you mean 'star'?"),
        ("topology: {»star: {}}", "'hosts' is missing in star, wanted: number of hosts"),
        ("topology: {star: {hosts: »0}}", "hosts is 0, a whole number of at least 1 is wanted"),
        ("topology: {star: {hosts: 2, host: »3}}", "host is 3, a mapping is wanted, with keys out of gpus, nics"),
        (
            "topology: {star: {hosts: 2, »defaults: {}}}",
            "unknown key 'defaults' in star, known: hosts, bandwidth, latency, kind, loss_probability, buffer, host",
        ),
        ("topology: {star: {hosts: 2}, »defaults: {}}", "topology has 'defaults', it goes with 'file' only"),
        ("topology: {fat_tree: {k: »3}}", "k is 3, an even number of ports is wanted"),
        ("topology: {torus: {dims: »4}}", "dims is 4, a list is wanted, like [4, 4]"),
        ("topology: {torus: {dims: [4, »x]}}", "dims[1] is 'x', a whole number of at least 1 is wanted"),
        ("topology: {torus: {dims: »[]}}", "dims is empty, one length per dimension is wanted, like [4, 4]"),
        (
            "topology: {full_mesh: »{hosts: 100000}}",
            "full_mesh would have about 5,000,400,000 nodes and cables, at most 2,000,000 are possible",
        ),
        (
            "topology: {leaf_spine: {leaves: 2, hosts_per_leaf: 8, spines: 2, oversubscription: »2, uplink_bandwidth: "
            "1 Gbps}}",
            "oversubscription and uplink_bandwidth are both given, leave one out",
        ),
        ("baseline: »100", "baseline is 100, a mapping is wanted, with keys out of samples_per_s"),
        ("»baseline: {}", "'samples_per_s' is missing in baseline, wanted: throughput that counts as speedup 1"),
    ],
)
def test_one_mistake_is_told_alone_and_at_its_place(tmp_path, line, said):
    text, expected = at_mark(line, said)
    (tmp_path / "w.csv").write_text("layer,parameters,forward_s,backward_s\na,1,1,1\n")
    (tmp_path / "t.csv").write_text(
        "iteration,rank,layer,phase,start_s,duration_s,parameters\n0,0,a,forward,0,1,1\n0,0,a,backward,1,1,1\n"
    )
    others = "\n".join(f"{key}: {value}" for key, value in RIGHT.items() if not text.startswith(f"{key}:"))
    found = said_of(tmp_path, f"{text}\n{others}\n")
    assert len(found) == 1, found
    assert found[0].startswith(expected)


@pytest.mark.parametrize("key", ["topology", "protocol", "workload"])
@pytest.mark.parametrize("value", [None, "", "null"])
def test_what_has_no_default_must_be_given(tmp_path, key, value):
    sections = {name: text for name, text in RIGHT.items() if name != key}
    lines = [f"{name}: {text}" for name, text in sections.items()]
    if value is not None:
        lines.insert(0, f"{key}: {value}")
    [said] = said_of(tmp_path, "\n".join(lines))
    # An empty key is shown where it stands, a missing one at the start of the document.
    if value is None:
        assert said.startswith(f"1:1: {key!r} is missing, wanted: ")
    else:
        assert said.startswith(f"1:{len(key) + 2 + bool(value)}: {key} is empty, ")


def test_a_duration_is_for_workers_that_do_not_wait(tmp_path):
    """Workers in step do as many iterations each; under `sync: asp` and `ssp` a time may be given instead."""
    lines = {**RIGHT, "run": "{duration: 1 s}", "training": "{workers: 2, sync: »bsp}"}
    text, expected = at_mark("\n".join(f"{key}: {value}" for key, value in lines.items()), "sync bsp stands beside")
    [told] = said_of(tmp_path, text)
    assert told.startswith(expected)


@pytest.mark.parametrize("keys", ["0: 1, »'0': 0.5", "'0': 1, »0: 0.5", "12: 1, 0: 1, »'12': 1"])
def test_a_number_and_the_same_as_text_are_one_key(tmp_path, keys):
    text, expected = at_mark(f"training: {{speed_factors: {{{keys}}}}}", "the key ")
    others = "\n".join(f"{key}: {value}" for key, value in RIGHT.items())
    [said] = said_of(tmp_path, f"{text}\n{others}\n")
    assert said.startswith(expected)
    assert "is given twice, it was given on line 1 before" in said


def test_a_number_and_the_same_as_text_are_one_key_of_a_mapping():
    scenario = {**RIGHT, "topology": {"star": {"hosts": 2}}, "training": {"speed_factors": {0: 1, "0": 0.5}}}
    scenario["workload"] = {"model": "resnet50", "gpu": "v100", "batch_size": 64}
    with pytest.raises(InputError, match="the key '0' is 0 once more"):
        load_scenario(scenario)


def test_problems_of_a_file_are_told_with_that_file(tmp_path):
    (tmp_path / "t.yaml").write_text("star:\n  hosts: 4\n  bandwith: 1 Gbps\n")
    file = tmp_path / "s.yaml"
    file.write_text(with_changed(topology="t.yaml", run="{seed: x}"))
    with pytest.raises(InputError) as caught:
        load_scenario(file)
    assert [str(problem).split(", ")[0].split("\n")[0] for problem in caught.value.problems] == [
        f"{file}:2:13: seed is 'x'",
        f"{tmp_path / 't.yaml'}:3:3: unknown key 'bandwith' in star",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1:1: the document is empty, a mapping is wanted, with keys out of name, topology, protocol"),
        ("# only a comment\n", "the document is empty, a mapping is wanted"),
        ("- 1\n", "1:1: the document is a list, a mapping is wanted"),
        ("hello\n", "1:1: the document is 'hello', a mapping is wanted"),
    ],
)
def test_what_is_no_scenario_at_all(tmp_path, text, said):
    [found] = said_of(tmp_path, text)
    assert said in found


def test_the_line_is_shown_with_a_caret(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text(with_changed(run="{seed: x}"))
    with pytest.raises(InputError) as caught:
        load_scenario(file)
    assert str(caught.value) == (
        f"{file}:1:13: seed is 'x', a whole number of at least 0 is wanted\n    run: {{seed: x}}\n                ^"
    )


@pytest.mark.parametrize("name", ["", "no_such", "a/b.yaml", "\0", "x" * 300, "\ud800"])
def test_a_scenario_that_is_not_there(name):
    with pytest.raises(InputError):
        load_scenario(name)


def test_names_that_ship_are_suggested():
    with pytest.raises(InputError, match=r"there is no file 'resnet_16gpu' here, did you mean 'resnet50_16gpu'\?"):
        load_scenario("resnet_16gpu")


@pytest.mark.parametrize("scenario", [None, 3, ["x"], object()])
def test_what_cannot_name_a_scenario(scenario):
    with pytest.raises(InputError, match="a file name, the name of a scenario that ships, or a mapping is wanted"):
        load_scenario(scenario)
