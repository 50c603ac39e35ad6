"""What installed packages add to simnet: found by the names of their entry points, loaded when a name is asked for.

So a package that is broken, or slow to import, is nothing to those who do not use it. See docs/extending.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from simnet.errors import InputError, Problem

__all__ = ["Extensions"]

_NAME = re.compile(r"(?!model_)[a-z][a-z0-9]*([_-][a-z0-9]+)*")

# Keys that stand beside names, and what pydantic's models, whose fields names become, have of their own.
_RESERVED = frozenset({"file", "name", "options", "changes", "defaults", "known", "construct", "copy", "dict", "json"})
_RESERVED |= {"from_orm", "parse_file", "parse_obj", "parse_raw", "schema", "schema_json", "update_forward_refs"}
_RESERVED |= {"validate"}


@dataclass(frozen=True)
class Extensions:
    """What packages add of one kind.

    Parameters
    ----------
    what : str
        What one is called in messages.
    group : str
        Group of the entry points.
    """

    what: str
    group: str

    def names(self, own: Collection[str] = ()) -> tuple[str, ...]:
        """Return the names that packages add, by the alphabet; `own` are those that simnet has itself."""
        return tuple(name for name in _claims(self.group) if name not in own and _is_name(name))

    def require_unclaimed(self, name: str) -> None:
        """Refuse a name that simnet has itself, where a package adds something of that name.

        Raises
        ------
        InputError
            Names the package.
        """
        if name in _claims(self.group):
            hint = "uninstall the package, or have it use another"
            raise self.refusal(name, "has the name of one that comes with simnet", hint)

    def load(self, name: str) -> Any:
        """Return what a package adds under one of `names`.

        Raises
        ------
        InputError
            Several packages do, or it cannot be loaded; names the package.
        """
        if len(_claims(self.group)[name]) > 1:
            raise self.refusal(name, "is there more than once", "uninstall all of them but one")
        with self.blaming(name, "cannot be loaded"):
            return _load(self.group, name)

    def misnamed(self) -> Iterator[Problem]:
        """Yield a problem for each entry point that `names` leaves out since its name cannot be used."""
        for name in _claims(self.group):
            if not _is_name(name):
                hint = "lower-case letters, digits, '_' and '-' are wanted, and no word that has a meaning of its own"
                yield from self.refusal(name, "has a name that it cannot have", hint).problems

    def refusal(self, name: str, message: str, hint: str = "") -> InputError:
        """Return an error about what packages add under a name: that it ``cannot be loaded``, say."""
        found = " and ".join(dict.fromkeys(_package(entry) for entry in _claims(self.group)[name]))
        return InputError(Problem(f"{self.what} {name!r} of package {found} {message}", hint))

    @contextmanager
    def blaming(self, name: str, message: str) -> Iterator[None]:
        """Have any error of a package's code name the package; input errors are its own words, and stay."""
        try:
            yield
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            said = f"{message}: {type(error).__name__}: {error}".rstrip(": ")
            raise self.refusal(name, said, "update or uninstall the package") from error


@cache
def _claims(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    """Return the entry points of each name, by the alphabet."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, _package(entry))):
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


@cache
def _load(group: str, name: str) -> Any:
    [entry] = _claims(group)[name]
    return entry.load()


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def _is_name(name: str) -> bool:
    """Tell whether a name can be a key: each of its parts, with dots between."""
    return all(_NAME.fullmatch(part) and part not in _RESERVED for part in name.split("."))
