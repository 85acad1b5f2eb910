"""What is waited for, and what is said meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from falsework.bootstrap import api_probe, etcd_health
from falsework.bootstrap.facts import load_facts
from falsework.bootstrap.pivot import SETTLED, MastersServe, pod_state
from falsework.bootstrap.waiting import Wait
from falsework.errors import FalseworkError


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, said: list[str], **settings: Any) -> Wait:
        return Wait(said.append, clock=lambda: self.now, sleep=self.sleep, **settings)


def test_a_reason_is_said_when_it_changes_and_now_and_then() -> None:
    said: list[str] = []
    time = Time()
    reasons = ["refused"] * 130 + ["not ready"] * 3

    time.wait(said, pause=1.0).until("etcd", lambda: reasons.pop(0) if reasons else None)
    assert said == [
        "Waiting for etcd: refused",
        "Waiting for etcd: refused",
        "Waiting for etcd: refused",
        "Waiting for etcd: not ready",
    ]


def test_reasons_that_pass_by_are_not_told() -> None:
    said: list[str] = []
    reasons = [f"reason {number}" for number in range(30)]
    Time().wait(said, pause=0.05).until("the API", lambda: reasons.pop(0) if reasons else None)
    assert said == ["Waiting for the API: reason 0"]


def test_a_limit_ends_it_with_the_last_reason() -> None:
    with pytest.raises(FalseworkError, match="time out waiting for the Kubernetes API") as raised:
        Time().wait([], limit=10).until("the Kubernetes API", lambda: "connection refused")
    assert raised.value.cause == "connection refused"


def pod(name: str, phase: str, ready: str, **metadata: str) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": name, **metadata}, "status": {"phase": phase, "conditions": conditions}}


@pytest.mark.parametrize(
    ("pods", "state"),
    [
        ([], "DoesNotExist"),
        ([pod("kube-controller-manager-master-0", "Running", "True")], "DoesNotExist"),
        ([{"metadata": {"name": "kube-apiserver-master-0"}}], "Pending"),
        ([pod("kube-apiserver-master-0", "Pending", "False")], "Pending"),
        ([pod("kube-apiserver-master-0", "Running", "False")], "RunningNotReady"),
        ([pod("kube-apiserver-master-0", "Running", "True", deletionTimestamp="now")], "Pending"),
        (
            [pod("kube-apiserver-master-0", "Pending", "False"), pod("kube-apiserver-master-1", "Running", "True")],
            "Ready",
        ),
    ],
)
def test_how_far_the_masters_pods_are(pods: list[dict[str, Any]], state: str) -> None:
    assert pod_state(pods, "kube-apiserver") == state


def test_masters_must_serve_for_a_while() -> None:
    time, down = Time(), {"m0", "m1", "m2"}
    serving = MastersServe(("m0", "m1", "m2"), lambda address: "refused" if address in down else None, lambda: time.now)
    assert "0 of 2" in str(serving.missing())
    down -= {"m0", "m1"}
    assert "has to notice" in str(serving.missing())
    time.now += SETTLED / 2
    down.add("m1")
    assert "1 of 2" in str(serving.missing())
    down.remove("m1")
    assert serving.missing()
    time.now += SETTLED
    assert serving.missing() is None


def test_what_an_api_says_of_itself() -> None:
    assert api_probe.refusal(200, b"ok") is None
    body = b"[+]ping ok\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\nreadyz check failed\n"
    assert api_probe.refusal(500, body) == "it answers 500, not ready: poststarthook/rbac/bootstrap-roles"
    assert api_probe.refusal(401, b"") == "it answers 401"


def test_nobody_there_is_a_reason(tmp_path: Path) -> None:
    assert "does not answer" in str(api_probe.not_ready("127.0.0.1", 1, None))
    assert "does not answer" in str(etcd_health.unhealthy(tmp_path, 1))


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b'{"cluster_networks": [], "service_networks": []}'])
def test_facts_nobody_can_use_are_told(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "bootstrap.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FalseworkError, match="cannot be used"):
        load_facts(path)
