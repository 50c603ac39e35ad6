"""A fixed sample of damaged inputs, files that are none, and whether a fault would be seen at all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from simnet.errors import InputError, StalledError

from .corpus import ROOT, Input, made_input, seeds
from .mutations import PAYLOADS, SENTINEL, special_files
from .targets import TARGETS, Fault, loaded, workplace, write_input

SUFFIXES = {seed.kind: seed.suffix for seed in reversed(seeds())}
WRONG = {"README.md#1", "faults.md#0", "faults.md#1", "topologies.md#0", "training.md#0"}
"""Blocks of the documentation that show mistakes, or parts that do not go with the rest."""


@pytest.fixture
def work(tmp_path):
    with workplace(tmp_path) as folder:
        yield folder


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_damaged_inputs_are_loaded_or_refused_in_words(work, start):
    for number in range(start, start + 50):
        one = made_input(2026, number)
        path = write_input(work, one)
        loaded(one.kind, path)
        path.unlink()


def test_right_inputs_are_loaded(work):
    """Damage to what is refused anyway would find nothing."""
    refused = set()
    for seed in seeds():
        path = write_input(work, Input(seed.kind, seed.name, seed.text.encode(), seed.suffix))
        if not loaded(seed.kind, path).is_loaded:
            refused.add(seed.name)
    assert refused == WRONG
    assert set(TARGETS) == {seed.kind for seed in seeds()}


def test_inputs_are_the_same_again():
    assert [made_input(1, number) for number in range(20)] == [made_input(1, number) for number in range(20)]
    assert made_input(1, 0) != made_input(2, 0)


def test_inputs_are_of_all_kinds_and_most_are_damaged():
    made = [made_input(5, number) for number in range(400)]
    right = {seed.text.encode() for seed in seeds()}
    assert set(Counter(one.kind for one in made)) == set(TARGETS)
    assert sum(one.content in right for one in made) < 40


@pytest.mark.parametrize("kind", sorted(TARGETS))
@pytest.mark.parametrize("what", sorted(special_files(Path(), "x")))
def test_files_that_are_none(work, kind, what):
    """A loop of links, a device that never ends, a pipe that never begins: refused at once, whatever reads it."""
    name = f"input{SUFFIXES[kind]}"
    special_files(work, name)[what]()
    assert not loaded(kind, work / name, longest_s=5).is_loaded


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("kind", ["scenario", "sweep", "topology", "layers", "graph", "data_set", "protocol"])
def test_code_in_yaml_is_text_or_refused(work, kind, payload):
    for text in (payload, f"a: {payload}\n", f"? {payload}\n: 1\n", f"- {payload}\n", f"name: {payload}\n"):
        path = work / "input.yaml"
        path.write_text(text, encoding="utf-8")
        assert not loaded(kind, path).is_loaded


BAD = {
    "raises something else": lambda path: {}["x"],
    "warns": lambda path: __import__("warnings").warn("x", stacklevel=1),
    "raises an error without a problem": lambda path: _raise(InputError([])),
    "raises an error that says nothing": lambda path: _raise(StalledError("")),
    "ends the process": lambda path: sys.exit(1),
    "takes too long": lambda path: time.sleep(10),
    "never ends, and catches all errors": lambda path: _never(),
    "writes a file": lambda path: (path.parent / "x").write_text("x"),
    "runs a program": lambda path: os.system("true"),
    "runs another": lambda path: subprocess.run(["true"], check=True),
    "removes a file": lambda path: path.unlink(),
}


def _raise(error):
    raise error


def _never():
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            continue


@pytest.mark.parametrize("what", BAD)
def test_a_fault_is_seen(work, monkeypatch, what):
    monkeypatch.setitem(TARGETS, "scenario", BAD[what])
    with pytest.raises(Fault):
        loaded("scenario", write_input(work, Input("scenario", "x", b"", ".yaml")), longest_s=0.2)


def test_the_sentinel_is_seen(work, monkeypatch):
    (work / SENTINEL).touch()
    with pytest.raises(Fault, match="code was run"):
        loaded("scenario", write_input(work, Input("scenario", "x", b"", ".yaml")))


@pytest.mark.slow
def test_in_a_process_of_its_own(tmp_path):
    """With 2 GiB of memory at most: what ``make fuzz`` runs."""
    arguments = ["--seed", "4", "--inputs", "100", "--keep", str(tmp_path / "kept")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("100 inputs in ")
    assert not (tmp_path / "kept").exists()
