"""Secrets whose content is made up here: never made twice, and never written over by an operator that is behind."""

from __future__ import annotations

import base64
from collections.abc import Callable

from falsework.kube.client import Client, Object
from falsework.kube.informer import Informer
from falsework.kube.resources import SECRETS
from falsework.manifests.objects import secret
from falsework.operators.image_registry.credentials import Files
from falsework.operators.runtime.events import Events


class GeneratedSecrets:
    def __init__(self, client: Client, events: Events, namespace: str, known: Informer) -> None:
        self._client = client
        self._events = events
        self._namespace = namespace
        self._known = known

    def settle(self, name: str, make: Callable[[Files], Files], kind: str = "Opaque") -> Files:
        """`make` gets what there is, and gives what is to be. What it was made from must be the newest: if it is not,
        the API refuses, and the next look is at what there is by then."""
        live = self._known.get(name, self._namespace)
        there = _files(live or {})
        wanted = make(dict(there))
        if wanted != there:
            body = secret(name, self._namespace, wanted, kind)
            if live is None:
                self._client.create(SECRETS, body)
            else:
                self._client.replace(SECRETS, {**live, "data": body["data"]})
            done = "Created" if live is None else "Updated"
            self._events.normal(f"Secret{done}", f"{done} Secret/{name} -n {self._namespace}")
        return wanted


def _files(live: Object) -> Files:
    return {key: base64.b64decode(value) for key, value in (live.get("data") or {}).items()}
