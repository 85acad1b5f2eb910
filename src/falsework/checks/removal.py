"""Whether the cluster stands without its bootstrap: asked before anybody takes it away."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.checks import control_plane
from falsework.errors import FalseworkError
from falsework.kube.cluster import Cluster
from falsework.site.model import Site


@dataclass(frozen=True)
class Input:
    """One of the three things the etcd operator waits for before it removes the bootstrap's member."""

    what: str
    holds: bool
    found: str

    def __str__(self) -> str:
        return f"{self.what}: {'yes' if self.holds else 'NO'} ({self.found})"


@dataclass(frozen=True)
class Need:
    """Who still needs the bootstrap."""

    removed: bool
    """Whether the etcd operator says that the bootstrap's member is gone; nobody needs the machine then."""
    inputs: tuple[Input, ...] = ()
    voters: int = 0
    unknown: str = ""
    """Why the API could not be asked."""

    def refuse(self, action: str, forced: str) -> None:
        """Say why not, unless nobody needs it. `forced` is the command that does it all the same."""
        if self.removed:
            return
        why = self.unknown or "; ".join(map(str, self.inputs))
        raise FalseworkError(
            f"{action} now would break the cluster: {control_plane.MEMBER_REMOVED} is not True",
            cause=f"the API cannot be asked who needs the bootstrap: {why}" if self.unknown else why,
            fix=f"wait for it: `falsework wait-for bootstrap-complete`; to do it all the same: `{forced}`",
        )

    def loss(self) -> str:
        """What is lost if it goes now."""
        if self.removed:
            return "nothing is lost: the bootstrap's etcd member is removed already"
        if self.unknown:
            return f"what is lost cannot be known, because the API cannot be asked: {self.unknown}"
        if not self.voters:
            return "everything in the cluster is lost: its only etcd is the bootstrap's"
        total = self.voters + 1
        if total - 1 >= total // 2 + 1:
            return f"one of {total} etcd members is lost; no further one may fail until the operator has removed it"
        return f"etcd's quorum is lost, and with it the API: only {self.voters} of {total} members are left"


def need(cluster: Cluster, site: Site) -> Need:
    try:
        if control_plane.member_removed(cluster).good:
            return Need(removed=True)
        return _need(cluster, site)
    except FalseworkError as error:
        return Need(removed=False, unknown=error.one_line)


def _need(cluster: Cluster, site: Site) -> Need:
    voters, wanted = len(control_plane.voters(cluster)), len(site.masters)
    health = control_plane.members(cluster)
    complete = control_plane.is_complete(cluster)
    inputs = (
        Input(f"etcd has {wanted} voters besides the bootstrap's", voters >= wanted, f"it has {voters}"),
        Input("all of them are healthy", health.good, health.detail or health.state),
        Input(
            "the bootstrap has said that it is complete",
            complete,
            f"ConfigMap kube-system/bootstrap {'says so' if complete else 'does not say so'}",
        ),
    )
    return Need(removed=False, inputs=inputs, voters=voters)
