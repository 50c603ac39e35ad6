"""YAML text becomes plain data by the rules of YAML 1.2, and every key and value keeps its place."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simnet.errors import InputError
from simnet.scenario import yaml_document
from simnet.scenario.document import DEEPEST, MOST_VALUES, python_document
from simnet.scenario.yaml_document import parse_yaml, read_yaml
from simnet.shipped import shipped_folder


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # YAML 1.1 reads these as true, false, 8, 3600+..., a date; YAML 1.2 does not
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("y", "y"),
        ("010", 10),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("1_000", "1_000"),
        ("0b1", "0b1"),
        ("=", "="),
        # and these are numbers only there
        ("0o10", 8),
        ("1e9", 1e9),
        ("1e-3", 1e-3),
        ("1E+3", 1e3),
        # the same in both
        ("0x1F", 31),
        ("-7", -7),
        ("+7", 7),
        ("-0", 0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-1.25e2", -125.0),
        ("-.inf", -math.inf),
        ("+.INF", math.inf),
        ("true", True),
        ("False", False),
        ("TRUE", True),
        ("tRue", "tRue"),
        ("null", None),
        ("~", None),
        ("", None),
        ("nil", "nil"),
        ("'010'", "010"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("!!float 5", 5.0),
        ("100 Gbps", "100 Gbps"),
    ],
)
def test_scalars_of_the_core_schema(text, value):
    data = parse_yaml(f"key: {text}", "f").checked().data
    assert data == {"key": value}
    assert type(data["key"]) is type(value)


def test_not_a_number_is_a_number():
    assert math.isnan(parse_yaml("[.nan]", "f").data[0])


def test_keys_follow_the_same_rules():
    assert parse_yaml("{on: 1, 010: 2, '010': 3}", "f").checked().data == {"on": 1, 10: 2, "010": 3}


def test_anchors_repeat_values():
    assert parse_yaml("a: &x {b: 1}\nc: [*x, *x]", "f").checked().data == {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}


def test_every_key_and_value_has_its_place():
    document = parse_yaml("a: 1\nb:\n  c: [1, 2]\n", "f")
    places = {path: (p.key_line, p.key_column, p.line, p.column) for path, p in document.places.items()}
    assert places == {
        (): (1, 1, 1, 1),
        ("a",): (1, 1, 1, 4),
        ("b",): (2, 1, 3, 3),
        ("b", "c"): (3, 3, 3, 6),
        ("b", "c", 0): (3, 7, 3, 7),
        ("b", "c", 1): (3, 10, 3, 10),
    }


def test_a_problem_shows_the_line_and_the_place():
    document = parse_yaml("run:\n  seed: x\n", "f.yaml")
    assert str(document.problem(("run", "seed"), "no", "yes")) == "f.yaml:2:9: no, yes\n      seed: x\n            ^"
    assert str(document.problem(("run", "seed"), "no", at_key=True)) == "f.yaml:2:3: no\n      seed: x\n      ^"
    # what was not written is shown at the key around it
    assert str(document.problem(("run", "warmup"), "no")) == "f.yaml:1:1: no\n    run:\n    ^"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2", "f:2:1: the key 'a' is given twice, it was given on line 1 before"),
        ("b: {c: 1, c: 2}", "f:1:11: the key 'c' is given twice, it was given on line 1 before"),
        ("a: !!python/object/apply:os.system [ls]", "f:1:4: the tag '!!python/object/apply:os.system' is not allowed"),
        ("a: !own {b: 1}", "f:1:4: the tag '!own' is not allowed, leave it out"),
        ("a: !!binary aGk=", "f:1:4: the tag '!!binary' is not allowed, leave it out"),
        ("a: !!int x", "f:1:4: 'x' is not of type int"),
        ("{true: 1}", "f:1:2: the key 'true' is neither text nor a whole number, put it in quotes"),
        ("{~: 1}", "f:1:2: the key '~' is neither text nor a whole number"),
        ("{[1]: 1}", "f:1:2: a list or mapping cannot be a key"),
        (f"a: {'1' * 5000}", "f:1:4: a number of 5000 digits is too long"),
        ('a: "\\uD800"', "f:1:4: half a character (a surrogate) is not text"),
        ("a: &x {b: *x}", "f:1:4: an alias stands inside what it repeats"),
        ("a: *x", "f:1:4: not YAML: found undefined alias 'x'"),
        ("a: b: c", "f:1:5: a second colon stands in this line, or the line is indented wrongly"),
        ("a:\n\tb: 1", "f:2:1: a tab where YAML wants spaces, indent with spaces"),
        ("a: 1\nb\n", "f:2:2: a key without a colon, write 'key: value'"),
        ("a: 1\n---\nb: 2", "f:2:1: a second document begins here, one document a file is wanted"),
        ("a: {b: 1\n", "f:1:9: a mapping '{' that is not closed, or an entry without a comma before it"),
        ("a: [1, 2", "f:1:9: a list '[' that is not closed, or an element without a comma before it"),
        ("a: 'x", "f:1:6: not YAML while scanning a quoted scalar: found unexpected end of stream"),
        ("a: @x", "f:1:4: not YAML while scanning for the next token: found character '@'"),
        ("a: 1\nb: \x01", "f:2:4: the character U+0001 may not stand in YAML"),
        ("[" * 5000, f"f:1:{DEEPEST + 1}: more than {DEEPEST} levels inside each other"),
        ("{a: " * 5000, f"more than {DEEPEST} levels inside each other"),
    ],
)
def test_refused_at_its_place(text, said):
    with pytest.raises(InputError) as caught:
        parse_yaml(text, "f").checked()
    assert said in str(caught.value)


def test_a_bomb_of_aliases_is_refused_at_once():
    layers = "".join(f"{name}: &{name} [{','.join([f'*{below}'] * 9)}]\n" for below, name in pairwise("abcdefghi"))
    with pytest.raises(InputError, match="values, counting aliases"):
        parse_yaml(f"a: &a [{','.join('1' * 9)}]\n{layers}", "f")


def test_depth_through_aliases_is_refused():
    layers = "".join(f"- &x{level + 1} [*x{level}]\n" for level in range(DEEPEST + 1))
    with pytest.raises(InputError, match="levels inside each other"):
        parse_yaml(f"- &x0 1\n{layers}", "f")


def test_every_repeated_key_is_reported():
    document = parse_yaml("{a: 1, a: 2, b: {c: 1, c: 2}}", "f")
    assert [problem.path for problem in document.problems] == [("a",), ("b", "c")]
    assert document.data == {"a": 1, "b": {"c": 1}}


def test_files(tmp_path):
    good = tmp_path / "good.yaml"
    good.write_bytes(b"\xef\xbb\xbfa: \xc2\xb5s\r\nb: 1\r\n")
    document = read_yaml(good)
    assert document.data == {"a": "\u00b5s", "b": 1}
    assert document.places["b",].key_line == 2


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda file: None, "f.yaml: there is no such file"),
        (lambda file: file.mkdir(), "f.yaml: is a directory, a YAML file is wanted"),
        (lambda file: file.write_bytes(b"a: 1\nb: \xff\n"), "f.yaml:2:4: is not UTF-8 text (byte 0xff), save the file"),
        (lambda file: file.write_bytes("a: 1".encode("utf-16")), "f.yaml:1:1: is not UTF-8 text (byte 0xff)"),
        (lambda file: file.write_bytes(b"#" * 4_000_001), "f.yaml: is 4000001 bytes long, at most 4000000 are read"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, make, said):
    file = tmp_path / "f.yaml"
    make(file)
    with pytest.raises(InputError) as caught:
        read_yaml(file)
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(said)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "/dev/zero"])
def test_names_that_are_no_files(name):
    with pytest.raises(InputError):
        read_yaml(Path(name))


def test_python_values():
    data = {"a": (1, np.float64(2.5)), "b": np.arange(2), "c": Path("x")}
    assert python_document(data, "").checked().data == {"a": [1, 2.5], "b": [0, 1], "c": "x"}
    with pytest.raises(InputError, match=r"a: a set cannot stand in a scenario"):
        python_document({"a": {1}}, "").checked()
    with pytest.raises(InputError, match=r"the key 1.5 is neither text nor a whole number"):
        python_document({1.5: 1}, "").checked()
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InputError, match="nested too deeply"):
        python_document(endless, "")


@given(
    st.text(alphabet=st.sampled_from("ab:{}[],&*!|>'\"#%@`- \n\t01.e~\\\x00\ud800"), max_size=60) | st.text(max_size=60)
)
def test_no_text_raises_anything_but_an_input_error(text):
    try:
        document = parse_yaml(text, "f")
    except InputError as error:
        str(error).encode()
        return
    for problem in document.problems:
        str(problem).encode()


def test_what_is_long_is_read_the_same_by_another_reader(monkeypatch):
    """libyaml reads what is long: the same data, and each value at the same place, for every scenario that ships."""
    files = sorted(shipped_folder("scenarios").glob("*.yaml"))
    assert len(files) > 40
    for file in files:
        monkeypatch.setattr(yaml_document, "_LONG", math.inf)
        short = read_yaml(file)
        monkeypatch.setattr(yaml_document, "_LONG", 0)
        assert read_yaml(file) == short


def test_a_mistake_in_a_long_text_is_told_like_one_in_a_short_one():
    """The tab on the last line, and no earlier one; then a list that is left open."""
    long = "".join(f"key{number}: {'text' * 2_000}\n" for number in range(10))
    for wrong in ("last:\tb: c\n", "last: [1,\n"):
        with pytest.raises(InputError) as of_long:
            parse_yaml(long + wrong, "x")
        with pytest.raises(InputError) as of_short:
            parse_yaml(wrong, "x")
        [told], [said] = of_long.value.problems, of_short.value.problems
        assert (told.message, told.hint, told.column) == (said.message, said.hint, said.column)
        assert told.line == said.line + 10


def test_as_many_values_as_are_read_take_seconds():
    """199,999 numbers, in CPU time; they took 15 s without libyaml."""
    text = f"[{', '.join(map(str, range(MOST_VALUES - 1)))}]"
    began_s = time.process_time()
    assert parse_yaml(text, "x").data == list(range(MOST_VALUES - 1))
    assert time.process_time() - began_s < 8
