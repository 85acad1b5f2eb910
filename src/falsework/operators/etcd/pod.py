"""etcd's static pod, the same on every master: what is a node's own, its kubelet fills in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from falsework.control_plane.pods import Container, ImageMount, Mount, Pod, alive, pod, ready, started
from falsework.control_plane.revision_files import RESOURCES, mount, of_config_map
from falsework.etcd import settings

NAMESPACE = "openshift-etcd"
POD_NAME = "etcd"
CONTAINER = "etcd"
"""Its only one: people look for it by that name."""

_DATA = "/var/lib/etcd"
_CONFIG = "/etc/etcd"
_PROGRAMS = "/opt/etcd"
_BIN = f"{_PROGRAMS}/usr/bin"
BUNDLES, CERTIFICATES = "etcd-all-bundles", "etcd-all-certs"
_AUTHORITY = of_config_map(BUNDLES, "server-ca-bundle.crt")
_CERTIFICATES = f"{RESOURCES}/secrets/{CERTIFICATES}"


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
    """One container, which finds out what to start with and becomes etcd. Two, one after the other, would cost the
    kubelet's second look; and an etcd that is started anew may have been told of members that are others by now."""
    container = Container(
        CONTAINER,
        facts.falsework_image,
        _command(facts),
        (
            mount("etcd"),
            ImageMount("etcd", facts.etcd_image, _PROGRAMS),
            Mount("data-dir", _DATA, _DATA, "DirectoryOrCreate", read_only=False),
            Mount("config", "", _CONFIG, read_only=False),
        ),
        "300m",
        "200Mi",
        env={
            "PATH": f"{_BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
            "ETCDCTL_ENDPOINTS": f"https://$(NODE_IP):{settings.CLIENT_PORT}",
            "ETCDCTL_CACERT": _AUTHORITY,
            "ETCDCTL_CERT": f"{_CERTIFICATES}/etcd-peer-$(NODE_NAME).crt",
            "ETCDCTL_KEY": f"{_CERTIFICATES}/etcd-peer-$(NODE_NAME).key",
        },
        of_the_node={"NODE_NAME": "spec.nodeName", "NODE_IP": "status.hostIP"},
        probes={**_lets_wait(), **_quickly_ready(), **alive("/livez", settings.METRICS_PORT, "HTTP")},
    )
    return pod(NAMESPACE, POD_NAME, container, labels={"app": "etcd", "k8s-app": "etcd", "etcd": "true"})


def _command(facts: Facts) -> list[str]:
    return [
        *("/usr/bin/python3", "-m", "falsework.in_machine", "etcd-member"),
        "--name=$(NODE_NAME)",
        "--address=$(NODE_IP)",
        *(f"--endpoint={address}" for address in facts.endpoints),
        f"--authority={_AUTHORITY}",
        f"--certificates={_CERTIFICATES}",
        f"--data={_DATA}",
        f"--config={_CONFIG}/etcd.json",
        f"--etcd={_BIN}/etcd",
        f"--speed={facts.speed}",
        f"--max-learners={facts.max_learners}",
        f"--quota-bytes={facts.quota_bytes}",
    ]


def _lets_wait() -> dict[str, object]:
    """Until it is let in there is no etcd that could answer, and that is no reason to start it anew, ever."""
    probe = started("/livez", settings.METRICS_PORT, "HTTP")["startupProbe"]
    return {"startupProbe": {**probe, "failureThreshold": 2**31 - 1}}


def _quickly_ready() -> dict[str, object]:
    """It is ready when it votes and a majority answers it: the next steps of an installation wait for that."""
    return {"readinessProbe": {**ready("/readyz", settings.METRICS_PORT, "HTTP")["readinessProbe"], "periodSeconds": 1}}
