"""Falsework's own pods in a cluster: who they may be, what they may do, and how they are run.

They share the node's network and reach the API by the load balancer, so they need nothing of what they bring about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from falsework.manifests.objects import RBAC, Manifests, Object, cluster_role_binding, named, service_account

Rule = Object
"""One entry of a Role."""

API_SERVER_URL = "/etc/kubernetes/apiserver-url.env"
MASTER = "node-role.kubernetes.io/master"
READ = ("get", "list", "watch")
CONTAINER = "operator"
"""Not a name with `etcd` in it, whoever it belongs to: people look for that one by this part of its name."""

_NOBODY = 65534
_SILENT = 30
"""Seconds a node may be silent before its operators are wanted elsewhere."""
_NOT_READY = 300
"""The same for a node that speaks: it may be waiting for the very network that an operator on it brings."""


def rule(group: str, resources: Sequence[str] | str, verbs: Sequence[str], names: Sequence[str] = ()) -> Rule:
    """`names`: only these objects. They limit lists and watches too, if those select metadata.name."""
    plurals = [resources] if isinstance(resources, str) else list(resources)
    result: Rule = {"apiGroups": [group], "resources": plurals, "verbs": list(verbs)}
    return result | ({"resourceNames": list(names)} if names else {})


def core(resources: Sequence[str] | str, verbs: Sequence[str], names: Sequence[str] = ()) -> Rule:
    return rule("", resources, verbs, names)


def read_config(*plurals: str) -> Rule:
    """Facts of the site, such as `infrastructures`."""
    return rule("config.openshift.io", plurals, READ)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """`image` is Falsework's own; `images` are those it is told about (--image NAME=REF)."""

    prefix: str
    """Of its files: 0000_<run level>_<component>."""
    name: str
    namespace: str
    entry_point: str = ""
    """What of Falsework it runs, if that is called something else."""
    port: int
    """Of /healthz, on the node's loopback."""
    scheme: str = "HTTP"
    """The same."""
    is_asked_when_ready: bool = False
    """For what serves others: it is Ready when /healthz says so, not when it has been started."""
    version: str
    image: str
    images: Mapping[str, str] = field(default_factory=dict)
    arguments: Sequence[str] = ()
    cluster_rules: Sequence[Rule] = ()
    roles: Mapping[str, Sequence[Rule]] = field(default_factory=dict)
    """Namespace → what it may do there."""
    cpu: str = "10m"
    memory: str = "50Mi"
    root: bool = False
    """For what writes the node's files."""
    node_name: bool = False
    """Whether it is told on which node it is: NODE_NAME in its environment."""
    mounts: Sequence[Object] = ()
    volumes: Sequence[Object] = ()

    def manifests(self, workload: Object, kind: str) -> Manifests:
        return {f"{self.prefix}_03_rbac.yaml": self._rights(), f"{self.prefix}_06_{kind}.yaml": [workload]}

    def pod(self, **rest: Any) -> Object:
        """The template of its pods."""
        labels = {"app": self.name}
        spec: Object = {
            "serviceAccountName": self.name,
            "hostNetwork": True,
            "dnsPolicy": "Default",
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 30,
            "securityContext": self._identity(),
            "containers": [self._container()],
            "volumes": [_api_server_url_volume(), *self.volumes],
            **rest,
        }
        return {"metadata": {"labels": labels}, "spec": spec}

    def _identity(self) -> Object:
        common: Object = {"seccompProfile": {"type": "RuntimeDefault"}}
        if self.root:
            return common | {"runAsUser": 0, "runAsGroup": 0}
        return common | {"runAsNonRoot": True, "runAsUser": _NOBODY, "runAsGroup": _NOBODY}

    def _container(self) -> Object:
        images = [f"--image={name}={reference}" for name, reference in sorted(self.images.items())]
        command = ["/usr/bin/python3", "-m", "falsework.in_machine", self.entry_point or self.name]
        health: Object = {"host": "127.0.0.1", "port": self.port, "path": "/healthz"}
        if self.scheme != "HTTP":
            health["scheme"] = self.scheme
        # Often until it is there, and seldom from then on.
        asked: Object = {
            "startupProbe": {"httpGet": health, "periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": 2**31 - 1},
            "readinessProbe": {"httpGet": health, "periodSeconds": 20, "timeoutSeconds": 5, "failureThreshold": 1},
        }
        mount = {"name": "apiserver-url", "mountPath": API_SERVER_URL, "readOnly": True}
        result: Object = {
            "name": CONTAINER,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": [*command, f"--release-version={self.version}", *images, *self.arguments],
            "env": [_field("POD_NAME", "metadata.name")],
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            "resources": {"requests": {"cpu": self.cpu, "memory": self.memory}},
            "livenessProbe": {
                "httpGet": health,
                "initialDelaySeconds": 30,
                "periodSeconds": 30,
                "timeoutSeconds": 10,
                "failureThreshold": 3,
            },
            **(asked if self.is_asked_when_ready else {}),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [mount, *self.mounts],
        }
        if self.node_name:
            result["env"].append(_field("NODE_NAME", "spec.nodeName"))
        return result

    def _rights(self) -> list[Object]:
        subject = service_account(self.name, self.namespace)
        role = f"system:openshift:operator:{self.name}"
        rights: list[Object] = [named("v1", "ServiceAccount", self.name, self.namespace)]
        if self.cluster_rules:
            rights += [
                named(f"{RBAC}/v1", "ClusterRole", role, rules=list(self.cluster_rules)),
                cluster_role_binding(role, role, subject),
            ]
        for namespace, rules in sorted(self.roles.items()):
            reference = {"apiGroup": RBAC, "kind": "Role", "name": self.name}
            rights += [
                named(f"{RBAC}/v1", "Role", self.name, namespace, rules=list(rules)),
                named(f"{RBAC}/v1", "RoleBinding", self.name, namespace, roleRef=reference, subjects=[subject]),
            ]
        return rights


