"""Mistakes in one part of a scenario do not hide those in another, nor in the files that it names."""

from __future__ import annotations

import pytest

from .marked import MARK, said_of, with_changed


def test_everything_is_told_at_once(tmp_path):
    said = said_of(
        tmp_path,
        "name: a b\n"
        "topology: {star: {hosts: 16, bandwith: 100 Gbps, latency: 1 Gbps}}\n"
        "protocol: {rdma: {mtu: 4096}}\n"
        "workload: {model: resnet51, gpu: v101, batch_size: 64, global_batch_size: 640, precision: fp64}\n"
        "trainig: {}\n"
        "training: {workers: abc, sync: bps, speed_factors: [1, 0, x]}\n"
        "run: {iterations: 0, seed: 1, seed: 3}\n",
    )
    places = [line.split(": ")[0] for line in said]
    assert places == [
        *("1:7", "2:30", "2:59", "3:24", "4:19", "4:34", "4:56", "4:91"),
        *("5:1", "6:21", "6:32", "6:56", "6:59", "7:19", "7:31"),
    ]


def test_a_mistake_in_one_part_does_not_hide_what_building_another_finds(tmp_path):
    said = said_of(
        tmp_path,
        "topology: nowhere\n"
        "protocol: {tcp: {mtu: 20 B}}\n"
        "workload: {model: resnet50, gpu: v100, batch_size: 99999}\n"
        "run: {seed: x}\n",
    )
    assert [line.split(": ")[0] for line in said] == ["1:11", "2:23", "3:52", "4:13"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            {"training": "{workers: »99, bucket_size: »5}"},
            ["99 workers do not fit on the 16 ranks", "bucket_size: 5 has no unit"],
        ),
        (
            {"training": "{sync: »bps, architecture: {star: {hub: »16}}, speed_factors: »[1, 2]}"},
            ["sync is 'bps'", "hub 16 is not one of the 16 ", "speed_factors has 2 elements for 16 workers"],
        ),
        # What follows from a value that is wrong, or may stand under a key that is not known, is not said.
        ({"training": "{workers: »x, speed_factors: [1, 2]}"}, ["workers is 'x'"]),
        ({"training": "{»workrs: 2, speed_factors: [1, 2]}"}, ["unknown key 'workrs'"]),
        ({"training": "{workers: 2, »fooo: 2, speed_factors: »[1]}"}, ["unknown key 'fooo'", "speed_factors has 1 el"]),
        (
            {"training": "{workers: 4, parallelism: {data: 4}, »fooo: 2, architecture: {star: {hub: »7}}}"},
            ["unknown key 'fooo'", "hub 7 is not one of the 4 "],
        ),
        ({"protocol": "{tcp: {mtu: »30 B, copies_send: »x}}"}, ["an MTU of 30 B leaves", "copies_send is 'x'"]),
        (
            {"workload": "{model: resnet50, gpu: v100, »precison: amp, global_batch_size: »17}"},
            ["unknown key 'precison'", "global_batch_size is 17, which 16 workers"],
        ),
    ],
)
def test_what_is_wrong_in_a_section_does_not_hide_what_else_is(tmp_path, changed, told):
    [(key, marked)] = changed.items()
    columns = []
    for part in marked.split(MARK)[:-1]:
        columns.append((columns[-1] if columns else len(f"{key}: ") + 1) + len(part))
    found = said_of(tmp_path, with_changed(**{key: marked.replace(MARK, "")}))
    assert len(found) == len(told), found
    for line, column, said in zip(found, columns, told, strict=True):
        assert line.startswith(f"1:{column}: {said}")


