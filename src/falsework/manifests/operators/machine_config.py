"""The machine-config operator, and the Machine Config Server on the masters."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import Manifests
from falsework.manifests.workload import (
    MASTER,
    READ,
    Workload,
    core,
    daemon_set_manifests,
    mounted_secret,
    operator_manifests,
    read_config,
    rule,
)

_GROUP = "machineconfiguration.openshift.io"
_NAMESPACE = "openshift-machine-config-operator"
_SERVED = "machine-config-served"
_INVENTORY = {"openshift-config": [core("configmaps", READ, ("machine-inventory",))]}


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    return {**_operator(version, images["falsework"]), **_server(version, images["falsework"])}


def _operator(version: str, image: str) -> Manifests:
    workload = Workload(
        prefix="0000_80_machine-config",
        name="machine-config-operator",
        namespace=_NAMESPACE,
        port=9105,
        version=version,
        image=image,
        cluster_rules=[
            core("nodes", (*READ, "patch")),
            read_config("schedulers"),
            rule(_GROUP, "machineconfigs", (*READ, "create")),
            rule(_GROUP, "machineconfigpools", (*READ, "patch")),
            rule(_GROUP, "machineconfigpools/status", ("update",)),
        ],
        roles={
            _NAMESPACE: [
                core("configmaps", READ, (_SERVED,)),
                rule("apps", "daemonsets", READ, ("machine-config-server",)),
            ],
            **_INVENTORY,
        },
    )
    return operator_manifests(workload, "machineconfigurations")


def _server(version: str, image: str) -> Manifests:
    certificate, certificate_mount = mounted_secret("machine-config-server-tls", "/etc/ssl/mcs")
    workload = Workload(
        prefix="0000_80_machine-config-server",
        name="machine-config-server",
        namespace=_NAMESPACE,
        entry_point="cluster-machine-config-server",
        port=22623,
        scheme="HTTPS",
        is_asked_when_ready=True,
        version=version,
        image=image,
        cluster_rules=[rule(_GROUP, ("machineconfigs", "machineconfigpools"), READ)],
        roles={
            _NAMESPACE: [core("configmaps", ("patch",), (_SERVED,)), core("secrets", READ, ("machine-join",))],
            **_INVENTORY,
        },
        volumes=[certificate],
        mounts=[certificate_mount],
    )
    return daemon_set_manifests(workload, node_selector={MASTER: ""})
