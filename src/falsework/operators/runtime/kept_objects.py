"""The objects an operator makes: as they are to be, and put right when somebody changes or removes them."""

from __future__ import annotations

from falsework.kube.client import APPLY, ApiError, Client, Object
from falsework.kube.informer import Informer
from falsework.kube.resources import Resource
from falsework.operators.runtime.events import Events

_Key = tuple[Resource, str, str]


class KeptObjects:
    """`manager` is whom the API names as the owner of the fields."""

    def __init__(self, client: Client, events: Events, manager: str) -> None:
        self._client = client
        self._events = events
        self._manager = manager
        self._applied: dict[_Key, tuple[Object, tuple[object, ...]]] = {}

    def keep(self, resource: Resource, wanted: Object, known: Informer) -> Object:
        """The object as it is. Applied only when it is to be another one, or is not what was applied."""
        name, namespace = wanted["metadata"]["name"], wanted["metadata"].get("namespace", "")
        live, key = known.get(name, namespace), (resource, namespace, name)
        if live is not None and self._applied.get(key) == (wanted, _mark(live)):
            return live
        made = self._client.patch(resource, name, wanted, namespace, kind=APPLY, field_manager=self._manager)
        if live is None or _mark(live) != _mark(made):
            what = f"{namespace}/{name}" if namespace else name
            self._events.normal(f"{made['kind']}Applied", f"{made['kind']} {what} is as it is to be")
        self._applied[key] = (wanted, _mark(made))
        return made

    def remove(self, resource: Resource, name: str, namespace: str, known: Informer) -> bool:
        """Whether there was one."""
        live = known.get(name, namespace)
        if live is None:
            return False
        self._applied.pop((resource, namespace, name), None)
        if "deletionTimestamp" not in live["metadata"]:
            try:
                self._client.delete(resource, name, namespace, precondition_uid=live["metadata"]["uid"])
            except ApiError as error:
                # Gone, or already another one: the watch brings either.
                if not error.is_missing and not error.is_conflict:
                    raise
            else:
                self._events.normal(f"{live['kind']}Removed", f"{live['kind']} {namespace}/{name} is removed")
        return True


def _mark(live: Object) -> tuple[object, ...]:
    """Differs when the object, or what it is to be, has changed; its status is its own."""
    metadata = live["metadata"]
    return metadata["uid"], metadata.get("generation") or metadata["resourceVersion"]
