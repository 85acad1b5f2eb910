"""One manifest into the cluster, and whether what it made is ready."""

from __future__ import annotations

import time
from collections.abc import Callable

from falsework.errors import FalseworkError
from falsework.kube.client import APPLY, ApiError, Client, Object
from falsework.kube.resources import CLUSTER_OPERATORS, CUSTOM_RESOURCE_DEFINITIONS, Resource
from falsework.operators.cluster_version.payload import Manifest, Mode
from falsework.operators.runtime.conditions import status_of

MANAGER = "cluster-version-operator"

_WORKLOADS = ("Deployment", "DaemonSet")

_ESTABLISHED_WITHIN = 5.0
_LOOK_AGAIN = 0.05


class NotYet(FalseworkError):  # noqa: N818 - it is no error: the manifest is in, what it stands for is on its way
    """`waiting_on` is a name for people; `reason` is OpenShift's."""

    def __init__(self, waiting_on: str, reason: str, message: str) -> None:
        super().__init__(message)
        self.waiting_on = waiting_on
        self.reason = reason


def apply(
    client: Client, manifest: Manifest, mode: Mode, applied: Callable[[Manifest, Object], None] = lambda *_: None
) -> None:
    """Make it so; NotYet while the cluster is still getting there. `applied` is told how the object is then."""
    if manifest.kind == "ClusterOperator":
        _check_operator(pre_create(client, manifest), manifest, mode)
        return
    resource = client.resource_of(manifest.body)
    if resource.namespaced and not manifest.namespace:
        raise FalseworkError(f"{manifest} names no namespace")
    live = _get(client, resource, manifest) if manifest.create_only else None
    if live is None:
        live = _put(client, resource, manifest)
    applied(manifest, live)
    check = _CHECKS.get(manifest.kind)
    # What was only just created is not waited for in an install: it may need what comes after it.
    new = manifest.kind in _WORKLOADS and "observedGeneration" not in (live.get("status") or {})
    if check is not None and not (new and mode is Mode.INSTALL):
        check(client, manifest, live)


def pre_create(client: Client, manifest: Manifest) -> Object:
    """A ClusterOperator is there before its operator runs: people see what is to come, and tools what to collect."""
    live = _get(client, CLUSTER_OPERATORS, manifest)
    if live is not None:
        return live
    live = _put(client, CLUSTER_OPERATORS, manifest)
    related = (manifest.body.get("status") or {}).get("relatedObjects")
    if related and not live.get("status"):
        live = client.replace(CLUSTER_OPERATORS, {**live, "status": {"relatedObjects": related}}, "status")
    return live


def _get(client: Client, resource: Resource, manifest: Manifest) -> Object | None:
    try:
        return client.get(resource, manifest.name, manifest.namespace)
    except ApiError as error:
        if not error.is_missing:
            raise
        return None


def _put(client: Client, resource: Resource, manifest: Manifest) -> Object:
    """Only the fields the release names: what others added, defaults among it, stays."""
    body = {key: value for key, value in manifest.body.items() if key != "status"}
    return client.patch(resource, manifest.name, body, manifest.namespace, kind=APPLY, field_manager=MANAGER)


def _check_operator(live: Object, manifest: Manifest, mode: Mode) -> None:
    """In an install it must be available; later also at the release's version and not degraded."""
    name = manifest.name
    status = live.get("status") or {}
    conditions = status.get("conditions")
    if status_of(conditions, "Available") is not True:
        raise NotYet(name, "ClusterOperatorNotAvailable", f"Cluster operator {name} is not available")
    if mode is Mode.INSTALL:
        return
    wanted = (manifest.body.get("status") or {}).get("versions") or []
    has = {entry["name"]: entry["version"] for entry in status.get("versions") or []}
    for entry in wanted:
        if has.get(entry["name"]) != entry["version"]:
            was = has.get(entry["name"], "no version")
            raise NotYet(
                name,
                "ClusterOperatorUpdating",
                f"Cluster operator {name} is updating versions: {entry['name']} is {was}, not {entry['version']}",
            )
    if status_of(conditions, "Degraded") is True:
        raise NotYet(name, "ClusterOperatorDegraded", f"Cluster operator {name} is degraded")


def _check_definition(client: Client, manifest: Manifest, live: Object) -> None:
    """Usually a moment: then its objects can follow in the same chain."""
    deadline = time.monotonic() + _ESTABLISHED_WITHIN
    while status_of((live.get("status") or {}).get("conditions"), "Established") is not True:
        if time.monotonic() > deadline:
            raise NotYet(str(manifest), "CustomResourceDefinitionNotEstablished", f"{manifest} is not established")
        time.sleep(_LOOK_AGAIN)
        live = client.get(CUSTOM_RESOURCE_DEFINITIONS, manifest.name)


def _check_deployment(_client: Client, manifest: Manifest, live: Object) -> None:
    wanted = live.get("spec", {}).get("replicas", 1)
    _check_rollout(manifest, live, wanted, ("updatedReplicas", "availableReplicas"))


def _check_daemon_set(_client: Client, manifest: Manifest, live: Object) -> None:
    wanted = (live.get("status") or {}).get("desiredNumberScheduled", 0)
    _check_rollout(manifest, live, wanted, ("updatedNumberScheduled", "numberAvailable"))


def _check_rollout(manifest: Manifest, live: Object, wanted: int, counted: tuple[str, ...]) -> None:
    status = live.get("status") or {}
    if status.get("observedGeneration", 0) < live["metadata"].get("generation", 0):
        raise NotYet(str(manifest), "WorkloadNotProgressing", f"{manifest} has not been looked at yet")
    for field in counted:
        if status.get(field, 0) < wanted:
            message = f"{manifest} has {status.get(field, 0)} of {wanted} {field}"
            raise NotYet(str(manifest), "WorkloadNotAvailable", message)


def _check_job(_client: Client, manifest: Manifest, live: Object) -> None:
    conditions = (live.get("status") or {}).get("conditions")
    if status_of(conditions, "Failed") is True:
        raise FalseworkError(f"{manifest} failed", fix="read its pods' logs, then delete it: it is made anew")
    if status_of(conditions, "Complete") is not True:
        raise NotYet(str(manifest), "JobNotComplete", f"{manifest} is not complete")


_CHECKS: dict[str, Callable[[Client, Manifest, Object], None]] = {
    "CustomResourceDefinition": _check_definition,
    "Deployment": _check_deployment,
    "DaemonSet": _check_daemon_set,
    "Job": _check_job,
}
