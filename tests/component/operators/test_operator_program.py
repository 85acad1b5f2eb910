"""The runtime as a process against a real API, with exactly the rights that its manifests give."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import copying_operator
import pytest
from copying_operator import CONSOLES, NAME, NAMESPACE
from lease_holders import holders_since
from operator_process import VERSION, OperatorProcess, account_of, operator_process, until
from real_api import RealApi

from falsework.kube.client import APPLY, ApiError, Client, Object
from falsework.kube.resources import CLUSTER_OPERATORS, CONFIG_MAPS, EVENTS, LEASES
from falsework.manifests.objects import named

PROGRAM = [copying_operator.__file__]


@pytest.fixture
def kubeconfig(cluster_api: RealApi) -> Iterator[Path]:
    """Of the operator's service account, in a cluster that has nothing of it yet."""
    client = cluster_api.client()
    client.create(CONSOLES, named("operator.openshift.io/v1", "Console", "cluster", spec={}))
    related = {"relatedObjects": [{"group": "", "resource": "namespaces", "name": NAMESPACE}]}
    body = client.create(CLUSTER_OPERATORS, named("config.openshift.io/v1", "ClusterOperator", "console", spec={}))
    client.replace(CLUSTER_OPERATORS, {**body, "status": related}, "status")
    yield account_of(cluster_api, copying_operator.manifests(VERSION))
    client.delete(CONSOLES, "cluster")
    client.delete(CLUSTER_OPERATORS, "console")
    for resource in (CONFIG_MAPS, LEASES, EVENTS):
        for item in client.list(resource, NAMESPACE).items:
            client.delete(resource, item["metadata"]["name"], NAMESPACE)


def tell(client: Client, text: str) -> None:
    body = named("v1", "ConfigMap", "input", NAMESPACE, data={"text": text})
    client.patch(CONFIG_MAPS, "input", body, NAMESPACE, kind=APPLY)


def conditions(client: Client) -> dict[str, Object]:
    status = client.get(CLUSTER_OPERATORS, "console").get("status") or {}
    return {entry["type"]: entry for entry in status.get("conditions") or []}


def copied(client: Client) -> str:
    return str(client.get(CONFIG_MAPS, "output", NAMESPACE)["data"]["text"])


def told(client: Client, message: str) -> list[Object]:
    return [item for item in client.list(EVENTS, NAMESPACE).items if item["message"] == message]


