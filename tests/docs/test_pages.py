"""README and docs say what the code says, and every example on them prints what stands there."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from simnet.experiment.columns import COLUMNS, columns_as_markdown
from simnet.fabric.packet.fabric import compile_packet_kernels
from simnet.fabric.warm_up import compile_kernels
from simnet.protocols import FIELDS, PROTOCOLS
from simnet.scenario import scenario_keys
from simnet.topology import GENERATORS
from simnet.workload import list_models

ROOT = Path(__file__).parents[2]


def _tool(name: str) -> ModuleType:
    """Import a script of the docs."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


examples, generated = _tool("examples"), _tool("generated")
PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in generated.pages()}


@pytest.mark.parametrize("name", list(PAGES))
def test_generated_parts_are_in_step_with_the_code(name):
    """Where this fails, run ``make docs``."""
    assert PAGES[name] == generated.with_generated(PAGES[name])


@pytest.mark.parametrize(
    "name", [name for name, page in PAGES.items() if re.search("^```(console|python)", page, re.M)]
)
def test_examples_print_what_stands_there(name, tmp_path):
    """Where this fails and the change is meant, run ``make docs``."""
    compile_kernels(lambda _: None)
    compile_packet_kernels(lambda _: None)
    for example in examples.run_page(PAGES[name], tmp_path):
        if examples.difference(example):
            assert example.shown == example.printed, f"{name}:{example.line}"
    for picture in re.findall(r"pictures/(\S+\.svg)\)", PAGES[name]):
        assert (tmp_path / picture).is_file(), f"{name}: no example draws {picture}"


def test_every_part_is_on_a_page():
    text = "".join(PAGES.values())
    for name in generated.GENERATED:
        assert f"<!-- generated: {name} -->" in text


@pytest.mark.parametrize("name", list(PAGES))
def test_links_lead_somewhere(name):
    """Every relative link and picture is there, and every heading that a link names."""
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGES[name]):
        if target.startswith("http"):
            continue
        file, _, heading = target.partition("#")
        path = (ROOT / name).parent / file if file else ROOT / name
        assert path.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings]
            assert heading in slugs, target


def test_every_column_is_documented():
    text = "".join(PAGES.values())
    for table in COLUMNS:
        assert columns_as_markdown(table) in text, table


def test_the_readme_names_everything_that_a_scenario_may_name():
    readme = PAGES["README.md"]
    for name in (*PROTOCOLS, *GENERATORS, *list_models()):
        assert f"`{name}`" in readme, name


def test_every_key_is_on_the_page_of_the_scenario():
    page = PAGES["docs/scenario.md"]
    for key in scenario_keys():
        assert f"| `{key.path.rpartition('.')[2]}` |" in page, key.path
    for field in FIELDS.values():
        assert f"`{field.key}`" in PAGES["docs/protocols.md"]


def test_every_page_can_be_reached_from_the_readme():
    """From link to link, so that no page is forgotten."""
    seen, left = set(), ["README.md"]
    while left:
        name = left.pop()
        if name in seen or name not in PAGES:
            continue
        seen.add(name)
        targets = re.findall(r"\]\(([^)#\s]+\.md)", PAGES[name])
        left += [str(((ROOT / name).parent / target).resolve().relative_to(ROOT)) for target in targets]
    assert seen == set(PAGES)
