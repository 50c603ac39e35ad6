"""``python -m simnet``: the same as the command ``simnet``."""

from __future__ import annotations

from simnet.cli.main import main

if __name__ == "__main__":
    main()
