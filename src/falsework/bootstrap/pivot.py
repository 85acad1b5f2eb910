"""The second half of bootkube: waiting for the masters' control plane, and making way for it.

Nothing is remembered but what the stages' markers say: the API is asked, or followed where the wait is long.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from falsework.bootstrap import api_probe
from falsework.bootstrap.waiting import Say
from falsework.control_plane.flags import API_PORT
from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Client, Object
from falsework.kube.cluster import Cluster
from falsework.kube.resources import (
    CLUSTER_VERSIONS,
    ETCDS,
    EVENTS,
    KUBE_API_SERVERS,
    KUBE_CONTROLLER_MANAGERS,
    KUBE_SCHEDULERS,
    LEASES,
    PODS,
    Resource,
)

REQUIRED_PODS = (
    "openshift-kube-apiserver/kube-apiserver",
    "openshift-kube-scheduler/openshift-kube-scheduler",
    "openshift-kube-controller-manager/kube-controller-manager",
    "openshift-cluster-version/cluster-version-operator",
)
"""Namespace and beginning of the name; of each, one pod must be Ready."""
REVISIONED = (KUBE_API_SERVERS, KUBE_SCHEDULERS, KUBE_CONTROLLER_MANAGERS)
SETTLED = 1.0
"""Seconds for which enough masters' API servers must have been ready: the load balancer has seen them by then. If it
has not, ours still answers for a while."""
LEASES_TO_FREE = {"kube-controller-manager": 10257, "kube-scheduler": 10259}
"""Who holds a lease of its own name while it runs, and the port that is closed once it does not."""

READY = "Ready"
_STATES = ("DoesNotExist", "Pending", "RunningNotReady", READY)


# The masters' control plane


def pod_state(pods: list[Object], prefix: str) -> str:
    """How far the best of the pods whose name begins so is."""
    states = (_state(pod) for pod in pods if str(pod["metadata"]["name"]).startswith(prefix))
    return max(states, key=_STATES.index, default=_STATES[0])


def _state(pod: Object) -> str:
    status: dict[str, Any] = pod.get("status") or {}
    if status.get("phase") != "Running" or pod["metadata"].get("deletionTimestamp"):
        return "Pending"
    ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in status.get("conditions") or ())
    return READY if ready else "RunningNotReady"


class RequiredPods:
    """Looked at again and again; each state is said when it changes."""

    def __init__(self, cluster: Cluster, say: Say) -> None:
        self._cluster = cluster
        self._say = say
        self._said: dict[str, str] = {}

    def missing(self) -> str | None:
        try:
            states = {required: self._state(*required.split("/")) for required in REQUIRED_PODS}
        except FalseworkError as error:
            return error.one_line
        for required, state in states.items():
            if self._said.get(required) != state:
                self._say(f"Pod Status: {required} {state}")
        self._said = states
        waiting = [required for required, state in states.items() if state != READY]
        return f"no pod Ready of {', '.join(waiting)}" if waiting else None

    def _state(self, namespace: str, prefix: str) -> str:
        return pod_state(self._cluster.all(PODS, namespace), prefix)


def revisions_missing(client: Client) -> str | None:
    """At least two masters must run each component in a revision of their own."""
    try:
        counts = {resource: _rolled_out(client, resource) for resource in REVISIONED}
    except FalseworkError as error:
        return error.one_line
    behind = [f"{resource.plural} on {count}" for resource, count in counts.items() if count < 2]
    return f"a revision must run on two masters: {', '.join(behind)}" if behind else None


def _rolled_out(client: Client, resource: Resource) -> int:
    try:
        status = client.get(resource, "cluster").get("status") or {}
    except ApiError as error:
        if error.is_missing:
            return 0
        raise
    return sum(int(node.get("currentRevision") or 0) >= 1 for node in status.get("nodeStatuses") or ())


class MastersServe:
    """Ready for long enough that whoever spreads the requests has noticed."""

    def __init__(
        self,
        addresses: tuple[str, ...],
        probe: Callable[[str], str | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._addresses = addresses
        self._probe = probe or (lambda address: api_probe.not_ready(address, API_PORT, None))
        self._clock = clock
        self._since: float | None = None

    def missing(self) -> str | None:
        refusals = [reason for address in self._addresses if (reason := self._probe(address))]
        ready = len(self._addresses) - len(refusals)
        needed = min(2, len(self._addresses))
        if ready < needed:
            self._since = None
            return f"{ready} of {needed} masters' API servers are ready; {refusals[0]}"
        now = self._clock()
        self._since = now if self._since is None else self._since
        return None if now - self._since >= SETTLED else "the load balancer has to notice the masters"


# Making way


def tell(client: Client, name: str, message: str, component: str = "cluster-bootstrap") -> None:
    """An event people and programs look for; told once."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "kube-system"},
        "involvedObject": {"kind": "Namespace", "name": "kube-system", "namespace": "kube-system", "apiVersion": "v1"},
        "reason": name,
        "message": message,
        "type": "Normal",
        "source": {"component": component},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    try:
        client.create(EVENTS, event, "kube-system")
    except ApiError as error:
        if not error.is_conflict:
            raise


def lease_held(client: Client, name: str, host: str) -> str | None:
    """Free the lease of what has stopped on this machine; why not, if it still runs or the API cannot be asked."""
    if _listening(LEASES_TO_FREE[name]):
        return f"{name} has not stopped yet"
    try:
        lease = client.get(LEASES, name, "kube-system")
        if str((lease.get("spec") or {}).get("holderIdentity", "")).startswith(f"{host}_"):
            client.delete(LEASES, name, "kube-system", precondition_uid=lease["metadata"]["uid"])
    except ApiError as error:
        # Gone already, or a master's by now.
        return None if error.is_missing or error.is_conflict else error.one_line
    except FalseworkError as error:
        return error.one_line
    return None


def _listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def api_answers() -> str | None:
    """Whoever still has a connection to our API server is served to the end, and etcd is behind it as long."""
    return f"its port {API_PORT} is still open" if _listening(API_PORT) else None


def overrides_kept(client: Client, patch: bytes) -> str | None:
    """Give the version operator back what was kept from it while the bootstrap created the same things."""
    try:
        client.patch(CLUSTER_VERSIONS, "version", json.loads(patch))
    except FalseworkError as error:
        return error.one_line
    return None


def etcd_missing(client: Client) -> str | None:
    """Whether the etcd operator says that etcd runs in the cluster."""
    try:
        found = client.get(ETCDS, "cluster")
    except FalseworkError as error:
        return error.one_line
    conditions = (found.get("status") or {}).get("conditions") or ()
    mine = next((entry for entry in conditions if entry["type"] == "EtcdRunningInCluster"), None)
    if mine is None:
        return "etcds.operator.openshift.io/cluster has no condition EtcdRunningInCluster"
    return None if mine["status"] == "True" else f"EtcdRunningInCluster={mine['status']}: {mine.get('message', '')}"
