"""Mistakes: all at once, each with its place, on standard error; never a traceback; exit status 2."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest

from simnet.errors import InvariantError, StalledError
from simnet.scenario import ScenarioSpec

WRONG = """\
topology: {star: {hosts: 4, bandwidth: 100, latency: 1 us}}
protocl: tcp
workload:
  model: resnet5
  gpu: v100
  batch_size: 64
training: {workers: 4, architecture: rng}
"""


@pytest.fixture
def wrong(here):
    """Write a scenario with four mistakes."""
    (here / "wrong.yaml").write_text(WRONG)
    return "wrong.yaml"


def test_everything_that_is_wrong_is_said_at_once_with_line_column_and_caret(command, wrong, here):
    status, out, err = command("run", wrong)
    assert (status, out) == (2, "")
    assert err == (
        "wrong.yaml:1:1: 'protocol' is missing, "
        "wanted: the transport: a name, {name: {what differs from its defaults}}, or a file\n"
        "    topology: {star: {hosts: 4, bandwidth: 100, latency: 1 us}}\n"
        "    ^\n"
        "wrong.yaml:1:40: bandwidth: 100 has no unit, write it like '100 Gbps' (bits) or '12.5 GB/s' (bytes)\n"
        "    topology: {star: {hosts: 4, bandwidth: 100, latency: 1 us}}\n"
        "                                           ^\n"
        "wrong.yaml:2:1: unknown key 'protocl', did you mean 'protocol'? "
        f"known: {', '.join(ScenarioSpec.model_fields)}\n"
        "    protocl: tcp\n"
        "    ^\n"
        "wrong.yaml:4:10: unknown model 'resnet5', did you mean 'resnet50'?\n"
        "      model: resnet5\n"
        "             ^\n"
        "wrong.yaml:7:38: architecture is 'rng', "
        "did you mean 'ring'? known: ring, star, tree, double_tree, butterfly, halving_doubling, mesh, hierarchical, "
        "torus, parameter_server, mapreduce, gossip, in_network, nccl\n"
        "    training: {workers: 4, architecture: rng}\n"
        "                                         ^\n"
        "5 problems\n"
    )
    assert [file.name for file in here.iterdir()] == [wrong]


def test_check_says_the_same(command, wrong):
    assert command("check", wrong) == command("run", wrong)


@pytest.mark.parametrize("output", [[], ["--json"], ["-q"]])
def test_nothing_goes_to_standard_output(command, wrong, output):
    status, out, err = command("run", wrong, *output)
    assert (status, out) == (2, "")
    assert err.endswith("5 problems\n")


def test_every_problem_of_every_scenario_is_said(command, wrong, here):
    (here / "a.yaml").write_text(
        "topology: nowhere\nprotocol: tcp\nworkload: {model: resnet50, gpu: q, batch_size: 1}\n"
    )
    status, out, err = command("run", wrong, "a.yaml", "--set", "x", "--set", "y", "--protocol", "{tcp", "nothing.yaml")
    assert (status, out) == (2, "")
    for said in (
        "wrong.yaml:4:10",
        "a.yaml:1:11",
        "unknown GPU 'q'",
        "--set: 'x'",
        "--set: 'y'",
        "--protocol:1:14",
        "no file",
    ):
        assert said in err, said
    assert command("run", wrong, wrong).err == command("run", wrong).err


def test_a_folder_that_cannot_be_written_is_said_beside_what_is_wrong_with_the_scenario(command, wrong):
    err = command("run", wrong, "-o", "/dev/null/x").err
    assert "wrong.yaml:4:10" in err
    assert "/dev/null/x: cannot be written" in err


def test_other_commands_say_all_at_once(command, here):
    err = command("topology", "make", "{star: {host: 4}}", "-o", "x.txt").err
    assert "SPEC:1:" in err
    assert "'x.txt' is no topology file" in err
    err = command("collective", "all_reduc", "--topology", "x", "--protocol", "tcp", "--csv", "--json").err
    assert "exclude each other" in err
    assert "did you mean 'all_reduce'" in err
    err = command("check", "nothing.yaml", "--set", "x").err
    assert "--set: 'x'" in err
    assert "no file 'nothing.yaml'" in err


def test_a_mistake_in_the_last_scenario_is_found_before_the_first_runs(command, wrong, here):
    status, out, _ = command("run", "own_workload", wrong)
    assert (status, out) == (2, "")
    assert not (here / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "nothing.yaml"], "there is no file 'nothing.yaml' here, known: all_reduce_butterfly, "),
        (["run", "resnet50_16gp"], "there is no file 'resnet50_16gp' here, did you mean 'resnet50_16gpu'?\n"),
        (["run", ""], "'' names no file, a file name is wanted\n"),
        (["check", ""], "'' names no file, "),
        (["run", "."], "'.' is a directory, a file is wanted\n"),
        (["run", "own_workload", "--set", "x"], "--set: 'x' names no key and value, write it like training.workers=32"),
        (
            ["run", "own_workload", "--set", "training.workers=5"],
            "--set:1:18: 5 workers do not fit on the 4 ranks of topology star, at most 4 workers are possible\n"
            "    training.workers=5\n"
            "                     ^\n",
        ),
        (
            ["run", "own_workload", "--topology", "{star: {hosts: 4, bandwidth: 1 Gb, latency: 1 us}}"],
            "--topology:1:39: bandwidth: '1 Gb' is an amount, not a bandwidth, did you mean 'Gb/s'?\n",
        ),
        (["run", "own_workload", "--protocol", "tpc"], "--protocol:1:10: protocol is 'tpc', did you mean 'tcp'?"),
        (["run", "own_workload", "--protocol", "{tcp"], "--protocol:1:14: a mapping '{' that is not closed"),
        (["run", "own_workload", "-o", "/dev/null/x"], "/dev/null/x: cannot be written: Not a directory"),
        (["check", "nothing.yaml"], "there is no file 'nothing.yaml' here"),
        (["topology", "show", "fat_tre_k8"], "there is no file 'fat_tre_k8' here, did you mean 'fat_tree_k8'?"),
        (["topology", "show", "{star: {host: 4}}"], "SPEC:1:"),
        (["topology", "make", "{star: {hosts: 4}}", "-o", "x.txt"], "x.txt: 'x.txt' is no topology file by its suffix"),
        (["topology", "make", "{star: {hosts: 4}}", "-o", "/dev/null/x.json"], "/dev/null/x.json: cannot be written: "),
        (["workload", "from-profile", "nothing.json"], "nothing.json: there is no such file"),
    ],
)
def test_what_is_said(command, here, arguments, said):
    status, out, err = command(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith(said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frobnicate"], "No such command 'frobnicate'."),
        (["run", "--bogus", "x"], "No such option: --bogus"),
        (["run"], "Missing argument"),
        (["topology", "make", "{star: {hosts: 4}}"], "Missing option"),
        (["workload", "from-profile", "x.json", "--rank", "-1"], "--rank"),
    ],
)
def test_a_command_that_there_is_not(command, arguments, said):
    status, out, err = command(*arguments)
    assert (status, out) == (2, "")
    assert said in err


@pytest.mark.parametrize("error", [StalledError("nothing can move any more"), InvariantError("a law does not hold")])
def test_a_run_without_a_number_has_status_1(command, here, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("simnet.experiment.run.run_scenario", fail)
    assert command("run", "own_workload") == (1, "", f"{error}\n")
    assert not (here / "results").exists()


def test_in_a_process_of_its_own(process, wrong):
    """The same through the real entry point: status 2, all on standard error, no traceback."""
    done = process("run", wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("5 problems\n")
    assert "Traceback" not in done.stderr


def test_a_reader_that_has_had_enough(environment, here):
    """``simnet schema | head -1`` ends without a word."""
    with subprocess.Popen(
        [sys.executable, "-m", "simnet.cli.main", "schema"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        assert writer.stderr is not None
        assert writer.stdout.readline() == "{\n"
        writer.stdout.close()
        assert writer.stderr.read() == ""
    assert writer.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell that closes streams")
@pytest.mark.parametrize("closed", [">&-", "2>&- >/dev/null", "<&- >&- 2>&-"])
def test_streams_that_are_closed(environment, here, closed):
    """The work is done, as if somebody listened; not a word of it is lost in a file that got the stream's number."""
    words = shlex.join([sys.executable, "-m", "simnet", "run", "own_workload", "--set", "run.iterations=2", "-o", "x"])
    done = subprocess.run(
        ["sh", "-c", f"{words} {closed}"], env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0
    assert done.stdout == ""
    assert done.stderr in ("", "wrote x\n")
    assert (here / "x" / "summary.csv").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")  # noqa: PTH110
@pytest.mark.parametrize("arguments", [["schema"], ["topology", "show", "{star: {hosts: 4}}"]])
def test_a_disk_that_is_full(environment, here, arguments):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "simnet.cli.main", *arguments],
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=100,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "output: No space left on device\n")


