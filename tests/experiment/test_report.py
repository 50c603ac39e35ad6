"""The report of a sweep: all of it in one file, the same each time, safe, and right in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import simnet
from simnet.errors import InputError
from simnet.experiment.report.page import page
from simnet.experiment.sweep import run_sweep
from simnet.experiment.sweep.store import Store
from simnet.experiment.sweep.tables import write_sweep
from simnet.scenario.sweep.load import load_sweep_file

from .examples import star_scenario

TELLING = "of those with most workers"


def sweep_into(folder: Path, **sweep: object) -> Path:
    loaded = load_sweep_file({"scenario": star_scenario(8) | {"run": {"iterations": 1}}, **sweep})
    store = Store(folder)
    run_sweep(loaded, store)
    write_sweep(loaded, store)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a sweep of which two points fail: a model of 16 workers on 8 hosts."""
    server = {"parameter_server": {"servers": 1}}
    grid = {"training.architecture": ["ring", server], "training.workers": [1, 2, 4, 7, 16]}
    return sweep_into(tmp_path_factory.mktemp("sweep") / "scan", grid=grid, baseline={"training.workers": 1})


@pytest.fixture(scope="module")
def text(folder) -> str:
    return page(folder)


def titles(text: str) -> list[str]:
    return re.findall("<h2>(.*?)</h2>", text)


def test_it_has_its_sections(text):
    assert titles(text) == [
        *("The question", "Points", "Scaling", "Communication to computing", "Where an iteration goes"),
        *("Two parameters", "What matters most", "One point", "Failed points"),
    ]
    assert "Left out" not in text
    assert "Baseline: workers 1" in text


def test_failures_are_told(text):
    assert "10 points, 2 have failed: 2 with" in text
    failed = text[text.index('<section id="failed">') :]
    assert failed.count("16 workers do not fit") >= 1
    numbers = re.findall(r'<tr><td class="number" data-n="(\d+).0">', failed)
    assert numbers == ["4", "9"]


def test_it_asks_nobody_for_anything(text):
    """No address of another place, and nothing that would be fetched."""
    assert "http:" not in text
    assert "https:" not in text
    assert not re.search(r"@import|<script src|<img|url\((?!#)", text)
    assert re.findall("<link [^>]*>", text) == ['<link rel="icon" href="data:,">']


def test_names_of_parts_of_pictures_are_unique(text):
    names = re.findall(r' id="([^"]+)"', text)
    assert len(names) == len(set(names))
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    assert used <= set(names)


def test_the_same_folder_gives_the_same_bytes(folder, text):
    assert page(folder) == text


def test_what_others_wrote_is_text(folder, tmp_path):
    """A name with markup in it, and an error with some."""
    evil = tmp_path / "evil"
    shutil.copytree(folder, evil)
    about = json.loads((evil / "sweep.json").read_text())
    (evil / "sweep.json").write_text(json.dumps(about | {"name": "<script>alert(1)</script>"}))
    frame = pd.read_parquet(evil / "sweep.parquet")
    frame.loc[frame["status"] == "failed", "error"] = "<img src=x onerror=alert(2)>"
    frame.loc[frame["status"] == "ok", "bottleneck"] = '"><b>'
    frame.to_parquet(evil / "sweep.parquet", index=False)
    text = page(evil, with_point=False)
    for bad in ("<script>alert", "<img src", '"><b>'):
        assert bad not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert text.count("<script") == 1


def test_the_table_has_the_numbers_of_the_sweep(folder, text):
    frame = simnet.load_sweep(folder)
    good = frame[frame["status"] == "ok"]
    points = text[text.index('<section id="points">') : text.index('<section id="scaling">')]
    numbers = [float(number) for number in re.findall(r'data-n="([^"]+)"', points)]
    for column in ("throughput_samples_per_s", "iteration_time_s", "baseline_speedup"):
        assert set(good[column]) <= set(numbers)


def test_the_point_is_chosen_by_a_rule_and_said(folder, text):
    """Of the two with 7 workers the one with the parameter server is less efficient: number 8."""
    assert "Point 8 (architecture" in text
    assert TELLING in text
    other = page(folder, point=2)
    assert "Point 2 (architecture ring, workers 4), run again with a timeline: the one that was asked for." in other
    assert titles(page(folder, with_point=False)) == titles(text)


