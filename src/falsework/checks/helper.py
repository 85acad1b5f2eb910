"""Whether each of the helper's services does what it is there for, asked as a machine would ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from falsework.checks.answers import Asker
from falsework.checks.check import Check, answered
from falsework.helper.boot_server_files import UNIT as BOOT_SERVER
from falsework.helper.services import has_registry
from falsework.process import Finished
from falsework.site import ports
from falsework.site.model import Site

Execute = Callable[[Sequence[str]], Finished]


def checks_of(site: Site, assets: Path, asker: Asker, execute: Execute) -> Iterator[Check]:
    """`execute` runs a command in the helper."""
    address = str(site.helper.address)
    yield Check("units", "multi-user.target", "has all its units running", partial(_failed_units, execute))
    yield Check("dns", "dnsmasq", "answers DNS queries", partial(_knows_names, site, asker))
    yield Check("boot", BOOT_SERVER, "serves boot files", lambda: answered(asker.status(address, ports.BOOT_HTTP, "/")))
    if site.helper.address in (site.api_vip, site.ingress_vip):
        statistics = partial(asker.status, address, ports.BALANCER_STATISTICS, "/healthz")
        yield Check("balancer", "haproxy", "balances load", lambda: answered(statistics(), 200))
    if has_registry(site):
        authority = assets / "tls" / "root-ca.crt"
        registry = partial(asker.status, address, ports.REGISTRY, "/v2/", authority, site.fqdn(site.helper))
        yield Check("registry", "registry", "serves images", lambda: answered(registry(), 200))
    if site.nfs_shares:
        yield Check("nfs", "nfs-ganesha", "exports the shares", partial(_exports, site, execute))


def _failed_units(execute: Execute) -> str:
    failed = execute(("systemctl", "list-units", "--failed", "--plain", "--no-legend")).output.split("\n")
    names = [line.split()[0] for line in failed if line.strip()]
    return f"failed: {', '.join(names)}" if names else ""


def _knows_names(site: Site, asker: Asker) -> str:
    found = asker.address_of(str(site.helper.address), site.api_int_host)
    return "" if found == str(site.api_vip) else f"{site.api_int_host} is {found or 'unknown'}, not {site.api_vip}"


def _exports(site: Site, execute: Execute) -> str:
    listed = execute(("showmount", "--no-headers", "--exports", "127.0.0.1")).output.splitlines()
    exported = {line.split()[0] for line in listed if line.strip()}
    missing = [share.path for share in site.nfs_shares if share.path not in exported]
    return f"not exported: {', '.join(missing)}" if missing else ""