def asked(operator: OperatorProcess, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{operator.port}{path}") as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, ""


def test_from_the_first_look_to_a_clean_end(cluster_api: RealApi, kubeconfig: Path, tmp_path: Path) -> None:
    client = cluster_api.client()
    with operator_process(cluster_api, PROGRAM, kubeconfig, tmp_path / "log") as operator:
        until(lambda: conditions(client)["Available"]["status"] == "False", operator)
        assert conditions(client)["Available"]["reason"] == "Output_NoInput"
        assert "versions" not in client.get(CLUSTER_OPERATORS, "console")["status"]
        tell(client, "hello")
        until(lambda: conditions(client)["Available"]["status"] == "True", operator)
        until(lambda: copied(client) == "hello", operator)
        status = client.get(CLUSTER_OPERATORS, "console")["status"]
        assert status["versions"] == [{"name": "operator", "version": VERSION}]
        assert status["relatedObjects"][0]["name"] == NAMESPACE
        said = {entry["type"]: (entry["status"], entry["reason"], entry["message"]) for entry in status["conditions"]}
        good = ("AsExpected", "All is well")
        assert said == {
            "Available": ("True", *good),
            "Progressing": ("False", *good),
            "Degraded": ("False", *good),
            "Upgradeable": ("True", *good),
        }
        assert asked(operator, "/healthz") == (200, "ok\n")
        assert asked(operator, "/elsewhere")[0] == 404
        metrics = asked(operator, "/metrics")[1]
        assert 'falsework_controller_failures_total{controller="CopyController"} 0\n' in metrics
        assert "falsework_leader 1\n" in metrics
        # A copy that somebody removed, a ClusterOperator that somebody emptied: the second is put right at once.
        client.replace(CLUSTER_OPERATORS, {**client.get(CLUSTER_OPERATORS, "console"), "status": {}}, "status")
        until(lambda: conditions(client)["Available"]["status"] == "True", operator)
        until(lambda: told(client, "Copied hello"), operator)
        assert operator.stop() == 0
        assert client.get(LEASES, f"{NAME}-lock", NAMESPACE)["spec"]["holderIdentity"] == ""
    events = [(event["reason"], event["involvedObject"]["name"]) for event in told(client, "Copied hello")]
    assert events == [("Copied", NAME)]
    assert operator.said("Copied hello")[0]["operator"] == NAME
    assert {line["level"] for line in operator.lines()} == {"info"}, operator.log.read_text()


def test_failures_are_tried_again_and_secrets_stay_secret(
    cluster_api: RealApi, kubeconfig: Path, tmp_path: Path
) -> None:
    client = cluster_api.client()
    tell(client, "mistake")
    with operator_process(cluster_api, PROGRAM, kubeconfig, tmp_path / "log") as operator:
        until(lambda: operator.said("ZeroDivisionError at"), operator)
        tell(client, "refused")
        until(lambda: operator.said("the input is refused: it says so"), operator)
        (line,) = operator.said("the input is refused")
        assert (line["level"], line["controller"]) == ("warning", "CopyController")
        assert "s3cret" not in operator.log.read_text()
        tell(client, "fine")
        until(lambda: copied(client) == "fine", operator)


def test_the_sync_in_hand_is_finished_and_the_next_operator_need_not_wait(
    cluster_api: RealApi, kubeconfig: Path, tmp_path: Path
) -> None:
    client = cluster_api.client()
    tell(client, "slow")
    with (
        operator_process(cluster_api, PROGRAM, kubeconfig, tmp_path / "one") as one,
        operator_process(cluster_api, PROGRAM, kubeconfig, tmp_path / "other") as other,
    ):
        until(lambda: one.said("Leading") or other.said("Leading"), one)
        first, second = (one, other) if one.said("Leading") else (other, one)
        until(lambda: second.said("Waiting to lead"), second)
        assert "falsework_leader 0\n" in asked(second, "/metrics")[1]
        until(lambda: 'syncs_total{controller="CopyController"} 1\n' in asked(first, "/metrics")[1], first)
        lease = client.get(LEASES, f"{NAME}-lock", NAMESPACE)
        assert first.stop() == 0
        assert copied(client) == "slow"
        until(lambda: second.said("Leading"), second)
        # Nobody's in between: it was given back, and has not run out.
        assert "" in holders_since(client, lease)


def test_whoever_loses_the_lease_ends_at_once(cluster_api: RealApi, kubeconfig: Path, tmp_path: Path) -> None:
    client = cluster_api.client()
    with operator_process(cluster_api, PROGRAM, kubeconfig, tmp_path / "log") as operator:
        until(lambda: operator.said("Leading"), operator)
        # Whatever its version: it is renewed all the time.
        client.patch(LEASES, f"{NAME}-lock", {"spec": {"holderIdentity": "somebody else"}}, NAMESPACE)
        assert operator.process.wait(60) == 1
        assert operator.said("Lost the lease")


def test_the_rights_end_where_the_work_does(cluster_api: RealApi, kubeconfig: Path) -> None:
    own = cluster_api.client(kubeconfig)
    for refused in (
        lambda: own.list(CONFIG_MAPS, "kube-system"),
        lambda: own.get(CLUSTER_OPERATORS, "etcd"),
        lambda: own.patch(CONSOLES, "cluster", {"spec": {"managementState": "Removed"}}),
        lambda: own.get(LEASES, "another", NAMESPACE),
    ):
        with pytest.raises(ApiError) as caught:
            refused()
        assert caught.value.status == 403
