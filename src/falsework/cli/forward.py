"""falsework forward: the lab's API server on a loopback port of the host, until interrupted."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

from falsework.assets.kubeconfig import redirected
from falsework.cli.lab_view import view_of
from falsework.cli.site_folder import add_folder_option
from falsework.errors import FalseworkError, UsageError
from falsework.files import write_file
from falsework.lab.folder import NETWORK
from falsework.machines.forward import forwarding
from falsework.machines.view import View
from falsework.site import ports


def register(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=ports.API, help="the host's port (default: %(default)s; 0: any)")
    parser.add_argument("--address", default="127.0.0.1", help="the host's loopback address (default: %(default)s)")
    add_folder_option(parser)


def run(options: argparse.Namespace) -> int:
    _require_loopback(options.address)
    if not 0 <= options.port < 1 << 16:
        raise UsageError(f"{options.port} is no port", fix="choose one from 1 to 65535, or 0 for any that is free")
    view = view_of(options.dir)
    view.require()
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_forward(view, options.address, options.port))
    return 0


def _require_loopback(address: str) -> None:
    try:
        is_loopback = IPv4Address(address).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise UsageError(
            f"{address} is not a loopback address",
            cause="the lab is for this host alone: others could come in through any other address",
            fix="leave --address out; from another host, use `ssh -L` to come to this one",
        )


async def _forward(view: View, address: str, port: int) -> None:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    target = (str(view.site.api_vip), ports.API)
    async with forwarding((address, port), view.lab.netns_path(NETWORK), target, _say) as chosen:
        with _kubeconfig(view, address, chosen) as path:
            _say(f"{address}:{chosen} leads to {view.site.api_host} until you press Ctrl-C")
            print(f"export KUBECONFIG={path}", flush=True)
            await asyncio.Event().wait()


@contextlib.contextmanager
def _kubeconfig(view: View, address: str, port: int) -> Iterator[Path]:
    """The administrator's, leading through the port; gone when the port is."""
    try:
        content, owner = view.kubeconfig.read_bytes(), view.kubeconfig.stat()
    except FileNotFoundError:
        raise FalseworkError(
            f"{view.kubeconfig} is missing", fix=f"run `falsework up --dir {view.lab.site_folder}`"
        ) from None
    path = view.kubeconfig.with_name(f"{view.kubeconfig.name}-{address}-{port}")
    write_file(path, redirected(content, f"https://{address}:{port}", view.site.api_host), 0o600)
    # Whoever may use the one may use the other.
    os.chown(path, owner.st_uid, owner.st_gid)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _say(sentence: str) -> None:
    print(f"falsework: {sentence}", file=sys.stderr, flush=True)
