"""Commands typed by real shells, at places that stand for the lab's."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from falsework.checks.verify import commands as module
from falsework.checks.verify.commands import Commands
from falsework.lab.folder import Lab
from falsework.machines.nspawn import Nspawn
from falsework.machines.view import View
from falsework.site.load import default_site

SITE = default_site()


class HereView:
    def __init__(self, folder: Path) -> None:
        self.site = SITE
        self.lab = Lab.of(folder, folder)

    def command(self, words: Sequence[str]) -> tuple[str, ...]:
        return ("env", "PLACE=shell", *words)

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        return dict(given)


class HereProvider:
    def command(self, name: str, words: Sequence[str]) -> tuple[str, ...]:
        return ("env", f"PLACE={name}", *words)


def commands_in(folder: Path, seconds: float = 60) -> Commands:
    view, provider = cast(View, HereView(folder)), cast(Nspawn, HereProvider())
    return Commands(view, provider, time.monotonic() + seconds)


def test_each_place_is_its_own(tmp_path: Path) -> None:
    typed = commands_in(tmp_path)
    assert typed.in_shell("echo $PLACE").output == "shell\n"
    assert typed.on(SITE.helper, "echo $PLACE").output == "helper\n"
    assert typed.on(SITE.masters[1], "echo $PLACE").output == "master-1\n"
    assert typed.on_host("pwd").output == f"{tmp_path}\n"
    assert typed.in_shell("cat", b"given").output == "given"


def test_some_commands_have_a_terminal(tmp_path: Path) -> None:
    typed = commands_in(tmp_path)
    assert typed.on(SITE.masters[0], "test -t 0 && echo yes", terminal=True).output == "yes\n"
    assert typed.on(SITE.masters[1], "test -t 0 && echo yes").code == 1


def test_how_it_ended_is_told(tmp_path: Path) -> None:
    said = commands_in(tmp_path).in_shell("echo out; echo why >&2; exit 3")
    assert (said.code, said.output, said.complaints) == (3, "out\n", "why\n")


def test_the_same_command_is_typed_once(tmp_path: Path) -> None:
    typed, counter = commands_in(tmp_path), tmp_path / "count"
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(lambda _: typed.in_shell(f"echo x >>{counter}; sleep 0.1; echo y"), range(8)))
    assert {one.output for one in said} == {"y\n"}
    assert counter.read_text() == "x\n"


def test_a_silent_command_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENCE", 0.2)
    said = commands_in(tmp_path).in_shell("sleep 60")
    assert said.code == 124
    assert said.last_word == "it did nothing for 0 s and was stopped"


def test_what_is_for_terminals_is_left_out(tmp_path: Path) -> None:
    said = commands_in(tmp_path).on(SITE.masters[0], r"printf '\033[31mFATA\033[0m[0006] no\n'", terminal=True)
    assert said.output == "FATA[0006] no\n"


def test_nothing_is_begun_when_the_time_is_over(tmp_path: Path) -> None:
    said = commands_in(tmp_path, seconds=-1).in_shell(f"touch {tmp_path}/touched")
    assert (said.code, said.last_word) == (124, "there was no time left to ask")
    assert not list(tmp_path.iterdir())
