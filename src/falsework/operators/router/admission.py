"""What a router says of a route, in the route's status: an entry of its own among those of other routers."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.kube.client import Object
from falsework.operators.router.routes import Refusal
from falsework.operators.runtime.conditions import condition, updated


@dataclass(frozen=True)
class Router:
    """Who it is."""

    name: str
    domain: str
    """Under which routes get a host that name none."""

    @property
    def hostname(self) -> str:
        """What other names may be made to point at."""
        return f"router-{self.name}.{self.domain}"


def status_with(body: Object, router: Router, refusal: Refusal | None, moment: str) -> Object:
    """The route's status as it is to be. What has not changed is as it was, to the second."""
    status = body.get("status") or {}
    entries = list(status.get("ingress") or ())
    known: Object = next((entry for entry in entries if entry.get("routerName") == router.name), {})
    said = (
        condition("Admitted", True)
        if refusal is None
        else condition("Admitted", False, refusal.reason, refusal.message)
    )
    host = str(body["spec"].get("host") or "")
    own = {
        **({"host": host} if host else {}),
        "routerName": router.name,
        "routerCanonicalHostname": router.hostname,
        "wildcardPolicy": body["spec"].get("wildcardPolicy") or "None",
        "conditions": updated(known.get("conditions") or [], [said], moment),
    }
    if own == known:
        return status
    return {**status, "ingress": [own if entry is known else entry for entry in entries] + ([] if known else [own])}
