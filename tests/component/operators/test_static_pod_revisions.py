"""From inputs to pods on three nodes: operator and daemons are processes with their own rights, the API is real."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import scheduler_operator
from operator_process import POD, VERSION, OperatorProcess, account_of, operator_process, until
from played_kubelet import PlayedKubelets
from real_api import RealApi
from scheduler_operator import NAME, NAMESPACE, OPERAND

from falsework.kube.client import APPLY, ApiError, Client, Object
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    LEASES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from falsework.manifests.objects import named
from falsework.manifests.operators import machine_config_daemon

MASTERS = ("master-0", "master-1", "master-2")
PROGRAM = [scheduler_operator.__file__]
DAEMON = [*POD, "machine-config-daemon"]


class Cluster:
    """Everything but the operator, and what can be seen of it."""

    def __init__(self, api: RealApi, folder: Path) -> None:
        self.api = api
        self.client = api.client()
        self.folder = folder
        self.operator_account = account_of(api, scheduler_operator.manifests(VERSION))
        daemon = machine_config_daemon.manifests(VERSION, {"falsework": "registry.example/falsework:1"})
        self.daemon_account = account_of(api, daemon)

    @contextlib.contextmanager
    def operator(self, patience: float = 60) -> Iterator[OperatorProcess]:
        words, log = f"--patience={patience}", self.folder / "operator.log"
        with operator_process(self.api, PROGRAM, self.operator_account, log, words) as operator:
            yield operator

    @contextlib.contextmanager
    def daemon(self, node: str) -> Iterator[OperatorProcess]:
        words = (f"--node={node}", f"--root={self.folder / node}")
        log = self.folder / f"{node}.log"
        with operator_process(self.api, DAEMON, self.daemon_account, log, *words) as daemon:
            yield daemon

    def write(self, config: str, key: bytes = b"key") -> None:
        """The inputs, the pod last."""
        put(self.client, "ConfigMap", "config", data={"config.yaml": config})
        put(self.client, "Secret", "certificates", data={"tls.key": base64.b64encode(key).decode()})
        container = {"name": "kube-scheduler", "image": "registry.example/scheduler:1", "args": ["--rev=REVISION"]}
        pod = named("v1", "Pod", OPERAND.pod_name, OPERAND.namespace, spec={"containers": [container]})
        put(self.client, "ConfigMap", OPERAND.pod_config_map, data={"pod.yaml": json.dumps(pod)})

    def status(self) -> Object:
        status: Object = self.client.get(KUBE_SCHEDULERS, "cluster")["status"]
        return status

    def nodes(self) -> dict[str, Object]:
        return {entry["nodeName"]: entry for entry in self.status()["nodeStatuses"]}

    def condition(self, kind: str) -> Object:
        found: Object = next(entry for entry in self.status()["conditions"] if entry["type"] == kind)
        return found

    def all_at(self, revision: int) -> bool:
        found = [(entry["currentRevision"], entry["targetRevision"]) for entry in self.nodes().values()]
        return found == [(revision, 0)] * len(MASTERS) and self.status()["latestAvailableRevision"] == revision

    def manifests(self) -> list[Path]:
        return [self.folder / node / "manifests" / "kube-scheduler-pod.yaml" for node in MASTERS]


def put(client: Client, kind: str, name: str, **content: object) -> None:
    body = named("v1", kind, name, OPERAND.namespace, **content)
    client.patch(client.resource_of(body), name, body, OPERAND.namespace, kind=APPLY)


@pytest.fixture
def cluster(cluster_api: RealApi, tmp_path: Path) -> Iterator[Cluster]:
    client = cluster_api.client()
    for name in MASTERS:
        node = named("v1", "Node", name)
        node["metadata"]["labels"] = {"node-role.kubernetes.io/master": ""}
        client.create(NODES, node)
    client.create(CLUSTER_OPERATORS, named("config.openshift.io/v1", "ClusterOperator", "kube-scheduler", spec={}))
    yield Cluster(cluster_api, tmp_path)
    for name in MASTERS:
        client.delete(NODES, name)
    client.delete(CLUSTER_OPERATORS, "kube-scheduler")
    live = client.get(KUBE_SCHEDULERS, "cluster")
    client.replace(KUBE_SCHEDULERS, {**live, "status": {}}, "status")
    client.patch(KUBE_SCHEDULERS, "cluster", {"spec": {"forceRedeploymentReason": None}})
    client.raw("DELETE", f"{PODS.path(OPERAND.namespace)}?gracePeriodSeconds=0")
    for resource in (CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, POD_DISRUPTION_BUDGETS):
        client.raw("DELETE", resource.path(OPERAND.namespace))
    with contextlib.suppress(ApiError):
        client.delete(LEASES, f"{NAME}-lock", NAMESPACE)


def test_revisions_reach_all_masters_and_bad_ones_only_one(cluster: Cluster) -> None:
    kubelets = PlayedKubelets(cluster.api.client(), OPERAND, cluster.folder, MASTERS)
    with contextlib.ExitStack() as stack:
        stack.enter_context(kubelets.at_work())
        daemons = {node: stack.enter_context(cluster.daemon(node)) for node in MASTERS}
        operator = stack.enter_context(cluster.operator())

        # Without all inputs there is no revision, and what is missing is named.
        until(lambda: operator.said("no revision can be made in openshift-kube-scheduler without"), operator)
        assert "secret/certificates" in operator.said("no revision can be made")[0]["msg"]
        cluster.write("one")
        began = time.monotonic()
        until(lambda: cluster.all_at(1), operator)
        print(f"first revision on three nodes after {time.monotonic() - began:.2f} s")
        assert sorted(kubelets.started) == [(node, 1) for node in MASTERS]
        assert "--rev=1" in cluster.manifests()[0].read_text()
        until(lambda: cluster.condition("NodeInstallerProgressing")["status"] == "False", operator)
        assert cluster.condition("StaticPodsAvailable")["message"] == "3 nodes are active; 3 nodes are at revision 1"
        until(lambda: _said(cluster.client, "Available") == "True", operator)
        _guarded(cluster, operator)

        _one_after_the_other(cluster, kubelets, stack, operator, daemons)


def _one_after_the_other(
    cluster: Cluster,
    kubelets: PlayedKubelets,
    stack: contextlib.ExitStack,
    operator: OperatorProcess,
    daemons: dict[str, OperatorProcess],
) -> None:
    # The operator is killed while the first node moves, and the daemon of the second before its turn comes.
    kubelets.comes_up = lambda _, revision: revision == 1
    cluster.write("two")
    until(lambda: ("master-0", 2) in kubelets.started, operator)
    assert (cluster.client.get(CONFIG_MAPS, "revision-status-2", OPERAND.namespace)["data"]["reason"]) == (
        "configmap/config has changed"
    )
    operator.kill()
    daemons["master-1"].kill()
    kubelets.comes_up = lambda _node, _revision: True
    with contextlib.suppress(ApiError):
        # It ran out, instead of being waited for.
        cluster.client.delete(LEASES, f"{NAME}-lock", NAMESPACE)
    with cluster.operator() as operator:
        until(lambda: cluster.nodes()["master-1"]["targetRevision"] == 2, operator)
        assert cluster.nodes()["master-2"]["targetRevision"] == 0
        stack.enter_context(cluster.daemon("master-1"))
        until(lambda: cluster.all_at(2), operator)
    assert kubelets.started[3:] == [(node, 2) for node in MASTERS]
    assert kubelets.most_down == 1

    _a_bad_one(cluster, kubelets)

    # A newer one is another matter. It is written while nobody could make two of it.
    cluster.write("three", b"other")
    with cluster.operator() as operator:
        until(lambda: cluster.all_at(4), operator)
    assert "lastFailedRevision" not in cluster.nodes()["master-0"]
    assert cluster.condition("NodeInstallerDegraded")["status"] == "False"
    assert kubelets.most_down == 1
    folder = cluster.folder / "master-2" / "static-pod-resources" / "kube-scheduler-pod-4"
    assert (folder / "secrets" / "certificates" / "tls.key").read_bytes() == b"other"


def _guarded(cluster: Cluster, operator: OperatorProcess) -> None:
    """At most one master may be drained: on each stands a guard, which comes back, but not where it is in the way."""
    client, namespace = cluster.client, OPERAND.namespace
    # Where a controller manager runs, it is there already.
    account = named("v1", "ServiceAccount", "default", namespace)
    client.patch(SERVICE_ACCOUNTS, "default", account, namespace, kind=APPLY)

    def guards() -> dict[str, str]:
        found = client.list(PODS, namespace, labels="app=guard").items
        return {pod["spec"]["nodeName"]: pod["metadata"]["uid"] for pod in found}

    until(lambda: len(guards()) == len(MASTERS), operator)
    budget = client.get(POD_DISRUPTION_BUDGETS, "kube-scheduler-guard-pdb", namespace)["spec"]
    assert (budget["minAvailable"], budget["selector"]) == (2, {"matchLabels": {"app": "guard"}})
    client.patch(NODES, MASTERS[0], {"spec": {"unschedulable": True}})
    # Once the operator tells this, it has heard of that, too.
    emptied = {"type": "Ready", "status": "False", "reason": "Emptied"}
    client.patch(NODES, MASTERS[0], {"status": {"conditions": [emptied]}}, subresource="status")
    until(lambda: "Emptied" in cluster.condition("NodeControllerDegraded")["message"], operator)
    old = guards()
    for node in MASTERS[:2]:
        client.raw("DELETE", f"{PODS.path(namespace, f'kube-scheduler-guard-{node}')}?gracePeriodSeconds=0")
    client.delete(POD_DISRUPTION_BUDGETS, "kube-scheduler-guard-pdb", namespace)
    until(lambda: guards()[MASTERS[1]] != old[MASTERS[1]], operator)
    until(lambda: client.get(POD_DISRUPTION_BUDGETS, "kube-scheduler-guard-pdb", namespace), operator)
    assert MASTERS[0] not in guards()
    client.patch(NODES, MASTERS[0], {"spec": {"unschedulable": None}})
    until(lambda: MASTERS[0] in guards(), operator)


def _a_bad_one(cluster: Cluster, kubelets: PlayedKubelets) -> None:
    """One that does not come up is taken back on the first node, and reaches no other."""
    untouched = [path.stat().st_mtime_ns for path in cluster.manifests()[1:]]
    kubelets.comes_up = lambda _, revision: revision != 3
    with cluster.operator() as operator:
        cluster.client.patch(KUBE_SCHEDULERS, "cluster", {"spec": {"forceRedeploymentReason": "because"}})
        until(lambda: ("master-0", 3) in kubelets.started, operator)
    # Little patience only now: it is for the pod, not for whoever writes its manifest.
    with cluster.operator(patience=1) as operator:
        until(lambda: cluster.nodes()["master-0"].get("lastFailedRevision") == 3, operator)
        until(lambda: cluster.nodes()["master-0"]["targetRevision"] == 0, operator)
    failed = cluster.nodes()["master-0"]
    assert (failed["currentRevision"], failed["lastFailedCount"], failed["lastFallbackCount"]) == (2, 1, 1)
    assert failed["lastFailedRevisionErrors"] == ["pod/openshift-kube-scheduler-master-0 is not ready at revision 3"]
    assert kubelets.started[6:] == [("master-0", 3), ("master-0", 2)]
    degraded = cluster.condition("NodeInstallerDegraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "InstallerPodFailed")
    assert "is tried again there at" in cluster.condition("NodeInstallerProgressing")["message"]
    assert [path.stat().st_mtime_ns for path in cluster.manifests()[1:]] == untouched


def _said(client: Client, kind: str) -> str:
    conditions = client.get(CLUSTER_OPERATORS, "kube-scheduler")["status"]["conditions"]
    return str(next(entry["status"] for entry in conditions if entry["type"] == kind))


def test_a_daemon_killed_at_any_moment_leaves_nothing_half_done(cluster: Cluster) -> None:
    client, node = cluster.client, MASTERS[0]
    for resource, name in ((NODES, MASTERS[1]), (NODES, MASTERS[2])):
        client.patch(resource, name, {"metadata": {"labels": {"node-role.kubernetes.io/master": None}}})
    kubelets = PlayedKubelets(cluster.api.client(), OPERAND, cluster.folder, MASTERS[:1])
    root = cluster.folder / node
    root.mkdir()
    # The first thing it meets is a place where it cannot write.
    (root / "static-pod-resources").touch()
    cluster.write("one")
    with kubelets.at_work(), cluster.operator() as operator:
        with cluster.daemon(node) as daemon:
            until(lambda: cluster.nodes()[node].get("lastFailedReason") == "InstallerFailed", operator)
            assert "cannot be written" in cluster.nodes()[node]["lastFailedRevisionErrors"][0]
            (root / "static-pod-resources").unlink()
            until(lambda: cluster.nodes()[node]["currentRevision"] == 1, daemon)
            assert "lastFailedReason" not in cluster.nodes()[node]
            daemon.kill()

        for number, pause in enumerate((0.0, 0.01, 0.03, 0.06), start=2):
            _write_and_kill(cluster, operator, node, number, pause)
        with cluster.daemon(node) as daemon:
            until(lambda: cluster.nodes()[node]["currentRevision"] == 5, daemon)
            # What somebody took away is put back by the next one that starts; what is right is not touched.
            daemon.kill()
        manifest = cluster.manifests()[0]
        before = manifest.stat().st_mtime_ns
        key = root / "static-pod-resources/kube-scheduler-pod-5/secrets/certificates/tls.key"
        key.unlink()
        with cluster.daemon(node) as daemon:
            until(key.exists, daemon)
            assert manifest.stat().st_mtime_ns == before
            assert daemon.stop() == 0
        # What is left of a revision that was overtaken goes with its folder, in time.
        in_use = (root / "manifests", root / "static-pod-resources/kube-scheduler-pod-5")
        assert [path for folder in in_use for path in folder.rglob(".*")] == []


def _write_and_kill(cluster: Cluster, operator: OperatorProcess, node: str, revision: int, pause: float) -> None:
    """The daemon is killed so many seconds after its revision's folder appeared."""
    with cluster.daemon(node) as daemon:
        cluster.write(f"revision {revision}")
        folder = cluster.folder / node / "static-pod-resources" / f"kube-scheduler-pod-{revision}"
        _spin(folder.exists)
        time.sleep(pause)
        daemon.kill()
    until(lambda: cluster.status()["latestAvailableRevision"] == revision, operator)


def _spin(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)
