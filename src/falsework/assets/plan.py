"""Which certificates will be where, before any is made. Pure data from the site."""

from __future__ import annotations

from falsework.assets import certificates
from falsework.site.model import Distribution, Helper, Machine, Role, Site


def certificates_on(site: Site, machine: Machine | Helper) -> list[str]:
    """Names of the certificates of ours that a machine boots with, or is handed as it does."""
    if site.distribution is Distribution.OPENSHIFT:
        return []
    if isinstance(machine, Helper):
        return [certificates.REGISTRY_ROW]
    if machine.role is Role.BOOTSTRAP:
        own = [row.name for row in certificates.rows(site) if row.on_bootstrap is not certificates.OnBootstrap.NOTHING]
        # For the machines it will hand them to.
        return [*own, *(f"join/{joining.name}" for joining in (*site.masters, *site.workers))]
    return [f"join/{machine.name}"]
