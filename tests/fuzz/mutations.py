"""Damage: one input made into another, by a stream of random numbers and nothing else."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["PAYLOADS", "SENTINEL", "damaged", "invented", "special_files"]

SENTINEL = "sentinel"
"""What code that is run would leave in the working directory."""

PAYLOADS = (
    f'!!python/object/apply:os.system ["touch {SENTINEL}"]',
    f'!!python/object/new:os.system ["touch {SENTINEL}"]',
    f"!!python/object/apply:subprocess.check_output [[touch, {SENTINEL}]]",
    "!!python/name:os.system",
    "!!python/module:os",
    "!!python/tuple [1, 2]",
    "!!binary gASVIAAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAh0b3VjaCBhlIWUUpQu",
    "!!set {a, b}",
    "!!timestamp 2001-12-14t21:59:43.10-05:00",
    "!<tag:example.org,2000:x> 1",
    "!!float nan",
    "!!int x",
    f'__import__("os").system("touch {SENTINEL}")',
    f"$(touch {SENTINEL})",
    f"{{{{ cycler.__init__.__globals__.os.popen('touch {SENTINEL}') }}}}",
)
"""Texts that would run code if they were taken for more than text."""

_VALUES = (
    *("null", "~", "true", "false", "yes", "on", "''", '""', "[]", "{}", "[[]]", "[null]", "{a: 1}", "{1: 2}", "x"),
    *("0", "1", "-1", "2", "3", "7", "1.5", "-0.0", "1e-320", "1e308", "-1e308", "1e400", "0x10", "0o17", "010"),
    *(".nan", ".inf", "-.inf", "nan", "NaN", "inf", "Infinity", "-Infinity", "1_000", "\u0663", "\u00bd", "1,5"),
    *(str(2**31), str(2**53 + 1), str(2**63), "-" + str(2**63), "9" * 30, "9" * 400, "9" * 5000),
    *("0 B", "1 B", "-1 B", "1 Gb", "1 GB", "1 Gbps", "0 Gbps", "1 bps", "1 Pbps", "1e300 Gbps", "1e-300 Gbps"),
    *("0 s", "1 us", "-1 us", "10 s", "1e300 s", "1e-300 s", "1 furlong", "unlimited", "10 TB", "1e30 TB", "nan s"),
    *("../../../../etc/passwd", "/etc/shadow", "/dev/zero", "/dev/stdin", "/proc/self/mem", "..", ".", "/", "~root"),
    *("input", "loop", "zero", "folder", "pipe", "star", "ring", "tcp", "rdma", "resnet50", "v100", "ring: {}"),
    *("\ud7ff", "\U0001f600", "e\u0301", "\u202e", "\u2028", "\x00", "\x1b[31m", "\ufffe", "*", "&a", "*a", "<<", "%"),
)

_SCALAR = re.compile(r'(?<=[:,\[=>"\t ])[ ]?[^\s:,\[\]{}<>="#][^\n,\[\]{}<>="#]*')
_ENTRY = re.compile(r'"?[A-Za-z_.][\w.]*"?\s*[:=]\s*(?:\[[^\[\]]*\]|\{[^{}]*\}|"[^"]*"|[^\n,\[\]{}]+),?\s?')
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_UNIT = re.compile(r"(?<=[0-9] )[A-Za-z]+(?:/[a-z]+)?|(?<=[0-9])(?:ms|us|ns|s|B|kB|MiB|GB)\b")
_UNITS = ("B", "b", "GB", "Gb", "Gbps", "GB/s", "Gib/s", "s", "us", "ns", "min", "h", "m", "W", "", "bytes", "Mbps/s")
_WORD = re.compile(r"[A-Za-z_]\w+")
_BRACKETS = re.compile(r"[\[\]{}<>\"':,]")


def _put(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def _one(rng: random.Random, pattern: re.Pattern[str], text: str) -> tuple[int, int] | None:
    """Return where one match is, out of those behind a random place, or at the beginning."""
    found = pattern.search(text, rng.randrange(len(text) + 1)) or pattern.search(text)
    return found.span() if found else None


def _replaced(pattern: re.Pattern[str], values: Sequence[str]) -> Callable[[random.Random, str], str]:
    def replace(rng: random.Random, text: str) -> str:
        place = _one(rng, pattern, text)
        return _put(text, *place, rng.choice(values)) if place else text

    return replace


def _doubled(rng: random.Random, text: str) -> str:
    place = _one(rng, _ENTRY, text)
    return _put(text, place[1], place[1], text[place[0] : place[1]]) if place else text


def _renamed(rng: random.Random, text: str) -> str:
    place = _one(rng, _WORD, text)
    if not place:
        return text
    word = text[place[0] : place[1]]
    other = _one(rng, _WORD, text) or place
    return _put(text, *place, rng.choice([word[1:], word + "s", word.upper(), text[other[0] : other[1]], ""]))


def _lines(rng: random.Random, text: str) -> str:
    """Lines left out, repeated, moved, or cut."""
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return text
    start = rng.randrange(len(lines))
    end = min(len(lines), start + rng.choice((1, 1, 1, 2, 5)))
    how = rng.randrange(5)
    if how == 0:
        del lines[start:end]
    elif how == 1:
        lines[start:start] = lines[start:end] * rng.choice((1, 1, 3))
    elif how == 2:
        lines.insert(rng.randrange(len(lines)), lines.pop(start))
    elif how == 3:
        lines[start] = lines[start][: rng.randrange(len(lines[start]) + 1)]
    else:
        lines[start] = rng.choice(("  ", " ", "\t", "- ", "? ", "# ", "--- ", "... ")) + lines[start]
    return "".join(lines)


def _nested(rng: random.Random, text: str) -> str:
    depth = rng.choice((5, 39, 41, 99, 101, 900, 5000))
    opened, closed = rng.choice((("[", "]"), ("{a: ", "}"), ('{"a": ', "}"), ("<node>", "</node>"), ("a [ ", " ]")))
    inner = opened * depth + "1" + closed * (depth if rng.random() < 0.8 else 0)
    place = _one(rng, _SCALAR, text)
    return _put(text, *place, " " + inner) if place else inner


def _circle(rng: random.Random, text: str) -> str:
    """Anchors in a circle, or aliases that double at each level."""
    if rng.random() < 0.9:
        value = rng.choice(("&a [*a]", "&a {b: *a}", "&a {<<: *a}", "[&a {b: &b [*a, *b]}]", "*a", "&a"))
    else:
        levels = [f"&l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12)]
        value = "[&l0 [x], " + ", ".join(levels) + "]"
    place = _one(rng, _SCALAR, text)
    return _put(text, *place, " " + value) if place else f"a: {value}"


def _long(rng: random.Random, text: str) -> str:
    """A line of some 100 kB, at times of 1 MB."""
    size = 1_000_000 if rng.random() < 0.02 else 30_000
    piece = rng.choice(("x", "9", " ", "a, ", "[", '"', "#", "\\u0041", "a: ", "é", "<a/>", "0,"))
    line = piece * (size // len(piece))
    place = _one(rng, _SCALAR, text) if rng.random() < 0.7 else None
    return _put(text, *(place or (rng.randrange(len(text) + 1),) * 2), line)


_DOCUMENT_TYPES = (
    '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
    '<!DOCTYPE x SYSTEM "http://localhost:1/x.dtd">',
    '<!DOCTYPE x [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>',
    "<!DOCTYPE x [<!ENTITY a0 'ha'>" + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12)) + "]>",
)


def _entities(rng: random.Random, text: str) -> str:
    """A document type with entities from outside, or a billion laughs; and a use of them."""
    head = rng.choice(_DOCUMENT_TYPES)
    body = re.sub(r"<\?xml[^>]*\?>", "", text)
    place = _one(rng, re.compile(r"(?<=>)[^<>]+(?=<)"), body)
    if place:
        body = _put(
            body, *place, rng.choice(("&e;", "&a11;", "&#0;", "&#xd800;", "&lt;", "&undefined;", "<![CDATA[x]]>"))
        )
    return (head if rng.random() < 0.7 else "") + body


def _bits(rng: random.Random, text: str) -> str:
    """Single characters written over, left out or put in."""
    for _ in range(rng.choice((1, 2, 8))):
        place = rng.randrange(len(text) + 1)
        new = rng.choice(
            ("", "", ":", " ", "\n", "\t", "\r", "'", '"', "{", "}", "[", "]", ",", "-", "\0", "\x85", "<", "&")
        )
        text = _put(text, place, place + rng.randrange(3), new)
    return text


def _cut(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


_OF_TEXT: tuple[tuple[int, Callable[[random.Random, str], str]], ...] = (
    (12, _replaced(_SCALAR, _VALUES)),
    (6, _replaced(_NUMBER, _VALUES)),
    (6, _replaced(_ENTRY, ("",))),
    (3, _replaced(_UNIT, _UNITS)),
    (2, _replaced(_SCALAR, PAYLOADS)),
    (3, _replaced(_BRACKETS, ("", "[", "]", "{", "}", ",", ":"))),
    (2, _doubled),
    (4, _renamed),
    (6, _lines),
    (1, _nested),
    (2, _circle),
    (1, _long),
    (1, _entities),
    (3, _bits),
    (2, _cut),
)


def _encoded(rng: random.Random, text: str) -> bytes:
    """Return the text as bytes; now and then in another encoding, or with bytes that are none of text."""
    plain = text.encode("utf-8", "surrogatepass")
    how = rng.randrange(40)
    if how == 0:
        return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-7")), "replace")
    if how == 1:
        return (text + "é").encode("latin-1", "replace")
    if how == 2:
        return b"\xef\xbb\xbf" * rng.choice((1, 1, 2)) + plain
    if how == 3:
        place = rng.randrange(len(plain) + 1)
        return (
            plain[:place] + rng.choice((b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80")) + plain[place:]
        )
    if how == 4:
        return plain.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\xc2\x85", b"")))
    return plain


def damaged(rng: random.Random, text: str) -> bytes:
    """Return one to four kinds of damage to a text."""
    weights, kinds = zip(*_OF_TEXT, strict=True)
    for change in rng.choices(kinds, weights, k=rng.choice((1, 1, 1, 2, 2, 4))):
        text = change(rng, text)
    return _encoded(rng, text)


def special_files(folder: Path, name: str) -> dict[str, Callable[[], None]]:
    """Return what makes a file that is none: each writes it under its name in a folder."""
    path = folder / name
    return {
        "loop": lambda: path.symlink_to(name),
        "device": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
        "link to a folder": lambda: path.symlink_to("/"),
        "dangling": lambda: path.symlink_to("nowhere"),
        "pipe": lambda: os.mkfifo(path),
        "memory": lambda: path.symlink_to("/proc/self/mem"),
        "huge": lambda: _sparse(path, 1 << 40),
        "missing": lambda: None,
    }


def _sparse(path: Path, size: int) -> None:
    path.touch()
    os.truncate(path, size)


def invented(rng: random.Random, words: Sequence[str], depth: int = 0) -> str:
    """Return YAML in flow style (most of it JSON as well) of words that mean something, in places where they do not."""
    kind = rng.randrange(4 if depth < 6 else 2)
    if kind == 0:
        return rng.choice(words)
    if kind == 1:
        return rng.choice(_VALUES)
    parts = [invented(rng, words, depth + 1) for _ in range(rng.choice((0, 1, 2, 3, 8)))]
    if kind == 2:
        return f"[{', '.join(parts)}]"
    return "{" + ", ".join(f"{rng.choice(words)}: {part}" for part in parts) + "}"
