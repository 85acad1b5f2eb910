"""The loader: whatever is in a file, the answer is a tree or a sentence with a place."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from falsework.site.problems import Problems
from falsework.site.yaml_source import MAX_ALIASES, MAX_DEPTH, Mapping, Node, Scalar, Sequence, parse_yaml, read_yaml

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def _parsed(text: str | bytes) -> tuple[Node | None, list[str]]:
    problems = Problems()
    node = parse_yaml(text if isinstance(text, bytes) else text.encode(), "f", problems)
    return node, [str(problem) for problem in problems.in_order()]


def test_every_value_knows_its_place() -> None:
    node, problems = _parsed("a: 1\nb:\n- x\n-  {c: 52:54:00:12:34:56}\n")
    assert problems == []
    assert isinstance(node, Mapping)
    items = node.entries["b"]
    assert isinstance(items, Sequence)
    inner = items.items[1]
    assert isinstance(inner, Mapping)
    mac = inner.entries["c"]
    assert isinstance(mac, Scalar)
    assert (str(mac.place), mac.text) == ("f:4:8", "52:54:00:12:34:56")
    assert (str(inner.keys["c"]), str(node.keys["b"])) == ("f:4:5", "f:2:1")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", "f:3:1: the key 'a' is there twice (first in line 1)"),
        ("{a: 1, a: 2}", "f:1:8: the key 'a' is there twice"),
        ("a: 1\n---\nb: 2\n", "f:2:1: a second document starts here"),
        ("a:\n\tb: 1\n", "f:2:1: a tab is used to indent"),
        ("a:\n  b: 1\n \tc: 2\n", "f:3:2: a tab is used to indent"),
        ("a: [1, 2\nb: 3", "f:2:2: this is not YAML: while parsing a flow sequence"),
        ("a: b: c", "f:1:5: this is not YAML: mapping values are not allowed"),
        ('a: "x', "f:1:6: this is not YAML: while scanning a quoted scalar found unexpected end of stream"),
        ("a: 'b'c", "f:1:7: this is not YAML"),
        ("a: *nobody", "f:1:4: the alias *nobody has no anchor"),
        ("a: &x\n  b: *x\n", "f:2:6: the alias *x stands inside its own anchor"),
        ("a: !!python/object:os.system x", "f:1:4: the tag tag:yaml.org,2002:python/object:os.system is unknown here"),
        ("a: !thing {}", "f:1:4: the tag !thing is unknown here"),
        ("<<: {a: 1}", "f:1:1: the merge key << is not supported here"),
        ("? [a, b]\n: c", "f:1:3: a key must be a plain word"),
        ("a: &l [1]\n? *l\n: c", "f:2:3: a key must be a plain word"),
        ("a: b\x00c", "f:1:5: the character U+0000 is not allowed in YAML"),
        ("a: 1\nb: \x1b[31m", "f:2:4: the character U+001B is not allowed in YAML"),
        (b"a: 1\nb: \xff", "f:2:4: the byte 0xff is not UTF-8"),
        ("a: ü\nb: ".encode() + b"\xe4", "f:2:4: the byte 0xe4 is not UTF-8"),
        ("a: 1".encode("utf-16"), "f:1:1: the byte 0xff is not UTF-8"),
        ("%YAML 3.0\n---\na: 1\n", "f:1:1: this is not YAML: found incompatible YAML document"),
        ("[" * 100_000, f"f:1:{MAX_DEPTH + 1}: the values are nested more than {MAX_DEPTH} deep"),
        ("{a: " * 100_000, f"f:1:{MAX_DEPTH * 4 + 1}: the values are nested more than {MAX_DEPTH} deep"),
        ("- " * 100_000, f"f:1:{MAX_DEPTH * 2 + 1}: the values are nested more than {MAX_DEPTH} deep"),
        ("a: &a 1\nb: [" + "*a, " * (MAX_ALIASES + 1) + "]", f"there are more than {MAX_ALIASES} aliases"),
        (BOMB, "f:6:20: the file holds more than 200000 values once its aliases are followed"),
        ("a: " + "x" * 1_000_000, "f: the file is larger than 1 MB"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_with_its_place(text: str | bytes, problem: str) -> None:
    _, problems = _parsed(text)
    assert len(problems) == 1
    assert problem in problems[0]


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "null\n", "\ufeff"])
def test_an_empty_file_has_no_keys(text: str) -> None:
    node, problems = _parsed(text)
    assert problems == []
    assert isinstance(node, Mapping)
    assert not node.entries


def test_aliases_that_repeat_something_small_are_fine() -> None:
    node, problems = _parsed("a: &a {x: 1}\nb: [*a, *a]\n")
    assert problems == []
    assert isinstance(node, Mapping)


def test_a_file_of_ten_megabytes_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_bytes(b"- {a: b}\n" * 1_200_000)
    problems = Problems()
    started = time.process_time()
    assert read_yaml(path, problems) is None
    assert time.process_time() - started < 0.2
    assert [str(problem) for problem in problems.found] == [
        "site.yaml: the file is larger than 1 MB; a site of a thousand machines fits into a fifth of that; "
        "is this the right file?"
    ]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "dangling", "pipe"):
        problems = Problems()
        assert read_yaml(tmp_path / name, problems) is None
        assert "is not a regular file" in problems.found[0].what
