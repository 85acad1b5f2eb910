"""dnsmasq: DNS, DHCP and TFTP from one process that knows the same machines for all three."""

from __future__ import annotations

from falsework.helper import boot
from falsework.site.model import Site
from falsework.site.records import Record, dns_records, reverse_names, reverse_zone_name, reverse_zones

PATH = "dnsmasq.conf"


def render(site: Site, tftp_root: str = boot.TFTP_ROOT) -> str:
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
        *_boot(site, tftp_root),
    ]
    return "\n".join(lines) + "\n"


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
    return lines + [line for record in _in_order(site) for line in _record(record)]


def _in_order(site: Site) -> list[Record]:
    """The name an address has in reverse comes first: dnsmasq takes the first name it reads for that."""
    first = {f"{name}." for name in reverse_names(site).values()}
    return sorted(dns_records(site), key=lambda record: f"{record.name}." not in first)


def _record(record: Record) -> list[str]:
    if record.kind == "SRV":
        priority, weight, port, target = record.value.split()
        return [f"srv-host={record.name},{target.removesuffix('.')},{port},{priority},{weight}"]
    if record.kind == "A" and record.name.startswith("*."):
        name = record.name.removeprefix("*.")
        # `local` for the sake of other types than A, which would be asked for elsewhere.
        return [f"address=/{name}/{record.value}", f"local=/{name}/"]
    # A host record is the reverse one too.
    return [f"host-record={record.name},{record.value}"] if record.kind == "A" else []


def _dhcp(site: Site) -> list[str]:
    lines = [
        "",
        "# DHCP. Only machines of the site get an answer; each has its address and its name.",
        "dhcp-authoritative",
        f"dhcp-range={site.lab.cidr.network_address},static,{site.lab.cidr.netmask},{boot.LEASE_SECONDS}",
        "dhcp-ignore=tag:!known",
        f"dhcp-option=option:router,{site.lab.gateway}",
        f"dhcp-option=option:dns-server,{site.helper.address}",
        f"dhcp-option=option:domain-search,{site.domain}",
    ]
    for machine in site.machines:
        # The full name, because a short one can look like a time or a keyword. dnsmasq sends only its first
        # part, though, and a node has the name its machine got here: so that is said too.
        tag, fqdn = f"machine-{machine.name}", site.fqdn(machine)
        lines += [
            f"dhcp-host={machine.mac},set:{tag},{machine.address},{fqdn}",
            f"dhcp-option=tag:{tag},{boot.HOST_NAME_OPTION},{fqdn}",
        ]
    return lines


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
