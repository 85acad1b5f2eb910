"""Static pods. All of them use the machine's own network, and people look for the ports with `ss`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Pod = dict[str, Any]


@dataclass(frozen=True)
class Mount:
    name: str
    host: str
    """A folder or file of the machine; empty: a folder of the pod's own, which goes with it."""
    path: str
    kind: str = "Directory"
    read_only: bool = True


@dataclass(frozen=True)
class ImageMount:
    """The files of another image than the container's own."""

    name: str
    image: str
    path: str
    read_only: bool = True


@dataclass(frozen=True)
class Container:
    name: str
    image: str
    command: list[str]
    mounts: tuple[Mount | ImageMount, ...]
    cpu: str
    memory: str
    env: dict[str, str] = field(default_factory=dict)
    of_the_node: dict[str, str] = field(default_factory=dict)
    """Variables whose values each node's kubelet fills in → where it has them, such as status.hostIP."""
    probes: dict[str, Any] = field(default_factory=dict)


def pod(
    namespace: str,
    name: str,
    container: Container,
    *,
    labels: dict[str, str] | None = None,
    grace: int = 30,
) -> Pod:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                "openshift.io/control-plane": "true",
                "openshift.io/component": container.name,
                **(labels or {}),
            },
        },
        "spec": {
            "hostNetwork": True,
            "dnsPolicy": "Default",
            "priorityClassName": "system-node-critical",
            "terminationGracePeriodSeconds": grace,
            "containers": [_container(container)],
            "volumes": [_volume(mount) for mount in container.mounts],
        },
    }


def _volume(mount: Mount | ImageMount) -> dict[str, Any]:
    if isinstance(mount, ImageMount):
        return {"name": mount.name, "image": {"reference": mount.image, "pullPolicy": "IfNotPresent"}}
    if not mount.host:
        return {"name": mount.name, "emptyDir": {}}
    return {"name": mount.name, "hostPath": {"path": mount.host, "type": mount.kind}}


def _container(container: Container) -> dict[str, Any]:
    result: dict[str, Any] = {
        "name": container.name,
        "image": container.image,
        "imagePullPolicy": "IfNotPresent",
        "command": container.command,
        "resources": {"requests": {"cpu": container.cpu, "memory": container.memory}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
        "volumeMounts": [
            {"name": mount.name, "mountPath": mount.path, "readOnly": mount.read_only} for mount in container.mounts
        ],
        **container.probes,
    }
    # The node's first: others may have them in their values.
    env = [
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": p}}} for name, p in container.of_the_node.items()),
        *({"name": name, "value": value} for name, value in container.env.items()),
    ]
    return {**result, "env": env} if env else result


def command(program: str, flags: dict[str, Any]) -> list[str]:
    """A flag with a list is given several times."""
    words = [f"/usr/bin/{program}"]
    for name, value in flags.items():
        words += [f"--{name}={entry}" for entry in (value if isinstance(value, list) else [value])]
    return words


# How the kubelet asks how it is


def started(path: str, port: int, scheme: str) -> dict[str, Any]:
    """Asked every second until it is ready for the first time: others wait for that."""
    often = {"periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 600}
    return {"startupProbe": {**_asked(path, port, scheme), **often}}


def ready(path: str, port: int, scheme: str) -> dict[str, Any]:
    return {"readinessProbe": {**_asked(path, port, scheme), "periodSeconds": 5, "timeoutSeconds": 5}}


def alive(path: str, port: int, scheme: str) -> dict[str, Any]:
    """Only what hangs for good is started anew: a machine with much to do is slow, not dead."""
    return {
        "livenessProbe": {
            **_asked(path, port, scheme),
            "initialDelaySeconds": 30,
            "periodSeconds": 10,
            "timeoutSeconds": 15,
            "failureThreshold": 8,
        }
    }


def _asked(path: str, port: int, scheme: str) -> dict[str, Any]:
    return {"httpGet": {"host": "127.0.0.1", "path": path, "port": port, "scheme": scheme}}
