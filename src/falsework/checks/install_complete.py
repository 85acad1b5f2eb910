"""Waiting for the end of the installation as openshift-install does: its lines, its limits, its exit codes.

Two things differ. The administrator's kubeconfig is left as it is, and of the password only its file is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from falsework.assets.keys_in_folder import ADMIN_KUBECONFIG, ADMIN_PASSWORD
from falsework.checks import settled
from falsework.checks.install_waiting import InstallWaiting, duration, told_limit
from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.kube.cluster import condition_of, is_true
from falsework.kube.resources import CLUSTER_OPERATORS

INITIALIZE_LIMIT = 40 * 60.0
STABLE_LIMIT = 30 * 60.0
AT_REST = 30.0
"""Seconds an operator has to be at rest to count as stable."""

_NOT_INITIALIZED = (
    "Cluster initialization failed because one or more operators are not functioning properly. The cluster should be "
    "accessible for troubleshooting; `falsework wait-for install-complete` can then be used to continue."
)
_NOT_STABLE = "Some cluster operators are still progressing"


class InstallFailed(FalseworkError):  # noqa: N818 - openshift-install's word for it
    exit_code = 6


class OperatorsNotStable(FalseworkError):  # noqa: N818 - the same
    exit_code = 7


@dataclass(frozen=True, kw_only=True)
class InstallComplete(InstallWaiting):
    folder: Path
    """Where the assets are."""

    def wait(self) -> None:
        began = self.clock()
        limit, url = told_limit(INITIALIZE_LIMIT), self.cluster.client.url
        self.inform(f"Waiting up to {limit} for the cluster at {url} to initialize...")
        self.until(self._initialized, INITIALIZE_LIMIT, InstallFailed, _NOT_INITIALIZED)
        limit = told_limit(STABLE_LIMIT)
        self.inform(f"Waiting up to {limit} to ensure each cluster operator has finished progressing...")
        self.until(self._stable, STABLE_LIMIT, OperatorsNotStable, _NOT_STABLE)
        self.inform("All cluster operators have completed progressing")
        self.inform("Install complete!")
        self.inform("To access the cluster as the system:admin user when using 'oc', run")
        self.inform(f"    export KUBECONFIG={self.folder / ADMIN_KUBECONFIG}")
        self.inform(f'The password of the user "kubeadmin" is in {self.folder / ADMIN_PASSWORD}')
        self.inform(f"Time elapsed: {duration(self.clock() - began)}")

    def _initialized(self) -> str:
        stand = settled.version(self.cluster)
        if stand.good:
            return "initialized"
        raise FalseworkError(f"the cluster version is {stand.state}", cause=stand.detail or None)

    def _stable(self) -> str:
        now = datetime.now(UTC)
        moving = sorted(
            str(body["metadata"]["name"]) for body in self.cluster.all(CLUSTER_OPERATORS) if not _is_at_rest(body, now)
        )
        if moving:
            raise FalseworkError(f"not at rest for {AT_REST:.0f} s yet: {', '.join(moving)}")
        return "stable"


def _is_at_rest(operator: Object, now: datetime) -> bool:
    progressing = condition_of(operator, "Progressing")
    if progressing is None or is_true(operator, "Progressing"):
        return False
    try:
        since = datetime.fromisoformat(str(progressing.get("lastTransitionTime")))
    except ValueError:
        return False
    return (now - since).total_seconds() > AT_REST
