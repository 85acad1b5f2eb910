"""What the IngressController says of its routers."""

from __future__ import annotations

from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.operators.ingress.deployment import DEPLOYMENT, PLACE, SELECTOR
from falsework.operators.ingress.settings import HOST_NETWORK, Settings
from falsework.operators.runtime.conditions import Condition, condition
from falsework.operators.runtime.rollouts import is_complete


def status_of_routers(settings: Settings, live: Object | None, generation: int) -> Object:
    """Beside the conditions."""
    ports = {"httpPort": PLACE.http, "httpsPort": PLACE.https, "statsPort": PLACE.health, "protocol": "TCP"}
    return {
        "availableReplicas": ((live or {}).get("status") or {}).get("availableReplicas", 0),
        "domain": settings.domain,
        "endpointPublishingStrategy": {"type": HOST_NETWORK, "hostNetwork": ports},
        "observedGeneration": generation,
        "selector": SELECTOR,
    }


def conditions_of(settings: Settings, live: Object | None) -> list[Condition]:
    """Available while one router is; at work until all are, and are as they are to be."""
    available = ((live or {}).get("status") or {}).get("availableReplicas", 0)
    is_there, is_done = available > 0 or settings.replicas == 0, is_complete(live)
    counted = f"{available} of {settings.replicas} routers of the deployment {DEPLOYMENT} are available"
    reason = "AsExpected" if is_there else "DeploymentUnavailable"
    return [
        condition("Admitted", True, "Valid"),
        condition("Available", is_there, reason, counted),
        condition("DeploymentAvailable", is_there, reason, counted),
        condition("Progressing", not is_done, "AsExpected" if is_done else "RollingOut", counted),
        condition("Degraded", False, "AsExpected"),
    ]


def refused(error: FalseworkError) -> list[Condition]:
    """What it is asked for cannot be had. Routers that run go on as they are."""
    message = f"{error.one_line}: {error.fix}" if error.fix else error.one_line
    return [condition("Admitted", False, "Invalid", message), condition("Degraded", True, "Invalid", message)]
