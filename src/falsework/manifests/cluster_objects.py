"""Namespaces, rights and the operators' own objects: what stands before any operator runs."""

from __future__ import annotations

from falsework.manifests.objects import (
    Object,
    cluster_role_binding,
    config_map,
    named,
    service_account,
    user,
)

CREATE_ONLY = "release.openshift.io/create-only"
"""Made once; what becomes of it afterwards is its operator's and its owner's business."""

# Namespace → (file it is in, its pods share the host).
_NAMESPACES: dict[str, tuple[str, bool]] = {
    "openshift-cluster-version": ("0000_00_cluster-version-operator_00_namespace.yaml", True),
    "openshift-config": ("0000_10_config-operator_00_config-namespace.yaml", False),
    "openshift-config-managed": ("0000_10_config-operator_00_config-managed-namespace.yaml", False),
    "openshift-config-operator": ("0000_10_config-operator_00_operator-namespace.yaml", False),
    "openshift-infra": ("0000_10_config-operator_00_infra-namespace.yaml", False),
    "openshift-etcd": ("0000_12_etcd_00_namespace.yaml", True),
    "openshift-etcd-operator": ("0000_12_etcd_00_operator-namespace.yaml", True),
    "openshift-kube-apiserver": ("0000_20_kube-apiserver_00_namespace.yaml", True),
    "openshift-kube-apiserver-operator": ("0000_20_kube-apiserver_00_operator-namespace.yaml", True),
    "openshift-kube-controller-manager": ("0000_25_kube-controller-manager_00_namespace.yaml", True),
    "openshift-kube-controller-manager-operator": (
        "0000_25_kube-controller-manager_00_operator-namespace.yaml",
        True,
    ),
    "openshift-kube-scheduler": ("0000_25_kube-scheduler_00_namespace.yaml", True),
    "openshift-kube-scheduler-operator": ("0000_25_kube-scheduler_00_operator-namespace.yaml", True),
    "openshift-machine-api": ("0000_30_machine-api_00_namespace.yaml", False),
    "openshift-cluster-machine-approver": ("0000_50_machine-approver_00_namespace.yaml", True),
    "openshift-ingress": ("0000_50_ingress_00_namespace.yaml", True),
    "openshift-ingress-operator": ("0000_50_ingress_00_operator-namespace.yaml", True),
    "openshift-image-registry": ("0000_50_image-registry_00_namespace.yaml", True),
    "openshift-console": ("0000_50_console_00_namespace.yaml", False),
    "openshift-console-operator": ("0000_50_console_00_operator-namespace.yaml", False),
    "openshift-cluster-storage-operator": ("0000_50_cluster-storage-operator_00_namespace.yaml", True),
    "openshift-dns": ("0000_70_dns_00_namespace.yaml", True),
    "openshift-dns-operator": ("0000_70_dns_00_operator-namespace.yaml", True),
    "openshift-network-operator": ("0000_70_network_00_operator-namespace.yaml", True),
    "openshift-network-diagnostics": ("0000_70_network_00_diagnostics-namespace.yaml", True),
    "kube-flannel": ("0000_70_network_00_flannel-namespace.yaml", True),
    "openshift-machine-config-operator": ("0000_80_machine-config_00_namespace.yaml", True),
}

# Kind → file of its one object `cluster`. Their operators act on them, and bootkube watches etcd's.
_OPERATOR_OBJECTS = {
    "Etcd": "0000_12_etcd_02_operator.cr.yaml",
    "KubeAPIServer": "0000_20_kube-apiserver_02_operator.cr.yaml",
    "KubeControllerManager": "0000_25_kube-controller-manager_02_operator.cr.yaml",
    "KubeScheduler": "0000_25_kube-scheduler_02_operator.cr.yaml",
    "MachineApprover": "0000_50_machine-approver_02_operator.cr.yaml",
    "Storage": "0000_50_cluster-storage-operator_02_operator.cr.yaml",
    "Network": "0000_70_network_02_operator.cr.yaml",
    "MachineConfiguration": "0000_80_machine-config_02_operator.cr.yaml",
}


def cluster_objects() -> dict[str, list[Object]]:
    """File name → what is in it."""
    return {
        **{file: [_namespace(name, shares_host)] for name, (file, shares_host) in _NAMESPACES.items()},
        **_rights(),
        **{file: [_operator_object(kind)] for kind, file in _OPERATOR_OBJECTS.items()},
        "0000_70_dns_02_operator.cr.yaml": [_operator_object("DNS", "default")],
        "0000_50_ingress_02_ingresscontroller.cr.yaml": [_ingress_controller()],
        "0000_10_config-operator_02_image.cr.yaml": [_image_config()],
        "0000_50_image-registry_02_config.cr.yaml": [_image_registry()],
        "0000_80_machine-config_02_served.yaml": [_served()],
    }


def _namespace(name: str, shares_host: bool) -> Object:
    result = named("v1", "Namespace", name)
    # Pods go where their own selector sends them, masters included, whatever the cluster's default selector is.
    result["metadata"]["annotations"] = {"openshift.io/node-selector": ""}
    level = "privileged" if shares_host else "baseline"
    labels = {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "audit", "warn")}
    result["metadata"]["labels"] = {"openshift.io/cluster-monitoring": "true", **labels}
    return result


def _rights() -> dict[str, list[Object]]:
    return {
        # It creates whatever a release brings, other rights among it.
        "0000_00_cluster-version-operator_02_roles.yaml": [
            cluster_role_binding(
                "cluster-version-operator",
                "cluster-admin",
                service_account("cluster-version-operator", "openshift-cluster-version"),
            )
        ],
        # Logs, exec and port-forward: the API server asks the kubelet, by the name in its client certificate.
        "0000_20_kube-apiserver_01_kubelet-access.yaml": [
            cluster_role_binding("kube-apiserver", "system:kubelet-api-admin", user("system:kube-apiserver"))
        ],
    }


def _operator_object(kind: str, name: str = "cluster") -> Object:
    return _made_once(named("operator.openshift.io/v1", kind, name, spec={"managementState": "Managed"}))


def _ingress_controller() -> Object:
    """Says nothing: the domain is the cluster's, and how many routers there are depends on its nodes."""
    return _made_once(
        named("operator.openshift.io/v1", "IngressController", "default", "openshift-ingress-operator", spec={})
    )


def _image_config() -> Object:
    return _made_once(named("config.openshift.io/v1", "Image", "cluster", spec={}))


def _image_registry() -> Object:
    """Not wanted until somebody says where it is to keep its images."""
    spec = {"managementState": "Removed", "replicas": 1}
    return _made_once(named("imageregistry.operator.openshift.io/v1", "Config", "cluster", spec=spec))


def _served() -> Object:
    """Where Machine Config Servers note who fetched what. Made empty, so that none of them may make others."""
    return _made_once(config_map("machine-config-served", "openshift-machine-config-operator", {}))


def _made_once(body: Object) -> Object:
    body["metadata"]["annotations"] = {CREATE_ONLY: "true"}
    return body
