"""Watches the certificate requests and does with each what the rules say.

One thread judges and approves; that is quick, whatever else is pending. Another one, the clerk, does what nobody waits
for: denials, events, the file of decisions. A request that waits for something (a Node, a fetched config) is judged
again when that changes. Nothing is remembered that the API does not have: after a restart it all begins anew.

Rights it needs: certificatesigningrequests get, list and watch; certificatesigningrequests/approval update; signers
approve (all of them, where it denies what joining machines ask of others too); nodes get, list and watch; events create
in `default`. Machines need the ClusterRole system:node-bootstrapper for the group system:bootstrappers; nodes, to renew
their own certificates, system:certificates.k8s.io:certificatesigningrequests:selfnodeclient for system:nodes.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from falsework.csr import decide
from falsework.csr.decisions import Decisions, noted, noted_as_decided
from falsework.csr.events import NAMESPACE, event
from falsework.csr.request import Request
from falsework.csr.rules import Decision, Kind, Knowledge, KnownMachine, Verdict, Why, judge
from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Client, Object, WatchEvent
from falsework.kube.event_budget import Budget
from falsework.kube.informer import Informer
from falsework.kube.resources import CSRS, EVENTS, NODES
from falsework.kube.trouble import Trouble
from falsework.work_queue import WorkQueue

Say = Callable[[str], None]

_LOOK = 0.2
"""Seconds between two looks at what we depend on, where that is files: those tell nobody that they have changed."""
_WRITE = 0.5
"""The same, between two writings of the decisions."""
_AGAIN = 0.3
_MUCH_LATER = 5.0
_MOST_ERRANDS = 2000
_MAY_PASS = (Why.HAS_NODE, Why.NO_NODE, Why.NOT_FETCHED, Why.NO_MACHINE, Why.ROLE)
"""Reasons that end by themselves, or by what others do."""

Errand = tuple[str, Callable[[], object]]
"""The request it is about, and what to do."""


class WhoFetched(Protocol):
    def refresh(self) -> bool:
        """Look again; whether something has changed."""

    def reason_against(self, node: str) -> str | None:
        """Why a machine counts as one that has not fetched its config; None if it has."""


class Approver:
    """`decisions` is the file that says what was decided; without one, the log and the events do. `left_to_others`
    says of what is not approved whether somebody else knows better: it is not spoken about, and looked at again.
    `look` is for those who call `look_around` when something has changed: by itself it need not look that often."""

    def __init__(
        self,
        client: Client,
        machines: Mapping[str, KnownMachine],
        fetched: WhoFetched,
        decisions: Path | None,
        say: Say,
        *,
        component: str = "approve-csr",
        left_to_others: Callable[[Verdict], bool] = lambda _: False,
        look: float = _LOOK,
    ) -> None:
        self._client = client
        self._fetched = fetched
        self._say = say
        self._component = component
        self._left_to_others = left_to_others
        self._look = look
        self.turned = time.monotonic()
        """When the loop last came round."""
        self._decisions = Decisions(decisions)
        self._budget = Budget()
        self._queue = WorkQueue()
        self._waiting: dict[str, set[str]] = defaultdict(set)
        """Machine → requests whose reason may pass."""
        self._trouble = Trouble(say)
        self._nodes = Informer(client, NODES, self._node_changed, keep=_metadata, on_trouble=self._trouble.tell)
        self._requests = Informer(client, CSRS, self._request_changed, on_trouble=self._trouble.tell)
        self._knowledge = Knowledge(machines, lambda name: self._nodes.get(name) is not None, fetched.reason_against)
        self._node_changes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._clerk = _Clerk(self._decisions, self._queue, say, look)

    def run(self, is_over: Callable[[], bool]) -> None:
        """Until it is over, which is looked at as often as all else."""
        self._fetched.refresh()
        self._nodes.start()
        self._clerk.start()
        try:
            while not self._nodes.wait_synced(self._look):
                if is_over():
                    return
            self._requests.start()
            looked = 0.0
            while True:
                self.turned = time.monotonic()
                if self.turned - looked >= self._look:
                    looked = self.turned
                    if is_over():
                        return
                    self._look_at_changes()
                name = self._queue.take(self._look)
                if name is not None:
                    self._attend_to(name)
        finally:
            self._nodes.stop()
            self._requests.stop()
            self._clerk.stop()

    def look_around(self) -> None:
        """Soon, in its own thread: something it depends on has changed."""
        # The judge finds nothing of this name: no request is called nothing.
        self._queue.add("")

    def _request_changed(self, change: WatchEvent) -> None:
        self._queue.add(str(change.object["metadata"]["name"]))

    def _node_changed(self, change: WatchEvent) -> None:
        if change.type != "MODIFIED":
            self._node_changes.put(str(change.object["metadata"]["name"]))
            self.look_around()

    def _look_at_changes(self) -> None:
        """Judge those again whose reason may have passed."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._judge_again(self._node_changes.get_nowait())
        self._look_who_fetched()

    def _look_who_fetched(self) -> None:
        if self._fetched.refresh():
            for machine in list(self._waiting):
                self._judge_again(machine)

    def _judge_again(self, machine: str) -> None:
        for name in self._waiting.pop(machine, ()):
            self._queue.add(name)

    def _attend_to(self, name: str) -> None:
        if not name:
            self._look_at_changes()
            return
        body = self._requests.get(name)
        if body is None:
            self._forget(name)
            return
        self._look_who_fetched()
        request = Request.of(body)
        if request.is_decided:
            self._decisions.note(noted_as_decided(request))
            return
        try:
            verdict = self._judged(request)
            if verdict.decision is Decision.APPROVE:
                approved = decide.approve(self._client, body, f"Approved by Falsework's rules: {verdict.message}")
                self._say(f"Approved {name}: {verdict.message}")
                self._decisions.note(noted(Request.of(approved), verdict))
                return
        except FalseworkError as error:
            self._try_again(name, error)
            return
        self._refuse(body, request, verdict)

    def _forget(self, name: str) -> None:
        self._decisions.forget(name)
        for names in self._waiting.values():
            names.discard(name)

    def _judged(self, request: Request) -> Verdict:
        verdict = judge(request, self._knowledge)
        if verdict.decision is Decision.APPROVE and verdict.kind is Kind.CLIENT:
            # What we follow may be a moment behind, and this is what keeps a stolen credential from being of use.
            exists = self._has_node_now(verdict.machine)
            return judge(request, replace(self._knowledge, has_node=lambda _: exists))
        return verdict

    def _has_node_now(self, name: str) -> bool:
        try:
            self._client.get(NODES, name)
        except ApiError as error:
            if error.is_missing:
                return False
            raise
        return True

    def _refuse(self, body: Object, request: Request, verdict: Verdict) -> None:
        if verdict.decision is Decision.WAIT and verdict.why in _MAY_PASS:
            self._waiting[verdict.machine].add(request.name)
        if self._left_to_others(verdict):
            return
        is_news = self._decisions.note(noted(request, verdict))
        if verdict.decision is Decision.DENY:
            message = f"Denied by Falsework's rules: {verdict.message}"
            self._clerk.send(request.name, lambda: decide.deny(self._client, body, message))
        if verdict.decision is Decision.LEAVE or not is_news:
            return
        if not self._budget.take(request.requester):
            self._decisions.leave_out_event()
            return
        word = "Denied" if verdict.decision is Decision.DENY else "Not approved"
        self._say(f"{word}: {request.name}: {verdict.message} ({verdict.why})")
        told = event(request, str(verdict.why), f"{word}: {verdict.message}", self._component)
        self._clerk.send("", lambda: self._client.create(EVENTS, told, NAMESPACE))

    def _try_again(self, name: str, error: FalseworkError) -> None:
        """Whoever changed it meanwhile made the watch tell us; all else is looked at again."""
        if isinstance(error, ApiError) and error.is_missing:
            self._forget(name)
        elif isinstance(error, ApiError) and error.status < 500 and not error.is_conflict and error.status != 429:
            self._say(f"{name} could not be decided about: {error}")
            self._queue.add(name, _MUCH_LATER)
        else:
            self._queue.add(name, _AGAIN)


