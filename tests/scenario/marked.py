"""Scenarios with a mark where something is wrong, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from simnet.errors import InputError
from simnet.scenario import load_scenario

MARK = "»"
"""Stands in a case where the mistake is; what is right of it is pointed at."""

RIGHT = {
    "topology": "{star: {hosts: 16, bandwidth: 100 Gbps, latency: 1 us}}",
    "protocol": "rdma",
    "workload": "{model: resnet50, gpu: v100, batch_size: 64}",
}


def said_of(folder: Path, text: str) -> list[str]:
    """Return what is said of a scenario file, without its name and the lines that show the text."""
    file = folder / "s.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_scenario(file)
    return [str(problem).removeprefix(f"{file}:").split("\n")[0] for problem in caught.value.problems]


def at_mark(text: str, said: str) -> tuple[str, str]:
    """Return a text without its mark, and what is said with the mark's line and column in front."""
    before = text[: text.index(MARK)].split("\n")
    return text.replace(MARK, ""), f"{len(before)}:{len(before[-1]) + 1}: {said}"


def with_changed(**sections: str) -> str:
    """Return a scenario that is right but for the sections given; each is on a line of its own, from line 1."""
    return "\n".join(f"{key}: {value}" for key, value in (sections | RIGHT | sections).items())
