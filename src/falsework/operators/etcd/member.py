"""etcd-member: the container of etcd's pod on a master. It finds out what etcd is to be started with, and becomes it.

So does every restart: what the last one was told may be true no longer.
"""

from __future__ import annotations

import argparse
import http.client
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.etcd import settings
from falsework.etcd.gateway import Gateway
from falsework.kube import access
from falsework.kube.connection import Patience
from falsework.operators.etcd.decision import Action
from falsework.operators.etcd.discovery import Discovery
from falsework.operators.etcd.member_config import Certificates, MemberConfig

_PATIENCE = Patience(connect=1.0, answer=4.0, whole=4.0)
_LOOK = 0.05


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="etcd-member", description=__doc__)
    parser.add_argument("--name", required=True, help="the member's name: the node's")
    parser.add_argument("--address", required=True, help="the node's")
    parser.add_argument("--endpoint", action="append", default=[], help="address of another member (several times)")
    parser.add_argument("--authority", required=True, help="whom members trust")
    parser.add_argument("--certificates", required=True, help="folder with etcd-{peer,serving}-<name>.{crt,key}")
    parser.add_argument("--data", default="/var/lib/etcd")
    parser.add_argument("--config", type=Path, required=True, help="the file to write")
    parser.add_argument("--etcd", type=Path, required=True, help="the program to become")
    parser.add_argument("--speed", default="", choices=[str(speed) for speed in settings.Speed])
    parser.add_argument("--max-learners", type=int, default=1)
    parser.add_argument("--quota-bytes", type=int, default=settings.QUOTA_BYTES)
    parser.add_argument("--listen", default="0.0.0.0", help="address to listen on")
    parser.add_argument("--metrics", default="127.0.0.1", help="address to tell its health on")
    options = parser.parse_args(words)
    certificates = Certificates(options.authority, options.certificates, options.name)
    config = MemberConfig(
        options.name,
        options.address,
        options.data,
        certificates,
        options.speed,
        options.max_learners,
        options.quota_bytes,
        options.listen,
        options.metrics,
    )
    try:
        gateway = _gateway(certificates, [address for address in options.endpoint if address != options.address])
        _end_when_told()
        if Discovery(config, gateway, options.config, _say).run() is Action.JOIN:
            catch_up(
                [str(options.etcd), f"--config-file={options.config}"], f"{options.metrics}:{settings.METRICS_PORT}"
            )
        _become(options.etcd, options.config)
    except FalseworkError as error:
        _say(str(error))
        return error.exit_code
    return 0


def _end_when_told() -> None:
    """A container's first process is not stopped by what it does not catch, and the kubelet would wait for long."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def catch_up(command: list[str], metrics: str) -> None:
    """A member that joins is sent a snapshot, and in it the word of its own that it is there. It does not recognise
    that, waits for it for seven seconds or more, and serves nobody meanwhile. Started again with what it was sent, it
    serves at once. So it only catches up at first."""
    with subprocess.Popen(command) as etcd:
        try:
            while etcd.poll() is None and not _has_caught_up(metrics):
                time.sleep(_LOOK)
        finally:
            etcd.terminate()
    if etcd.returncode not in (0, -signal.SIGTERM):
        raise FalseworkError(f"etcd ended with {etcd.returncode} before it had caught up")


def _has_caught_up(metrics: str) -> bool:
    """Whether it knows all that the leader knows. Learners are told apart from those that are ready, and that is no
    matter here."""
    connection = http.client.HTTPConnection(metrics, timeout=1)
    try:
        connection.request("GET", "/readyz?verbose")
        return b"[+]linearizable_read ok" in connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _become(etcd: Path, config: Path) -> None:
    try:
        os.execv(etcd, [etcd.name, f"--config-file={config}"])  # noqa: S606 - there is nothing for a shell to do
    except OSError as error:
        raise FalseworkError(f"{etcd} cannot be started", cause=str(error.strerror)) from None


def _gateway(certificates: Certificates, others: list[str]) -> Gateway:
    own = certificates.pair("peer")
    try:
        authority, certificate, key = (
            Path(path).read_bytes() for path in (certificates.authority, own["cert-file"], own["key-file"])
        )
    except OSError as error:
        raise FalseworkError(
            f"{error.filename} cannot be read",
            cause=str(error.strerror),
            fix="is this machine's name among those of Secret openshift-etcd/etcd-all-certs?",
        ) from None
    context = access.mutual(authority, certificate, key)
    urls = [settings.client_url(address) for address in others]
    return Gateway(lambda: urls, lambda: context, _PATIENCE)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
