"""NFS-Ganesha: the site's shares, from a server that needs no NFS in the kernel."""

from __future__ import annotations

from falsework.site import ports
from falsework.site.model import NfsShare, Site

PATH = "ganesha.conf"


def render(site: Site) -> str:
    return "\n".join([f"# NFS shares of {site.domain}.", *_server(), *map(_export, enumerate(site.nfs_shares, 1))])


def _server() -> list[str]:
    return [
        "NFS_CORE_PARAM {",
        "    # Fixed, so that a firewall can let them through.",
        f"    NFS_Port = {ports.NFS};",
        f"    MNT_Port = {ports.MOUNTD};",
        "    Protocols = 3, 4;",
        "    Enable_UDP = false;",
        "    # Locks and quotas of version 3 would need more ports and daemons. Version 4 has its own locks.",
        "    Enable_NLM = false;",
        "    Enable_RQUOTA = false;",
        "}",
        "NFS_KRB5 {",
        "    Active_krb5 = false;",
        "}",
        "NFSv4 {",
        "    RecoveryBackend = fs;",
        "}",
        "LOG {",
        "    COMPONENTS {",
        "        # With these it says whom it refuses what.",
        "        NFSPROTO = INFO;",
        "        NFS_V4 = INFO;",
        "    }",
        "}",
        "",
    ]


def _export(numbered: tuple[int, NfsShare]) -> str:
    number, share = numbered
    lines = [
        "EXPORT {",
        f"    Export_Id = {number};",
        f'    Path = "{share.path}";',
        f'    Pseudo = "{share.path}";',
        "    Protocols = 3, 4;",
        "    Transports = TCP;",
        "    SecType = sys;",
        "    # Nothing for others than these.",
        "    Access_Type = NONE;",
        "    CLIENT {",
        f"        Clients = {share.clients};",
        f"        Access_Type = {'RO' if share.read_only else 'RW'};",
        f"        Squash = {'Root_Squash' if share.root_squash else 'No_Root_Squash'};",
        "    }",
        "    FSAL {",
        "        Name = VFS;",
        "    }",
        "}",
    ]
    return "\n".join(lines) + "\n"
