"""falsework certs: the calendar of a site's certificates. Never shows a key."""

from __future__ import annotations

import argparse
import json
from datetime import datetime, timedelta

from falsework.assets.catalogue import Entry, certificates_in
from falsework.assets.pki import utc_now
from falsework.cli.site_folder import add_folder_option, site_in


def register(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_folder_option(parser)


def run(options: argparse.Namespace) -> int:
    now = utc_now()
    entries = certificates_in(site_in(options.dir), options.dir)
    if options.json:
        print(json.dumps([_as_json(entry, now) for entry in entries], indent=1))
        return 0
    print(
        f"{'NAME':<58} {'NOT BEFORE (UTC)':<17} {'NOT AFTER (UTC)':<17} {'LEFT':>9}  "
        f"{'SIGNER':<38} SUBJECT → WHERE IT GOES"
    )
    for entry in entries:
        print(
            f"{entry.name:<58} {_date(entry.not_before):<17} {_date(entry.not_after):<17} {_left(entry, now):>9}  "
            f"{entry.signer:<38} {entry.subject} → {'; '.join(entry.goes_to) or 'nowhere'}"
        )
        if entry.problem:
            print(f"  problem: {entry.problem}")
    return 0


def _as_json(entry: Entry, now: datetime) -> dict[str, object]:
    return {
        "name": entry.name,
        "subject": str(entry.subject),
        "signer": entry.signer,
        "notBefore": entry.not_before.isoformat() if entry.not_before else None,
        "notAfter": entry.not_after.isoformat() if entry.not_after else None,
        "renewAt": entry.renew_at.isoformat() if entry.renew_at else None,
        "remainingSeconds": int((entry.not_after - now).total_seconds()) if entry.not_after else None,
        "validForDays": entry.valid_for_days,
        "goesTo": list(entry.goes_to),
        "problem": entry.problem,
    }


def _date(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "-"


def _left(entry: Entry, now: datetime) -> str:
    if entry.not_after is None:
        return "not made"
    left = entry.not_after - now
    if left <= timedelta(0):
        return "EXPIRED"
    return f"{left.days} d" if left.days >= 2 else f"{left.total_seconds() / 3600:.1f} h"