@pytest.mark.parametrize(
    ("point", "said"), [(4, "point 4 has failed"), (10, "there is no point 10"), (-1, "there is no point -1")]
)
def test_points_that_cannot_be_looked_at(folder, point, said):
    with pytest.raises(InputError, match=said):
        page(folder, point=point)


def test_a_sweep_that_says_another_time_is_not_shown_as_that(folder, tmp_path):
    """The kept time is not what the run gives: then no point is shown, and the reason is."""
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    frame = pd.read_parquet(other / "sweep.parquet")
    frame["iteration_time_s"] *= 1.5
    frame.to_parquet(other / "sweep.parquet", index=False)
    assert "Left out: an iteration takes" in page(other)


def test_seeds_are_means_with_intervals(tmp_path):
    scenario = star_scenario(4, jitter={"distribution": "lognormal", "sigma": 0.3})
    folder = sweep_into(tmp_path / "seeds", scenario=scenario, grid={"training.workers": [1, 2, 4]}, repeat=4)
    text = page(folder)
    assert "Each was run with up to 4 seeds" in text
    means = pd.read_parquet(folder / "means.parquet")
    assert f'data-n="{means["iteration_time_s"].iloc[1]}"' in text
    assert f"± {means['iteration_time_s_ci95'].iloc[1]:.2g}" in text


def test_one_point_leaves_out_what_needs_more(tmp_path):
    text = page(sweep_into(tmp_path / "one"))
    assert text.count("Left out:") == 4
    assert "1 point, none has failed." in text


def test_where_nothing_has_succeeded_nothing_is_written(tmp_path):
    folder = sweep_into(tmp_path / "none", grid={"training.workers": [99, 100]})
    with pytest.raises(InputError, match="no point of the sweep has succeeded"):
        simnet.report(folder)
    assert not (folder / "report.html").exists()


# -- in a browser ----------------------------------------------------------------------------------------------------


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--disable-default-apps", "--enable-logging=stderr"),
    # Time passes at once; and what the browser asks of others for itself finds nobody.
    *("--virtual-time-budget=5000", "--host-resolver-rules=MAP * ~NOTFOUND"),
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")


def opened(address: str, folder: Path) -> tuple[str, str, set[str]]:
    """Open a page in a browser; return what became of it, what the browser says, and what the page has asked for.

    The browser also makes requests of its own, such as for the time of day, whatever the page is: these have no origin.
    """
    log = folder / "net.json"
    command = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={folder / 'user'}", f"--log-net-log={log}", "--dump-dom"]
    done = subprocess.run([*command, address], capture_output=True, text=True, timeout=120, check=True)
    events = json.loads(log.read_text(encoding="utf-8"))["events"]
    asked = [event["params"] for event in events if "initiator" in event.get("params", {})]
    urls = {str(one["url"]) for one in asked if one["initiator"] != "not an origin"}
    return done.stdout, done.stderr, {url for url in urls if not url.startswith(("file:", "data:"))}


@needs_chromium
def test_a_browser_opens_it_and_sorts_its_table(folder, text, tmp_path):
    """No error on its console, no request, and rows in the order of a column."""
    file = tmp_path / "report.html"
    file.write_text(text, encoding="utf-8")
    shown, said, asked = opened(f"{file.as_uri()}#sort=iteration time [s]", tmp_path)
    assert "CONSOLE" not in said
    assert asked == set()
    head = re.search(r'<th[^>]*aria-sort="ascending"[^>]*>(.*?)</th>', shown)
    assert head is not None
    assert "iteration time [s]" in head[1]
    points = shown[shown.index('<section id="points">') : shown.index('<section id="scaling">')]
    rows = re.findall("<tr>(.*?)</tr>", points, re.DOTALL)[1:]
    order = [int(float(row.split('data-n="')[1].split('"')[0])) for row in rows]
    frame = simnet.load_sweep(folder)
    assert order == frame[frame["status"] == "ok"].sort_values("iteration_time_s", kind="stable").index.tolist()


@needs_chromium
def test_a_request_and_an_error_would_be_seen(tmp_path):
    file = tmp_path / "bad.html"
    file.write_text('<!DOCTYPE html><img src="http://example.org/a.png"><script>nothing()</script>', encoding="utf-8")
    _, said, asked = opened(file.as_uri(), tmp_path)
    assert "CONSOLE" in said
    assert asked == {"http://example.org/a.png"}
