"""How patient etcd's members are with one another: decided once for a site, the same for all of them."""

from __future__ import annotations

from falsework.assets.objects import Object, named
from falsework.etcd.settings import Speed
from falsework.manifests.cluster_objects import CREATE_ONLY
from falsework.site.model import Provider, Site

MANIFEST = "manifests/0000_12_etcd_02_operator.cr.yaml"
"""In the place of the release's own, which says nothing of the machines."""


def speed_of(site: Site) -> Speed:
    """Members in machines that share a kernel share its processors too: one that waits for its turn is not dead, and an
    election would make all of them wait."""
    sharing = [machine for machine in (site.bootstrap, *site.masters) if machine.provider is Provider.NSPAWN]
    return Speed.SLOWER if len(sharing) > 1 else Speed.UNSET


def etcd_object(speed: Speed) -> Object:
    spec = {"managementState": "Managed", "controlPlaneHardwareSpeed": str(speed)}
    result = named("operator.openshift.io/v1", "Etcd", "cluster", spec=spec)
    result["metadata"]["annotations"] = {CREATE_ONLY: "true"}
    return result
