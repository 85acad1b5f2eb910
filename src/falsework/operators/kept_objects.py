"""Objects an operator makes for its operand: applied, and put right when somebody changes or removes them."""

from __future__ import annotations

from falsework.kube.client import APPLY, Object
from falsework.kube.informer import Informer
from falsework.kube.resources import Resource
from falsework.operators.runtime.program import Program

_Mark = tuple[object, ...]


class KeptObjects:
    def __init__(self, program: Program, reason: str) -> None:
        """`reason` is that of the event which tells of a change."""
        self._client, self._events = program.client, program.events
        self._manager = program.name
        self._reason = reason
        self._applied: dict[tuple[str, str, str], tuple[Object, _Mark]] = {}

    def keep(self, resource: Resource, wanted: Object, known: Informer) -> None:
        """Nothing is asked of the API while the object is what was applied last."""
        name, namespace = wanted["metadata"]["name"], wanted["metadata"].get("namespace", "")
        live, key = known.get(name, namespace), (wanted["kind"], namespace, name)
        if live is not None and self._applied.get(key) == (wanted, _mark(live)):
            return
        made = self._client.patch(resource, name, wanted, namespace, kind=APPLY, field_manager=self._manager)
        if live is None or _mark(live) != _mark(made):
            place = f"{namespace}/{name}" if namespace else name
            self._events.normal(self._reason, f"{made['kind']} {place} is as it is to be")
        self._applied[key] = (wanted, _mark(made))


def _mark(live: Object) -> _Mark:
    """Differs when the object, or what it is to be, has changed; its status is its own."""
    metadata = live["metadata"]
    return metadata["uid"], metadata.get("generation") or metadata["resourceVersion"]
