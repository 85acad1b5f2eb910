"""What a ClusterVersion says, in OpenShift's words."""

from __future__ import annotations

from typing import Any

import pytest

from falsework.operators.cluster_version.builders import NotYet
from falsework.operators.cluster_version.payload import Manifest, Mode, Payload
from falsework.operators.cluster_version.status import (
    HISTORY_LIMIT,
    Situation,
    mode_for,
    new_status,
    unmanaged,
    working_towards,
)
from falsework.operators.cluster_version.sync import Failure, Progress

MAP = Manifest("f", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "namespace": "here"}})
PAYLOAD = Payload("4.5.6", "image:4.5.6", (MAP,))
EARLIER, LATER = "2030-01-01T00:00:00Z", "2030-01-01T00:01:00Z"


def waiting_on(*names: str) -> tuple[NotYet, ...]:
    return tuple(
        NotYet(name, "ClusterOperatorNotAvailable", f"Cluster operator {name} is not available") for name in names
    )


def version(status: Any = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "version", "generation": 7}, "spec": {"channel": "c", **spec}, "status": status or {}}


def said(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {entry["type"]: (entry["status"], entry.get("message", "")) for entry in status["conditions"]}


def test_from_the_first_moment_to_done() -> None:
    first = new_status(version(), Situation(PAYLOAD, Mode.INSTALL, Progress(0, 3)), EARLIER)
    assert first["observedGeneration"] == 7
    assert first["desired"] == {"version": "4.5.6", "image": "image:4.5.6"}
    assert said(first)["Available"] == ("False", "")
    assert said(first)["Failing"] == ("False", "")
    assert said(first)["Progressing"] == ("True", "Working towards 4.5.6: 0 of 3 done (0% complete)")
    assert first["history"][0]["state"] == "Partial"
    assert first["history"][0]["completionTime"] is None
    assert mode_for(first, PAYLOAD) is Mode.INSTALL

    done = new_status(version(first), Situation(PAYLOAD, Mode.INSTALL, Progress(3, 3)), LATER)
    assert said(done)["Available"] == ("True", "Done applying 4.5.6")
    assert said(done)["Progressing"] == ("False", "Cluster version is 4.5.6")
    (entry,) = done["history"]
    assert (entry["state"], entry["startedTime"], entry["completionTime"]) == ("Completed", EARLIER, LATER)
    times = {one["type"]: one["lastTransitionTime"] for one in done["conditions"]}
    assert times["Available"] == times["Progressing"] == LATER
    assert times["Failing"] == times["ReleaseAccepted"] == EARLIER
    assert mode_for(done, PAYLOAD) is Mode.RECONCILE

    again = new_status(version(done), Situation(PAYLOAD, Mode.RECONCILE, Progress(3, 3)), "2030-01-02T00:00:00Z")
    assert again == done


@pytest.mark.parametrize(
    ("progress", "reason", "message"),
    [
        (Progress(120, 900), "", "Working towards 4.5.6: 120 of 900 done (13% complete)"),
        (
            Progress(890, 900, waiting_on("etcd")),
            "ClusterOperatorNotAvailable",
            "Working towards 4.5.6: 890 of 900 done (98% complete), waiting on etcd",
        ),
        (
            Progress(2, 3, waiting_on("etcd", "dns")),
            "ClusterOperatorsNotAvailable",
            "Working towards 4.5.6: 2 of 3 done (66% complete), waiting on dns, etcd",
        ),
        (
            Progress(1, 3, (*waiting_on("etcd"), NotYet("job", "JobNotComplete", "not complete"))),
            "MultipleErrors",
            "Working towards 4.5.6: 1 of 3 done (33% complete), waiting on etcd, job",
        ),
    ],
)
def test_how_far_it_is(progress: Progress, reason: str, message: str) -> None:
    assert working_towards("4.5.6", progress) == (reason, message)


def test_a_failure_that_lasts() -> None:
    failure = Failure(MAP, 'namespaces "here" not found')
    status = new_status(version(), Situation(PAYLOAD, Mode.INSTALL, Progress(0, 1), (failure,)), EARLIER)
    why = 'configmap "here/map": namespaces "here" not found'
    assert said(status)["Failing"] == ("True", f"Could not update {why}")
    assert said(status)["Progressing"] == ("True", f"Unable to apply 4.5.6: could not update {why}")
    many = tuple(Failure(MAP, f"reason {number}") for number in range(20))
    text = said(new_status(version(), Situation(PAYLOAD, Mode.INSTALL, Progress(0, 1), many), EARLIER))["Failing"][1]
    assert text.startswith("Multiple errors are preventing progress:\n* Could not update")
    assert text.endswith("* and 14 more")


def test_an_operator_that_fails_later() -> None:
    done = new_status(version(), Situation(PAYLOAD, Mode.INSTALL, Progress(1, 1)), EARLIER)
    status = new_status(version(done), Situation(PAYLOAD, Mode.RECONCILE, Progress(0, 1, waiting_on("dns"))), LATER)
    assert said(status)["Failing"] == ("True", "Cluster operator dns is not available")
    message = "Error while reconciling 4.5.6: cluster operator dns is not available"
    assert said(status)["Progressing"] == ("False", message)
    assert said(status)["Available"] == ("True", "Done applying 4.5.6")


def test_another_release_is_an_update() -> None:
    done = new_status(version(), Situation(PAYLOAD, Mode.INSTALL, Progress(1, 1)), EARLIER)
    newer = Payload("4.5.7", "image:4.5.7", (MAP,))
    assert mode_for(done, newer) is Mode.UPDATE
    begun = new_status(version(done), Situation(newer, Mode.UPDATE, Progress(0, 1)), LATER)
    assert [(entry["version"], entry["state"]) for entry in begun["history"]] == [
        ("4.5.7", "Partial"),
        ("4.5.6", "Completed"),
    ]
    assert said(begun)["Available"] == ("True", "Done applying 4.5.6")
    newest = Payload("4.5.8", "image:4.5.8", (MAP,))
    over = new_status(version(begun), Situation(newest, Mode.UPDATE, Progress(1, 1)), LATER)
    assert [entry["completionTime"] for entry in over["history"]] == [LATER, LATER, EARLIER]
    assert [entry["state"] for entry in over["history"]] == ["Completed", "Partial", "Completed"]


def test_history_has_an_end() -> None:
    status: dict[str, Any] = {}
    for number in range(HISTORY_LIMIT + 5):
        payload = Payload(f"1.0.{number}", "image", (MAP,))
        status = new_status(version(status), Situation(payload, Mode.UPDATE, Progress(1, 1)), EARLIER)
    assert len(status["history"]) == HISTORY_LIMIT
    assert status["history"][0]["version"] == f"1.0.{HISTORY_LIMIT + 4}"


def test_overrides() -> None:
    entry = {"group": "", "kind": "ConfigMap", "namespace": "here", "name": "map", "unmanaged": True}
    assert unmanaged({"overrides": [entry, {**entry, "name": "other", "unmanaged": False}]}) == {MAP.key}
    situation = Situation(PAYLOAD, Mode.INSTALL, Progress(1, 1))
    status = new_status(version(overrides=[entry]), situation, EARLIER)
    upgradeable = next(one for one in status["conditions"] if one["type"] == "Upgradeable")
    assert (upgradeable["status"], upgradeable["reason"]) == ("False", "ClusterVersionOverridesSet")
    assert "Upgradeable" not in said(new_status(version(status), situation, EARLIER))


def test_a_release_that_is_not_here() -> None:
    situation = Situation(PAYLOAD, Mode.INSTALL, Progress(1, 1))
    status = new_status(version(desiredUpdate={"version": "9.9.9"}), situation, EARLIER)
    assert "9.9.9 is not the release of this operator" in said(status)["Invalid"][1]
    assert "Invalid" not in said(new_status(version(status, desiredUpdate={"version": "4.5.6"}), situation, EARLIER))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [({"channel": ""}, "NoChannel"), ({}, "NoUpstream"), ({"upstream": "https://x"}, "NotSupported")],
)
def test_updates_come_with_a_release(spec: dict[str, str], reason: str) -> None:
    status = new_status(version(**spec), Situation(PAYLOAD, Mode.INSTALL, Progress(1, 1)), EARLIER)
    assert next(one for one in status["conditions"] if one["type"] == "RetrievedUpdates")["reason"] == reason
