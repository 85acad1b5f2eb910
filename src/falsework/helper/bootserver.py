"""The HTTP server machines boot from. It runs in the helper: the standard library alone, and little of that.

Every answer is one line of JSON on stdout, which is the journal: who, what, with which result, and never the content.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from falsework.helper import expectations
from falsework.helper.boot_answers import Answers
from falsework.web.answers import Answer, line_for_the_ledger
from falsework.web.messages import Request
from falsework.web.server import run

INVENTORY = "/etc/falsework/boot-server.json"
PUBLIC_FOLDER = "/srv/falsework"
"""Kernel, initramfs, root image, boot scripts."""
CONFIG_FOLDER = "/var/lib/falsework/ignition"


@dataclass(frozen=True)
class Settings:
    inventory: Path
    expected: Path
    public: Path
    configs: Path
    address: str
    port: int


class BootServer:
    nonsense = "This is not a request for a boot file."

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def answer(self, request: Request, client: str) -> Answer:
        return self._answers.answer(request, client)

    def done(self, client: str, answer: Answer) -> None:
        line = line_for_the_ledger("http", client, self._answers.machine_at(client), answer)
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def _settings(words: Sequence[str]) -> Settings:
    parser = argparse.ArgumentParser(prog="boot-server", description="Serves boot files and Ignition configs.")
    parser.add_argument("--inventory", type=Path, default=Path(INVENTORY))
    parser.add_argument("--expected", type=Path, default=Path(expectations.PATH))
    parser.add_argument("--public", type=Path, default=Path(PUBLIC_FOLDER))
    parser.add_argument("--configs", type=Path, default=Path(CONFIG_FOLDER))
    parser.add_argument("--address", default="0.0.0.0")
    parser.add_argument("--port", type=int, required=True)
    return Settings(**vars(parser.parse_args(words)))


def main(words: Sequence[str]) -> int:
    settings = _settings(words)
    answers = Answers(settings.inventory, settings.expected, settings.public, settings.configs)
    run(BootServer(answers), settings.address, settings.port)
    return 0
