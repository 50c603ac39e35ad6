"""Find the file that a scenario or a person names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simnet.errors import InputError, Problem
from simnet.scenario.fields import hint_at, shown
from simnet.shipped import shipped_folder

__all__ = ["find_file", "shipped_names"]


def find_file(name: str, folder: Path | None, kind: str = "", suffixes: Sequence[str] = ()) -> Path:
    """Return the file that `name` means.

    Tried in this order: relative to `folder`, relative to the working directory, among what ships.

    Parameters
    ----------
    name : str
        A path, or the name of something that ships, with or without its suffix.
    folder : Path or None
        Where the naming scenario lies.
    kind : str
        ``topologies``, ``workloads`` or ``scenarios``; empty where nothing of the kind ships.
    suffixes : sequence of str
        Suffixes that shipped files of this kind have, with their dot.

    Raises
    ------
    InputError
        There is no such file, or it is a directory.
    """
    if not name.strip():
        raise InputError(Problem(f"{shown(name)} names no file", "a file name is wanted"))
    given = Path(name)
    places = [place / given for place in (folder, Path()) if place is not None]
    if kind and not given.is_absolute():
        shipped = shipped_folder(kind)
        places += [shipped / given, *(shipped / f"{name}{suffix}" for suffix in suffixes)]
    found_directory = False
    for place in places:
        try:
            if place.is_file():
                return place
            found_directory = found_directory or place.is_dir()
        except (OSError, ValueError):  # too long, or not a file name at all
            continue
    if found_directory:
        raise InputError(Problem(f"{shown(name)} is a directory", "a file is wanted"))
    known = shipped_names(kind, suffixes) if kind else []
    ships = hint_at(name, known) if known else ""
    where = " here" if folder is None else f" beside the scenario ({folder}) or in the working directory"
    raise InputError(Problem(f"there is no file {shown(name)}{'' if given.is_absolute() else where}", ships))


def shipped_names(kind: str, suffixes: Sequence[str]) -> list[str]:
    """Return the names of everything of one kind that ships, sorted."""
    folder = shipped_folder(kind)
    if not folder.is_dir():
        return []
    return sorted({file.stem for file in folder.iterdir() if file.suffix in suffixes})
