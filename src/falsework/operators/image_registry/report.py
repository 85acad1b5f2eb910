"""What the operator says of the registry, in OpenShift's words."""

from __future__ import annotations

from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.operators.image_registry.names import NODE_CA
from falsework.operators.image_registry.settings import UnfitError
from falsework.operators.runtime.conditions import Condition, condition
from falsework.operators.runtime.rollouts import is_complete, roll_out_of

_NODE_CONDITIONS = ("NodeCADaemonAvailable", "NodeCADaemonProgressing")
_STORAGE_EXISTS = "StorageExists"

_UNMANAGED = ("Unmanaged", "The registry configuration is set to unmanaged mode")
_REMOVED = ("Removed", "The registry is removed")
_ALL_REMOVED = ("Removed", "All registry resources are removed")
_READY = ("Ready", "The registry is ready")


def conditions_of(
    state: str, deployment: Object | None, daemon_set: Object | None, trouble: FalseworkError | None, awaited: str = ""
) -> list[Condition]:
    """`trouble` is what kept it from being as `state` wants it; `awaited` what its pods are known to wait for."""
    if state == "Removed":
        return _removed(deployment, daemon_set, trouble)
    daemon = _node_ca(daemon_set) if state != "Unmanaged" or daemon_set is not None else []
    return [
        _available(deployment, trouble),
        _progressing(state, deployment, trouble, awaited),
        _degraded(state, deployment, trouble),
        condition("Removed", False),
        *daemon,
    ]


def storage_condition(claim: Object | None, trouble: UnfitError | None) -> Condition:
    if trouble is not None:
        return condition(_STORAGE_EXISTS, False, trouble.reason, _why(trouble))
    if claim is None:
        return condition(_STORAGE_EXISTS, True, "Creation Successful", "EmptyDir storage successfully created")
    return condition(_STORAGE_EXISTS, True, "PVC Exists")


def forgotten_when_removed() -> tuple[str, ...]:
    """Conditions of what is not there any more."""
    return (*_NODE_CONDITIONS, _STORAGE_EXISTS)


def _removed(deployment: Object | None, daemon_set: Object | None, trouble: FalseworkError | None) -> list[Condition]:
    if trouble is not None:
        at_work: tuple[bool, str, str] = (True, "Error", f"Unable to remove resources: {_why(trouble)}")
    elif deployment is not None:
        at_work = (True, "DeletingDeployment", "The deployment is being removed")
    elif daemon_set is not None:
        at_work = (True, "ForgettingRegistry", "Nodes are being told to forget the registry")
    else:
        at_work = (False, *_ALL_REMOVED)
    return [
        condition("Available", True, *_REMOVED),
        condition("Progressing", *at_work),
        condition("Degraded", False, *_REMOVED),
        condition("Removed", not at_work[0], *(_ALL_REMOVED if not at_work[0] else ("Removing",))),
    ]


def _available(deployment: Object | None, trouble: FalseworkError | None) -> Condition:
    status = (deployment or {}).get("status") or {}
    if deployment is None:
        if isinstance(trouble, UnfitError):
            return condition("Available", False, trouble.reason, f"Error: {_why(trouble)}")
        return condition("Available", False, "DeploymentNotFound", "The deployment does not exist")
    if "deletionTimestamp" in deployment["metadata"]:
        return condition("Available", False, "DeploymentDeleted", "The deployment is being deleted")
    if not status.get("availableReplicas"):
        return condition("Available", False, "NoReplicasAvailable", "The deployment does not have available replicas")
    if not is_complete(deployment):
        return condition("Available", True, "MinimumAvailability", "The registry has minimum availability")
    return condition("Available", True, *_READY)


def _progressing(state: str, deployment: Object | None, trouble: FalseworkError | None, awaited: str) -> Condition:
    if state == "Unmanaged":
        return condition("Progressing", False, *_UNMANAGED)
    if trouble is not None:
        # Nothing goes on where a person has to ask for something else.
        reason = trouble.reason if isinstance(trouble, UnfitError) else "Error"
        message = f"Unable to apply resources: {_why(trouble)}"
        return condition("Progressing", not isinstance(trouble, UnfitError), reason, message)
    if is_complete(deployment):
        return condition("Progressing", False, *_READY)
    if deployment is None:
        message = "All resources are successfully applied, but the deployment does not exist"
        return condition("Progressing", True, "WaitingForDeployment", message)
    message = "The deployment has not completed" + (f": {awaited}" if awaited else "")
    return condition("Progressing", True, "DeploymentNotCompleted", message)


def _degraded(state: str, deployment: Object | None, trouble: FalseworkError | None) -> Condition:
    if state == "Unmanaged":
        return condition("Degraded", False, *_UNMANAGED)
    if isinstance(trouble, UnfitError):
        return condition("Degraded", True, trouble.reason, f"Error: {_why(trouble)}")
    said = ((deployment or {}).get("status") or {}).get("conditions") or ()
    for entry in said:
        if entry.get("reason") == "ProgressDeadlineExceeded":
            message = f"Registry deployment has timed out progressing: {entry.get('message', '')}"
            return condition("Degraded", True, "ProgressDeadlineExceeded", message)
    return condition("Degraded", False, "AsExpected")


def _node_ca(daemon_set: Object | None) -> list[Condition]:
    available, progressing = _NODE_CONDITIONS
    if daemon_set is None:
        what = f"The daemon set {NODE_CA} does not exist"
        return [condition(available, False, "NotFound", what), condition(progressing, True, "Progressing", what)]
    status = daemon_set.get("status") or {}
    if status.get("numberAvailable"):
        has = condition(available, True, "AsExpected", f"The daemon set {NODE_CA} has available replicas")
    else:
        what = f"The daemon set {NODE_CA} does not have available replicas"
        has = condition(available, False, "NoAvailableReplicas", what)
    if roll_out_of(daemon_set).is_complete:
        return [has, condition(progressing, False, "AsExpected", f"The daemon set {NODE_CA} is deployed")]
    return [has, condition(progressing, True, "Progressing", f"The daemon set {NODE_CA} is deploying node pods")]


def _why(trouble: FalseworkError) -> str:
    return f"{trouble.what}: {trouble.cause}" if trouble.cause else trouble.what
