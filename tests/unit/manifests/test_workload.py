"""Falsework's own pods, and what they may do."""

from __future__ import annotations

from falsework.manifests.objects import Manifests, Object
from falsework.manifests.workload import (
    MASTER,
    READ,
    Workload,
    core,
    daemon_set_manifests,
    host_folder,
    operator_manifests,
    read_config,
    rule,
)

OPERATOR = Workload(
    prefix="0000_12_etcd",
    name="etcd-operator",
    namespace="openshift-etcd-operator",
    port=9101,
    version="1.2.3",
    image="registry/falsework:1",
    images={"falsework": "registry/falsework:1", "etcd": "registry/etcd:2"},
    cluster_rules=[read_config("infrastructures", "networks"), core("nodes", READ)],
    roles={
        "openshift-etcd": [core("secrets", ("get",), ("etcd-all-certs",))],
        "openshift-etcd-operator": [core("secrets", ("get",), ("etcd-client",))],
    },
)
DAEMON = Workload(
    prefix="0000_80_machine-config",
    name="machine-config-daemon",
    namespace="openshift-machine-config-operator",
    port=9108,
    version="1.2.3",
    image="registry/falsework:1",
    root=True,
    node_name=True,
    arguments=["--node=$(NODE_NAME)"],
    volumes=[host_folder("kubernetes", "/etc/kubernetes")],
    mounts=[{"name": "kubernetes", "mountPath": "/etc/kubernetes"}],
    cluster_rules=[rule("operator.openshift.io", "etcds", READ)],
)


def found(manifests: Manifests, kind: str) -> list[Object]:
    return [body for bodies in manifests.values() for body in bodies if body["kind"] == kind]


def spec_of(manifests: Manifests, kind: str) -> Object:
    (body,) = found(manifests, kind)
    spec: Object = body["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    return spec


def test_an_operator_runs_on_one_master_before_there_is_a_network() -> None:
    manifests = operator_manifests(OPERATOR, "etcds")
    assert list(manifests) == ["0000_12_etcd_03_rbac.yaml", "0000_12_etcd_06_deployment.yaml"]
    spec = spec_of(manifests, "Deployment")
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    pod = spec["template"]["spec"]
    assert pod["hostNetwork"]
    assert (pod["nodeSelector"], pod["priorityClassName"]) == ({MASTER: ""}, "system-cluster-critical")
    endured = {(entry["key"], entry["effect"]): entry.get("tolerationSeconds") for entry in pod["tolerations"]}
    assert endured[("node.kubernetes.io/not-ready", "NoSchedule")] is None
    assert endured[("node.kubernetes.io/unreachable", "NoExecute")] == 30
    (container,) = pod["containers"]
    assert container["command"] == [
        *("/usr/bin/python3", "-m", "falsework.in_machine", "etcd-operator", "--release-version=1.2.3"),
        *("--image=etcd=registry/etcd:2", "--image=falsework=registry/falsework:1"),
    ]
    assert "etcd" not in container["name"]
    assert container["livenessProbe"]["httpGet"] == {"host": "127.0.0.1", "port": 9101, "path": "/healthz"}


def test_nothing_it_does_not_need() -> None:
    pod = spec_of(operator_manifests(OPERATOR, "etcds"), "Deployment")["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] > 0
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    (volume,) = pod["volumes"]
    assert volume["hostPath"] == {"path": "/etc/kubernetes/apiserver-url.env", "type": "File"}
    assert container["volumeMounts"][0]["readOnly"]


def test_rights_are_those_of_all_operators_and_its_own() -> None:
    manifests = operator_manifests(OPERATOR, "etcds")
    (cluster,) = found(manifests, "ClusterRole")
    assert [(one["resources"], one["verbs"], one.get("resourceNames")) for one in cluster["rules"]] == [
        (["etcds"], list(READ), None),
        (["etcds/status"], ["update"], ["cluster"]),
        (["clusteroperators"], list(READ), ["etcd"]),
        (["clusteroperators/status"], ["update"], ["etcd"]),
        (["infrastructures", "networks"], list(READ), None),
        (["nodes"], list(READ), None),
    ]
    roles = {body["metadata"]["namespace"]: body["rules"] for body in found(manifests, "Role")}
    assert roles["openshift-etcd"] == OPERATOR.roles["openshift-etcd"]
    own = [(one["resources"][0], one.get("resourceNames")) for one in roles["openshift-etcd-operator"]]
    assert own == [
        ("leases", None),
        ("leases", ["etcd-operator-lock"]),
        ("events", None),
        ("secrets", ["etcd-client"]),
    ]
    account = {"kind": "ServiceAccount", "name": "etcd-operator", "namespace": "openshift-etcd-operator"}
    bindings = found(manifests, "RoleBinding") + found(manifests, "ClusterRoleBinding")
    assert len(bindings) == 3
    assert all(binding["subjects"] == [account] for binding in bindings)
    names = {body["metadata"]["name"] for kind in ("Role", "ClusterRole") for body in found(manifests, kind)}
    assert {binding["roleRef"]["name"] for binding in bindings} == names


def test_a_daemon_runs_everywhere() -> None:
    manifests = daemon_set_manifests(DAEMON)
    assert list(manifests) == ["0000_80_machine-config_03_rbac.yaml", "0000_80_machine-config_06_daemonset.yaml"]
    pod = spec_of(manifests, "DaemonSet")["template"]["spec"]
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert pod["securityContext"]["runAsUser"] == 0
    (container,) = pod["containers"]
    assert container["command"][-1] == "--node=$(NODE_NAME)"
    assert [entry["name"] for entry in container["env"]] == ["POD_NAME", "NODE_NAME"]
    assert [volume["name"] for volume in pod["volumes"]] == ["apiserver-url", "kubernetes"]
    selected = spec_of(daemon_set_manifests(DAEMON, node_selector={MASTER: ""}), "DaemonSet")
    assert selected["template"]["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux", MASTER: ""}
