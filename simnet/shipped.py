"""Where the topologies, workloads, scenarios and measurements that come with simnet lie."""

from __future__ import annotations

from pathlib import Path

__all__ = ["shipped_folder"]

_PACKAGE = Path(__file__).parent


def shipped_folder(kind: str) -> Path:
    """Return the folder of shipped files of one kind.

    An installed wheel carries them inside the package, a checkout beside it.

    Parameters
    ----------
    kind : str
        ``topologies``, ``workloads``, ``scenarios`` or ``validation``.
    """
    inside = _PACKAGE / "shipped_files" / kind
    return inside if inside.is_dir() else _PACKAGE.parent / kind