class _Clerk:
    """Does errands one after the other, and keeps the file of decisions."""

    def __init__(self, decisions: Decisions, again: WorkQueue, say: Say, look: float) -> None:
        self._decisions = decisions
        self._again = again
        self._say = say
        self._look = look
        self._errands: queue.Queue[Errand] = queue.Queue(_MOST_ERRANDS)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="clerk", daemon=True)
        self._complaint = ""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        with contextlib.suppress(queue.Full):  # Then it does not wait for one.
            self._errands.put_nowait(("", lambda: None))
        self._thread.join()

    def send(self, request: str, errand: Callable[[], object]) -> None:
        """An errand about a request that could not be done, or taken, is one for which it is judged again."""
        try:
            self._errands.put_nowait((request, errand))
        except queue.Full:
            self._later(request)

    def _work(self) -> None:
        written = 0.0
        while not self._stopping.is_set():
            with contextlib.suppress(queue.Empty):
                self._do(self._errands.get(timeout=self._look))
            if time.monotonic() - written >= _WRITE:
                self._write()
                written = time.monotonic()
        self._write()

    def _do(self, errand: Errand) -> None:
        request, action = errand
        try:
            action()
        except ApiError as error:
            # It is there already (an event), has changed meanwhile (the watch tells), or is gone.
            if not error.is_conflict and not error.is_missing:
                self._later(request)
        except FalseworkError:
            self._later(request)

    def _later(self, request: str) -> None:
        if request:
            self._again.add(request, 1.0)

    def _write(self) -> None:
        try:
            self._decisions.write()
            self._complaint = ""
        except OSError as error:
            if str(error) != self._complaint:
                self._say(f"The decisions could not be written down: {error}")
            self._complaint = str(error)


def _metadata(body: Object) -> Object:
    return {"metadata": body.get("metadata")}
