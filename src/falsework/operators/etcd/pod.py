"""etcd's static pod, the same on every master: what is a node's own, its kubelet fills in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from falsework.control_plane.pods import Container, Mount, Pod, alive, pod, ready
from falsework.control_plane.revision_files import RESOURCES, mount, of_config_map
from falsework.etcd import settings

NAMESPACE = "openshift-etcd"
POD_NAME = "etcd"
DISCOVERY = "discovery"
"""The container that waits to be let in. Not a name with `etcd` in it: people look for the other one by that."""

_DATA = "/var/lib/etcd"
_CONFIG = "/etc/etcd"
BUNDLES, CERTIFICATES = "etcd-all-bundles", "etcd-all-certs"
_AUTHORITY = of_config_map(BUNDLES, "server-ca-bundle.crt")
_CERTIFICATES = f"{RESOURCES}/secrets/{CERTIFICATES}"

_MOUNTS = (
    mount("etcd"),
    Mount("data-dir", _DATA, _DATA, "DirectoryOrCreate", read_only=False),
    Mount("config", "", _CONFIG, read_only=False),
)
_OF_THE_NODE = {"NODE_NAME": "spec.nodeName", "NODE_IP": "status.hostIP"}

_FROM_THE_START = {
    "restartPolicy": "Always",
    "restartPolicyRules": [
        {"action": "RestartAllContainers", "exitCodes": {"operator": "NotIn", "values": [0]}},
    ],
}
"""An etcd that failed may have been told of members that are others by now: what it starts with is found out anew."""


@dataclass(frozen=True)
class Facts:
    etcd_image: str
    falsework_image: str
    endpoints: Sequence[str]
    """Addresses of all who may be members."""
    speed: str
    max_learners: int
    quota_bytes: int


def etcd_pod(facts: Facts) -> Pod:
    container = Container(
        "etcd",
        facts.etcd_image,
        ["/usr/bin/etcd", f"--config-file={_CONFIG}/etcd.json"],
        _MOUNTS,
        "300m",
        "200Mi",
        env={
            "ETCDCTL_ENDPOINTS": f"https://$(NODE_IP):{settings.CLIENT_PORT}",
            "ETCDCTL_CACERT": _AUTHORITY,
            "ETCDCTL_CERT": f"{_CERTIFICATES}/etcd-peer-$(NODE_NAME).crt",
            "ETCDCTL_KEY": f"{_CERTIFICATES}/etcd-peer-$(NODE_NAME).key",
        },
        of_the_node=_OF_THE_NODE,
        probes={**_quickly_ready(), **alive("/livez", settings.METRICS_PORT, "HTTP")},
        restarts=_FROM_THE_START,
    )
    labels = {"app": "etcd", "k8s-app": "etcd", "etcd": "true"}
    return pod(NAMESPACE, POD_NAME, container, first=_discovery(facts), labels=labels)


def _discovery(facts: Facts) -> Container:
    return Container(
        DISCOVERY,
        facts.falsework_image,
        [
            *("/usr/bin/python3", "-m", "falsework.in_machine", "etcd-discovery"),
            "--name=$(NODE_NAME)",
            "--address=$(NODE_IP)",
            *(f"--endpoint={address}" for address in facts.endpoints),
            f"--authority={_AUTHORITY}",
            f"--certificates={_CERTIFICATES}",
            f"--data={_DATA}",
            f"--config={_CONFIG}/etcd.json",
            f"--speed={facts.speed}",
            f"--max-learners={facts.max_learners}",
            f"--quota-bytes={facts.quota_bytes}",
        ],
        _MOUNTS,
        "10m",
        "30Mi",
        of_the_node=_OF_THE_NODE,
    )


def _quickly_ready() -> dict[str, object]:
    """It is ready when it votes and a majority answers it: the next steps of an installation wait for that."""
    return {"readinessProbe": {**ready("/readyz", settings.METRICS_PORT, "HTTP")["readinessProbe"], "periodSeconds": 1}}
