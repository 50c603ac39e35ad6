"""The paper on the surveys has every finding, and what it shows is what the simulator says."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from simnet.scenario import load_scenario
from simnet.scenario.sweep.load import load_sweep_file

RESULTS = Path(__file__).parents[2] / "results"
FOLDER = RESULTS / "surveys"
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")
FILES = sorted(FOLDER.glob("*/*.yaml"))
CHEAPEST = (4, 10, 17)


@pytest.fixture
def surveys(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the command as a module; it finds its own parts beside itself."""
    monkeypatch.syspath_prepend(str(RESULTS))
    return importlib.import_module("surveys")


def test_each_of_the_17_findings_has_a_folder_a_section_and_parts(surveys):
    assert list(surveys.FINDINGS) == list(range(1, 18))
    assert sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) == [
        folder for folder, _ in surveys.FINDINGS.values()
    ]
    for number, (folder, run) in surveys.FINDINGS.items():
        assert callable(run)
        assert re.search(rf"^## {number}\. ", PAGE, re.MULTILINE), number
        assert f"<!-- generated: finding {number}, " in PAGE, number
        assert list((FOLDER / folder).glob("*.yaml")), folder
        assert list((FOLDER / folder).glob("*.csv")), folder


def test_no_part_of_the_page_is_empty():
    parts = re.findall(r"<!-- generated: (.+?) -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    assert [name for name, text in parts if not text.strip()] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_files_load(path):
    """Sweeps with all their points; the one scenario that is no sweep is varied by the command."""
    if "\ntopology:" in path.read_text(encoding="utf-8"):
        load_scenario(path)
    else:
        assert load_sweep_file(path).points


def test_links_and_pictures_of_the_page_are_there():
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGE):
        if target.startswith("http"):
            continue
        file, _, heading = target.partition("#")
        path = FOLDER / file if file else FOLDER / "README.md"
        assert path.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert heading in slugs, target


@pytest.mark.slow
@pytest.mark.parametrize("number", CHEAPEST)
def test_tables_are_what_the_simulator_says(surveys, tmp_path, number):
    """Run the cheapest findings anew, beside the committed tables: equal to 1e-5, which is how they are written."""
    folder, run = surveys.FINDINGS[number]
    for file in (FOLDER / folder).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    committed = {file.name: pd.read_csv(file) for file in (FOLDER / folder).glob("*.csv")}
    place = surveys.Place(tmp_path)
    run(place)
    for name, table in committed.items():
        pd.testing.assert_frame_equal(pd.read_csv(tmp_path / name), table, rtol=1e-5)
    for name, text in place.parts.items():
        assert f"<!-- generated: finding {number}, {name} -->\n{text}\n<!-- end -->" in PAGE
