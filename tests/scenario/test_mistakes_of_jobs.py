"""Mistakes in how work is split, in training data, background traffic and several jobs: each told at its place.

Cases are those of `test_mistakes`: a mark where the mistake is, and what is said of it.
"""

from __future__ import annotations

import pytest

from .marked import MARK, at_mark, said_of

RIGHT = {
    "topology": "{star: {hosts: 16, bandwidth: 100 Gbps, latency: 1 us}}",
    "protocol": "rdma",
    "workload": "{model: resnet50, gpu: v100, batch_size: 64}",
}
WORKLOAD = f"workload: {RIGHT['workload']}"
WITH_MEMORY = "topology: {star: {hosts: 4, host: {memory_bandwidth: 100 GB/s}}}"


@pytest.fixture
def folder(tmp_path):
    """A folder with files that cases name."""
    (tmp_path / "plain.csv").write_text("layer,parameters,forward_s,backward_s\na,1,1,1\nb,1,1,1\n")
    (tmp_path / "memory.csv").write_text("layer,parameters,forward_s,backward_s,memory_bytes\na,1,1,1,5\nb,1,1,1,5\n")
    (tmp_path / "trace.csv").write_text(
        "iteration,rank,layer,phase,start_s,duration_s,parameters\n0,0,a,forward,0,1,1\n0,0,a,backward,1,1,1\n"
    )
    (tmp_path / "graph.yaml").write_text(
        "operations:\n- {name: a, device: 0, time: 1 ms, output: 1 kB}\n"
        "- {name: b, device: 1, time: 1 ms, inputs: [a], gradient: 4}\n"
    )
    return tmp_path


def with_right(*lines: str, without: str = "") -> str:
    """Return lines and, of what a scenario needs besides them, what is right."""
    given = {line.partition(":")[0].removeprefix(MARK) for line in lines}
    return "\n".join([*lines, *(f"{key}: {text}" for key, text in RIGHT.items() if key not in {*given, without})])


