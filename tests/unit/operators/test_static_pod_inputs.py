"""From inputs to revisions, and which of them are kept."""

from __future__ import annotations

from typing import Any

from falsework.kube.client import Object
from falsework.kube.resources import CONFIG_MAPS, ETCDS, SECRETS
from falsework.operators.static_pod import inputs
from falsework.operators.static_pod.mirror_pod import read
from falsework.operators.static_pod.operand import Operand
from falsework.operators.static_pod.pruning import prunable

OPERAND = Operand("etcd", "etcd", "openshift-etcd", ETCDS, ("etcd-endpoints",), ("certs",))


def body(name: str, data: dict[str, str], **metadata: Any) -> Object:
    return {"metadata": {"name": name, "uid": name, **metadata}, "data": data}


def cluster() -> dict[Any, Object]:
    return dict(inputs.world([body("etcd-pod", {"pod.yaml": "{}"}), body("etcd-endpoints", {})], [body("certs", {})]))


def with_revision(seen: dict[Any, Object], revision: int, forced: str = "") -> dict[Any, Object]:
    owner = inputs.status_object(OPERAND, revision, "why", forced)
    owner["metadata"]["uid"] = "u"
    made = {(CONFIG_MAPS, owner["metadata"]["name"]): owner}
    for resource, copy in inputs.copies(OPERAND, seen, revision, owner):
        assert copy["metadata"]["ownerReferences"][0]["uid"] == "u"
        made[resource, copy["metadata"]["name"]] = copy
    return {**seen, **made}


def test_what_is_missing_is_named() -> None:
    seen = cluster()
    assert inputs.missing(OPERAND, seen) == []
    del seen[SECRETS, "certs"], seen[CONFIG_MAPS, "etcd-pod"]
    assert inputs.missing(OPERAND, seen) == ["configmap/etcd-pod", "secret/certs"]


def test_a_revision_is_made_only_for_a_difference_which_is_named() -> None:
    seen = cluster()
    assert inputs.difference(OPERAND, seen, 0, "") == "the first revision"
    seen = with_revision(seen, 1)
    assert inputs.difference(OPERAND, seen, 1, "") == ""
    assert inputs.difference(OPERAND, seen, 1, "please") == "redeployment is forced: please"
    assert inputs.difference(OPERAND, with_revision(seen, 1, "please"), 1, "please") == ""
    seen[CONFIG_MAPS, "etcd-endpoints"] = body("etcd-endpoints", {"a": "10.0.0.1"})
    del seen[SECRETS, "certs-1"]
    assert inputs.difference(OPERAND, seen, 1, "") == (
        "configmap/etcd-endpoints has changed; secret/certs-1 is not there"
    )
    fewer = Operand("etcd", "etcd", "openshift-etcd", ETCDS)
    assert inputs.difference(fewer, seen, 1, "") == "the list of inputs has changed"


def test_a_revision_counts_when_all_of_it_is_there() -> None:
    seen = with_revision(with_revision(cluster(), 1), 2)
    assert inputs.newest_finished(seen) == 0
    seen[CONFIG_MAPS, "revision-status-1"]["metadata"]["annotations"][inputs.READY] = "true"
    assert inputs.newest_finished(seen) == 1
    found = inputs.revisions_in([*seen.values(), body("revision-status-x", {}), body("revision-status-", {})])
    assert sorted(found) == [1, 2]


def test_old_revisions_go_and_those_in_use_and_shortly_before_them_stay() -> None:
    status = {
        "latestAvailableRevision": 20,
        "nodeStatuses": [
            {"nodeName": "a", "currentRevision": 20},
            {"nodeName": "b", "currentRevision": 9, "targetRevision": 20, "lastFailedRevision": 15},
        ],
    }
    spec = {"succeededRevisionLimit": 2, "failedRevisionLimit": 3}
    kept = {8, 9, 13, 14, 15, 19, 20}
    assert prunable(range(1, 22), {"spec": spec, "status": status}) == sorted(set(range(1, 20)) - kept)
    assert prunable(range(1, 21), {"spec": {**spec, "failedRevisionLimit": -1}, "status": status}) == []
    everywhere = {"latestAvailableRevision": 7, "nodeStatuses": [{"nodeName": "a", "currentRevision": 7}]}
    assert prunable(range(1, 8), {"status": everywhere}) == [1, 2]
    assert prunable(range(1, 8), {}) == []


def test_what_a_pod_tells() -> None:
    pod: Object = {
        "metadata": {"name": "etcd-a", "labels": {"revision": "4"}},
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}],
            "initContainerStatuses": [{"name": "discovery", "state": {"terminated": {"exitCode": 0}}}],
            "containerStatuses": [
                {"name": "one", "started": True, "ready": True, "state": {"running": {}}},
                {"name": "two", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}},
                {"name": "three", "state": {"waiting": {"reason": "PodInitializing"}}},
                {"name": "four", "state": {"terminated": {"reason": "Error", "exitCode": 2, "message": "bad flag\n"}}},
            ],
        },
    }
    found = read(pod)
    assert (found.revision, found.ready) == (4, False)
    assert found.milestones == {"pod", "discovery finished", "one started", "one ready"}
    assert found.troubles == (
        'pod/etcd-a container "two" is waiting: CrashLoopBackOff: back-off',
        'pod/etcd-a container "four" is terminated: Error: bad flag (exit code 2)',
    )
    pod["status"]["conditions"][0]["status"] = "True"
    assert read(pod).ready
    pod["metadata"]["deletionTimestamp"] = "now"
    assert not read(pod).ready
    assert read({"metadata": {"name": "x"}}).revision == 0