def operator_manifests(
    workload: Workload,
    plural: str,
    cluster_operator: str = "",
    *,
    group: str = "operator.openshift.io",
    object_name: str = "cluster",
) -> Manifests:
    """An operator on one of the masters, with the rights all of them need: its lease, its events, its own object
    and its ClusterOperator (by default its name without `-operator`)."""
    reported = cluster_operator or workload.name.removesuffix("-operator")
    lease = f"{workload.name}-lock"
    cluster_rules = [
        rule(group, plural, READ),
        rule(group, f"{plural}/status", ("update",), (object_name,)),
        rule("config.openshift.io", "clusteroperators", READ, (reported,)),
        rule("config.openshift.io", "clusteroperators/status", ("update",), (reported,)),
        *workload.cluster_rules,
    ]
    own = [
        rule("coordination.k8s.io", "leases", ("create",)),
        rule("coordination.k8s.io", "leases", ("get", "update"), (lease,)),
        *_events(),
        *workload.roles.get(workload.namespace, ()),
    ]
    whole = replace(workload, cluster_rules=cluster_rules, roles={**workload.roles, workload.namespace: own})
    return whole.manifests(deployment(whole), "deployment")


def daemon_set_manifests(workload: Workload, *, node_selector: Mapping[str, str] | None = None) -> Manifests:
    """A program on every node, or on those with these labels, whatever state they are in."""
    own = [*_events(), *workload.roles.get(workload.namespace, ())]
    whole = replace(workload, roles={**workload.roles, workload.namespace: own})
    pod = whole.pod(
        priorityClassName="system-node-critical",
        nodeSelector={"kubernetes.io/os": "linux", **(node_selector or {})},
        tolerations=[{"operator": "Exists"}],
    )
    spec = {
        "selector": {"matchLabels": pod["metadata"]["labels"]},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
        "template": pod,
    }
    return whole.manifests(named("apps/v1", "DaemonSet", whole.name, whole.namespace, spec=spec), "daemonset")


def mounted_secret(name: str, path: str) -> tuple[Object, Object]:
    """A Secret as files below a folder of the pod: the volume, and where it is."""
    volume = {"name": name, "secret": {"secretName": name, "defaultMode": 0o444}}
    return volume, {"name": name, "mountPath": path, "readOnly": True}


def host_folder(name: str, path: str, kind: str = "Directory") -> Object:
    """A volume: a folder of the node."""
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def deployment(workload: Workload) -> Object:
    """One pod, on a master."""
    pod = workload.pod(
        priorityClassName="system-cluster-critical", nodeSelector={MASTER: ""}, tolerations=_master_tolerations()
    )
    spec = {
        "replicas": 1,
        # The old one ends before the new one begins: they would have the same port, and only one could lead.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": pod["metadata"]["labels"]},
        "template": pod,
    }
    return named("apps/v1", "Deployment", workload.name, workload.namespace, spec=spec)


def _master_tolerations() -> list[Object]:
    """Masters, before they have a network and while they have one."""
    there = [
        {"key": key, "operator": "Exists", "effect": "NoSchedule"}
        for key in (
            MASTER,
            "node-role.kubernetes.io/control-plane",
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/network-unavailable",
        )
    ]
    leaving = [
        {
            "key": f"node.kubernetes.io/{state}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": seconds,
        }
        for state, seconds in (("not-ready", _NOT_READY), ("unreachable", _SILENT))
    ]
    return [*there, *leaving]


def _field(name: str, path: str) -> Object:
    """A variable of the environment: something of the pod itself."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _events() -> list[Rule]:
    return [core("events", ("create", "get", "patch"))]


def _api_server_url_volume() -> Object:
    return {"name": "apiserver-url", "hostPath": {"path": API_SERVER_URL, "type": "File"}}