def assert_told(folder, text, *said):
    """See that just this is said, each at its mark, in the order of the marks."""
    expected = []
    for one in said:
        before, _, after = text.partition(MARK)
        _, found = at_mark(before + MARK, one)
        expected.append(found)
        text = before + after
    assert MARK not in text
    told = said_of(folder, text)
    assert len(told) == len(expected), told
    for line, start in zip(told, expected, strict=True):
        assert line.startswith(start), (line, start)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "training: {workers: 8, parallelism: »{data: 3, pipeline: 2}}",
            "parallelism has a product of 6, but there are 8 workers, leave workers or data out",
        ),
        (
            "training: {workers: 8, parallelism: »{pipeline: 3}}",
            "parallelism has a product of 6, but there are 8 workers, leave workers or data out, or make them fit: a "
            "replica has 3 workers",
        ),
        (
            "training: {parallelism: »{data: 3, pipeline: 2, tensor: 3}}",
            "18 workers do not fit on the 16 ranks of topology star, at most 16 workers are possible",
        ),
        ("training: {parallelism: {pipeline: »0}}", "pipeline is 0, a whole number of at least 1 is wanted"),
        ("training: {parallelism: {»pipelin: 2}}", "unknown key 'pipelin' in parallelism, did you mean 'pipeline'?"),
        ("training: {parallelism: »4}", "parallelism is 4, a mapping is wanted, with keys out of data, pipeline"),
        (
            "training: {parallelism: {pipeline: 4}, pipeline: {micro_batches: »3}}",
            "a batch of 64 samples cannot be cut into 3 equal pieces",
        ),
        ("training: {pipeline: {micro_batches: »0}}", "micro_batches is 0, a whole number of at least 1 is wanted"),
        ("training: {pipeline: {order: »2f2b}}", "order is '2f2b', known: gpipe, 1f1b"),
        ("training: {tensor: {all_reduces_per_layer: »0}}", "all_reduces_per_layer is 0, a whole number of at least 1"),
        (
            "training: {parallelism: {shared_memory: »2}}",
            "topology star does not say what the memory of its hosts can do, give hosts a memory_bandwidth",
        ),
        ("training: {zero_stage: »4}", "zero_stage is 4, a whole number of at most 3 is wanted"),
        (
            "training: {zero_stage: »1, architecture: tree}",
            "zero_stage stands beside architecture tree, sharded training goes by reduce-scatter and all-gather",
        ),
        (
            "training: {zero_stage: »3, parallelism: {pipeline: 2}}",
            "zero_stage 3 stands beside a model that is split, at most 2 is possible there",
        ),
        ("training: {zero_stage: 3, forward_overlap: »true}", "forward_overlap stands beside zero_stage 3, leave it"),
        (
            "training: {forward_overlap: »true, parallelism: {tensor: 2}}",
            "forward_overlap stands beside a model that is split, leave it out",
        ),
        (
            "training: {overlap_slowdown: »{}, parallelism: {tensor: 2}}",
            "overlap_slowdown stands beside a model that is split, leave it out",
        ),
        (
            "training: {step_overhead: »1 ms, parallelism: {pipeline: 2}}",
            "step_overhead stands beside a model that is split, leave it out",
        ),
        (
            "training: {overlap_slowdown: {compute: »0.5}}",
            "compute is 0.5, a number of at least 1 and at most 1000 is wanted",
        ),
        (
            "training: {architecture: {parameter_server: {group: »2}}}",
            "15 ranks cannot be cut into groups of 2, divisors of 15 are 1, 3, 5, 15",
        ),
        (
            "training: {architecture: {parameter_server: {group: »3}}, sync: asp}",
            "group stands beside sync asp, leave it out",
        ),
        (
            "training: {architecture: {parameter_server: {group: »5}}, compression: sparsify}",
            "sparsify stands beside architecture parameter_server with group, leave it out",
        ),
        ("training: {optimizer: »adm}", "optimizer is 'adm', did you mean 'adam'? known: sgd, sgd_momentum, adam"),
        ("training: {allow_oversubscribed: »maybe}", "allow_oversubscribed is 'maybe', true or false is wanted"),
        ("training: {placement: »spread}", "placement is 'spread', known: in_order, by_host, random, or a list"),
        ("training: {placement: »3}", "placement is 3, known: in_order, by_host, random, or a list of nodes"),
        ("training: {placement: [host0, »3]}", "placement[1] is 3, the name of a node is wanted"),
        ("training: {placement: [host0, »host99]}", "'host99' is no node that a worker can be on"),
        ("training: {placement: [host0, »switch]}", "'switch' is no node that a worker can be on"),
        ("training: {placement: [host0, »host0]}", "'host0' is listed more than 1 times, one worker each is wanted"),
        ("training: {workers: 3, placement: »[host0, host1]}", "placement lists 2 nodes for 3 workers, one each"),
        (
            "training: {workers: 14, architecture: {parameter_server: {servers: »5, placement: dedicated}}}",
            "5 servers do not fit on the 2 hosts without workers, fewer servers or workers, or placement: colocated",
        ),
        ("training: {architecture: {parameter_server: {servers: »0}}}", "servers is 0, a whole number of at least 1"),
        ("training: {architecture: {parameter_server: {fan_in: »1}}}", "fan_in is 1, a whole number of at least 2"),
        (
            "training: {architecture: {parameter_server: {shards: »odd}}}",
            "shards is 'odd', known: even, by_size, round_robin",
        ),
        (
            "training: {architecture: {parameter_server: {aggregation_rate: »3}}}",
            "aggregation_rate: 3 has no unit, write it like '100 Gbps' (bits) or '12.5 GB/s' (bytes)",
        ),
        ("training: {architecture: {mapreduce: {reduce: »ring}}}", "reduce is 'ring', known: tree, star, in_network"),
        (
            "training: {architecture: {mapreduce: {broadcast: »radio}}}",
            "broadcast is 'radio', known: torrent, tree, star, multicast",
        ),
        ("training: {architecture: {in_network: {chunks: »0}}}", "chunks is 0, a whole number of at least 1"),
        (
            "»dataset: {bytes_per_sample: 110 kB}",
            "topology star has no node of kind storage, name the node that the data is on, or add one",
        ),
        ("»dataset: {storage: host3}", "'bytes_per_sample' is missing in dataset, wanted: what a sample takes"),
        ("dataset: {storage: host3, bytes_per_sample: »110}", "bytes_per_sample: 110 has no unit, write it like"),
        (
            "dataset: {bytes_per_sample: 1 kB, storage: »host99}",
            "topology star has no node 'host99', did you mean 'host9'?",
        ),
        (
            "dataset: {bytes_per_sample: 1 kB, storage: host3, split: »halves}",
            "split is 'halves', known: sampled, sharded, features",
        ),
        (
            "»dataset: {bytes_per_sample: 1 kB, split: sharded}",
            "'samples' is missing in dataset, and sharded workers have a share of them each, give the number",
        ),
        (
            "dataset: {bytes_per_sample: 1 kB, split: sharded, samples: »0}",
            "samples is 0, a whole number of at least 1",
        ),
        ("dataset: {bytes_per_sample: 1 kB, storage: host3, prefetch: »-1}", "prefetch is -1, a whole number of at"),
        ("»background: {}", "'load' is missing in background, wanted: mean rate at which a host sends"),
        ("background: {load: »1.5}", "load is 1.5, a number of at least 0 and at most 1 is wanted"),
        ("background: {load: 0.5, sizes: »gauss}", "sizes is 'gauss', known: fixed, exponential, pareto"),
        ("background: {load: 0.5, pairs: »all}", "pairs is 'all', known: random, permutation"),
        ("background: {load: 0.5, mean_size: »0 B}", "mean_size is '0 B', a size above 0 is wanted"),
        ("background: {load: 0.5, shape: »1}", "shape is 1, a number above 1 and at most 1000 is wanted"),
        ("reduction_rate: »5", "reduction_rate: 5 has no unit, write it like '100 Gbps' (bits) or '12.5 GB/s' (bytes)"),
        ("reduction_rate: »0 GB/s", "reduction_rate is '0 GB/s', a bandwidth above 0 is wanted"),
        ("workload: {graph: »none.yaml, batch_size: 8}", "there is no file 'none.yaml' beside the scenario"),
        (
            "workload: {graph: graph.yaml, batch_size: 8, »gpu: v100}",
            "gpu stands beside a graph, whose operations have times, leave it out",
        ),
    ],
)
def test_one_mistake_is_told_alone_and_at_its_place(folder, line, said):
    assert_told(folder, with_right(line), said)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ("workload: {graph: graph.yaml, batch_size: 8}", "training: {workers: »3}"),
            "3 workers cannot be the 2 devices of each replica of the graph, a multiple of 2 is wanted",
        ),
        (
            ("workload: {trace: trace.csv, batch_size: 8}", "training: {parallelism: »{pipeline: 2}}"),
            "a recorded trace is of workers with the whole model, only data parallelism is possible",
        ),
        (
            ("workload: {file: plain.csv, batch_size: 8}", "training: {parallelism: {pipeline: »4}}"),
            "the 2 layers of plain cannot be cut into 4 stages, at most 2 are possible",
        ),
        (
            (
                WITH_MEMORY,
                "workload: {file: plain.csv, batch_size: 64}",
                "training: {parallelism: {shared_memory: »4}}",
            ),
            "plain does not say how much memory its layers read and write, give them memory_bytes",
        ),
        (
            (
                WITH_MEMORY,
                "workload: {file: memory.csv, batch_size: 64}",
                "training: {parallelism: {shared_memory: »3}}",
            ),
            "a batch of 64 samples cannot be cut into 3 equal pieces",
        ),
        # Of how many samples each replica has there is nothing to say where there is no whole replica.
        (
            (
                "workload: {model: resnet50, gpu: v100, global_batch_size: 64}",
                "training: {workers: 1, parallelism: »{pipeline: 2}, architecture: {star: {hub: 9}}}",
            ),
            "parallelism has a product of 2, but there are 1 workers",
        ),
        (
            (WITH_MEMORY, "training: {parallelism: {tensor: 2, shared_memory: »2}}"),
            "tensor stands beside shared_memory, one of them is possible",
        ),
    ],
)
def test_what_does_not_go_together(folder, lines, said):
    assert_told(folder, with_right(*lines), said)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("jobs: »[]", "jobs is empty, at least one is wanted"),
        ("jobs: »3", "jobs is 3, a list is wanted, like [{name: …, workload: …}]"),
        (f"jobs: [»{{{WORKLOAD}}}]", "'name' is missing in jobs[0], wanted: name in tables"),
        ("jobs: [»{name: a}]", "'workload' is missing in jobs[0], wanted: what is trained"),
        (
            f"jobs: [{{name: a, {WORKLOAD}, start: »5}}]",
            "start: 5 has no unit, write it like '1 us', '2.5 ms' or '3 s'",
        ),
        (f"jobs: [{{name: a, {WORKLOAD}, »begin: 5 s}}]", "unknown key 'begin' in jobs[0], known: name, workload"),
        (f"jobs: [{{name: »a b, {WORKLOAD}}}]", "name is 'a b', a name of letters, digits, '_', '-', '+' and '.'"),
        (
            f"jobs: [{{name: a, {WORKLOAD}, training: {{workers: 2}}}}, "
            f"{{name: »a, {WORKLOAD}, training: {{workers: 2}}}}]",
            "two jobs are called 'a', one name each",
        ),
        (
            f"jobs: [{{name: a, {WORKLOAD}, training: {{workers: 12}}}}, "
            f"{{name: b, {WORKLOAD}, training: {{workers: »12}}}}]",
            "12 workers do not fit on the 4 ranks that other jobs leave, at most 4 workers are possible",
        ),
        (
            f"jobs: [{{name: a, {WORKLOAD}, training: {{placement: [host3]}}}}, "
            f"{{name: b, {WORKLOAD}, training: {{placement: [host0, »host3]}}}}]",
            "'host3' has a worker of another job",
        ),
        (
            f"jobs: [{{name: a, {WORKLOAD}, training: {{workers: 2}}}}, "
            f"{{name: b, {WORKLOAD}, training: {{workers: 8, parallelism: »{{pipeline: 3}}}}}}]",
            "parallelism has a product of 6, but there are 8 workers",
        ),
        (
            "jobs: [{name: a, »workload: {gpu: v100, batch_size: 64}}]",
            "workload has none of model, file, trace and graph, give one of them",
        ),
        (
            "jobs: [{name: a, »workload: {model: resnet50, batch_size: 64}}]",
            "'gpu' is missing in workload, name the GPU, or give samples_per_s",
        ),
        (
            f"jobs: [{{name: a, {WORKLOAD}, training: {{»jitter: {{distribution: normal}}}}}}]",
            "'sigma' is missing in jitter, normal needs it",
        ),
        (
            f"jobs: [{{name: a, {WORKLOAD}, »dataset: {{bytes_per_sample: 1 kB}}}}]",
            "topology star has no node of kind storage",
        ),
    ],
)
def test_mistakes_of_jobs(folder, line, said):
    assert_told(folder, with_right(line, without="workload"), said)


