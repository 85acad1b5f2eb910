"""dnsmasq: DNS, DHCP and TFTP from one process that knows the same machines for all three."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from falsework.helper import boot
from falsework.site.model import Machine, Site
from falsework.site.records import Record, dns_records, reverse_names, reverse_zone_name, reverse_zones

PATH = "dnsmasq.conf"
_NAMES, _DHCP_HOSTS, _DHCP_OPTIONS = "names", "dhcp-hosts", "dhcp-options"
"""Folders, each with one file."""
_FILE = "site"


def render(site: Site, tftp_root: str = boot.TFTP_ROOT, machines: str = "") -> str:
    """With a folder for `machines`, what is known of those is not in here but in the files `machine_files` gives, which
    a running dnsmasq notices by itself: nobody who asks meanwhile goes without an answer. (Told to read everything
    again, by SIGHUP, it may crash over a machine that is gone.)"""
    lines = [
        f"# DNS, DHCP and TFTP for {site.domain}.",
        f"listen-address=127.0.0.1,{site.helper.address}",
        "# Only on these addresses, and also when one of them comes up later.",
        "bind-dynamic",
        "# Who asked for what and what they got. The number on a line says which question an answer belongs to.",
        "log-queries=extra",
        "log-dhcp",
        *_dns(site),
        *_dhcp(site),
        *(_machines_elsewhere(machines) if machines else _machines_here(site)),
        *_boot(site, tftp_root),
    ]
    return "\n".join(lines) + "\n"


def machine_files(site: Site) -> dict[str, str]:
    """Path → text."""
    texts = {
        _NAMES: _text(f"{record.value} {record.name}" for record in _hosts(site)),
        _DHCP_HOSTS: _text(_dhcp_hosts(site)),
        _DHCP_OPTIONS: _text(_dhcp_options(site)),
    }
    return {f"{folder}/{_FILE}": text for folder, text in texts.items()}


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _machines_elsewhere(folder: str) -> list[str]:
    return [
        "",
        "# The machines are in these folders. A name that is gone is forgotten at once, an address at the next start.",
        f"hostsdir={folder}/{_NAMES}",
        f"dhcp-hostsdir={folder}/{_DHCP_HOSTS}",
        f"dhcp-optsdir={folder}/{_DHCP_OPTIONS}",
    ]


def _machines_here(site: Site) -> list[str]:
    return [
        "",
        "# The machines: names, which are the reverse ones too, and addresses.",
        *(f"host-record={record.name},{record.value}" for record in _hosts(site)),
        *(f"dhcp-host={line}" for line in _dhcp_hosts(site)),
        *(f"dhcp-option={line}" for line in _dhcp_options(site)),
    ]


def _hosts(site: Site) -> list[Record]:
    """The name an address has in reverse comes first: dnsmasq takes the first name it reads for that."""
    first = {f"{name}." for name in reverse_names(site).values()}
    records = [record for record in dns_records(site) if record.kind == "A" and not record.name.startswith("*.")]
    return sorted(records, key=lambda record: f"{record.name}." not in first)


def _dhcp_hosts(site: Site) -> Iterator[str]:
    for machine in site.machines:
        # Without its name: that would be in the DNS for as long as the lease, whatever became of the machine.
        yield f"{machine.mac},set:{_tag(machine)},{machine.address}"


def _dhcp_options(site: Site) -> Iterator[str]:
    for machine in site.machines:
        # The full one: a node has the name its machine got here.
        yield f"tag:{_tag(machine)},{boot.HOST_NAME_OPTION},{site.fqdn(machine)}"


def _tag(machine: Machine) -> str:
    return f"machine-{machine.name}"


def _dns(site: Site) -> list[str]:
    lines = [
        "",
        "# DNS. The names below are all there are: nothing comes from this host's own files.",
        "no-hosts",
        "no-resolv",
        "domain-needed",
        "bogus-priv",
        f"domain={site.domain}",
        f"local=/{site.domain}/",
    ]
    if site.lab.cidr.prefixlen <= 24:
        # A smaller network is only a part of the zone around it, whose other addresses are not ours to deny.
        lines += [f"local=/{reverse_zone_name(zone)}/" for zone in reverse_zones(site)]
    if site.upstream_dns:
        lines += [f"server={server}" for server in site.upstream_dns]
    else:
        lines += ["# Nobody to ask for other names: they do not exist, and that is said at once.", "address=/#/"]
    return lines + [line for record in dns_records(site) for line in _record(record)]


def _record(record: Record) -> list[str]:
    if record.kind == "SRV":
        priority, weight, port, target = record.value.split()
        return [f"srv-host={record.name},{target.removesuffix('.')},{port},{priority},{weight}"]
    if record.kind == "A" and record.name.startswith("*."):
        name = record.name.removeprefix("*.")
        # `local` for the sake of other types than A, which would be asked for elsewhere.
        return [f"address=/{name}/{record.value}", f"local=/{name}/"]
    return []


def _dhcp(site: Site) -> list[str]:
    return [
        "",
        "# DHCP. Only machines of the site get an answer; each has its address and its name.",
        "dhcp-authoritative",
        f"dhcp-range={site.lab.cidr.network_address},static,{site.lab.cidr.netmask},{boot.LEASE_SECONDS}",
        "dhcp-ignore=tag:!known",
        "# All names are told of above; a lease makes none.",
        "dhcp-ignore-names",
        f"dhcp-option=option:router,{site.lab.gateway}",
        f"dhcp-option=option:dns-server,{site.helper.address}",
        f"dhcp-option=option:domain-search,{site.domain}",
    ]


def _boot(site: Site, tftp_root: str) -> list[str]:
    helper = f"{site.helper.name},{site.helper.address}"
    lines = ["", "# Network boot: the firmware says what it is in option 93, iPXE says so with option 175."]
    lines += [f"dhcp-match=set:uefi,option:client-arch,{code}" for code in boot.uefi_codes(site)]
    return [
        *lines,
        f"dhcp-match=set:ipxe,{boot.IPXE_OPTION}",
        f"dhcp-boot=tag:!uefi,{boot.BIOS_LOADER},{helper}",
        f"dhcp-boot=tag:uefi,tag:!ipxe,{boot.UEFI_LOADER},{helper}",
        f"dhcp-boot=tag:uefi,tag:ipxe,{boot.IPXE_SCRIPT},{helper}",
        "enable-tftp",
        f"tftp-root={tftp_root}",
    ]
