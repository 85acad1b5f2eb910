"""Volumes: a folder and a PersistentVolume for every claim that is to have them, until the claim is gone.

Where a volume stands is in the API alone, so that it goes on after a kill at any point: a pod `make-<volume>`, the
PersistentVolume, a pod `remove-<volume>`. Everything can be done twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Object, WatchEvent
from falsework.kube.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Resource,
)
from falsework.manifests.operators.storage import NAMESPACE
from falsework.operators.runtime.controller import Controller
from falsework.operators.runtime.program import Program
from falsework.operators.storage import claims, folder_pods
from falsework.operators.storage.claim_events import ClaimEvents
from falsework.operators.storage.claims import FINALIZER, LABEL, NODE, SELECTED_NODE, Claim
from falsework.operators.storage.folder_pods import MAKE, REMOVE

_TRY_AGAIN = 30.0
"""Seconds a pod that failed is left there to be looked at, and until what a claim lacks is looked for again."""


def add_volumes(program: Program) -> None:
    controller = VolumesController(program)
    wakes = [
        (controller.claims, _of_claim),
        (controller.volumes, _of_volume),
        (controller.pods, lambda event: folder_pods.volume_of(event.object)),
    ]
    program.add(Controller("LocalVolumesController", controller.sync, wakes, 600.0, controller.all_keys))


class VolumesController:
    """Its keys are the names of volumes."""

    def __init__(self, program: Program) -> None:
        self._client, self._log = program.client, program.log
        self._image = program.images["falsework"]
        self._claim_events = ClaimEvents(program.client)
        self.claims = program.follow(PERSISTENT_VOLUME_CLAIMS, keep=claims.remembered)
        self.volumes = program.follow(PERSISTENT_VOLUMES, labels=LABEL)
        self.pods = program.follow(PODS, NAMESPACE, labels=LABEL)

    def all_keys(self) -> Iterable[str]:
        asked = {claims.volume_name(one["metadata"]["uid"]) for one in self.claims.objects() if claims.is_asked(one)}
        made = {str(one["metadata"]["name"]) for one in self.volumes.objects()}
        return asked | made | set(map(folder_pods.volume_of, self.pods.objects()))

    def sync(self, volume: str) -> float | None:
        remover, maker = self._pod(REMOVE, volume), self._pod(MAKE, volume)
        made, claim = self.volumes.get(volume), self._claim(volume)
        if remover is not None:
            self._attend_to_removal(remover, made)
        elif made is not None:
            self._forget(maker)
            self._look_after(made)
        elif maker is not None and (claim is None or claim.refusal or folder_pods.node_of(maker) != claim.node):
            # Nobody wants it any more, or not there.
            self._remove_folder(volume, folder_pods.node_of(maker))
            self._forget(maker)
        elif claim is not None:
            return self._provide(claim, maker)
        return None

    # From a claim to a volume

    def _provide(self, claim: Claim, maker: Object | None) -> float | None:
        if claim.refusal:
            self._claim_events.warning(claim, "ProvisioningFailed", claim.refusal)
        elif not claim.node:
            why = "a folder needs a node: the StorageClass must have volumeBindingMode WaitForFirstConsumer"
            self._claim_events.warning(claim, "ProvisioningFailed", why)
        elif maker is None:
            if self._found(NODES, claim.node) is None:
                self._choose_again(claim)
            else:
                self._start(MAKE, claim.volume, claim.node)
        elif self._succeeded(maker):
            if not self._make_volume(claim):
                return _TRY_AGAIN
            self._forget(maker)
        return None

    def _make_volume(self, claim: Claim) -> bool:
        """Whether it is there. If nobody wants it any more, its pod stays: by that its folder is known and removed."""
        node, found = self._found(NODES, claim.node), self._class_of(claim)
        if node is None or found is None or not self._is_still_wanted(claim):
            return False
        body = claims.persistent_volume(claim, node, str(found["reclaimPolicy"]))
        try:
            self._client.create(PERSISTENT_VOLUMES, body)
        except ApiError as error:
            if not error.is_conflict:
                raise
        else:
            place = f"{claim.namespace}/{claim.name}"
            self._log.info(f"Volume {claim.volume} of claim {place} is on {claim.node}")
        return True

    def _class_of(self, claim: Claim) -> Object | None:
        """It says whether data is to be kept, which is never guessed."""
        found = self._found(STORAGE_CLASSES, claim.storage_class) if claim.storage_class else None
        if found is None:
            why = f"there is no StorageClass {claim.storage_class!r}"
            self._claim_events.warning(claim, "ProvisioningFailed", why)
        return found

    def _is_still_wanted(self, claim: Claim) -> bool:
        """What is remembered of claims may be older than what is known of volumes."""
        live = self._found(PERSISTENT_VOLUME_CLAIMS, claim.name, claim.namespace)
        return live is not None and claims.read(live) == claim

    def _choose_again(self, claim: Claim) -> None:
        """The scheduler looks for another node when its choice is taken back."""
        patch = {"metadata": {"uid": claim.uid, "annotations": {SELECTED_NODE: None}}}
        self._client.patch(PERSISTENT_VOLUME_CLAIMS, claim.name, patch, claim.namespace)
        self._claim_events.warning(claim, "ProvisioningFailed", f"there is no node {claim.node} any more")

    # From a volume to nothing

    def _look_after(self, volume: Object) -> None:
        name = volume["metadata"]["name"]
        if claims.is_to_be_removed(volume):
            self._remove_folder(name, _node_of_volume(volume))
        elif claims.is_to_be_kept_by_its_owner(volume):
            self._let_go(volume)

    def _remove_folder(self, volume: str, node: str) -> None:
        """Only if the volume is, at this moment, one that is to go: what is remembered of it may be old."""
        made = self._found(PERSISTENT_VOLUMES, volume)
        if made is not None and not claims.is_to_be_removed(made):
            return
        if node and self._found(NODES, node) is not None:
            self._start(REMOVE, volume, node)
        elif made is not None:
            # The folder went with its node.
            self._let_go(made)

    def _attend_to_removal(self, remover: Object, made: Object | None) -> None:
        if self._succeeded(remover):
            if made is not None and claims.is_to_be_removed(made):
                self._let_go(made)
            self._log.info(f"The folder of volume {folder_pods.volume_of(remover)} is removed")
            self._forget(remover)

    def _let_go(self, volume: Object) -> None:
        """Out of the API, if it is as it was when that was decided."""
        metadata = volume["metadata"]
        others = [one for one in metadata.get("finalizers") or () if one != FINALIZER]
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": others}}
        try:
            self._client.patch(PERSISTENT_VOLUMES, metadata["name"], patch)
            self._client.delete(PERSISTENT_VOLUMES, metadata["name"], precondition_uid=metadata["uid"])
        except ApiError as error:
            if not error.is_missing:
                raise

    # Pods

    def _start(self, task: str, volume: str, node: str) -> None:
        try:
            self._client.create(PODS, folder_pods.pod(task, volume, node, self._image))
        except ApiError as error:
            if not error.is_conflict:
                raise

    def _succeeded(self, pod: Object) -> bool:
        """A pod that failed is an error, and made anew after a while."""
        if folder_pods.phase_of(pod) == "Failed":
            if folder_pods.seconds_since_end(pod, datetime.now(UTC)) > _TRY_AGAIN:
                self._forget(pod)
            why = folder_pods.last_words(pod)
            raise FalseworkError(f"{pod['metadata']['name']} failed on {folder_pods.node_of(pod)}", cause=why or None)
        return folder_pods.phase_of(pod) == "Succeeded"

    def _forget(self, pod: Object | None) -> None:
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        metadata = pod["metadata"]
        try:
            self._client.delete(PODS, metadata["name"], NAMESPACE, precondition_uid=metadata["uid"])
        except ApiError as error:
            if not error.is_missing and not error.is_conflict:
                raise

    # What is known

    def _pod(self, task: str, volume: str) -> Object | None:
        return self.pods.get(folder_pods.pod_name(task, volume), NAMESPACE)

    def _claim(self, volume: str) -> Claim | None:
        found = (one for one in self.claims.objects() if claims.volume_name(one["metadata"]["uid"]) == volume)
        return next(map(claims.read, found), None)

    def _found(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """As it is at this moment."""
        try:
            return self._client.get(resource, name, namespace)
        except ApiError as error:
            if not error.is_missing:
                raise
            return None


def _of_claim(event: WatchEvent) -> str | None:
    return claims.volume_name(event.object["metadata"]["uid"]) if claims.is_asked(event.object) else None


def _of_volume(event: WatchEvent) -> str:
    return str(event.object["metadata"]["name"])


def _node_of_volume(volume: Object) -> str:
    return str((volume["metadata"].get("annotations") or {}).get(NODE) or "")
