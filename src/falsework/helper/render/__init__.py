"""The facts of a site as configuration of servers, for people who keep their own and for Falsework's helper.

Every format is a pure function of the site. What it gives back is files: path → text, the path being the name
the file has below the server's own folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from falsework.helper.render import (
    bind,
    dhcpd,
    dnsmasq,
    exports,
    firewalld,
    ganesha,
    haproxy,
    kea,
    libvirt_net,
    nftables,
    pxe,
)
from falsework.site.model import Site

Files = dict[str, str]


@dataclass(frozen=True)
class Format:
    summary: str
    render: Callable[[Site, int], Files]
    """Of a site, and of the serial its zones get, which only a name server looks at."""


BIND = "bind"
"""The one format whose files say how new they are."""


def _file(path: str, text_of: Callable[[Site], str]) -> Callable[[Site, int], Files]:
    return lambda site, _: {path: text_of(site)}


FORMATS = {
    "dnsmasq": Format("dnsmasq: DNS, DHCP and TFTP in one", _file(dnsmasq.PATH, dnsmasq.render)),
    BIND: Format("BIND: named.conf, the cluster's zone and its reverse zones", bind.render),
    "dhcpd": Format("ISC DHCP", _file(dhcpd.PATH, dhcpd.render)),
    "kea": Format("Kea DHCPv4", _file(kea.PATH, kea.render)),
    "haproxy": Format("HAProxy: API, Machine Config Server, applications", _file(haproxy.PATH, haproxy.render)),
    "pxe": Format("what boot loaders ask for: pxelinux and iPXE", lambda site, _: pxe.render(site)),
    "exports": Format("NFS: /etc/exports", _file(exports.PATH, exports.render)),
    "ganesha": Format("NFS: NFS-Ganesha, a server outside the kernel", _file(ganesha.PATH, ganesha.render)),
    "firewalld": Format("firewalld: a zone for the helper", _file(firewalld.PATH, firewalld.render)),
    "nftables": Format("nftables: the helper's rules", _file(nftables.PATH, nftables.render)),
    "libvirt-net": Format("libvirt: the lab's network", _file(libvirt_net.PATH, libvirt_net.render)),
}


def render(name: str, site: Site, today: date, previous_serial: int | None = None) -> Files:
    """A format's files. `previous_serial` is the largest that a zone of the site has had."""
    return FORMATS[name].render(site, bind.next_serial(today, previous_serial))


def as_one_text(files: Files) -> str:
    """One file as it is; several with a line before each that says which, a comment in its language."""
    if len(files) == 1:
        return next(iter(files.values()))
    return "\n".join(f"{_comment_sign(path)} ===== {path} =====\n{text}" for path, text in files.items())


def _comment_sign(path: str) -> str:
    return ";" if path.endswith(".zone") else "#"
