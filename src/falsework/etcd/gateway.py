"""A thin client of etcd's JSON gateway: what an operator asks a cluster, and no more.

Connections are kept open, one for each thread and member. Members are asked in turn until one answers. A change that
was sent and not answered may have happened: look again before repeating it.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from falsework.errors import FalseworkError
from falsework.etcd.members import Member, View
from falsework.kube.access import Access
from falsework.kube.connection import Connection, Patience, connect_directly
from falsework.kube.errors import Unreachable

_PATIENCE = Patience(connect=3.0, answer=15.0, whole=15.0)
_HEALTH_PATIENCE = Patience(connect=2.0, answer=5.0, whole=5.0)
_HEALTH_KEY = base64.b64encode(b"health").decode()
_MOST_AT_ONCE = 8


class EtcdUnreachable(FalseworkError):  # noqa: N818 - it is what etcd is
    """Nothing is known about what was asked."""


class EtcdRefusal(FalseworkError):  # noqa: N818 - it is etcd's answer
    """etcd answered, and said no."""

    def __init__(self, what: str, *, cause: str) -> None:
        super().__init__(what, cause=cause)
        self.said = cause

    @property
    def is_not_in_sync(self) -> bool:
        """A learner that has not caught up yet."""
        return "in sync with leader" in self.said

    @property
    def is_not_connected_yet(self) -> bool:
        """Before members change, etcd wants all voters to have been connected for five seconds."""
        return "unhealthy cluster" in self.said

    @property
    def is_its_own_trouble(self) -> bool:
        """Another member may answer: this one learns, has no leader, or stops."""
        return any(
            words in self.said
            for words in ("not supported for learner", "no leader", "request timed out", "server stopped")
        )

    @property
    def is_done_already(self) -> bool:
        return any(words in self.said for words in ("Peer URLs already exists", "member not found", "not a learner"))


class Gateway:
    """`endpoints` are client URLs; both they and the credentials are looked up anew for every question, since both
    change while the cluster lives."""

    def __init__(
        self,
        endpoints: Callable[[], Iterable[str]],
        context: Callable[[], ssl.SSLContext],
        patience: Patience = _PATIENCE,
        health_patience: Patience = _HEALTH_PATIENCE,
    ) -> None:
        self._endpoints = endpoints
        self._context = context
        self._patience = patience
        self._health_patience = health_patience
        self._of_thread = threading.local()
        self._last_good = ""
        self._asked_learners: dict[int, Future[str | None]] = {}
        self._askers = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="ask etcd")

    # The cluster

    def look(self) -> View:
        """The members, and how each of them is: asked all at once, so that a silent one costs its time only once. A
        learner costs none: one that is starting takes connections long before it answers, and the others should not
        wait for it. What it says counts at the next look."""
        members = self.members()
        learners = {member.id: self._learner_fault(member) for member in members if member.is_learner}
        voters = [member for member in members if not member.is_learner]
        faults = dict(zip((member.id for member in voters), self._askers.map(self.fault_of, voters), strict=True))
        return View(members, {each: fault for each, fault in {**faults, **learners}.items() if fault})

    def _learner_fault(self, member: Member) -> str | None:
        asked = self._asked_learners.pop(member.id, None) or self._askers.submit(self.fault_of, member)
        if asked.done():
            return asked.result()
        self._asked_learners[member.id] = asked
        return "it has not answered yet"

    def members(self) -> tuple[Member, ...]:
        return self.members_and_cluster()[0]

    def members_and_cluster(self) -> tuple[tuple[Member, ...], int]:
        """As a majority has them, and the cluster's id."""
        answer = self.ask("cluster/member/list", {"linearizable": True})
        found = tuple(sorted((_member(entry) for entry in answer.get("members") or ()), key=lambda each: each.id))
        return found, int((answer.get("header") or {}).get("cluster_id") or 0)

    def add_learner(self, peer_url: str) -> Member:
        answer = self.ask("cluster/member/add", {"peerURLs": [peer_url], "isLearner": True})
        return _member(answer["member"])

    def promote(self, member: Member) -> None:
        self.ask("cluster/member/promote", {"ID": str(member.id)})

    def remove(self, member: Member) -> None:
        self.ask("cluster/member/remove", {"ID": str(member.id)})

    # One member

    def fault_of(self, member: Member) -> str | None:
        """Why it is not healthy. A voter must answer for a majority, a learner only for itself."""
        if not member.is_started:
            return "it has not started yet"
        if not member.client_urls:
            return "it has told nobody how to reach it"
        question = {"key": _HEALTH_KEY, "serializable": member.is_learner}
        try:
            self._ask_one(member.client_urls[0], "kv/range", question, self._health_patience)
        except FalseworkError as error:
            return error.cause or error.what
        return None

    def leader(self) -> int:
        """The leader's id, as somebody knows it; 0 if there is none."""
        return int(self.ask("maintenance/status", {}).get("leader") or 0)

    def committed(self) -> str:
        """How far what was written has come, as somebody knows it: it grows with every write."""
        return str(self.ask("maintenance/status", {}).get("raftIndex") or "")

    def move_leadership(self, leader: Member, target: Member) -> None:
        """Only the leader can give it away, so it is the one that is asked. Back when the other has it."""
        self._ask_one(
            leader.client_urls[0], "maintenance/transfer-leadership", {"targetID": str(target.id)}, self._patience
        )

    # Asking

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Anyone who answers; the last one who did, first."""
        trouble: EtcdUnreachable | EtcdRefusal | None = None
        for url in sorted(self._endpoints(), key=lambda url: url != self._last_good):
            try:
                answer = self._ask_one(url, path, body, self._patience)
            except EtcdUnreachable as error:
                trouble = trouble or error
            except EtcdRefusal as error:
                if not error.is_its_own_trouble:
                    raise
                # More telling than that others do not answer at all.
                trouble = error
            else:
                self._last_good = url
                return answer
        raise trouble or EtcdUnreachable("etcd cannot be asked", cause="no member is known")

    def _ask_one(self, url: str, path: str, body: dict[str, Any], patience: Patience) -> dict[str, Any]:
        connection = self._connection(url, patience)
        connection.drop_if_stale()
        try:
            response, pieces = connection.ask(
                "POST", f"/v3/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            content = connection.whole(pieces)
            answer = json.loads(content)
        except Unreachable as error:
            raise EtcdUnreachable(f"etcd at {url} does not answer", cause=error.cause) from None
        except ValueError:
            raise EtcdUnreachable(f"etcd at {url} does not answer", cause="what it says is not JSON") from None
        if not isinstance(answer, dict):
            raise EtcdUnreachable(f"etcd at {url} does not answer", cause="what it says is not a JSON object")
        if response.status != 200:
            said = str(answer.get("message") or answer.get("error") or response.status)
            raise EtcdRefusal(f"etcd at {url} refuses {path}", cause=said)
        return answer

    def _connection(self, url: str, patience: Patience) -> Connection:
        """This thread's own. With other credentials than before, a new one."""
        context = self._context()
        kept: dict[tuple[str, Patience], tuple[ssl.SSLContext, Connection]]
        kept = self._of_thread.__dict__.setdefault("connections", {})
        known = kept.get((url, patience))
        if known is not None and known[0] is context:
            return known[1]
        if known is not None:
            known[1].close()
        parts = urlsplit(url)
        host = parts.hostname or ""
        connection = Connection(Access(host, parts.port or 443, context, host), connect_directly, patience)
        kept[url, patience] = (context, connection)
        return connection


def _member(entry: dict[str, Any]) -> Member:
    return Member(
        int(entry["ID"]),
        str(entry.get("name") or ""),
        tuple(entry.get("peerURLs") or ()),
        tuple(entry.get("clientURLs") or ()),
        bool(entry.get("isLearner")),
    )
