"""falsework plan: what would be made, and where everything will be. Touches nothing."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from falsework.assets.catalogue import Entry, certificates_in, preview
from falsework.assets.graph import Report
from falsework.assets.plan import certificates_on
from falsework.cli.site_folder import add_folder_option, site_in
from falsework.site.model import Distribution, Helper, Machine, Site
from falsework.site.ports import ports_of
from falsework.site.records import dns_records, everyone


def register(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_folder_option(parser)


def run(options: argparse.Namespace) -> int:
    folder: Path = options.dir
    site = site_in(folder)
    ours = site.distribution is Distribution.KUBERNETES
    report = preview(site, folder) if ours else Report()
    data = _as_json(site, report, certificates_in(site, folder) if ours else [])
    if options.json:
        print(json.dumps(data, indent=1))
    else:
        _print(data)
    return 0


def _as_json(site: Site, report: Report, entries: list[Entry]) -> dict[str, Any]:
    return {
        "cluster": {"name": site.cluster_name, "domain": site.domain, "distribution": str(site.distribution)},
        "machines": [_machine(site, machine) for machine in everyone(site)],
        "dns": [{"name": record.name, "type": record.kind, "value": record.value} for record in dns_records(site)],
        "certificates": [
            {
                "name": entry.name,
                "subject": str(entry.subject),
                "signer": entry.signer,
                "validForDays": entry.valid_for_days,
                "made": entry.not_after is not None,
                "goesTo": list(entry.goes_to),
            }
            for entry in entries
        ],
        "assets": {
            "make": report.made,
            "write": list(report.written),
            "remove": list(report.removed),
            "keepAsEdited": list(report.edited),
            "warnings": list(report.warnings),
        },
    }


def _machine(site: Site, machine: Machine | Helper) -> dict[str, Any]:
    return {
        "name": site.fqdn(machine),
        "role": "helper" if isinstance(machine, Helper) else str(machine.role),
        "provider": str(machine.provider),
        "mac": machine.mac,
        "address": str(machine.address),
        "cpus": machine.cpus,
        "memoryMiB": machine.memory_mib,
        "diskGiB": machine.disk_gib,
        "ports": [
            {"port": port.port, "protocol": port.protocol, "purpose": port.purpose} for port in ports_of(site, machine)
        ],
        "certificates": certificates_on(site, machine),
    }


def _print(data: dict[str, Any]) -> None:
    cluster = data["cluster"]
    print(f"Cluster {cluster['name']} ({cluster['domain']}), {cluster['distribution']}\n\nMachines")
    for machine in data["machines"]:
        print(
            f"  {machine['name']:<36} {machine['role']:<10} {machine['provider']:<8} {machine['address']:<16} "
            f"{machine['mac']}  {machine['cpus']} cpus, {machine['memoryMiB']} MiB, {machine['diskGiB']} GiB"
        )
    print("\nPorts")
    shown = set()
    for machine in data["machines"]:
        if machine["role"] not in shown:
            shown.add(machine["role"])
            for port in machine["ports"]:
                print(f"  {machine['role']:<10} {port['port']:<14} {port['protocol']:<9} {port['purpose']}")
    print("\nDNS records")
    for record in data["dns"]:
        print(f"  {record['name']:<46} {record['type']:<4} {record['value']}")
    print("\nCertificates")
    for entry in data["certificates"]:
        where = "; ".join(entry["goesTo"]) or "nowhere"
        print(f"  {entry['name']:<58} {entry['validForDays']:>5} days, by {entry['signer']:<38} → {where}")
    _print_assets(data["assets"])


def _print_assets(assets: dict[str, Any]) -> None:
    print("\nFiles")
    if not assets["write"] and not assets["remove"]:
        print("  everything is up to date")
    for path in assets["write"]:
        print(f"  write  {path}")
    for path in assets["remove"]:
        print(f"  remove {path}")
    for path in assets["keepAsEdited"]:
        print(f"  keep   {path}, as you left it")
    for warning in assets["warnings"]:
        print(f"  warning: {warning}")
