"""Whether each of the helper's services does what it is there for, asked as a machine would ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from falsework.checks.answers import Asker
from falsework.errors import FalseworkError
from falsework.helper.boot_server_files import UNIT as BOOT_SERVER
from falsework.helper.services import has_registry
from falsework.process import Finished
from falsework.site import ports
from falsework.site.model import Site

Execute = Callable[[Sequence[str]], Finished]


@dataclass(frozen=True)
class Check:
    name: str
    unit: str
    """Where to look when it does not hold."""
    sentence: str
    """What the helper then does: `answers DNS queries`."""
    look: Callable[[], str]
    """Empty if it holds, else what is wrong. OSError: nobody answered."""

    def fault(self) -> str:
        try:
            return self.look()
        except (OSError, FalseworkError) as error:
            return str(error).partition("\n")[0]


def checks_of(site: Site, assets: Path, asker: Asker, execute: Execute) -> Iterator[Check]:
    """`execute` runs a command in the helper."""
    address = str(site.helper.address)
    yield Check("units", "multi-user.target", "has all its units running", partial(_failed_units, execute))
    yield Check("dns", "dnsmasq", "answers DNS queries", partial(_knows_names, site, asker))
    yield Check(
        "boot", BOOT_SERVER, "serves boot files", lambda: _answered(asker.status(address, ports.BOOT_HTTP, "/"))
    )
    if site.helper.address in (site.api_vip, site.ingress_vip):
        statistics = partial(asker.status, address, ports.BALANCER_STATISTICS, "/healthz")
        yield Check("balancer", "haproxy", "balances load", lambda: _answered(statistics(), 200))
    if has_registry(site):
        authority = assets / "tls" / "root-ca.crt"
        registry = partial(asker.status, address, ports.REGISTRY, "/v2/", authority, site.fqdn(site.helper))
        yield Check("registry", "registry", "serves images", lambda: _answered(registry(), 200))
    if site.nfs_shares:
        yield Check("nfs", "nfs-ganesha", "exports the shares", partial(_exports, site, execute))


def _answered(status: int, wanted: int | None = None) -> str:
    good = status == wanted if wanted else status < 500
    return "" if good else f"HTTP status {status}"


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
