"""Waiting for the end of the bootstrap as openshift-install does: its lines, its limits, its exit code."""

from __future__ import annotations

import json

from falsework.checks import control_plane
from falsework.checks.install_waiting import InstallWaiting, duration, told_limit
from falsework.errors import FalseworkError
from falsework.kube.client import Unreachable

API_LIMIT = 20 * 60.0
COMPLETE_LIMIT = 45 * 60.0

_API_FAILED = (
    "Failed waiting for Kubernetes API. This error usually happens when there is a problem on the bootstrap host that "
    "prevents creating a temporary control plane."
)
_COMPLETE_FAILED = (
    "Failed to wait for bootstrapping to complete. This error usually happens when there is a problem with control "
    "plane hosts that prevents the control plane operators from creating the control plane."
)


class BootstrapFailed(FalseworkError):  # noqa: N818 - openshift-install's word for it
    exit_code = 5


class BootstrapComplete(InstallWaiting):
    def wait(self) -> None:
        began = self.clock()
        url = self.cluster.client.url
        self.inform(f"Waiting up to {told_limit(API_LIMIT)} for the Kubernetes API at {url}...")
        version = self.until(self._version, API_LIMIT, BootstrapFailed, _API_FAILED)
        self.inform(f"API {version} up")
        self.inform(f"Waiting up to {told_limit(COMPLETE_LIMIT)} for bootstrapping to complete...")
        self.until(self._is_complete, COMPLETE_LIMIT, BootstrapFailed, _COMPLETE_FAILED)
        self.inform("Waiting for the bootstrap etcd member to be removed...")
        # Without a limit, there as here: the etcd operator removes it as soon as that is safe.
        self.until(self._is_removed, None, BootstrapFailed, _COMPLETE_FAILED)
        self.inform("Bootstrap etcd member has been removed")
        self.inform("It is now safe to remove the bootstrap resources")
        self.inform(f"Time elapsed: {duration(self.clock() - began)}")

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
