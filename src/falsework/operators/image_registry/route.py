"""The registry's route: made, and taken away, without being followed. A cluster without routes has a registry too."""

from __future__ import annotations

from falsework.kube.client import APPLY, ApiError, Client, Object
from falsework.kube.resources import ROUTES
from falsework.manifests.operators.image_registry import NAME, NAMESPACE
from falsework.operators.image_registry.names import ROUTE


class RouteKeeper:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._is_absent = False

    def keep(self, wanted: Object) -> None:
        """Asked for at every look: whoever changed it is found then."""
        self._is_absent = False
        self._client.patch(ROUTES, ROUTE, wanted, NAMESPACE, kind=APPLY, field_manager=NAME)

    def remove(self) -> None:
        if self._is_absent:
            return
        try:
            self._client.delete(ROUTES, ROUTE, NAMESPACE)
        except ApiError as error:
            if not error.is_missing:
                raise
        self._is_absent = True
