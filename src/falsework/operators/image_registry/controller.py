"""Keeps the registry as its Config wants it, and says how far that is."""

from __future__ import annotations

from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Object
from falsework.kube.resources import IMAGE_CONFIGS, IMAGE_REGISTRIES
from falsework.manifests.operators.image_registry import NAMESPACE
from falsework.operators.image_registry.names import INTERNAL_HOST
from falsework.operators.image_registry.operand import Applied, Operand
from falsework.operators.image_registry.report import (
    conditions_of,
    forgotten_when_removed,
    storage_condition,
)
from falsework.operators.image_registry.settings import UnfitError, settings_of
from falsework.operators.image_registry.storage import OWNER
from falsework.operators.runtime.conditions import now, updated, without
from falsework.operators.runtime.controller import Controller, always
from falsework.operators.runtime.program import Program

_NAME = "cluster"


def add_registry(program: Program) -> None:
    controller = RegistryController(program)
    program.add(Controller("ImageRegistryController", controller.sync, controller.wakes, resync=600.0))


class RegistryController:
    def __init__(self, program: Program) -> None:
        assert program.status is not None
        self._client, self._log, self._version = program.client, program.log, program.version
        self._status = program.status
        self._configs = program.follow(IMAGE_REGISTRIES)
        self._image_configs = program.follow(IMAGE_CONFIGS)
        self._operand = Operand(program)
        followed = (self._configs, self._image_configs, *self._operand.followed)
        self.wakes = [(informer, always) for informer in followed]

    def sync(self, _key: str) -> None:
        config = self._configs.get(_NAME)
        if config is None:
            return
        state = str((config.get("spec") or {}).get("managementState") or "Managed")
        applied, trouble = None, None
        try:
            applied = self._bring_about(state, config)
        except FalseworkError as error:
            # Somebody was quicker: that is looked at again, and no news.
            if isinstance(error, ApiError) and error.is_conflict:
                raise
            trouble = error
        self._report(config, state, applied, trouble)
        # What a person has to change is tried again when he has.
        if trouble is not None and not isinstance(trouble, UnfitError):
            raise trouble

    def _bring_about(self, state: str, config: Object) -> Applied | None:
        if state == "Unmanaged":
            return None
        if state == "Removed":
            self._operand.remove()
            self._say_where_images_are(None, None)
            return None
        applied = self._operand.apply(settings_of(config))
        self._say_where_images_are(INTERNAL_HOST, [applied.place.route] if applied.place.route else None)
        return applied

    def _say_where_images_are(self, internal: str | None, external: list[str] | None) -> None:
        """To images.config: what builds and deploys asks there."""
        live = self._image_configs.get(_NAME)
        if live is None:
            return
        wanted = {"internalRegistryHostname": internal, "externalRegistryHostnames": external}
        known = live.get("status") or {}
        if {key: known.get(key) for key in wanted} != wanted:
            self._client.patch(IMAGE_CONFIGS, _NAME, {"status": wanted}, subresource="status")

    def _report(self, config: Object, state: str, applied: Applied | None, trouble: FalseworkError | None) -> None:
        deployment, daemon_set = self._operand.deployment, self._operand.daemon_set
        said = conditions_of(state, deployment, daemon_set, trouble, _awaited(applied))
        if isinstance(trouble, UnfitError):
            said.append(storage_condition(None, trouble))
        elif applied is not None:
            said.append(storage_condition(applied.claim, None))
        counted = int(((deployment or {}).get("status") or {}).get("readyReplicas", 0))

        def change(status: Object) -> Object:
            known = status.get("conditions") or []
            for kind in forgotten_when_removed() if state == "Removed" else ():
                known = without(known, kind)
            result = {
                **status,
                "conditions": updated(known, said, now()),
                "observedGeneration": config["metadata"]["generation"],
                "readyReplicas": counted,
                "version": self._version,
            }
            if state == "Removed":
                return {key: value for key, value in result.items() if key not in ("storage", "storageManaged")}
            return {**result, **_storage(applied)} if applied is not None else result

        self._status.update(change)


def _storage(applied: Applied) -> Object:
    claim = applied.claim
    if claim is None:
        return {"storage": {"emptyDir": {}}, "storageManaged": True}
    is_ours = OWNER in (claim["metadata"].get("annotations") or {})
    return {"storage": {"pvc": {"claim": claim["metadata"]["name"]}}, "storageManaged": is_ours}


def _awaited(applied: Applied | None) -> str:
    """What keeps pods from running, as far as it can be seen here."""
    claim = applied.claim if applied is not None else None
    phase = str(((claim or {}).get("status") or {}).get("phase", "Bound"))
    return f"claim {NAMESPACE}/{claim['metadata']['name']} is {phase}" if claim and phase != "Bound" else ""
