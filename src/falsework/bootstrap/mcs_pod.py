"""The static pod of the Machine Config Server on the bootstrap machine. It needs files alone: it can answer first."""

from __future__ import annotations

from typing import Any

from falsework.bootstrap import machine_config_server, mcs_records

NAMESPACE = "openshift-machine-config-operator"
NAME = "bootstrap-machine-config-operator"
CONTAINER = "machine-config-server"

_BOOT_ID = "/run/falsework/boot_id"
_MOUNTS = (
    ("configs", "/etc/mcs", "/etc/mcs", "Directory", True),
    ("certificates", machine_config_server.CERTIFICATES, machine_config_server.CERTIFICATES, "Directory", True),
    ("state", mcs_records.FOLDER, mcs_records.FOLDER, "DirectoryOrCreate", False),
    # A container sees the kernel's, which machines that share a kernel have in common.
    ("boot-id", mcs_records.BOOT_ID, _BOOT_ID, "File", True),
)
"""Name, place in the machine, place in the container, what it is, whether it is only read."""


def machine_config_server_pod(image: str) -> dict[str, Any]:
    """`image` is Falsework's own."""
    health = {
        "httpGet": {
            "host": "127.0.0.1",
            "path": "/healthz",
            "port": machine_config_server.PORT,
            "scheme": "HTTPS",
        }
    }
    container = {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/bin/python3", "-m", "falsework.in_machine", "machine-config-server"],
        "args": [f"--boot-id={_BOOT_ID}"],
        "resources": {"requests": {"cpu": "20m", "memory": "50Mi"}},
        "readinessProbe": {**health, "periodSeconds": 1},
        # Only what hangs for good is started anew: a machine with much to do is slow, not dead.
        "livenessProbe": {**health, "initialDelaySeconds": 30, "timeoutSeconds": 15, "failureThreshold": 8},
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": name, "mountPath": inside, "readOnly": read_only} for name, _, inside, _, read_only in _MOUNTS
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"k8s-app": "machine-config-server"}},
        "spec": {
            "hostNetwork": True,
            "dnsPolicy": "Default",
            "priorityClassName": "system-node-critical",
            # What it has begun to send it may end; that takes it five seconds at most.
            "terminationGracePeriodSeconds": 10,
            "containers": [container],
            "volumes": [
                {"name": name, "hostPath": {"path": outside, "type": kind}} for name, outside, _, kind, _ in _MOUNTS
            ],
        },
    }
