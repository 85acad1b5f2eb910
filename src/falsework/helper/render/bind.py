"""BIND: named.conf, the cluster's zone and the reverse zones of its machines."""

from __future__ import annotations

import re
from datetime import date
from ipaddress import IPv4Network

from falsework.errors import UsageError
from falsework.site.model import Site
from falsework.site.records import Record, dns_records, reverse_zone_name, reverse_zones

CONFIG = "named.conf"
FOLDER = "/var/named"

_LAST_SERIAL = 2**32 - 1
_SOA = re.compile(r"\bSOA\s+\S+\s+\S+\s+\(?\s*([0-9]+)\b")
_COMMENT = re.compile(r";.*")


def render(site: Site, serial: int, folder: str = FOLDER) -> dict[str, str]:
    zones = {site.domain: None, **{reverse_zone_name(zone): zone for zone in reverse_zones(site)}}
    files = {CONFIG: _config(site, list(zones), folder)}
    for name, network in zones.items():
        files[zone_path(name)] = _zone(site, name, network, serial)
    return files


def zone_path(zone: str) -> str:
    return f"{zone}.zone"


def next_serial(today: date, previous: int | None) -> int:
    """The day with two digits to count in, as people expect it; but above all more than it was.

    Other name servers take a zone only when its serial has grown, so a clock that was set back or a
    hundred changes in a day must not stop it.
    """
    serial = max(int(f"{today:%Y%m%d}00"), (previous or 0) + 1)
    if serial > _LAST_SERIAL:
        raise UsageError(
            f"after the serial {previous} there is no larger one",
            cause=f"a zone's serial ends at {_LAST_SERIAL}",
            fix="give the zone a smaller serial on all its name servers by hand, then name that with --previous",
        )
    return serial


def serial_in(text: str) -> int | None:
    """The serial of a zone file, or of a file that holds nothing but the number."""
    bare = _COMMENT.sub("", text)
    if bare.strip().isdecimal():
        return int(bare)
    found = _SOA.search(bare)
    return int(found.group(1)) if found else None


def _config(site: Site, zones: list[str], folder: str) -> str:
    clients = f"localhost; {site.lab.cidr};"
    lines = [
        f"// Name server for {site.domain}.",
        "options {",
        f'    directory "{folder}";',
        f"    listen-on port 53 {{ 127.0.0.1; {site.helper.address}; }};",
        "    listen-on-v6 { none; };",
        "    allow-transfer { none; };",
        "    dnssec-validation no;",
    ]
    if site.upstream_dns:
        lines += [
            "    // Other names are asked for elsewhere, for the lab alone.",
            "    recursion yes;",
            f"    allow-recursion {{ {clients} }};",
            "    forward only;",
            f"    forwarders {{ {' '.join(f'{server};' for server in site.upstream_dns)} }};",
        ]
    else:
        lines += ["    // Nobody to ask for other names: such questions are refused at once.", "    recursion no;"]
    lines.append("};")
    for zone in zones:
        lines += ["", f'zone "{zone}" IN {{', "    type master;", f'    file "{zone_path(zone)}";', "};"]
    return "\n".join(lines) + "\n"


def _zone(site: Site, name: str, network: IPv4Network | None, serial: int) -> str:
    server = f"{site.fqdn(site.helper)}."
    lines = []
    if network is not None and network.prefixlen < site.lab.cidr.prefixlen:
        lines += [
            f"; {site.lab.cidr} is a part of {network}: this server now answers for all of that.",
            "; Where others own the rest, put these records into the zone they have for it.",
        ]
    lines += [
        "; Short lives: what changes in a lab is wanted at once.",
        "$TTL 300",
        f"$ORIGIN {name}.",
        f"@ IN SOA {server} hostmaster.{site.domain}. (",
        f"    {serial} ; serial",
        "    3600 ; refresh",
        "    600 ; retry",
        "    1209600 ; expire",
        "    60 ; how long a name is known not to exist",
        "    )",
        f"@ IN NS {server}",
        *(_line(record, name) for record in dns_records(site) if record.name.endswith(f".{name}")),
    ]
    return "\n".join(lines) + "\n"


def _line(record: Record, zone: str) -> str:
    return f"{record.name.removesuffix(f'.{zone}')} IN {record.kind} {record.value}"
