"""falsework kubeconfig: the administrator's key to the cluster, for programs of this host."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from falsework.assets.keys_in_folder import ADMIN_KUBECONFIG
from falsework.assets.kubeconfig import merged, redirected
from falsework.cli.site_folder import add_folder_option, site_in
from falsework.errors import FalseworkError
from falsework.files import write_file
from falsework.site import ports
from falsework.site.model import Site

_LOOPBACK = "127.0.0.1"


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the administrator's kubeconfig. It holds a key: whoever has it is system:admin. The API server it names "
        "is in the lab's own network: use it in `falsework shell`, or through `falsework forward` with --forwarded."
    )
    add_folder_option(parser)
    parser.add_argument("--path", action="store_true", help="print where the file is instead")
    parser.add_argument(
        "--forwarded",
        nargs="?",
        type=int,
        const=ports.API,
        metavar="PORT",
        help="as it leads through `falsework forward --port PORT` (default: %(const)s)",
    )
    parser.add_argument(
        "--merge",
        action="store_true",
        help="put it into $KUBECONFIG or ~/.kube/config beside what is there, as a context with the cluster's domain; "
        "leads through `falsework forward`",
    )


def run(options: argparse.Namespace) -> int:
    site = site_in(options.dir)
    path = (options.dir / ADMIN_KUBECONFIG).resolve()
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FalseworkError(
            f"{path} is missing", cause="the site's assets are not made yet", fix="run `falsework up`"
        ) from None
    if options.path:
        print(path)
        return 0
    port = options.forwarded or (ports.API if options.merge else None)
    if port:
        content = redirected(content, f"https://{_LOOPBACK}:{port}", site.api_host)
    if options.merge:
        _merge(site, content)
    else:
        print(content.decode(), end="")
    _hint(options, port)
    return 0


def _merge(site: Site, content: bytes) -> None:
    target = Path((os.environ.get("KUBECONFIG") or "").split(":")[0] or Path.home() / ".kube" / "config")
    before = target.read_bytes() if target.exists() else b""
    write_file(target, merged(before, content, site.domain), 0o600)
    print(f"falsework: {target} has the context {site.domain}, and it is the current one", file=sys.stderr)


def _hint(options: argparse.Namespace, port: int | None) -> None:
    folder = f" --dir {options.dir}"
    if port:
        print(f"falsework: it leads through `falsework forward --port {port}{folder}`: let that run", file=sys.stderr)
    elif sys.stdout.isatty():
        print(
            "falsework: the API server is in the lab's network: `falsework kubectl` and `falsework shell` are in it; "
            "for programs of this host see --forwarded",
            file=sys.stderr,
        )
