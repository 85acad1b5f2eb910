"""Who has held a lease, in order: that it was given back is told by what came after what, not by how long that took."""

from __future__ import annotations

from falsework.kube.client import Client, Object
from falsework.kube.resources import LEASES


def holder_of(lease: Object) -> str:
    return str(lease["spec"].get("holderIdentity") or "")


def holders_since(client: Client, lease: Object) -> list[str]:
    """From the one it is given with to the one it has now; nobody is empty."""
    name, namespace = lease["metadata"]["name"], lease["metadata"]["namespace"]
    now = client.get(LEASES, name, namespace)["metadata"]["resourceVersion"]
    found = [holder_of(lease)]
    version = lease["metadata"]["resourceVersion"]
    with client.watch(LEASES, namespace, version, fields=f"metadata.name={name}") as changes:
        while version != now:
            changed = next(changes).object
            version = changed["metadata"]["resourceVersion"]
            if holder_of(changed) != found[-1]:
                found.append(holder_of(changed))
    return found
