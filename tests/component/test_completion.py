"""Words completed by real shells, at a terminal, as a person presses Tab."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from falsework.cli import full_parser
from falsework.completion import bash, fish, words, zsh

SHELLS = {
    # The commands that make each one answer a single Tab, without colours and without the person's own settings.
    "bash": (("bash", "--norc", "-i"), "bind 'set show-all-if-ambiguous on'; bind 'set enable-bracketed-paste off'"),
    "zsh": (("zsh", "-f", "-i"), "autoload -Uz compinit; compinit -D -u; unsetopt zle_bracketed_paste 2>/dev/null"),
}
PATIENCE = 60.0
TYPED = [
    ("falsework verif", "falsework verify"),
    ("falsework up --until temp", "falsework up --until temporary-control-plane"),
    ("falsework machine con", "falsework machine console"),
    ("falsework exec boot", "falsework exec bootstrap"),
    ("falsework completion fi", "falsework completion fish"),
]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `falsework` in it, and the scripts it prints."""
    folder = tmp_path_factory.mktemp("programs")
    program = folder / "falsework"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m falsework "$@"\n')
    program.chmod(0o755)
    root = words.read(full_parser())
    for shell, module in (("bash", bash), ("zsh", zsh), ("fish", fish)):
        (folder / f"completion.{shell}").write_text(module.script(root, program.name))
    return folder


class Terminal:
    def __init__(self, command: tuple[str, ...], folder: Path) -> None:
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "> "}
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)  # noqa: S606 - no shell but this one
        self._shown = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def until(self, wanted: str) -> None:
        """Until it is on the screen; what was shown up to there is forgotten."""
        deadline = time.monotonic() + PATIENCE
        while wanted not in self._shown:
            assert time.monotonic() < deadline, f"no {wanted!r} in {self._shown!r}"
            if select.select([self._terminal], [], [], 1.0)[0]:
                # A terminal that cannot move its cursor back draws a word again, with the signs that takes.
                piece = os.read(self._terminal, 65536).decode(errors="replace")
                self._shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x07\x08\r]", "", piece)
        self._shown = self._shown.partition(wanted)[2]

    def close(self) -> None:
        os.close(self._terminal)
        os.waitpid(self._process, 0)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_word_is_completed_at_a_terminal(shell: str, programs: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on this host")
    command, settings = SHELLS[shell]
    terminal = Terminal(command, programs)
    try:
        terminal.type(f"{settings}; source ./completion.{shell}; echo rea''dy\n")
        terminal.until("ready\n")
        for typed, whole in TYPED:
            terminal.type(f"{typed}\t")
            terminal.until(whole.rpartition(" ")[2][len(typed.rpartition(" ")[2]) :])
            # Ctrl-U: the line is taken back.
            terminal.type("\x15echo don''e\n")
            terminal.until("done\n")
        terminal.type("exit\n")
    finally:
        terminal.close()


def test_fish_offers_the_words(programs: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not on this host")
    asked = "; ".join(f"complete -C '{typed}'" for typed, _ in TYPED)
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source completion.fish; {asked}"],
        cwd=programs,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(programs)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stderr == ""
    offered = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert offered == [whole.rpartition(" ")[2] for _, whole in TYPED]
