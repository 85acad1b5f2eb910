"""The cluster's first objects, as data. Names and shapes are OpenShift's, for platform none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from falsework.assets import join
from falsework.manifests.objects import Object as Object
from falsework.manifests.objects import cluster_role_binding, group
from falsework.manifests.objects import config_map as config_map
from falsework.manifests.objects import named as named
from falsework.manifests.objects import secret as secret
from falsework.site.model import ClusterNetwork, Site

CONFIG_API = "config.openshift.io/v1"
MCO_NAMESPACE = "openshift-machine-config-operator"


def install_config(site: Site) -> Object:
    """The site as an install-config with nothing secret in it: operators read it inside the cluster."""
    master_threads, worker_threads = ("Enabled" if threads else "Disabled" for threads in site.hyperthreading)
    result: Object = {
        "apiVersion": "v1",
        "baseDomain": site.base_domain,
        "compute": [
            {
                "architecture": str(site.architecture),
                "hyperthreading": worker_threads,
                "name": "worker",
                "platform": {},
                "replicas": site.compute_replicas,
            }
        ],
        "controlPlane": {
            "architecture": str(site.architecture),
            "hyperthreading": master_threads,
            "name": "master",
            "platform": {},
            "replicas": site.control_plane_replicas,
        },
        "metadata": {"name": site.cluster_name},
        "networking": {
            "clusterNetwork": _cluster_networks(site.networking.cluster_networks),
            "machineNetwork": [{"cidr": str(cidr)} for cidr in site.networking.machine_networks],
            "networkType": site.networking.network_type,
            "serviceNetwork": [str(cidr) for cidr in site.networking.service_networks],
        },
        "platform": {"none": {}},
        "publish": site.publish,
        "pullSecret": "",
    }
    if site.fips:
        result["fips"] = True
    if site.ssh_keys:
        result["sshKey"] = "\n".join(site.ssh_keys)
    if site.additional_trust_bundle:
        result["additionalTrustBundle"] = site.additional_trust_bundle
        result["additionalTrustBundlePolicy"] = site.additional_trust_bundle_policy
    return result | {key: value for key, value in site.passed_on.items() if key not in result}


def _cluster_networks(networks: tuple[ClusterNetwork, ...]) -> list[Object]:
    return [{"cidr": str(network.cidr), "hostPrefix": network.host_prefix} for network in networks]


def dns(domain: str) -> Object:
    return named(CONFIG_API, "DNS", "cluster", spec={"baseDomain": domain}, status={})


def ingress(apps_domain: str) -> Object:
    return named(CONFIG_API, "Ingress", "cluster", spec={"domain": apps_domain}, status={})


def infrastructure(infra_id: str, api_host: str, api_int_host: str, masters: int, workers: int) -> Object:
    return named(
        CONFIG_API,
        "Infrastructure",
        "cluster",
        spec={"cloudConfig": {"name": ""}, "platformSpec": {"type": "None"}},
        status={
            "apiServerInternalURI": f"https://{api_int_host}:6443",
            "apiServerURL": f"https://{api_host}:6443",
            "controlPlaneTopology": topology(masters),
            "cpuPartitioning": "None",
            "etcdDiscoveryDomain": "",
            "infrastructureName": infra_id,
            "infrastructureTopology": _infrastructure_topology(masters, workers),
            "platform": "None",
            "platformStatus": {"type": "None"},
        },
    )


def topology(masters: int) -> str:
    return {1: "SingleReplica", 2: "DualReplica"}.get(masters, "HighlyAvailable")


def _infrastructure_topology(masters: int, workers: int) -> str:
    if workers == 0:
        return topology(masters)
    return "SingleReplica" if workers == 1 else "HighlyAvailable"


def network(cluster: tuple[ClusterNetwork, ...], service: tuple[object, ...], network_type: str) -> Object:
    return named(
        CONFIG_API,
        "Network",
        "cluster",
        spec={
            "clusterNetwork": _cluster_networks(cluster),
            "externalIP": {"policy": {}},
            "networkType": network_type,
            "serviceNetwork": [str(cidr) for cidr in service],
        },
        status={},
    )


def proxy(settings: Mapping[str, str] | None, trusted: bool) -> Object:
    spec: Object = {"trustedCA": {"name": "user-ca-bundle" if trusted else ""}}
    status: Object = {}
    for key in ("httpProxy", "httpsProxy", "noProxy"):
        if settings and settings.get(key):
            spec[key] = status[key] = settings[key]
    return named(CONFIG_API, "Proxy", "cluster", spec=spec, status=status)


def scheduler(masters_schedulable: bool) -> Object:
    spec = {"mastersSchedulable": masters_schedulable, "policy": {"name": ""}}
    return named(CONFIG_API, "Scheduler", "cluster", spec=spec, status={})


def cluster_version(channel: str, cluster_id: str) -> Object:
    spec = {"channel": channel, "clusterID": cluster_id}
    return named(CONFIG_API, "ClusterVersion", "version", "openshift-cluster-version", spec=spec)


def machine_config(name: str, role: str, ignition: Mapping[str, Any], **spec: Any) -> Object:
    result = named("machineconfiguration.openshift.io/v1", "MachineConfig", name)
    result["metadata"]["labels"] = {"machineconfiguration.openshift.io/role": role}
    result["spec"] = {"config": dict(ignition), **spec}
    return result


def node_rbac() -> list[Object]:
    """What machines may do: ask to become a node, renew what they have, and route to Services."""

    renewal = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
    return [
        cluster_role_binding("system-bootstrap-node-bootstrapper", "system:node-bootstrapper", group(join.GROUP)),
        cluster_role_binding("system-bootstrap-node-renewal", renewal, group("system:nodes")),
        cluster_role_binding("falsework-node-proxier", "system:node-proxier", group("system:nodes")),
    ]
