"""The Cluster Version Operator against a real API."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lease_holders import holder_of, holders_since
from operator_process import VERSION, OperatorProcess, until
from real_api import RealApi
from version_operator import IMAGE, version_operator

from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.assets.serialize import documents_in, to_yaml
from falsework.kube.client import APPLY, Client, Object
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_VERSIONS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ETCDS,
    KUBE_SCHEDULERS,
    LEASES,
    NAMESPACES,
    SERVICE_ACCOUNTS,
)
from falsework.manifests.objects import named
from falsework.manifests.operators import AFTER_PIVOT
from falsework.manifests.release import definitions, release_manifests
from falsework.operators.runtime.conditions import condition, now, updated
from falsework.release.inventory import Release

MONITORED = "openshift.io/cluster-monitoring"
CLUSTER_ID = "01234567-89ab-cdef-0123-456789abcdef"
OPERATORS = {
    body["metadata"]["name"]
    for bodies in release_manifests(VERSION, DEFAULT_PAYLOAD.images).values()
    for body in bodies
    if body["kind"] == "ClusterOperator"
}
TOTAL = sum(map(len, release_manifests(VERSION, DEFAULT_PAYLOAD.images).values()))


@pytest.fixture
def api(release: Release, programs: Path, tmp_path: Path) -> Iterator[RealApi]:
    with RealApi.in_folder(release, programs, tmp_path / "api") as api:
        yield api


@pytest.fixture(scope="module")
def long_used(release: Release, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    with RealApi.in_folder(release, programs, tmp_path_factory.mktemp("long-used")) as api:
        yield api


@pytest.fixture
def used_api(long_used: RealApi) -> Iterator[RealApi]:
    """For tests to which it is all the same what else is in it, as long as it is told no version yet."""
    yield long_used
    long_used.client().raw("DELETE", CLUSTER_VERSIONS.path(name="version"))


def version_object(overrides: list[Object] | None = None) -> Object:
    spec = {"clusterID": CLUSTER_ID, "channel": "stable-1.2", **({"overrides": overrides} if overrides else {})}
    return named("config.openshift.io/v1", "ClusterVersion", "version", spec=spec)


def said(client: Client, kind: str) -> Object:
    conditions = client.get(CLUSTER_VERSIONS, "version")["status"]["conditions"]
    found: Object = next(entry for entry in conditions if entry["type"] == kind)
    return found


def create_version(client: Client, operator: OperatorProcess, overrides: list[Object] | None = None) -> None:
    until(lambda: client.create(CLUSTER_VERSIONS, version_object(overrides)), operator)


def report(client: Client, name: str, *, available: bool = True) -> None:
    """What an operator does when its operand works."""
    live = client.get(CLUSTER_OPERATORS, name)
    new = [condition("Available", available), condition("Progressing", False), condition("Degraded", False)]
    old = (live.get("status") or {}).get("conditions") or []
    status = {
        **(live.get("status") or {}),
        "conditions": updated(old, new, now()),
        "versions": [{"name": "operator", "version": VERSION}],
    }
    client.replace(CLUSTER_OPERATORS, {**live, "status": status}, "status")


def roll_out(client: Client) -> None:
    """What their controllers say when all pods run."""
    deployed = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    scheduled = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberMisscheduled")
    for resource, counts in ((DEPLOYMENTS, deployed), (DAEMON_SETS, (*scheduled, "numberReady", "numberAvailable"))):
        for live in client.list(resource).items:
            status = dict.fromkeys(counts, 1) | {"observedGeneration": live["metadata"]["generation"]}
            client.replace(resource, {**live, "status": status}, "status")


def test_a_cluster_from_nothing_to_done(api: RealApi, tmp_path: Path) -> None:
    client = api.client()
    with version_operator(api, tmp_path / "log") as operator:
        create_version(client, operator)

        # It comes as far as it can alone, says what it waits for, and does not call that a failure.
        waiting = f"Working towards {VERSION}: {TOTAL - len(OPERATORS)} of {TOTAL} done ("
        until(lambda: said(client, "Progressing")["message"].startswith(waiting), operator)
        progressing = said(client, "Progressing")
        assert ", waiting on " in progressing["message"]
        assert progressing["reason"] == "ClusterOperatorsNotAvailable"
        assert said(client, "Available")["status"] == said(client, "Failing")["status"] == "False"
        assert {item["metadata"]["name"] for item in client.list(CLUSTER_OPERATORS).items} == OPERATORS
        related = client.get(CLUSTER_OPERATORS, "etcd")["status"]["relatedObjects"]
        assert related[0] == {"group": "", "resource": "namespaces", "name": "openshift-etcd-operator"}
        found = {item["metadata"]["name"] for item in client.list(CUSTOM_RESOURCE_DEFINITIONS).items}
        assert found == {f"{one.plural}.{one.group}" for one in definitions()}

        # While it waits, too, what it has made is kept.
        client.delete(CUSTOM_RESOURCE_DEFINITIONS, "images.config.openshift.io")
        until(lambda: client.get(CUSTOM_RESOURCE_DEFINITIONS, "images.config.openshift.io"), operator)
        until(lambda: said(client, "Progressing")["message"].startswith(waiting), operator)

        # The API is away for a while: it goes on where it was.
        api.kill("kube-apiserver")
        time.sleep(1)
        api.start_apiserver()
        for name in sorted(OPERATORS - {"etcd"}):
            report(client, name)
        until(lambda: said(client, "Progressing")["message"].endswith("waiting on etcd"), operator)
        assert said(client, "Progressing")["reason"] == "ClusterOperatorNotAvailable"

        roll_out(client)
        report(client, "etcd")
        until(lambda: said(client, "Available")["status"] == "True", operator)
        assert said(client, "Available")["message"] == f"Done applying {VERSION}"
        assert said(client, "Progressing")["message"] == f"Cluster version is {VERSION}"
        status = client.get(CLUSTER_VERSIONS, "version")["status"]
        assert status["desired"] == {"version": VERSION, "image": IMAGE}
        assert status["availableUpdates"] is None
        (entry,) = status["history"]
        assert entry["state"] == "Completed"
        assert entry["startedTime"] <= entry["completionTime"]

        _drift_is_put_back(client, operator)

        # An operator that fails is told, and one that is well again too.
        report(client, "network", available=False)
        # Not for the rollout that has just been finished: what was seen of that may be told a moment later.
        until(lambda: said(client, "Failing").get("reason") == "ClusterOperatorNotAvailable", operator)
        assert said(client, "Failing")["status"] == "True"
        message = f"Error while reconciling {VERSION}: cluster operator network is not available"
        assert said(client, "Progressing")["message"] == message
        assert said(client, "Available")["status"] == "True"
        report(client, "network")
        until(lambda: said(client, "Failing")["status"] == "False", operator)

        # Nothing changes any more: nothing is written any more.
        before = client.get(CLUSTER_VERSIONS, "version")["metadata"]["resourceVersion"]
        time.sleep(2)
        assert client.get(CLUSTER_VERSIONS, "version")["metadata"]["resourceVersion"] == before
        assert operator.stop() == 0
    assert len(operator.lines()) < 80, operator.lines()


def _drift_is_put_back(client: Client, operator: OperatorProcess) -> None:
    """Within seconds, of every kind; the next look at everything is minutes away."""
    pools = "machineconfigpools.machineconfiguration.openshift.io"
    own = ("cluster-version-operator", "openshift-cluster-version")
    old = client.get(CUSTOM_RESOURCE_DEFINITIONS, pools)["metadata"]["uid"]
    client.delete(CUSTOM_RESOURCE_DEFINITIONS, pools)
    client.patch(CLUSTER_ROLE_BINDINGS, "kube-apiserver", {"subjects": []})
    client.patch(NAMESPACES, "openshift-etcd", {"metadata": {"labels": {"mine": "stays", MONITORED: "false"}}})
    client.patch(DEPLOYMENTS, own[0], {"spec": {"replicas": 0}}, own[1])
    client.delete(SERVICE_ACCOUNTS, *own)
    # Made once: what its owner changes stays changed; removed, it is made again.
    client.patch(ETCDS, "cluster", {"spec": {"logLevel": "Debug"}})
    client.delete(KUBE_SCHEDULERS, "cluster")
    for right in (
        lambda: client.get(CLUSTER_ROLE_BINDINGS, "kube-apiserver")["subjects"],
        lambda: client.get(NAMESPACES, "openshift-etcd")["metadata"]["labels"][MONITORED] == "true",
        lambda: client.get(DEPLOYMENTS, *own)["spec"]["replicas"] == 1,
        lambda: client.get(SERVICE_ACCOUNTS, *own),
        lambda: client.get(KUBE_SCHEDULERS, "cluster"),
        lambda: client.get(CUSTOM_RESOURCE_DEFINITIONS, pools)["metadata"]["uid"] != old,
    ):
        until(right, operator)
    assert client.get(NAMESPACES, "openshift-etcd")["metadata"]["labels"]["mine"] == "stays"
    assert client.get(ETCDS, "cluster")["spec"]["logLevel"] == "Debug"
    roll_out(client)

    # Its own object and definition, too; and it remembers.
    version = client.get(CLUSTER_VERSIONS, "version")["metadata"]["uid"]
    client.delete(CUSTOM_RESOURCE_DEFINITIONS, "clusterversions.config.openshift.io")
    until(lambda: client.get(CLUSTER_VERSIONS, "version")["metadata"]["uid"] != version, operator)
    until(lambda: said(client, "Available")["status"] == "True", operator)
    assert client.get(CLUSTER_VERSIONS, "version")["spec"]["clusterID"] == CLUSTER_ID


def small_release(parent: Path) -> Path:
    """A folder with what the operator itself needs."""
    folder = parent / "release-manifests"
    folder.mkdir()
    for file, bodies in release_manifests(VERSION, DEFAULT_PAYLOAD.images).items():
        if file.startswith("0000_00_"):
            (folder / file).write_bytes(to_yaml(*bodies))
    return folder


def test_what_is_overridden_is_left_alone(used_api: RealApi, tmp_path: Path) -> None:
    folder = small_release(tmp_path)
    settings = [named("v1", "ConfigMap", name, "default", data={"by": "release"}) for name in ("theirs", "mine")]
    (folder / "0000_50_settings_01_maps.yaml").write_bytes(to_yaml(*settings))
    broken = named("v1", "ConfigMap", "lost", "nowhere", data={})
    (folder / "0000_60_broken_01_map.yaml").write_bytes(to_yaml(broken))
    client = used_api.client()
    client.create(CONFIG_MAPS, named("v1", "ConfigMap", "mine", "default", data={"by": "me"}))
    override = {"group": "", "kind": "ConfigMap", "namespace": "default", "name": "mine", "unmanaged": True}
    with version_operator(used_api, tmp_path / "log", "--resync=1", f"--release-manifests={folder}") as operator:
        create_version(client, operator, [override])
        until(lambda: client.get(CONFIG_MAPS, "theirs", "default"), operator)
        upgradeable = said(client, "Upgradeable")
        assert (upgradeable["status"], upgradeable["reason"]) == ("False", "ClusterVersionOverridesSet")
        assert client.get(CONFIG_MAPS, "mine", "default")["data"] == {"by": "me"}

        # What cannot be applied is named, with the API's own reason, once it has lasted.
        until(lambda: said(client, "Failing")["status"] == "True", operator)
        assert said(client, "Failing")["reason"] == "UpdatePayloadFailed"
        assert 'configmap "nowhere/lost"' in said(client, "Failing")["message"]
        assert said(client, "Progressing")["message"].startswith(
            f"Unable to apply {VERSION}: could not update configmap"
        )
        # What is done now is looked at again in a second, and is to be well then, too.
        roll_out(client)
        client.create(NAMESPACES, named("v1", "Namespace", "nowhere"))
        until(lambda: said(client, "Available")["status"] == "True", operator)
        assert said(client, "Failing")["status"] == "False"

        # Given back, it is the release's again.
        client.patch(CLUSTER_VERSIONS, "version", {"spec": {"overrides": None}})
        until(lambda: client.get(CONFIG_MAPS, "mine", "default")["data"] == {"by": "release"}, operator)
        until(lambda: not [one for one in _conditions(client) if one["type"] == "Upgradeable"], operator)


def _conditions(client: Client) -> list[Object]:
    found: list[Object] = client.get(CLUSTER_VERSIONS, "version")["status"]["conditions"]
    return found


def test_one_leads_and_leaves_the_rest_to_the_next(used_api: RealApi, tmp_path: Path) -> None:
    client = used_api.client()
    folder = small_release(tmp_path)
    later = named("v1", "ConfigMap", "later", "default", data={})
    later["metadata"]["annotations"] = {AFTER_PIVOT: "true"}
    (folder / "0000_50_settings_01_map.yaml").write_bytes(to_yaml(later))
    total = sum(len(list(documents_in(path.name, path.read_bytes()))) for path in folder.iterdir())
    manifests = f"--release-manifests={folder}"
    namespace = named("v1", "Namespace", "openshift-cluster-version")
    client.patch(NAMESPACES, "openshift-cluster-version", namespace, kind=APPLY)

    def lease() -> Object:
        return client.get(LEASES, "version", "openshift-cluster-version")

    with version_operator(used_api, tmp_path / "first", "--leader-elect", "--before-pivot", manifests) as first:
        until(lambda: holder_of(lease()), first)
        with version_operator(used_api, tmp_path / "second", "--leader-elect", manifests) as second:
            until(lambda: second.said("Waiting to lead"), second)
            create_version(client, first)
            # What it leaves is not done, and is nobody's failure.
            most = f"Working towards {VERSION}: {total - 1} of {total} done ("
            until(lambda: said(client, "Progressing")["message"].startswith(most), first)
            assert said(client, "Available")["status"] == said(client, "Failing")["status"] == "False"
            before = lease()
            first.stop()
            until(lambda: holder_of(lease()) not in ("", holder_of(before)), second)
            # Given back, not run out.
            assert holders_since(client, before) == [holder_of(before), "", holder_of(lease())]
            until(lambda: said(client, "Available")["status"] == "True", second)
            assert client.get(CONFIG_MAPS, "later", "default")
    assert not first.said("later")
    assert holder_of(lease()) == ""
