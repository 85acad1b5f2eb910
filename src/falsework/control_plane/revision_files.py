"""Where a static pod of the masters finds the inputs of its revision.

On the node each revision has a folder of its own; in the pod it is always the same one, so nothing inside has to know
the number.
"""

from __future__ import annotations

from falsework.control_plane.flags import PairFiles
from falsework.control_plane.pods import Mount

RESOURCES = "/etc/kubernetes/static-pod-resources"
REVISION = "REVISION"
"""In a pod's texts: the number, put there by whoever writes the pod to a node."""


def mount(operand: str) -> Mount:
    return Mount("resource-dir", f"{RESOURCES}/{operand}-pod-{REVISION}", RESOURCES)


def of_config_map(name: str, key: str) -> str:
    return f"{RESOURCES}/configmaps/{name}/{key}"


def of_secret(name: str, key: str) -> str:
    return f"{RESOURCES}/secrets/{name}/{key}"


def pair_of_secret(name: str) -> PairFiles:
    return PairFiles(of_secret(name, "tls.crt"), of_secret(name, "tls.key"))


def bundle_of(config_map: str) -> str:
    """Certificates of those who are trusted."""
    return of_config_map(config_map, "ca-bundle.crt")
