"""The short-lived pods that make and remove volumes' folders on their nodes."""

from __future__ import annotations

from datetime import UTC, datetime

from falsework.kube.client import Object
from falsework.manifests.objects import named
from falsework.manifests.operators.storage import FOLDER_ACCOUNT, FOLDER_ENTRY_POINT, NAMESPACE
from falsework.operators.storage.claims import FOLDER, LABEL

MAKE, REMOVE = "make", "remove"
_MOUNTED = "/volumes"
_LONGEST = 3600
"""Seconds. To remove very many files takes a while."""


def pod_name(task: str, volume: str) -> str:
    return f"{task}-{volume}"


def volume_of(pod: Object) -> str:
    return str(pod["metadata"]["name"]).partition("-")[2]


def pod(task: str, volume: str, node: str, image: str) -> Object:
    """It is told the volume's name, not a path: what it may touch is in its one mount.

    It goes to its node whatever state that is in, cordoned or full: the data is there and nowhere else.
    """
    container = {
        "name": "folder",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            *("/usr/bin/python3", "-m", "falsework.in_machine", FOLDER_ENTRY_POINT),
            *(task, volume, f"--folder={_MOUNTED}"),
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "30Mi"}},
        "securityContext": {
            # What is in a volume belongs to whomever its pods were.
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["DAC_OVERRIDE", "FOWNER"]},
        },
        "volumeMounts": [{"name": "volumes", "mountPath": _MOUNTED}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    result = named(
        "v1",
        "Pod",
        pod_name(task, volume),
        NAMESPACE,
        spec={
            "nodeName": node,
            "hostNetwork": True,
            "dnsPolicy": "Default",
            "serviceAccountName": FOLDER_ACCOUNT,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": _LONGEST,
            "terminationGracePeriodSeconds": 5,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
            "volumes": [{"name": "volumes", "hostPath": {"path": FOLDER, "type": "DirectoryOrCreate"}}],
        },
    )
    result["metadata"]["labels"] = {LABEL: "true", "app": "volume-folder"}
    return result


def node_of(found: Object) -> str:
    return str((found.get("spec") or {}).get("nodeName") or "")


def phase_of(found: Object) -> str:
    return str((found.get("status") or {}).get("phase") or "Pending")


def last_words(found: Object) -> str:
    """Why it failed, by its own word, or the kubelet's."""
    status = found.get("status") or {}
    ended = _ended(found)
    return str(ended.get("message") or status.get("message") or ended.get("reason") or status.get("reason") or "")


def seconds_since_end(found: Object, moment: datetime) -> float:
    ended = _ended(found).get("finishedAt") or found["metadata"]["creationTimestamp"]
    return (moment - datetime.fromisoformat(ended).astimezone(UTC)).total_seconds()


def _ended(found: Object) -> Object:
    for container in (found.get("status") or {}).get("containerStatuses") or ():
        ended: Object = (container.get("state") or {}).get("terminated") or {}
        if ended:
            return ended
    return {}
