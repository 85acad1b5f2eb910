"""Which certificates will be where, before any is made. Pure data from the site."""

from __future__ import annotations

from falsework.assets import certificates
from falsework.site.model import Distribution, Helper, Machine, Role, Site


def certificates_on(site: Site, machine: Machine | Helper) -> list[str]:
    """Names of the certificates of ours that a machine boots with."""
    if site.distribution is Distribution.OPENSHIFT:
        return []
    if isinstance(machine, Helper):
        return [certificates.REGISTRY_ROW]
    if machine.role is Role.BOOTSTRAP:
        return [row.name for row in certificates.rows(site) if row.on_bootstrap is not certificates.OnBootstrap.NOTHING]
    return [f"join/{machine.name}"]
