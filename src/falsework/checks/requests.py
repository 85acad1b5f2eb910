"""Certificate requests as the host sees them: what the API has, what the approver says about it, and the same rules."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from falsework.config_server.records import SERVED_PATH
from falsework.csr import decide, decisions
from falsework.csr.decisions import Noted, noted, noted_as_decided
from falsework.csr.knowledge import BOOT_ID, boots_in, machines_of, reason_against
from falsework.csr.request import Request
from falsework.csr.rules import Decision, Knowledge, judge
from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Client, Object
from falsework.kube.resources import CONFIG_MAPS, CSRS, NODES
from falsework.operators.machine_approver import knowledge as machine_approver
from falsework.operators.machine_config import names
from falsework.site.model import Site

_BY_HAND = "FalseworkApprove"
_TRIES = 5

ReadFile = Callable[[str], bytes]
"""A file of the bootstrap machine. FileNotFoundError if it has none there, FalseworkError if it cannot be asked."""


@dataclass(frozen=True)
class Requests:
    client: Client
    site: Site
    read_file: ReadFile

    def all(self) -> list[Noted]:
        """In the order in which they were made."""
        requests = sorted(map(Request.of, self.client.list(CSRS).items), key=lambda request: request.created)
        return [self._described(request) for request in requests]

    def approve(self, name: str, *, force: bool) -> Noted:
        """What came of it. Without `force` it is approved only if the rules say so."""
        for _ in range(_TRIES):
            body = self._get(name)
            request = Request.of(body)
            if request.is_decided:
                return self._as_decided(request)
            verdict = judge(request, self.knowledge)
            if verdict.decision is not Decision.APPROVE and not force:
                raise FalseworkError(
                    f"{name} is not approved",
                    cause=verdict.message,
                    fix=f"if you know better, run `falsework csr approve {name} --force`",
                )
            message = "Approved by a person with `falsework csr approve" + (" --force`" if force else "`")
            try:
                return noted_as_decided(Request.of(decide.approve(self.client, body, message, _BY_HAND)))
            except ApiError as error:
                # Somebody has changed it since we read it: look again.
                if not error.is_conflict:
                    raise
        raise FalseworkError(f"{name} changes faster than it can be approved", fix="run the same command again")

    @cached_property
    def knowledge(self) -> Knowledge:
        nodes = {str(item["metadata"]["name"]) for item in self.client.list(NODES).items}
        return Knowledge(machines_of(self.site), nodes.__contains__, self._not_fetched)

    def _described(self, request: Request) -> Noted:
        if request.is_decided:
            return noted_as_decided(request)
        # The approver's own word, where it has one: it is what happened.
        return self._told.get(request.uid) or noted(request, judge(request, self.knowledge))

    @cached_property
    def _told(self) -> dict[str, Noted]:
        return told_by_approver(self.read_file)

    def _not_fetched(self, node: str) -> str | None:
        """From a master's server, or, while there is a bootstrap machine, from its own."""
        reason = machine_approver.reason_against(node, self._served_by_masters, time.time())
        if reason is None:
            return None
        try:
            boot = self.read_file(str(BOOT_ID)).decode()
        except FileNotFoundError:
            # There is no bootstrap machine any more.
            return reason
        except FalseworkError as error:
            return f"{reason}; the bootstrap machine cannot be asked: {error.what}"
        try:
            served = self.read_file(SERVED_PATH)
        except FileNotFoundError:
            served = b""
        return reason_against(node, boots_in(served), boot)

    @cached_property
    def _served_by_masters(self) -> Object | None:
        try:
            return self.client.get(CONFIG_MAPS, names.SERVED, names.NAMESPACE)
        except ApiError as error:
            if not error.is_missing:
                raise
            return None

    def _get(self, name: str) -> dict[str, object]:
        try:
            return self.client.get(CSRS, name)
        except ApiError as error:
            if not error.is_missing:
                raise
            raise FalseworkError(f"there is no certificate request {name}", fix="run `falsework csr list`") from None

    @staticmethod
    def _as_decided(request: Request) -> Noted:
        found = noted_as_decided(request)
        if found.decision == "approve":
            return found
        raise FalseworkError(
            f"{request.name} is denied",
            cause=found.message,
            fix="what was denied stays so; delete the request and let the machine ask again",
        )


def told_by_approver(read_file: ReadFile) -> dict[str, Noted]:
    """By uid; nothing if the bootstrap machine has nothing to say (any more)."""
    with contextlib.suppress(FileNotFoundError, FalseworkError):
        return decisions.read(read_file(decisions.PATH))
    return {}
