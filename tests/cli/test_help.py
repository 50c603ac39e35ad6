"""Help, version and schema: at once, and right."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import simnet

# Some versions of typer import pydantic where it is there.
HEAVY = ("numpy", "pandas", "numba", "networkx", "matplotlib", "pyarrow", "simpy", "yaml", "simnet.extensions")

SCRIPT = """\
import json, resource, sys
sys.argv = ["simnet", *sys.argv[1:]]
from simnet.cli.main import main
try:
    main()
except SystemExit as left:
    assert not left.code, left.code
times = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([sorted(sys.modules), times.ru_utime + times.ru_stime]), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]], ids=" ".join)
def test_it_answers_at_once(environment, arguments):
    """No heavy import, and 0.3 s of the processor on the machine this was written on; twice that is the limit."""
    modules: list[str] = []
    taken = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        modules, seconds = json.loads(done.stderr)
        taken.append(seconds)
    assert [name for name in HEAVY if name in modules] == []
    assert min(taken) < 0.6


def test_a_check_needs_no_kernels_tables_or_pictures(environment):
    """What only a run needs takes more than half of the time that a run needs to start."""
    check = [sys.executable, "-c", SCRIPT, "check", "resnet50_16gpu"]
    done = subprocess.run(check, env=environment, capture_output=True, text=True, timeout=60, check=True)
    modules, _ = json.loads(done.stderr)
    assert {"numba", "pandas", "pyarrow", "matplotlib"} & {*modules} == set()


def test_help_names_the_commands(command):
    status, out, err = command("--help")
    assert (status, err) == (0, "")
    for name in ("run", "check", "schema", "topology", "workload"):
        assert f" {name} " in out


def test_version(command):
    assert command("--version") == (0, f"simnet {simnet.__version__}\n", "")


def test_the_schema_is_json(command):
    status, out, err = command("schema")
    assert (status, err) == (0, "")
    assert json.loads(out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_without_a_command_it_helps(command):
    status, out, err = command()
    assert status in (0, 2)
    assert "Usage: " in out + err


def test_importing_simnet_imports_nothing_heavy(environment):
    script = f"import simnet, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


def test_everything_that_simnet_offers_is_there():
    for name in simnet.__all__:
        assert getattr(simnet, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'rnu'"):
        simnet.rnu  # noqa: B018
