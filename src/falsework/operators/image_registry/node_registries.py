"""What nodes are told of the registry, so that they pull from it as from any other, and the DaemonSet for it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from falsework.kube.client import Object
from falsework.manifests.objects import named
from falsework.manifests.operators.image_registry import NAMESPACE
from falsework.manifests.workload import host_folder
from falsework.operators.image_registry.credentials import Files
from falsework.operators.image_registry.names import NODE_CA, NODE_REGISTRIES, PORT, SERVICE_NAMES, Place
from falsework.operators.image_registry.registry import CONTENT_HASH

FILE = "registries.json"
CERTS_D = "/etc/containerd/certs.d"
"""Where containerd looks up registries, each time it pulls."""

_SOURCE = "/etc/node-ca"


@dataclass(frozen=True)
class NodeRegistry:
    """A registry as a node's containerd is to know it."""

    host: str
    """What images of it begin with."""
    url: str
    """Where it is for nodes, which resolve no names of Services."""
    authority: str
    authorization: str


def registries(place: Place, authority: str, route_authority: str, authorization: str) -> list[NodeRegistry]:
    (address, *_) = place.addresses
    url = f"https://[{address}]:{PORT}" if ":" in address else f"https://{address}:{PORT}"
    found = [NodeRegistry(f"{name}:{PORT}", url, authority, authorization) for name in SERVICE_NAMES]
    if place.route and route_authority:
        found.append(NodeRegistry(place.route, f"https://{place.route}", route_authority, authorization))
    return found


def files(wanted: list[NodeRegistry]) -> Files:
    """The data of the Secret. None at all: nodes forget what they were told."""
    return {FILE: json.dumps([asdict(one) for one in wanted], sort_keys=True).encode()}


def parsed(content: bytes) -> list[NodeRegistry]:
    return [NodeRegistry(**entry) for entry in json.loads(content)]


def digest_of(content: Files) -> str:
    return hashlib.sha256(content[FILE]).hexdigest()[:16]


def told(daemon_set: Object | None) -> str:
    """The digest of what its pods tell."""
    if daemon_set is None:
        return ""
    return str((daemon_set["spec"]["template"]["metadata"].get("annotations") or {}).get(CONTENT_HASH, ""))


def daemon_set(content: Files, image: str, pause: str) -> Object:
    """Each pod writes files once and then only is: with something else to write, there are other pods."""
    labels = {"name": NODE_CA}
    writer = {
        "name": NODE_CA,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            *("/usr/bin/python3", "-m", "falsework.in_machine", "node-ca"),
            *(f"--registries={_SOURCE}/{FILE}", f"--digest={digest_of(content)}", f"--folder={CERTS_D}"),
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "10Mi"}},
        # Root, for the folder is root's; without any right beyond.
        "securityContext": _confined() | {"runAsUser": 0, "runAsGroup": 0},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "registries", "mountPath": _SOURCE, "readOnly": True},
            {"name": "host", "mountPath": CERTS_D},
        ],
    }
    present = {
        "name": "pause",
        "image": pause,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
        "securityContext": _confined() | {"runAsUser": 65534, "runAsGroup": 65534},
    }
    spec = {
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "initContainers": [writer],
        "containers": [present],
        "volumes": [
            {"name": "registries", "secret": {"secretName": NODE_REGISTRIES, "defaultMode": 0o400}},
            host_folder("host", CERTS_D, "DirectoryOrCreate"),
        ],
    }
    annotations = {CONTENT_HASH: digest_of(content)}
    return named(
        "apps/v1",
        "DaemonSet",
        NODE_CA,
        NAMESPACE,
        spec={
            "selector": {"matchLabels": labels},
            # They serve nobody: none has to wait for another, and least of all for one on a node that is off.
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
            "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec},
        },
    )


def _confined() -> Object:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
