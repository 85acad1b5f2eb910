"""NFS: the site's shares as lines of /etc/exports."""

from __future__ import annotations

from falsework.site.model import NfsShare, Site

PATH = "exports"


def render(site: Site) -> str:
    head = f"# NFS shares of {site.domain}." if site.nfs_shares else f"# {site.domain} has no NFS shares."
    return "\n".join([head, *(_line(share) for share in site.nfs_shares)]) + "\n"


def _line(share: NfsShare) -> str:
    options = (
        "ro" if share.read_only else "rw",
        # What a pod was told is written is on the disk.
        "sync",
        "no_subtree_check",
        "root_squash" if share.root_squash else "no_root_squash",
    )
    return f"{share.path} {share.clients}({','.join(options)})"