@pytest.mark.parametrize("module", ["typer", "simnet.cli.app", "simnet.errors"])
def test_interrupted_while_it_is_loading(environment, here, module):
    """Ctrl-C in the first tenths of a second, while modules are imported."""
    script = (
        "import builtins, sys\n"
        "from simnet.cli.main import main\n"
        "known = builtins.__import__\n"
        "def load(name, *rest):\n"
        f"    if name == {module!r}: raise KeyboardInterrupt\n"
        "    return known(name, *rest)\n"
        f"sys.modules.pop({module!r}, None)\n"
        "builtins.__import__ = load\n"
        "sys.argv = ['simnet', '--version']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted: nothing is written\n")


def test_a_terminal_that_has_not_every_letter(environment, here):
    """The result is written, and said, with the letters escaped."""
    done = subprocess.run(
        [sys.executable, "-m", "simnet.cli.main", "run", "own_workload", "--set", "name=réseau", "-o", "out"],
        env=environment | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "r\\xe9seau" in done.stdout


def test_every_problem_of_every_file_is_said(command, here):
    for name, text in (("a.yaml", "topology: 1\n"), ("b.json", "[1]")):
        (here / name).write_text(text)
    status, out, err = command("check", "a.yaml", "own_workload", "b.json")
    assert status == 2
    assert out.startswith("scenario own_workload")
    assert "a.yaml:1:" in err
    assert "b.json" in err


def test_an_error_in_json_mode_is_no_json(command, wrong):
    with pytest.raises(json.JSONDecodeError):
        json.loads(command("run", wrong, "--json").err)


def test_a_duration_in_which_no_iteration_ends_gives_no_numbers(command, here):
    (here / "short.yaml").write_text(
        "topology: {star: {hosts: 2, bandwidth: 10 Gbps, latency: 1 us}}\n"
        "protocol: tcp\n"
        "workload: {model: resnet50, gpu: v100, batch_size: 64}\n"
        "training: {sync: asp, architecture: gossip}\n"
        "run: {duration: 1 ns}\n"
    )
    status, out, err = command("run", "short.yaml")
    assert (status, out) == (1, "")
    assert err == "no worker of job train ended an iteration in the measured time\n"
