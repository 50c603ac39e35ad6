"""Write README and docs anew where they follow from the code: ``make docs``.

Tables are generated, what commands print is replaced by what they print now, and the pictures that they draw are those
that the pages show.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from examples import difference, run_page
from generated import pages, with_generated

from simnet.fabric.warm_up import compile_kernels


def main() -> None:
    """Update every page."""
    compile_kernels(print)
    for path in pages():
        before = path.read_text(encoding="utf-8")
        page = with_generated(before)
        with tempfile.TemporaryDirectory() as folder:
            examples = [example for example in run_page(page, Path(folder)) if difference(example)]
            for place, name in re.findall(r"\]\((\S*pictures/(\S+\.svg))\)", page):
                (path.parent / place).parent.mkdir(exist_ok=True)
                shutil.copyfile(Path(folder) / name, path.parent / place)
        for example in reversed(examples):
            page = page[: example.start] + example.printed + page[example.end :]
        if page != before:
            path.write_text(page, encoding="utf-8")
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
