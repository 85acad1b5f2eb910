"""What a ClusterVersion says. The words are OpenShift's: people and tools look for them."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.kube.client import Object
from falsework.operators.cluster_version.payload import Key, Mode, Payload
from falsework.operators.cluster_version.sync import Failure, Progress
from falsework.operators.runtime.conditions import Condition, condition, updated, without

HISTORY_LIMIT = 100
_NAMED = 6


@dataclass(frozen=True)
class Situation:
    payload: Payload
    mode: Mode
    progress: Progress
    failures: tuple[Failure, ...] = ()
    """Those that have lasted: most pass by themselves, because what they need comes a moment later."""


def mode_for(status: Object, payload: Payload) -> Mode:
    history = status.get("history") or []
    completed = [entry for entry in history if entry.get("state") == "Completed"]
    if not completed:
        return Mode.INSTALL
    newest = history[0]
    same = newest.get("version") == payload.version and newest.get("image") == payload.image
    return Mode.RECONCILE if same and newest.get("state") == "Completed" else Mode.UPDATE


def unmanaged(spec: Object) -> frozenset[Key]:
    """What the administrator, or the bootstrap, keeps for itself."""
    return frozenset(
        (entry["group"], entry["kind"], entry["namespace"], entry["name"])
        for entry in spec.get("overrides") or []
        if entry.get("unmanaged")
    )


def new_status(version: Object, situation: Situation, moment: str) -> Object:
    """The status of the ClusterVersion `version`, in this situation."""
    spec, old = version.get("spec") or {}, version.get("status") or {}
    payload = situation.payload
    history = _history(old.get("history") or [], payload, situation.progress.complete, moment)
    completed = next((str(entry["version"]) for entry in history if entry["state"] == "Completed"), None)
    conditions = updated(
        old.get("conditions") or [],
        [
            *_release_conditions(payload, spec),
            *_progress_conditions(situation, completed),
            *_upgradeable(spec),
            *_invalid(spec, payload),
        ],
        moment,
    )
    if not unmanaged(spec):
        conditions = without(conditions, "Upgradeable")
    if not _invalid(spec, payload):
        conditions = without(conditions, "Invalid")
    return {
        **old,
        "desired": {"version": payload.version, "image": payload.image},
        "history": history,
        "observedGeneration": version["metadata"].get("generation", 0),
        "versionHash": payload.digest,
        "availableUpdates": None,
        "conditions": conditions,
    }


def _history(old: list[Object], payload: Payload, complete: bool, moment: str) -> list[Object]:
    """Newest first. An entry that was not completed when another release took over keeps the time that ended it."""
    history = [dict(entry) for entry in old]
    newest = history[0] if history else None
    if newest is None or (newest.get("version"), newest.get("image")) != (payload.version, payload.image):
        if newest is not None and newest.get("completionTime") is None:
            newest["completionTime"] = moment
        newest = {
            "state": "Partial",
            "startedTime": moment,
            "completionTime": None,
            "version": payload.version,
            "image": payload.image,
            "verified": False,
        }
        history.insert(0, newest)
    if complete and newest["state"] != "Completed":
        newest |= {"state": "Completed", "completionTime": moment}
    return history[:HISTORY_LIMIT]


def _progress_conditions(situation: Situation, completed: str | None) -> list[Condition]:
    version, progress = situation.payload.version, situation.progress
    available = condition("Available", bool(completed), message=f"Done applying {completed}" if completed else "")
    reason, why = _failing(situation)
    failing = condition("Failing", bool(reason), reason, why)
    if situation.mode is Mode.RECONCILE:
        message = f"Error while reconciling {version}: {_lower(why)}" if reason else f"Cluster version is {version}"
        progressing = condition("Progressing", False, reason, message)
    elif progress.complete:
        progressing = condition("Progressing", False, "", f"Cluster version is {version}")
    elif reason:
        progressing = condition("Progressing", True, reason, f"Unable to apply {version}: {_lower(why)}")
    else:
        progressing = condition("Progressing", True, *working_towards(version, progress))
    return [available, failing, progressing]


def working_towards(version: str, progress: Progress) -> tuple[str, str]:
    """Reason and message."""
    share = progress.done * 100 // progress.total if progress.total else 100
    text = f"Working towards {version}: {progress.done} of {progress.total} done ({share}% complete)"
    names = sorted({waiting.waiting_on for waiting in progress.waiting})
    if not names:
        return "", text
    reasons = {waiting.reason for waiting in progress.waiting}
    several = {"ClusterOperatorNotAvailable": "ClusterOperatorsNotAvailable"}
    reason = reasons.pop() if len(reasons) == 1 else "MultipleErrors"
    return several.get(reason, reason) if len(names) > 1 else reason, f"{text}, waiting on {', '.join(names)}"


def _failing(situation: Situation) -> tuple[str, str]:
    """Reason and message, empty if nothing is wrong. What is merely on its way is wrong only once it was there."""
    troubles = [
        ("UpdatePayloadFailed", f"Could not update {failure.manifest}: {failure.why}") for failure in situation.failures
    ]
    if situation.mode is Mode.RECONCILE:
        troubles += [(waiting.reason, waiting.what) for waiting in situation.progress.waiting]
    if not troubles:
        return "", ""
    if len(troubles) == 1:
        return troubles[0]
    lines = sorted(message for _, message in troubles)
    more = [f"and {len(lines) - _NAMED} more"] if len(lines) > _NAMED else []
    return "MultipleErrors", "Multiple errors are preventing progress:\n" + "\n".join(
        f"* {line}" for line in [*lines[:_NAMED], *more]
    )


def _release_conditions(payload: Payload, spec: Object) -> list[Condition]:
    loaded = f'Payload loaded version="{payload.version}" image="{payload.image}"'
    conditions = [
        condition("ReleaseAccepted", True, "PayloadLoaded", loaded),
        condition("ImplicitlyEnabledCapabilities", False, "AsExpected", "Capabilities match configured spec"),
    ]
    if not spec.get("channel"):
        conditions.append(
            condition("RetrievedUpdates", False, "NoChannel", "The update channel has not been configured.")
        )
    elif not spec.get("upstream"):
        conditions.append(
            condition("RetrievedUpdates", False, "NoUpstream", "No upstream server has been set to retrieve updates.")
        )
    else:
        conditions.append(
            condition("RetrievedUpdates", False, "NotSupported", "Updates come with a new release, not from a server.")
        )
    return conditions


def _upgradeable(spec: Object) -> list[Condition]:
    if not unmanaged(spec):
        return []
    message = (
        "Disabling ownership via cluster version overrides prevents upgrades. "
        "Please remove overrides before continuing."
    )
    return [condition("Upgradeable", False, "ClusterVersionOverridesSet", message)]


def _invalid(spec: Object, payload: Payload) -> list[Condition]:
    wanted = spec.get("desiredUpdate") or {}
    others = (wanted.get("version") or payload.version) != payload.version
    others = others or (wanted.get("image") or payload.image) != payload.image
    if not others:
        return []
    asked = wanted.get("version") or wanted.get("image")
    message = f"The cluster version is invalid: spec.desiredUpdate: {asked} is not the release of this operator"
    return [condition("Invalid", True, "InvalidClusterVersion", message)]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
