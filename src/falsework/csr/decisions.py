"""The file that says what was decided about every request, and why. For `falsework csr list` and `status`.

    {"requests": [{"name", "uid", "created", "kind", "machine", "requester", "state", "decision", "reason", "message"}],
     "eventsLeftOut": 0}

It is made anew from what the API has, so nothing is lost with it.
"""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from falsework.csr.request import Request
from falsework.csr.rules import Verdict, kind_of, machine_of
from falsework.files import write_file

PATH = "/var/lib/falsework/csr-decisions.json"
"""On the bootstrap machine."""
MOST = 5000
"""Requests that are remembered; of more, those noted first are left out."""


@dataclass(frozen=True)
class Noted:
    name: str
    uid: str
    created: str
    kind: str
    machine: str
    requester: str
    state: str
    """As `kubectl get csr` shows it."""
    decision: str
    reason: str
    message: str


def noted(request: Request, verdict: Verdict) -> Noted:
    return _noted(request, str(verdict.decision), str(verdict.why), verdict.message, verdict.machine)


def noted_as_decided(request: Request) -> Noted:
    """One that somebody (we, a person, the controller manager) has decided about."""
    for kind, decision in (("Denied", "deny"), ("Approved", "approve")):
        if found := request.condition(kind):
            return _noted(request, decision, found[0], found[1], machine_of(request))
    raise AssertionError("it is decided")


def _noted(request: Request, decision: str, reason: str, message: str, machine: str) -> Noted:
    return Noted(
        name=request.name,
        uid=request.uid,
        created=request.created,
        kind=str(kind_of(request)),
        machine=machine[:253],
        requester=request.requester[:300],
        state=request.state,
        decision=decision,
        reason=reason,
        message=message[:1000],
    )


class Decisions:
    """Without a path nothing is written: then it only knows what is news."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._noted: dict[str, Noted] = {}
        self._left_out = 0
        self._is_written = False

    def note(self, entry: Noted) -> bool:
        """Whether that is news."""
        with self._lock:
            before = self._noted.pop(entry.name, None)
            self._noted[entry.name] = entry
            while len(self._noted) > MOST:
                del self._noted[next(iter(self._noted))]
            self._is_written = self._is_written and before == entry
            return before != entry

    def forget(self, name: str) -> None:
        with self._lock:
            if self._noted.pop(name, None) is not None:
                self._is_written = False

    def leave_out_event(self) -> None:
        with self._lock:
            self._left_out += 1
            self._is_written = False

    def write(self) -> None:
        """If something is new."""
        with self._lock:
            if self._is_written or self._path is None:
                return
            entries, left_out = list(self._noted.values()), self._left_out
            self._is_written = True
        content = {"requests": [asdict(entry) for entry in entries], "eventsLeftOut": left_out}
        try:
            write_file(self._path, json.dumps(content, indent=1).encode() + b"\n")
        except BaseException:
            with self._lock:
                self._is_written = False
            raise


def read(content: bytes) -> dict[str, Noted]:
    """By uid. What cannot be read says nothing."""
    try:
        return {entry["uid"]: Noted(**entry) for entry in json.loads(content)["requests"]}
    except (ValueError, TypeError, KeyError):
        return {}
