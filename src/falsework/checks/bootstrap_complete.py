"""Waiting for the end of the bootstrap as openshift-install does: its lines, its limits, its exit code."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from falsework.checks import control_plane
from falsework.checks.cluster import Cluster
from falsework.errors import FalseworkError
from falsework.kube.client import Unreachable
from falsework.kube.resources import CLUSTER_OPERATORS

API_LIMIT = 20 * 60.0
COMPLETE_LIMIT = 45 * 60.0
_PAUSE = 0.5

_API_FAILED = (
    "Failed waiting for Kubernetes API. This error usually happens when there is a problem on the bootstrap host that "
    "prevents creating a temporary control plane."
)
_COMPLETE_FAILED = (
    "Failed to wait for bootstrapping to complete. This error usually happens when there is a problem with control "
    "plane hosts that prevents the control plane operators from creating the control plane."
)
_GOOD = {"Available": "True", "Progressing": "False", "Degraded": "False", "Upgradeable": "True"}

Say = Callable[[str], None]


class BootstrapFailed(FalseworkError):  # noqa: N818 - openshift-install's word for it
    exit_code = 5


@dataclass(frozen=True)
class BootstrapComplete:
    cluster: Cluster
    inform: Say
    complain: Say
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], object] = time.sleep

    def wait(self) -> None:
        began = self.clock()
        url = self.cluster.client.url
        self.inform(f"Waiting up to {_told(API_LIMIT)} for the Kubernetes API at {url}...")
        version = self._until(self._version, API_LIMIT, _API_FAILED)
        self.inform(f"API {version} up")
        self.inform(f"Waiting up to {_told(COMPLETE_LIMIT)} for bootstrapping to complete...")
        self._until(self._is_complete, COMPLETE_LIMIT, _COMPLETE_FAILED)
        self.inform("Waiting for the bootstrap etcd member to be removed...")
        # Without a limit, there as here: the etcd operator removes it as soon as that is safe.
        self._until(self._is_removed, None, _COMPLETE_FAILED)
        self.inform("Bootstrap etcd member has been removed")
        self.inform("It is now safe to remove the bootstrap resources")
        self.inform(f"Time elapsed: {_duration(self.clock() - began)}")

    def _until(self, look: Callable[[], str], limit: float | None, failure: str) -> str:
        """Until there is something to be said. `look` may raise what is in the way."""
        deadline = None if limit is None else self.clock() + limit
        while True:
            try:
                found, trouble = look(), ""
            except FalseworkError as error:
                found, trouble = "", f"{error.what} ({error.cause})" if error.cause else error.what
            if found:
                return found
            if deadline is not None and self.clock() > deadline:
                self._dump()
                raise BootstrapFailed(failure, cause=trouble or None, fix="see `falsework status`")
            self.pause(_PAUSE)

    def _version(self) -> str:
        status, content = self.cluster.client.raw("GET", "/version")
        try:
            return str(json.loads(content)["gitVersion"]) if status == 200 else ""
        except (ValueError, KeyError, TypeError):
            raise Unreachable(f"{self.cluster.client.url} does not answer as an API") from None

    def _is_complete(self) -> str:
        return "complete" if control_plane.is_complete(self.cluster) else ""

    def _is_removed(self) -> str:
        return "removed" if control_plane.member_removed(self.cluster).good else ""

    def _dump(self) -> None:
        """What the operators say, as far as they can be asked."""
        try:
            operators = self.cluster.all(CLUSTER_OPERATORS)
        except FalseworkError:
            return
        for body in sorted(operators, key=lambda body: str(body["metadata"]["name"])):
            for entry in (body.get("status") or {}).get("conditions") or ():
                kind, status = entry.get("type"), entry.get("status")
                if _GOOD.get(kind, status) != status:
                    self.complain(
                        f"Cluster operator {body['metadata']['name']} {kind} is {status} with "
                        f"{entry.get('reason', '')}: {entry.get('message', '')}"
                    )


def _told(limit: float) -> str:
    end = datetime.now(UTC) + timedelta(seconds=limit)
    return f"{_duration(limit)} (until {end:%-I:%M%p} UTC)"


def _duration(seconds: float) -> str:
    """As Go writes it: 20m0s."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"