@pytest.mark.parametrize("key", ["workload", "training", "dataset"])
def test_what_each_job_has_of_its_own_does_not_stand_beside_them(folder, key):
    sections = {"workload": RIGHT["workload"], "training": "{}", "dataset": "{bytes_per_sample: 1 kB, storage: host0}"}
    jobs = f"jobs: [{{name: a, {WORKLOAD}}}]"
    text = with_right(jobs, f"»{key}: {sections[key]}", without="workload")
    assert_told(folder, text, f"{key} stands beside jobs, each job has its own")


def test_all_mistakes_of_all_jobs_are_told_at_once(folder):
    """Those of one do not hide those of another, nor those of the sections around them."""
    assert_told(
        folder,
        "\n".join(
            [
                "topology: {star: {hosts: 16}}",
                "protocol: »tpc",
                "jobs:",
                "- name: a",
                "  workload: {model: »resnet51, gpu: v100, batch_size: 64}",
                "  training: {sync: »bps, workers: 4, parallelism: »{pipeline: 3}, placement: »[host0]}",
                "- name: »a b",
                "  workload: {model: resnet50, gpu: »v101, batch_size: »0}",
                "  dataset: {bytes_per_sample: »1, storage: »host77}",
                "- name: c",
                f"  {WORKLOAD}",
                "  training: {workers: 4, zero_stage: »9, architecture: {mapreduce: {depth: »0}}}",
                "background: {load: »2}",
            ]
        ),
        "protocol is 'tpc', did you mean 'tcp'?",
        "unknown model 'resnet51'",
        "sync is 'bps'",
        "parallelism has a product of 3, but there are 4 workers",
        "placement lists 1 nodes for 4 workers",
        "name is 'a b'",
        "unknown GPU 'v101', did you mean 'v100'?",
        "batch_size is 0",
        "bytes_per_sample: 1 has no unit",
        "topology star has no node 'host77'",
        "zero_stage is 9",
        "depth is 0",
        "load is 2",
    )
