"""What the boot server answers: the rule, applied to files. Runs in the helper: the standard library alone."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

from falsework.helper import boot_rules, expectations
from falsework.helper.boot_rules import Allowed, Folder, Inventory, Refused
from falsework.web.answers import Answer, sentence, shown
from falsework.web.messages import Request, response_head, wanted_range
from falsework.web.watched import Watched


class Answers:
    """What it knows are files, looked at again for every request; what cannot be read is taken for a no."""

    def __init__(self, inventory: Path, expected: Path, public: Path, configs: Path) -> None:
        self._folders = {Folder.PUBLIC: public, Folder.CONFIGS: configs}
        self._inventory: Watched[Inventory] = Watched(inventory, boot_rules.parse_inventory, {})
        self._expected: Watched[expectations.Expected] = Watched(expected, expectations.parse, {})

    def machine_at(self, client: str) -> str | None:
        machine = self._inventory.value().get(client)
        return machine.name if machine else None

    def answer(self, request: Request, client: str) -> Answer:
        asked = shown(f"{request.method} {request.target}")
        # The inventory first: an objection may be about it.
        inventory = self._inventory.value()
        decision = boot_rules.decide(request.target, client, inventory, self._objection(inventory, client))
        if isinstance(decision, Refused):
            because = decision.because
            if decision.status is HTTPStatus.FORBIDDEN and self._inventory.problem:
                because = self._inventory.problem
            return sentence(asked, decision.status, decision.sentence, because, request)
        return self._file(asked, request, decision)

    def _objection(self, inventory: Inventory, client: str) -> str:
        machine = inventory.get(client)
        expected = self._expected.value()
        if self._expected.problem:
            return self._expected.problem
        if machine is None or not expectations.is_expected(expected, machine.name, time.time()):
            return "it is not expected to boot now"
        return ""

    def _file(self, asked: str, request: Request, allowed: Allowed) -> Answer:
        try:
            file = open_below(self._folders[allowed.folder], allowed.path)
        except OSError as error:
            because = str(error.strerror).lower()
            if allowed.folder is Folder.CONFIGS:
                # The machine is to boot and its config is not there yet: Ignition asks again after this.
                status = HTTPStatus.SERVICE_UNAVAILABLE
                return sentence(asked, status, "The config is not there yet.", because, request)
            return sentence(asked, HTTPStatus.NOT_FOUND, boot_rules.NOT_THERE, because, request)
        size = os.fstat(file).st_size
        try:
            part = wanted_range(request, size)
        except ValueError as error:
            os.close(file)
            status = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
            more = {"Content-Range": f"bytes */{size}"}
            return sentence(asked, status, "The file ends before that.", str(error), request, more)
        start, end = part or (0, size)
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(end - start),
            "Accept-Ranges": "bytes",
            "Cache-Control": "no-store",
        }
        if part:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        status = HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK
        if request.method == "HEAD":
            end = start
        head = response_head(status, headers, request.keep_alive)
        return Answer(asked, status, head, request.keep_alive, file=file, offset=start, end=end)


def open_below(folder: Path, names: Sequence[str]) -> int:
    """A plain file below the folder, opened step by step: a link on the way, or at its end, is not followed."""
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            below = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            os.close(place)
            place = below
        # Not to wait for whoever might write to a pipe of that name.
        file = os.open(names[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
    finally:
        os.close(place)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise FileNotFoundError(0, "not a plain file")
    return file
