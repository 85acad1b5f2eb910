"""What shells are told of our commands."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from falsework.cli import COMMANDS, full_parser, main
from falsework.completion import bash, fish, words, zsh
from falsework.completion.words import Kind, Level, Value
from falsework.site.load import default_site
from falsework.site.records import everyone
from falsework.stages.catalogue import STAGES


@pytest.fixture(scope="module")
def root() -> Level:
    return words.read(full_parser())


def level(root: Level, *path: str) -> Level:
    return next(one for one in root.everything() if one.path == path)


def value(found: Level, flag: str) -> Value | None:
    return next(option.value for option in found.options if flag in option.flags)


def test_every_command_is_known_with_its_summary(root: Level) -> None:
    assert [action.path[0] for action in root.actions] == list(COMMANDS)
    assert level(root, "up").about.startswith("Bring the lab up")


def test_values_are_what_the_options_take(root: Level) -> None:
    assert value(level(root, "up"), "--until") == Value(Kind.CHOICES, tuple(stage.name for stage in STAGES))
    assert value(level(root, "up"), "--dir") == Value(Kind.FOLDERS)
    assert value(level(root, "up"), "--dry-run") is None
    assert value(level(root, "verify"), "--output") == Value(Kind.FILES)
    assert level(root, "machine", "start").argument == Value(Kind.MACHINES)
    assert level(root, "exec").argument == Value(Kind.MACHINES)


def test_an_action_has_its_own_options() -> None:
    parser = argparse.ArgumentParser(prog="x")
    actions = parser.add_subparsers(dest="action")
    actions.add_parser("go", help="Go; somewhere").add_argument("--far", type=Path, help="how far (default: 1)")
    (go,) = words.read(parser).actions
    assert (go.path, go.about) == (("go",), "Go")
    assert [(option.flags, option.about) for option in go.options][1] == (("--far",), "how far")


@pytest.mark.parametrize("module", [bash, zsh, fish])
def test_scripts_name_all_stages_and_commands(root: Level, module: object) -> None:
    text = module.script(root, "falsework")  # type: ignore[attr-defined]
    for name in (*COMMANDS, *(stage.name for stage in STAGES)):
        assert name in text


def test_machines_are_those_of_the_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "machines", "--dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [machine.name for machine in everyone(default_site())]
    (tmp_path / "site.yaml").write_text("nonsense: [")
    assert main(["completion", "machines", "--dir", str(tmp_path)]) == 0
    assert capsys.readouterr() == ("", "")