def test_files_are_read_although_settings_beside_them_are_wrong(tmp_path):
    """Without a batch size, precision and rate, what is wrong with the layers and with the GPU is still said."""
    (tmp_path / "w.csv").write_text("layer,parameters,forward_flops,memory_bytes\na,x,1,1\nb,1,-1,1\n")
    said = said_of(tmp_path, with_changed(workload="{file: w.csv, gpu: q}"))
    assert [line.split(", ")[0] for line in said] == [
        "1:1: workload has none of batch_size and global_batch_size",
        "1:30: unknown GPU 'q'",
        f"{tmp_path}/w.csv:2:3: parameters is 'x'",
        f"{tmp_path}/w.csv:3:5: forward_flops is '-1'",
    ]
    said = said_of(tmp_path, with_changed(workload="{file: w.csv, batch_size: 0, precision: x, samples_per_s: 0}"))
    assert [line.split(": ")[1].split(" ")[0] for line in said] == [
        *("batch_size", "precision", "samples_per_s", "parameters", "forward_flops")
    ]
    (tmp_path / "w.csv").write_text("layer,parameters,forward_flops,memory_bytes\na,1,1,1\n")
    # A rate that is wrong would have made the GPU needless; a topology that is wrong tells no number of workers.
    [_] = said_of(tmp_path, with_changed(workload="{file: w.csv, batch_size: 1, samples_per_s: 0}"))
    found = said_of(tmp_path, with_changed(topology="nowhere", workload="{file: w.csv, gpu: q, global_batch_size: 7}"))
    assert len(found) == 2


def test_a_topology_file_is_read_although_defaults_beside_it_are_wrong(tmp_path):
    (tmp_path / "t.json").write_text('{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 3}]}')
    said = said_of(tmp_path, with_changed(topology="{file: t.json, defaults: {bandwidth: 5, node_kind: hst}}"))
    assert [line.split(": ")[1].split(",")[0] for line in said] == [
        *("bandwidth", "node_kind is 'hst'", "link '1' -> '3'")
    ]


def test_a_trace_is_read_although_its_model_is_wrong(tmp_path):
    header = "iteration,rank,layer,phase,start_s,duration_s\n"
    (tmp_path / "t.csv").write_text(f"{header}0,0,a,forward,0,1\n0,0,a,backward,1,1\n")
    [_] = said_of(tmp_path, with_changed(workload="{trace: t.csv, model: resnet51, batch_size: 1}"))
    (tmp_path / "t.csv").write_text(f"{header}0,0,a,forward,0,1\n0,0,a,backward,0.5,1\n")
    said = said_of(tmp_path, with_changed(workload="{trace: t.csv, model: resnet51, batch_size: 0}"))
    assert [line.split(" ")[1] for line in said] == ["unknown", "batch_size", "backward"]


def test_a_workload_in_yaml_tells_all_at_once(tmp_path):
    (tmp_path / "w.yaml").write_text(
        "layer: 1\nlayers:\n- {layer: a, parameters: '9', forward_s: 1, backward_s: 1, backward_s: 2}\n"
        f"- {{layer: b, parameters: {'9' * 5000}}}\n- 3\n"
    )
    said = said_of(tmp_path, with_changed(workload="{file: w.yaml, batch_size: 1}"))
    assert [line.removeprefix(f"{tmp_path}/w.yaml:").split(", ")[0] for line in said] == [
        "1:1: unknown key 'layer'",
        "3:26: parameters is '9'",
        "3:60: the key 'backward_s' is given twice",
        "4:26: a number of 5000 digits is too long",
        "5:3: layer 2 is not a mapping",
    ]


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"topology": "{star: {hosts: %s}}"}, "topology"),
        ({"topology": "{torus: {dims: [4, %s]}}"}, "topology"),
        ({"workload": "{model: resnet50, gpu: v100, batch_size: %s}"}, "workload"),
        ({"workload": "{model: %s, gpu: v100, batch_size: 64}"}, "workload"),
        ({"run": "{seed: !!int x, iterations: %s}"}, "run"),
        ({"training": "{speed_factors: {1: %s}}"}, "training"),
        ({"protocol": "%s"}, "protocol"),
    ],
)
def test_of_what_cannot_be_read_nothing_else_is_said(tmp_path, changed, path):
    changed = {key: text % ("9" * 5000) for key, text in changed.items()}
    said = said_of(tmp_path, with_changed(**changed))
    assert said[-1].endswith("a number of 5000 digits is too long, at most 400 are read")
    assert len(said) == 1 + ("!!int" in changed[path])
