"""The kinds of objects Falsework deals with, and where the API has them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True)
class Resource:
    group: str
    """Empty for the core group."""
    version: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Where it is. Without a name, all of them; without a namespace, those of all namespaces."""
        assert name or not subresource, "only a single object has subresources"
        assert self.namespaced or not namespace, f"{self.plural} are in no namespace"
        assert namespace or not (self.namespaced and name), f"one of {self.plural} is in a namespace"
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, *((name,) if name else ()), *((subresource,) if subresource else ())]
        return "".join(f"/{quote(part, safe='')}" for part in parts)


def _core(plural: str, *, namespaced: bool = True) -> Resource:
    return Resource("", "v1", plural, namespaced)


NODES = _core("nodes", namespaced=False)
PERSISTENT_VOLUMES = _core("persistentvolumes", namespaced=False)
NAMESPACES = _core("namespaces", namespaced=False)
PODS = _core("pods")
CONFIG_MAPS = _core("configmaps")
SECRETS = _core("secrets")
SERVICES = _core("services")
ENDPOINTS = _core("endpoints")
SERVICE_ACCOUNTS = _core("serviceaccounts")
PERSISTENT_VOLUME_CLAIMS = _core("persistentvolumeclaims")
EVENTS = _core("events")

DEPLOYMENTS = Resource("apps", "v1", "deployments", True)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", True)
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", True)
KUBE_INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", True)
INGRESS_CLASSES = Resource("networking.k8s.io", "v1", "ingressclasses", False)
JOBS = Resource("batch", "v1", "jobs", True)
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", True)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", False)
CSRS = Resource("certificates.k8s.io", "v1", "certificatesigningrequests", False)
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", False)
CLUSTER_ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", False)
CUSTOM_RESOURCE_DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", False)


def _config(plural: str) -> Resource:
    return Resource("config.openshift.io", "v1", plural, False)


def _operator(plural: str, *, namespaced: bool = False) -> Resource:
    return Resource("operator.openshift.io", "v1", plural, namespaced)


CLUSTER_VERSIONS = _config("clusterversions")
CLUSTER_OPERATORS = _config("clusteroperators")
INFRASTRUCTURES = _config("infrastructures")
INGRESSES = _config("ingresses")
DNSES = _config("dnses")
NETWORKS = _config("networks")
SCHEDULERS = _config("schedulers")
IMAGE_CONFIGS = _config("images")
ETCDS = _operator("etcds")
KUBE_API_SERVERS = _operator("kubeapiservers")
KUBE_CONTROLLER_MANAGERS = _operator("kubecontrollermanagers")
KUBE_SCHEDULERS = _operator("kubeschedulers")
MACHINE_APPROVERS = _operator("machineapprovers")
MACHINE_CONFIGURATIONS = _operator("machineconfigurations")
OPERATOR_NETWORKS = _operator("networks")
OPERATOR_DNSES = _operator("dnses")
STORAGES = _operator("storages")
INGRESS_CONTROLLERS = _operator("ingresscontrollers", namespaced=True)
IMAGE_REGISTRIES = Resource("imageregistry.operator.openshift.io", "v1", "configs", False)
MACHINE_CONFIGS = Resource("machineconfiguration.openshift.io", "v1", "machineconfigs", False)
MACHINE_CONFIG_POOLS = Resource("machineconfiguration.openshift.io", "v1", "machineconfigpools", False)
ROUTES = Resource("route.openshift.io", "v1", "routes", True)
