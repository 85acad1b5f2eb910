"""nftables: what comes in to the helper. One table, replaced as a whole and at once; others are left alone."""

from __future__ import annotations

from falsework.helper.openings import Opening, openings
from falsework.site.model import Site

PATH = "nftables.conf"
TABLE = "inet falsework_helper"


def render(site: Site) -> str:
    lines = [
        "#!/usr/sbin/nft -f",
        f"# The helper of {site.domain}.",
        "# Named first so that it can be deleted when it is not there yet.",
        f"table {TABLE}",
        f"delete table {TABLE}",
        f"table {TABLE} {{",
        "    chain input {",
        "        type filter hook input priority filter; policy drop;",
        "        # Answers to us; among them a TFTP transfer, which the server goes on with from a port of its own.",
        "        ct state established,related accept",
        "        ct state invalid drop",
        '        iif "lo" accept',
        "        icmp type echo-request accept",
        "        meta l4proto ipv6-icmp accept",
        *(f"        {_rule(opening)}" for opening in openings(site)),
        "    }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _rule(opening: Opening) -> str:
    source = f"ip saddr {_set([str(network) for network in opening.sources])} " if opening.sources else ""
    return f'{source}{opening.protocol} dport {_set(opening.ranges)} accept comment "{opening.purpose}"'


def _set(members: list[str] | tuple[str, ...]) -> str:
    return members[0] if len(members) == 1 else f"{{ {', '.join(members)} }}"
